// SPDX-License-Identifier: GPL-2.0
/*
 * The page of a report: what the papers have found, what was found here, and what
 * that is worth.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "report.h"
#include "say.h"
#include "version.h"

static FILE *page;

static const char style[] =
":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--muted:#57606a;--line:#d0d7de;"
"--box:#f6f8fa;--s0:#0969da;--s1:#bc4c00;--s2:#1a7f37;--s3:#8250df}\n"
"@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--muted:#9198a1;"
"--line:#30363d;--box:#161b22;--s0:#58a6ff;--s1:#f0883e;--s2:#3fb950;--s3:#bc8cff}}\n"
"*{box-sizing:border-box}body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--bg);"
"color:var(--fg);font:16px/1.5 system-ui,sans-serif}\n"
"h1{font-size:1.6rem}h2{border-bottom:1px solid var(--line);margin-top:2.5rem}"
"h3{margin-bottom:.3rem}p{max-width:46rem}a{color:var(--s0)}\n"
".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;"
"font-variant-numeric:tabular-nums;min-width:min(100%,26rem)}\n"
"th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:right;"
"white-space:nowrap}th:first-child,td:first-child,.text{text-align:left}\n"
"td.long{white-space:normal;min-width:16rem}caption{text-align:left;color:var(--muted);"
"padding:.3rem 0}\n"
".panels{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,25rem),1fr));"
"margin:1rem 0}figure{margin:0;max-width:44rem}svg{display:block;width:100%;height:auto}\n"
"svg text{fill:var(--fg);font-size:11px}.grid{stroke:var(--line);fill:none}"
"text.y{text-anchor:end}text.x{text-anchor:middle}text.head{font-size:13px;"
"font-weight:600}\n"
".line{fill:none;stroke:currentColor;stroke-width:1.2}.dots{fill:none;stroke:currentColor;"
"stroke-width:3;stroke-linecap:round}text.name{fill:currentColor}\n"
".s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}\n"
".paper,.claim{border-left:3px solid var(--line);background:var(--box);padding:.4rem .8rem;"
"max-width:46rem;margin:.6rem 0}.claim{border-color:var(--s0)}.claim.no{border-color:var(--s1)}\n";

static void out(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void out(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(page, format, arguments);
	va_end(arguments);
}

static void paper(const char *text)
{
	out("<p class=\"paper\"><b>The paper:</b> %s</p>\n", text);
}

/* What a figure follows from */
enum claim { CLAIM_PATH, CLAIM_CPU };

static void claim(const struct report_machine *machine, enum claim from)
{
	static const char * const texts[][4] = {
		[CLAIM_PATH] = {
			[REPORT_HARDWARE] = "Measured on hardware.",
			[REPORT_VIRTUAL] = "Measured in a virtual machine: what its host does is in it. "
					   "Medians may be claimed of such machines, maxima of none.",
			[REPORT_EMULATED] = "In virtual time, where an instruction is a cycle and a "
					    "nanosecond: lengths of paths, and their order. The same on "
					    "each run. Nothing of caches, and no nanosecond of hardware.",
			[REPORT_MODELLED] = "Modelled: the length of the path in virtual time, and what a "
					    "model of caches and memory adds to it. What caches do to "
					    "it, and after how many shots, may be claimed. The same on "
					    "each run. No figure of any CPU.",
		},
		[CLAIM_CPU] = {
			[REPORT_HARDWARE] = "Measured on hardware.",
			[REPORT_VIRTUAL] = "Measured in a virtual machine, by its CPU's own instructions: "
					   "rows whose runs are at most 2 % apart may be claimed of the "
					   "CPU, others are not figures of this machine.",
			[REPORT_EMULATED] = "Nothing of this in virtual time: an instruction is a cycle "
					    "there, whatever it does.",
		},
	};
	bool none = from == CLAIM_CPU && machine->engine == REPORT_EMULATED;

	out("<p class=\"claim%s\">%s</p>\n", none ? " no" : "", texts[from][machine->engine]);
}

static void machine_head(const struct report_machine *machine)
{
	out("<h3>");
	chart_text(page, machine->name);
	out("</h3>\n");
}

static void missing(const struct report_machine *machine, const char *command)
{
	if (machine->engine == REPORT_EMULATED || machine->engine == REPORT_MODELLED)
		return;
	out("<p>Not measured here: <code>apic-timer %s</code> needs the module apic_measure and root.</p>\n",
	    command);
}

/* Heads between bars; the first column has text, as have those that begin with a blank. */
static void table_begin(const char *caption, const char *heads)
{
	size_t length;

	out("<div class=\"wide\"><table><caption>%s</caption><tr>", caption);
	for (;;) {
		length = strcspn(heads, "|");
		out("<th%s>%.*s</th>", *heads == ' ' ? " class=\"text\"" : "",
		    (int)length, heads);
		if (!heads[length])
			break;
		heads += length + 1;
	}
	out("</tr>\n");
}

static void table_end(void)
{
	out("</table></div>\n");
}

static void cell_text(const char *text)
{
	out("<td>");
	chart_text(page, text);
	out("</td>");
}

/* Of a column of words that is not the first */
static void cell_word(const char *text)
{
	out("<td class=\"text\">");
	chart_text(page, text);
	out("</td>");
}

static void cell_long(const char *text)
{
	out("<td class=\"text long\">");
	chart_text(page, text);
	out("</td>");
}

static void cell_whole(double number)
{
	out("<td>%s</td>", commas(number));
}

static void cell_real(double number, int digits)
{
	out("<td>%.*f</td>", digits, number);
}

static void cell_of(const struct value *row, const char *key)
{
	if (value_has(row, key))
		cell_whole(value_number(row, key, 0));
	else
		out("<td>-</td>");
}

/* TSC cycles: a whole number where they are modelled */
static void cell_turn(const struct value *row)
{
	double turn = value_number(row, "turn", 0);

	if (turn == (int64_t)turn)
		cell_of(row, "turn");
	else
		cell_real(turn, 2);
}

/* p50 / p99 / max */
static void cell_three(const struct value *row, const char *key)
{
	const struct value *found = value_get(row, key);

	if (!found) {
		out("<td>-</td>");
		return;
	}
	out("<td>%s / %s / %s</td>", commas(value_number(found, "p50", 0)),
	    commas(value_number(found, "p99", 0)), commas(value_number(found, "max", 0)));
}

/* The machine, and what doctor finds of it */

static void about_model(const struct report_machine *machine)
{
	const struct value *caches = value_get(report_rows(machine, "model"), "caches"), *row;
	size_t i;

	out("<p>No machine, but a model of caches that the lab has computed with the code that ran in "
	    "virtual time. A hit in a first cache takes no longer than the instruction; everything "
	    "else is waited for, stores too. It has no prefetching, no store buffer and no order but "
	    "the program's. The TLB is for data; a walk takes its cycles, and those of an access to the "
	    "page's entry.</p>\n");
	table_begin("The model; cycles are those that an access takes longer", "cache|KiB|ways|line|cycles");
	for (i = 0; i < value_count(caches); i++) {
		row = value_item(caches, i);
		if (!strcmp(value_text(row, "of"), "memory"))
			continue;
		out("<tr>");
		cell_text(value_text(row, "of"));
		cell_of(row, "kib");
		cell_of(row, "ways");
		cell_of(row, "line");
		cell_of(row, "cycles");
		out("</tr>\n");
	}
	table_end();
	row = value_find(caches, "of", "memory");
	out("<p>Memory takes %s cycles in a row of %s KiB that is open, one in each of %s banks, and ",
	    commas(value_number(row, "open", 0)), commas(value_number(row, "row_kib", 0)),
	    commas(value_number(row, "banks", 0)));
	out("%s in another; each ", commas(value_number(row, "closed", 0)));
	out("%s cycles it is refreshed, and answers nobody for ",
	    commas(value_number(row, "refresh_each", 0)));
	out("%s.</p>\n", commas(value_number(row, "refresh", 0)));
}

static void about(const struct report_machine *machine)
{
	static const char * const engines[] = { "hardware", "virtual machine", "virtual time" };
	const struct value *doctor = report_rows(machine, "doctor");
	const struct value *findings = value_get(doctor, "findings"), *finding;
	size_t i;

	machine_head(machine);
	if (machine->engine == REPORT_MODELLED) {
		about_model(machine);
		return;
	}
	out("<p>%s: ", engines[machine->engine]);
	chart_text(page, value_text(doctor, "cpu"));
	out(", TSC %s kHz</p>\n", commas(value_number(doctor, "tsc_khz", 0)));
	if (!findings)
		return;
	table_begin("apic-timer doctor", "finding| what was found| costs, cycles");
	for (i = 0; i < value_count(findings); i++) {
		finding = value_item(findings, i);
		/* What can't be known is of no interest to who reads the page. */
		if (!strcmp(value_text(finding, "level"), "ok") ||
		    !strcmp(value_text(finding, "level"), "unknown"))
			continue;
		out("<tr>");
		cell_text(format_text("%s %s", value_text(finding, "level"),
				      value_text(finding, "id")));
		cell_long(value_text(finding, "finding"));
		if (value_number(finding, "cost_cycles", -1) >= 0)
			cell_of(finding, "cost_cycles");
		else
			out("<td>-</td>");
		out("</tr>\n");
	}
	table_end();
}

/* "Temporal accuracy and modern high performance processors", 1997 */

static void loop_table(const struct value *loop, const char *caption)
{
	const struct value *rows = value_get(loop, "rows"), *row;
	size_t i;

	if (!rows)
		return;
	table_begin(caption, "loop|min|p1|p50|p90|p99|max|sd|repeats after|how well|a turn");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		out("<tr>");
		cell_text(value_text(row, "way"));
		cell_of(row, "min");
		cell_of(row, "p1");
		cell_of(row, "p50");
		cell_of(row, "p90");
		cell_of(row, "p99");
		cell_of(row, "max");
		cell_real(value_number(row, "sd", 0), 1);
		if (value_number(row, "period", 0) > 0) {
			cell_of(row, "period");
			cell_real(value_number(row, "repeats", 0), 2);
		} else {
			out("<td>-</td><td>-</td>");
		}
		cell_turn(row);
		out("</tr>\n");
	}
	table_end();
}

static void shots_chart(const struct value *row, const char *key, size_t most, const char *title,
			const char *y)
{
	struct chart chart = { .title = title, .x = "shot", .y = y };
	const struct value *first = value_get(row, key);
	struct chart_line *line;
	size_t i;

	if (!value_count(first))
		return;
	line = chart_line(&chart, "");
	for (i = 0; i < value_count(first) && i < most; i++)
		chart_point(line, i, value_number(value_item(first, i), NULL, 0));
	chart_draw(page, &chart);
}

static void loop_charts(const struct value *loop)
{
	const struct value *rows = value_get(loop, "rows"), *row;
	size_t i;

	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		shots_chart(row, "first", SIZE_MAX,
			    format_text("Loop %s, caches %s", value_text(row, "way"),
					value_text(loop, "caches")), "TSC - target");
	}
}

static void loops(const struct report_machine *machine)
{
	const struct value *loop = report_rows(machine, "loop");

	machine_head(machine);
	if (!loop) {
		missing(machine, "accuracy loop");
		return;
	}
	claim(machine, CLAIM_PATH);
	if (machine->engine == REPORT_MODELLED)
		out("<p>The error is here that of the loop's own last reading of the TSC.</p>\n");
	else
		out("<p>The TSC counts in steps of %s here.</p>\n",
		    commas(value_number(loop, "tsc_step", 1)));
	loop_table(loop, "Caches as they are (figures 3, 5 and 7); cycles");
	loop_table(report_rows(machine, "loop-off"),
		   "Without caches (figure 4; across two lines: figure 6)");
	loop_table(report_rows(machine, "loop-walk"),
		   "After a walk through 512 KiB of other memory (instead of figure 4)");
	loop_table(report_rows(machine, "loop-flush"), "The loop flushed from the caches before each shot");
	out("<div class=\"panels\">\n");
	loop_charts(loop);
	loop_charts(report_rows(machine, "loop-off"));
	out("</div>\n");
}

static const char * const panels[] = {
	"100-nop", "100-cpuid", "15-nop", "15-cpuid", "100-nop-walk", "100-nop-flush",
	"100-nop-exact", "100-cpuid-exact", "15-nop-exact", "15-cpuid-exact", "100-nop-walk-exact",
	"100-nop-counted", "100-nop-off", "100-cpuid-off", "15-nop-off", "15-cpuid-off",
	"100-nop-walk-l1", "100-nop-walk-l3", "15-nop-stored", "15-nop-counted",
};

/* Few enough to see that each eighth differs */
#define BODIES	160

static const char *panel_title(const struct value *row)
{
	bool counted = !strcmp(value_text(row, "keep"), "none");

	return format_text("%s us, %s, %s, caches %s%s",
			   commas(value_number(row, "period_us", 0)), value_text(row, "mode"),
			   value_text(row, "behind"), value_text(row, "caches"),
			   counted ? ", samples counted" : "");
}

static void timer_row(const struct value *row)
{
	const struct value *error = value_get(row, "error");

	out("<tr>");
	cell_text(panel_title(row));
	cell_of(row, "n");
	cell_of(row, "error_min");
	if (!error)
		error = value_get(row, "errors");
	cell_of(error, "p50");
	cell_of(error, "p99");
	cell_of(error, "max");
	if (value_has(row, "error_sd"))
		cell_real(value_number(row, "error_sd", 0), 1);
	else
		out("<td>-</td>");
	cell_three(row, value_has(row, "body") ? "body" : "bodies");
	if (value_number(row, "body_period", 0) > 0)
		out("<td>%s (%.2f)</td>", commas(value_number(row, "body_period", 0)),
		    value_number(row, "body_repeats", 0));
	else
		out("<td>-</td>");
	out("</tr>\n");
}

/* Return: whether an error is more than the period, of a TSC that counts nanoseconds. */
static bool overrun(const struct report_machine *machine)
{
	const struct value *row;
	unsigned int i;

	for (i = 0; i < COUNT(panels); i++) {
		row = report_rows(machine, panels[i]);
		if (value_number(value_get(row, "error"), "p50", 0) >
		    1000 * value_number(row, "period_us", 0))
			return machine->engine == REPORT_MODELLED;
	}
	return false;
}

/* The paper's artefact */
static void steps(const struct value *row)
{
	const struct value *found = value_get(row, "steps"), *step;
	size_t i;

	if (!value_count(found))
		return;
	table_begin("Storing samples: how much longer the body is where one begins a line, and, of "
		    "those, where it begins a page; cycles", "each|bytes|longer by");
	for (i = 0; i < value_count(found); i++) {
		step = value_item(found, i);
		out("<tr>");
		cell_of(step, "samples");
		cell_of(step, "bytes");
		cell_of(step, "cycles");
		out("</tr>\n");
	}
	table_end();
	out("<p>Samples that begin a line, but are not drawn below, as something else took them above "
	    "%s cycles: ", commas(value_number(row, "lines_most", 0)));
	out("%s.</p>\n", commas(value_number(row, "lines_left_out", 0)));
}

static void lines_chart(const struct value *row)
{
	struct chart chart = { .title = "Body of the handler, samples that begin a line",
			       .x = "sample", .y = "cycles" };
	const struct value *lines = value_get(row, "lines"), *point;
	struct chart_line *line;
	size_t i;

	if (!value_count(lines))
		return;
	line = chart_line(&chart, "");
	for (i = 0; i < value_count(lines); i++) {
		point = value_item(lines, i);
		chart_point(line, value_number(value_item(point, 0), NULL, 0),
			    value_number(value_item(point, 1), NULL, 0));
	}
	chart_draw(page, &chart);
}

static void timers(const struct report_machine *machine)
{
	const struct value *row;
	unsigned int i;

	machine_head(machine);
	if (!report_rows(machine, panels[0])) {
		missing(machine, "accuracy periodic");
		return;
	}
	claim(machine, CLAIM_PATH);
	table_begin("A periodic timer: error of its handler, and its body (p50 / p99 / max); cycles",
		    "timer|n|min|p50|p99|max|sd|body|it repeats after");
	for (i = 0; i < COUNT(panels); i++) {
		row = report_rows(machine, panels[i]);
		if (row)
			timer_row(row);
	}
	table_end();
	if (overrun(machine))
		out("<p>Some errors are longer than the period: a CPU as slow as that could not keep up "
		    "with the timer. The guest that was modelled does, as it is not slowed down.</p>\n");
	if (machine->engine == REPORT_MODELLED)
		out("<p>The lead of mode exact is the guest's, learnt without what the model adds. A CPU as "
		    "slow as that learns to fire earlier.</p>\n");
	steps(report_rows(machine, "15-nop-stored"));
	out("<div class=\"panels\">\n");
	for (i = 0; i < COUNT(panels); i++) {
		row = report_rows(machine, panels[i]);
		shots_chart(row, "first", SIZE_MAX, row ? panel_title(row) : "",
			    "handler - expiry, cycles");
	}
	shots_chart(report_rows(machine, "15-nop-stored"), "first_bodies", BODIES,
		    "Body of the handler, samples stored", "cycles");
	shots_chart(report_rows(machine, "15-nop-counted"), "first_bodies", BODIES,
		    "Body of the handler, samples only counted", "cycles");
	lines_chart(report_rows(machine, "15-nop-stored"));
	out("</div>\n");
}

/* "Testing Reveals x86 Core Differences", 1998 */

static void cycles(const struct report_machine *machine)
{
	const struct value *found = report_rows(machine, "cycles");
	const struct value *rows = value_get(found, "rows"), *row, *then;
	size_t i, j;

	machine_head(machine);
	claim(machine, CLAIM_CPU);
	if (!rows)
		return;
	table_begin(format_text("Core cycles of a turn of each loop, with DEC and JNZ; %s runs",
				commas(value_number(found, "runs", 0))),
		    "loop|cycles|IPC|lowest|highest|spread, %|1998: Pentium II|P55C|K6");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		out("<tr>");
		cell_text(value_text(row, "loop"));
		cell_real(value_number(row, "cycles", 0), 3);
		cell_real(value_number(row, "ipc", 0), 2);
		cell_real(value_number(row, "lowest", 0), 3);
		cell_real(value_number(row, "highest", 0), 3);
		cell_real(value_number(row, "spread_percent", 0), 2);
		then = value_get(row, "cycles_1998");
		for (j = 0; j < 3; j++)
			cell_text(value_text(value_item(then, j), NULL));
		out("</tr>\n");
	}
	table_end();
}

static void searches(const struct report_machine *machine)
{
	const struct value *found = report_rows(machine, "cycles");
	const struct value *rows = value_get(found, "searches"), *row;
	size_t i;

	machine_head(machine);
	claim(machine, CLAIM_CPU);
	if (!rows)
		return;
	table_begin(format_text("Core cycles of a key; %s runs",
				commas(value_number(found, "runs", 0))),
		    "cipher|cycles|1,000 keys/s|lowest|highest|spread, %");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		out("<tr>");
		cell_text(value_text(row, "cipher"));
		cell_real(value_number(row, "cycles", 0), 1);
		cell_whole(value_number(row, "kkeys_per_s", 0));
		cell_real(value_number(row, "lowest", 0), 1);
		cell_real(value_number(row, "highest", 0), 1);
		cell_real(value_number(row, "spread_percent", 0), 2);
		out("</tr>\n");
	}
	table_end();
}

static void memory_table(const struct value *found, const char *key, const char *caption,
			 const char *first, const char *second)
{
	const struct value *rows = value_get(found, key), *row;
	size_t i;

	if (!rows)
		return;
	table_begin(caption, format_text("%s%s%s|cycles|spread, %%", first, second ? "|" : "",
					 second ? second : ""));
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		out("<tr>");
		cell_of(row, first);
		if (second)
			cell_of(row, second);
		cell_real(value_number(row, "cycles", 0), 2);
		cell_real(value_number(row, "spread_percent", 0), 2);
		out("</tr>\n");
	}
	table_end();
}

/* Within a line, and across two: a pointer of 8 bytes in a line of 64 */
#define WITHIN	0
#define ACROSS	60

/* Return: the cycles of a load at an offset in the line; -1 if there is no such row. */
static double load_at(const struct value *rows, double offset)
{
	const struct value *row;
	size_t i;

	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		if (value_number(row, "offset", -1) == offset)
			return value_number(row, "cycles", -1);
	}
	return -1;
}

/* The figures of the paper's table 3 that are known here, and ours. */
static void across_table(const struct value *found)
{
	static const struct {
		const char *key, *load;
		int then;
	} rows[] = {
		{ "by_alignment_l1", "L1 hit", 9 },
		{ "by_alignment_l2", "L1 miss, L2 hit", 38 },
	};
	double within, across;
	unsigned int i;

	table_begin("Cycles that a load across two lines takes longer", "load|here|1998: Pentium II");
	for (i = 0; i < COUNT(rows); i++) {
		within = load_at(value_get(found, rows[i].key), WITHIN);
		across = load_at(value_get(found, rows[i].key), ACROSS);
		out("<tr>");
		cell_text(rows[i].load);
		if (within >= 0 && across >= 0)
			cell_real(across - within, 2);
		else
			out("<td>-</td>");
		cell_whole(rows[i].then);
		out("</tr>\n");
	}
	table_end();
}

static void memory(const struct report_machine *machine)
{
	const struct value *found = report_rows(machine, "memory"), *sizes, *row;
	struct chart chart = { .title = "Latency of a load by size", .x = "KiB", .y = "core cycles",
			       .log_x = true, .log_y = true, .joined = true };
	struct chart_line *line;
	size_t i;

	machine_head(machine);
	claim(machine, CLAIM_CPU);
	if (!found)
		return;
	sizes = value_get(found, "by_size");
	line = chart_line(&chart, "");
	for (i = 0; i < value_count(sizes); i++) {
		row = value_item(sizes, i);
		chart_point(line, value_number(row, "kib", 1), value_number(row, "cycles", 1));
	}
	out("<div class=\"panels\">\n");
	chart_draw(page, &chart);
	memory_table(found, "by_size", "A ring through memory of a size", "kib", NULL);
	memory_table(found, "by_set", "Nodes that share a set of the L1 cache", "stride", "nodes");
	memory_table(found, "by_alignment_l1", "Offset in the line, L1 hit",
		     "offset", NULL);
	memory_table(found, "by_alignment_l2", "Offset in the line, L2 hit",
		     "offset", NULL);
	across_table(found);
	out("</div>\n");
}

/* "Systems Performance Measurement on PCI Pamette", 1997 */

static void buckets_line(struct chart *chart, const char *name, const struct value *buckets)
{
	struct chart_line *line = chart_line(chart, name);
	const struct value *bucket;
	size_t i;

	for (i = 0; i < value_count(buckets); i++) {
		bucket = value_item(buckets, i);
		chart_point(line, value_number(value_item(bucket, 0), NULL, 0),
			    value_number(value_item(bucket, 1), NULL, 0));
	}
}

static const struct value *chain_row(const struct value *found, const char *trigger,
				     const char *route)
{
	const struct value *rows = value_get(found, "rows"), *row;
	size_t i;

	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		if (!strcmp(value_text(row, "trigger"), trigger) &&
		    !strcmp(value_text(row, "route"), route))
			return row;
	}
	return NULL;
}

static void chain_chart(const struct value *idle, const struct value *loaded, const char *key,
			const char *route, const char *title)
{
	static const char * const triggers[] = { "apic", "hrtimer" };
	struct chart chart = { .title = title, .x = "TSC cycles", .y = "interrupts", .log_x = true,
			       .log_y = true, .joined = true };
	const struct value *row;
	unsigned int i;

	for (i = 0; i < COUNT(triggers); i++) {
		row = chain_row(idle, triggers[i], route);
		if (row)
			buckets_line(&chart, format_text("%s, idle", triggers[i]),
				     value_get(row, key));
		row = chain_row(loaded, triggers[i], route);
		if (row)
			buckets_line(&chart, format_text("%s, loaded", triggers[i]),
				     value_get(row, key));
	}
	chart_draw(page, &chart);
}

static void chain_table(const struct value *found, const char *caption)
{
	const struct value *rows = value_get(found, "rows"), *row;
	size_t i;

	if (!rows)
		return;
	table_begin(caption,
		    "trigger| route|shots|handler - expiry|handler|deferred - handler|thread - last|thread - expiry");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		out("<tr>");
		cell_text(value_text(row, "trigger"));
		cell_word(value_text(row, "route"));
		cell_of(row, "shots");
		cell_three(row, "entry");
		cell_three(row, "length");
		cell_three(row, "deferred");
		cell_three(row, "wake");
		cell_three(row, "user");
		out("</tr>\n");
	}
	table_end();
}

static void chain(const struct report_machine *machine)
{
	const struct value *idle = report_rows(machine, "chain");
	const struct value *loaded = report_rows(machine, "chain-load");

	machine_head(machine);
	if (!idle) {
		missing(machine, "chain");
		return;
	}
	claim(machine, CLAIM_PATH);
	out("<div class=\"panels\">\n");
	chain_chart(idle, loaded, "entry_buckets", "direct", "Handler - expiry (figure 4)");
	chain_chart(idle, loaded, "user_buckets", "direct", "Thread - expiry, woken by the handler");
	chain_chart(idle, loaded, "user_buckets", "tasklet",
		    "Thread - expiry, woken by a tasklet (figure 5)");
	chain_chart(idle, loaded, "user_buckets", "thread", "Thread - expiry, by a FIFO thread");
	if (chain_row(idle, "apic", "device"))
		chain_chart(idle, loaded, "user_buckets", "device",
			    "Thread - expiry, by /dev/apic_timer");
	out("</div>\n");
	chain_table(idle, "Idle; TSC cycles, p50 / p99 / max");
	chain_table(loaded, "Loaded; TSC cycles, p50 / p99 / max");
}

static void clock_table(const struct value *log)
{
	const struct value *accesses = value_get(log, "clock"), *row;
	size_t i;

	table_begin("One reading of the clock (figure 3)", "port| access|value|cycles| by");
	for (i = 0; i < value_count(accesses); i++) {
		row = value_item(accesses, i);
		out("<tr>");
		cell_text(value_text(row, "port"));
		cell_word(value_text(row, "way"));
		out("<td>%02x</td>", (unsigned int)value_number(row, "value", 0));
		cell_of(row, "cycles");
		cell_word(value_text(row, "by"));
		out("</tr>\n");
	}
	table_end();
}

static void clock_chart(const struct value *log)
{
	static const char * const ports[] = { "0x70", "0x71" };
	struct chart chart = { .title = "One reading of the clock", .x = "cycles", .y = "value" };
	const struct value *accesses = value_get(log, "clock"), *row;
	struct chart_line *line;
	unsigned int i;
	size_t j;

	for (i = 0; i < COUNT(ports); i++) {
		line = chart_line(&chart, ports[i]);
		for (j = 0; j < value_count(accesses); j++) {
			row = value_item(accesses, j);
			if (!strcmp(value_text(row, "port"), ports[i]))
				chart_point(line, value_number(row, "cycles", 0),
					    value_number(row, "value", 0));
		}
	}
	out("<div class=\"panels\">\n");
	chart_draw(page, &chart);
	out("</div>\n");
}

/* What was seen of a guest from outside */
static void port_log(const struct value *log)
{
	const struct value *rows = value_get(log, "ports"), *row;
	size_t i;

	out("<p class=\"claim\">Seen from outside, by a plug-in of the emulator, in virtual time: who "
	    "accesses what, and in which order. The same on each run. Only hardware has durations.</p>\n");
	clock_chart(log);
	clock_table(log);
	table_begin(format_text("From boot on: %s accesses",
				commas(value_number(log, "accesses", 0))),
		    "port|IN|OUT| most of them by");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		out("<tr>");
		cell_text(value_text(row, "port"));
		cell_of(row, "in");
		cell_of(row, "out");
		cell_word(value_text(row, "by"));
		out("</tr>\n");
	}
	table_end();
}

static void ports(const struct report_machine *machine)
{
	const struct value *rows = value_get(report_rows(machine, "pio"), "rows"), *row;
	const struct value *log = report_rows(machine, "ports");
	size_t i;

	machine_head(machine);
	if (log)
		port_log(log);
	if (!rows) {
		missing(machine, "pio");
		if (machine->engine == REPORT_EMULATED && !log)
			claim(machine, CLAIM_CPU);
		return;
	}
	claim(machine, CLAIM_CPU);
	table_begin("Cost of an access, TSC cycles", "access| what|p5|p50|p99|max");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		out("<tr>");
		cell_text(value_text(row, "access"));
		cell_long(value_text(row, "what"));
		cell_of(row, "p5");
		cell_of(row, "cycles");
		cell_of(row, "p99");
		cell_of(row, "max");
		out("</tr>\n");
	}
	table_end();
}

/* Timers of today, from the benchmark */

static void bench_made(const struct value *made)
{
	size_t i;

	out("<p>Made by");
	for (i = 0; i < value_count(made); i++) {
		const struct value *one = value_item(made, i);

		out("%s %s ", i ? "," : "", one->key ? one->key : "");
		chart_text(page, value_text(one, NULL));
	}
	out(".</p>\n");
}

static void bench(const struct value *found)
{
	const struct value *rows = value_get(found, "rows"), *row;
	size_t i;

	bench_made(value_get(found, "made"));
	table_begin("Error of a timer's handler under loads, TSC cycles",
		    "timer| mode| source| load|n|min|p50|p99|p99.9|max");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		if (strcmp(value_text(row, "bench"), "error") ||
		    strcmp(value_text(row, "unit"), "cycles"))
			continue;
		out("<tr>");
		cell_text(value_text(row, "timer"));
		cell_word(value_text(row, "mode"));
		cell_word(value_text(row, "source"));
		cell_word(value_text(row, "load"));
		cell_of(row, "n");
		cell_of(row, "min");
		cell_of(row, "p50");
		cell_of(row, "p99");
		cell_of(row, "p999");
		cell_of(row, "max");
		out("</tr>\n");
	}
	table_end();
}

/* "TSC resynchronization", 2011 */

/* What its 100,000,000 calls take, s */
static double calls(double cycles, double khz)
{
	return khz > 0 ? cycles * 1e8 / (khz * 1000) : 0;
}

static void clock_costs(const struct value *found)
{
	const struct value *rows = value_get(found, "clocks"), *row;
	double khz = value_number(found, "tsc_khz", 0), cycles;
	size_t i;

	table_begin("A read of each clock", "clock|cycles, p50|p99|100,000,000 take, s|step| of");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		cycles = value_number(row, "cycles_p50", 0);
		out("<tr>");
		cell_text(value_text(row, "name"));
		cell_real(cycles, 1);
		cell_real(value_number(row, "cycles_p99", 0), 1);
		cell_real(calls(cycles, khz), 1);
		if (value_number(row, "step", 0) > 0) {
			cell_of(row, "step");
			cell_word(value_text(row, "step_unit"));
		} else {
			out("<td>-</td><td>-</td>");
		}
		out("</tr>\n");
	}
	table_end();
}

static void skews(const struct value *found)
{
	const struct value *rows = value_get(found, "skew"), *row;
	size_t i;

	if (!value_count(rows))
		return;
	table_begin("TSCs of CPUs; cycles",
		    "CPU|against|apart at least|at most|round trip");
	for (i = 0; i < value_count(rows); i++) {
		row = value_item(rows, i);
		out("<tr>");
		cell_of(row, "cpu");
		cell_of(row, "against");
		cell_of(row, "low");
		cell_of(row, "high");
		cell_of(row, "round_trip");
		out("</tr>\n");
	}
	table_end();
}

static void clocks(const struct report_machine *machine)
{
	const struct value *found = report_rows(machine, "clocks");
	const char *source = value_text(found, "clocksource");

	machine_head(machine);
	if (!found)
		return;
	claim(machine, CLAIM_PATH);
	if (*source) {
		out("<p>The clocksource is ");
		chart_text(page, source);
		out(".</p>\n");
	}
	clock_costs(found);
	skews(found);
}

static const struct {
	const char *id, *title, *paper, *note;
	void (*draw)(const struct report_machine *machine);
	bool modelled;		/* whether the model has something for it */
} sections[] = {
	{ "machines", "The machines", NULL, NULL, about, true },
	{ "loop", "A loop over the TSC (1997, figures 3 to 8)",
	  "Temporal accuracy and modern high performance processors, on a Pentium Pro: errors of 0 "
	  "to 32 cycles, which repeat after 31 to 33 targets, the loop's length (figure 3); up to "
	  "256 with the caches off (4), more where the loop is not aligned (6); about 2 with a "
	  "table by the target (8).",
	  "Caches are not switched off here, as all CPUs of a machine would pay for it: other memory "
	  "is read before each shot instead, or the loop flushed from them. Only a model has none.",
	  loops, true },
	{ "timer", "A periodic timer (1997, figures 9 to 12)",
	  "The APIC timer at 100 and 15 us, with NOP or CPUID behind it: off by tens of cycles with "
	  "the caches on, more and with spikes without. A step of 11 cycles every 512 came from "
	  "storing the samples in a large array.",
	  "8 samples fill a cache line here, and 512 a page: where storing is slow, the body of each "
	  "8th handler is longer, that of each 512th most, and none where samples are only counted.",
	  timers, true },
	{ "keys", "Searches for a key (1998, table 1)",
	  "Testing Reveals x86 Core Differences compares the rates at which CPUs try keys of RC5 and "
	  "of DES.",
	  "By the programs of then; these are two loops in their place, as this compiler makes them. "
	  "RC5 with 12 rounds is rotations that wait for each other, DES is loads from tables and "
	  "XOR: what one takes next to the other tells how a core rotates. A rate is one thread's. The "
	  "paper's rates are known in print only: none is next to ours.",
	  searches, false },
	{ "cycles", "Core cycles of short loops (1998, table 2)",
	  "Testing Reveals x86 Core Differences; its figures are the last three columns.", NULL,
	  cycles, false },
	{ "memory", "Latency of loads (1998, table 3)",
	  "Across two lines a load took 9 cycles more on a Pentium II, 38 more where it missed the "
	  "L1 cache.",
	  "The paper's other figures are known in print only: these two are next to ours.", memory,
	  false },
	{ "chain", "From an interrupt to a thread (1997, figures 4 and 5)",
	  "Systems Performance Measurement on PCI Pamette, 10,000 interrupts on Windows NT: 98 % of "
	  "the service routines started within 30 us, 98 % of the threads ran within 200 us; the "
	  "tails exceeded 1 ms.", NULL, chain, false },
	{ "ports", "Accesses to hardware (1997)",
	  "On the bus an access to the clock's ports 0x70 and 0x71 took 33 to 41 cycles of the PCI "
	  "bus (figure 3), about 1 us.", NULL, ports, false },
	{ "clocks", "Reading clocks, and how far TSCs are apart (2011)",
	  "TSC resynchronization: 100,000,000 calls of gettimeofday() took 46 s with the TSC as the "
	  "clocksource, 140 s with the HPET; TSCs were kept within 300 cycles of CPU 0's.",
	  "REALTIME is what gettimeofday() reads.", clocks, false },
};

void report_page(FILE *file, const struct report_machine *machine, unsigned int count,
		 const struct value *benchmark)
{
	unsigned int i, j;

	page = file;
	out("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	    "<title>apic-timer: report</title>\n<style>\n%s</style></head>\n<body>\n"
	    "<h1>apic-timer: report</h1>\n"
	    "<p>Measured and drawn by apic-timer %s. Each section has what a paper found, then "
	    "what was found on each machine, and what that may be taken for.</p>\n<ul>\n", style,
	    APIC_TIMER_VERSION);
	for (i = 0; i < COUNT(sections); i++)
		out("<li><a href=\"#%s\">%s</a></li>\n", sections[i].id, sections[i].title);
	if (benchmark)
		out("<li><a href=\"#bench\">Timers under loads</a></li>\n");
	out("</ul>\n");
	for (i = 0; i < COUNT(sections); i++) {
		out("<section id=\"%s\">\n<h2>%s</h2>\n", sections[i].id, sections[i].title);
		if (sections[i].paper)
			paper(sections[i].paper);
		if (sections[i].note)
			out("<p>%s</p>\n", sections[i].note);
		for (j = 0; j < count; j++)
			if (sections[i].modelled || machine[j].engine != REPORT_MODELLED)
				sections[i].draw(&machine[j]);
		out("</section>\n");
	}
	if (benchmark) {
		out("<section id=\"bench\">\n<h2>Timers under loads</h2>\n");
		out("<p>From the benchmark, in the same boot for each load.</p>\n");
		bench(benchmark);
		out("</section>\n");
	}
	out("</body></html>\n");
}
