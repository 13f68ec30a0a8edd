// SPDX-License-Identifier: GPL-2.0
/*
 * The page of a report: the findings of the papers, the results here, and how far
 * they are valid.
 */
#include "apic_version.h"
#include "chart.h"
#include "page/html.h"
#include "page/sections.h"
#include "report.h"
#include "say.h"

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

static const struct {
	const char *id, *title, *paper, *note;
	void (*draw)(const struct report_machine *machine);
	bool modelled;		/* the model has data for it */
} sections[] = {
	{ "machines", "The machines", NULL, NULL, draw_machine, true },
	{ "loop", "A loop over the TSC (1997, figures 3 to 8)",
	  "Temporal accuracy and modern high performance processors, on a Pentium Pro: errors of 0 "
	  "to 32 cycles, which repeat after 31 to 33 targets, the loop's length (figure 3); up to "
	  "256 with the caches off (4), more where the loop is not aligned (6); about 2 with a "
	  "table by the target (8).",
	  "Caches are not turned off here, because that would slow down all CPUs of a machine: "
	  "other memory is read before each shot instead, or the loop is flushed from the caches. "
	  "Only a model has no caches.",
	  draw_loops, true },
	{ "timer", "A periodic timer (1997, figures 9 to 12)",
	  "The APIC timer at 100 and 15 us, interrupting NOPs or CPUID: errors of tens of cycles "
	  "with the caches on, larger ones and spikes without. A step of 11 cycles every 512 "
	  "samples came from storing them in a large array.",
	  "8 samples fill a cache line here, and 512 a page: where storing is slow, every 8th body "
	  "of the handler is longer, and every 512th the longest; if samples are only counted, "
	  "none is.",
	  draw_timers, true },
	{ "keys", "Searches for a key (1998, table 1)",
	  "Testing Reveals x86 Core Differences compares the rates at which CPUs try keys of RC5 "
	  "and of DES.",
	  "The paper used programs of its time; these are two loops in their place, as this "
	  "compiler builds them. RC5 with 12 rounds consists of dependent rotations, DES of loads "
	  "from tables and XOR: their ratio shows how fast a core rotates. A rate is that of one "
	  "thread. The paper's rates are known in print only: none is shown here.",
	  draw_searches, false },
	{ "cycles", "Core cycles of short loops (1998, table 2)",
	  "Testing Reveals x86 Core Differences; its figures are the last three columns.", NULL,
	  draw_cycles, false },
	{ "memory", "Latency of loads (1998, table 3)",
	  "A load across two lines took 9 more cycles on a Pentium II, and 38 more if it missed "
	  "the L1 cache.",
	  "The paper's other figures are known in print only: just these two are shown here.",
	  draw_memory, false },
	{ "chain", "From an interrupt to a thread (1997, figures 4 and 5)",
	  "Systems Performance Measurement on PCI Pamette, 10,000 interrupts on Windows NT: 98 % "
	  "of the service routines started within 30 us, 98 % of the threads ran within 200 us; "
	  "the tails exceeded 1 ms.", NULL, draw_chain, false },
	{ "ports", "Accesses to hardware (1997)",
	  "On the bus an access to the clock's ports 0x70 and 0x71 took 33 to 41 cycles of the PCI "
	  "bus (figure 3), about 1 us.", NULL, draw_ports, false },
	{ "clocks", "Reading clocks, and the skew between TSCs (2011)",
	  "TSC resynchronization: 100,000,000 calls of gettimeofday() took 46 s with the TSC as "
	  "the clocksource, 140 s with the HPET; TSCs were kept within 300 cycles of CPU 0's.",
	  "REALTIME is what gettimeofday() reads.", draw_clocks, false },
};

void report_page(FILE *file, const struct report_machine *machine, unsigned int count,
		 const struct value *benchmark)
{
	unsigned int i, j;

	html_begin(file);
	html("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	     "<title>apic-timer: report</title>\n<style>\n%s</style></head>\n<body>\n"
	     "<h1>apic-timer: report</h1>\n"
	     "<p>Measured and drawn by apic-timer %s. Each section says what a paper found, then "
	     "what was found on each machine, and what may be concluded from it.</p>\n<ul>\n",
	     style, APIC_TIMER_VERSION);
	for (i = 0; i < COUNT(sections); i++)
		html("<li><a href=\"#%s\">%s</a></li>\n", sections[i].id, sections[i].title);
	if (benchmark)
		html("<li><a href=\"#bench\">Timers under loads</a></li>\n");
	html("</ul>\n");
	for (i = 0; i < COUNT(sections); i++) {
		html("<section id=\"%s\">\n<h2>%s</h2>\n", sections[i].id, sections[i].title);
		if (sections[i].paper)
			html_paper(sections[i].paper);
		if (sections[i].note)
			html("<p>%s</p>\n", sections[i].note);
		for (j = 0; j < count; j++)
			if (sections[i].modelled || machine[j].engine != REPORT_MODELLED)
				sections[i].draw(&machine[j]);
		html("</section>\n");
	}
	if (benchmark) {
		html("<section id=\"bench\">\n<h2>Timers under loads</h2>\n");
		html("<p>From the benchmark; the rows of a load are from one boot.</p>\n");
		draw_bench(benchmark);
		html("</section>\n");
	}
	html("</body></html>\n");
}
