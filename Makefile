# SPDX-License-Identifier: GPL-2.0
# Commands for people; Kbuild says what is built.
KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build

modules: ## build the modules for the running kernel, or KVER=... or KDIR=..., and tc's plug-in
	@test -e "$(KDIR)/Makefile" || { \
		echo "no kernel headers in $(KDIR): apt-get install linux-headers-$(KVER)" >&2; \
		exit 1; }
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" modules
	@if [ -e tools/tc ] && command -v $(CC) >/dev/null; then \
		$(MAKE) --no-print-directory build/tc/q_apic.so; \
	fi

# tc's plug-in for the qdisc "apic". It needs no header of the C library or of iproute2.
build/tc/q_apic.so: tools/tc/q_apic.c tools/tc/iproute2.h tools/tc/standin/linux/types.h \
		include/uapi/linux/sch_apic.h
	mkdir -p build/tc
	$(CC) -O2 -Wall -Wextra -ffreestanding -fPIC -shared -nostdlib -s -Itools/tc/standin \
		-Iinclude/uapi -o $@.new tools/tc/q_apic.c -lgcc
	mv $@.new $@

# Files that the kernel's own "make clean" removes, as far as a module's build makes them. Those in
# build/ are of a kernel, and take hours to make again; those of Python packages are not ours.
clean: ## remove what "make" built
	find . \( -path ./.git -o -path ./build -o -name '*venv' \) -prune -o -type f \
		\( -name '*.[aiso]' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name '.*.d' -o -name '.*.tmp' \
		-o -name '.tmp_*' -o -name '*.dwo' -o -name '*.gcno' -o -name '*.lst' -o -name '*.su' \
		-o -name '*.symtypes' -o -name '*.*.symversions' -o -name modules.order \
		-o -name Module.symvers \) -exec rm -f {} +
	rm -rf build/spin build/tc build/tool build/queue

install: ## install the modules by DKMS for all kernels, or KVER=..., and the program (root)
	packaging/install $(if $(filter file,$(origin KVER)),,"$(KVER)")
	packaging/install-tool

uninstall: ## undo every "make install" (root)
	packaging/uninstall

demo: ## show the timers at work in a virtual machine (VERBOSE=1: with the trace)
	tools/setup demo
	PYTHONPATH=tools python3 -m lab demo $(if $(VERBOSE),--verbose)

demo-shaper: ## shape a burst to 50 Mbit/s in a virtual machine, next to fq, tbf and htb
	tools/setup bench
	PYTHONPATH=tools "$$(tools/setup bench | tail -n 1)/bin/python3" -m lab demo-shaper

demo-calendar: ## run threads and a kernel function from a table, in a virtual machine
	tools/setup demo
	PYTHONPATH=tools python3 -m lab demo-calendar

# FIGURES=short takes minutes instead of hours.
figures: ## redo the figures of the paper of 2001, in build/figures (FIGURES=short)
	tools/setup bench
	PYTHONPATH=tools "$$(tools/setup bench | tail -n 1)/bin/python3" -m lab shaper \
		$(if $(filter short,$(FIGURES)),--short)

# REPORT=full has as many shots as the papers, and takes an hour.
report: ## write build/report: the papers' figures, in virtual time and here (REPORT=full)
	tools/setup demo
	PYTHONPATH=tools python3 -m lab report $(if $(filter full,$(REPORT)),--full)

# The last line of tools/setup's output is the path of the Python packages.
test: ## run all tests in virtual machines (STRICT=1: without second tries)
	tools/setup test
	PYTHONPATH=tools "$$(tools/setup test | tail -n 1)/bin/python3" -m pytest tests \
		$(if $(STRICT),--no-second-try)

test-quick: ## run the short tests, on two machines or none, for the edit loop
	tools/setup test
	PYTHONPATH=tools "$$(tools/setup test | tail -n 1)/bin/python3" -m pytest tests --quick

test-matrix: ## run all tests on more kernels and machines; results in build/matrix.json
	tools/setup test
	PYTHONPATH=tools "$$(tools/setup test | tail -n 1)/bin/python3" -m pytest tests --matrix \
		$(if $(STRICT),--no-second-try)

# A run of hours: HOURS=, KERNEL= (6.1, 7.2, ...), CPUS=, ARGS= (see `lab torture --help`).
torture: ## run random operations, and check every expiry (HOURS=1, KERNEL=6.1, CPUS=2)
	tools/setup test
	PYTHONPATH=tools "$$(tools/setup test | tail -n 1)/bin/python3" -m lab torture \
		--hours "$(or $(HOURS),1)" --kernel "$(or $(KERNEL),6.1)" \
		--cpus "$(or $(CPUS),2)" $(ARGS)

torture-shaper: ## send packets while everything changes, and account for each (PACKETS=160000)
	tools/setup test
	PYTHONPATH=tools PACKETS="$(PACKETS)" "$$(tools/setup test | tail -n 1)/bin/python3" -m pytest \
		tests/guest/test_shaper_torture.py --matrix --no-second-try -rP \
		-k "test_all_arrive and $(or $(KERNEL),6.1)-4cpu"

# BENCH=short takes minutes instead of hours. LAB=none: on this machine, as root, which needs none
# of the lab's rights.
BENCH_SETUP = tools/setup $(if $(filter none,$(LAB)),host,bench)
bench: ## measure accuracy and cost next to the kernel's timers (BENCH=short, LAB=none)
	$(BENCH_SETUP)
	$(if $(filter none,$(LAB)),$(MAKE) modules APIC_TIMER_TESTS=1)
	PYTHONPATH=tools "$$($(BENCH_SETUP) | tail -n 1)/bin/python3" -m lab bench \
		$(if $(filter short,$(BENCH)),--short) $(if $(filter none,$(LAB)),--host)

# BENCH=short as above. Commit what changes in docs/.
results: ## repeat all measurements of docs/results, in hours (BENCH=short)
	tools/setup test
	PYTHONPATH=tools "$$(tools/setup test | tail -n 1)/bin/python3" -m docs.results \
		$(if $(filter short,$(BENCH)),--short)
	PYTHONPATH=tools python3 -m docs

# Debian's archive drops these versions after some weeks; then the newest are used.
lock: ## renew tools/lab/packages.lock, the versions of all that the lab fetches
	tools/setup demo
	PYTHONPATH=tools python3 -m lab lock

docs: ## write the generated parts of README.md and docs/, and build/man
	PYTHONPATH=tools python3 -m docs

deb: ## build Debian packages in build/deb/{bookworm,trixie} (SUITE=trixie)
	tools/setup package
	PYTHONPATH=tools python3 -m lab package $(SUITE)

# CONFIG=file instead of Debian's configuration, which takes hours.
patched-deb: ## build Debian packages of a patched kernel in build/ (SERIES=6.1, CONFIG=file)
	tools/setup deb
	PYTHONPATH=tools python3 -m lab deb "$(or $(SERIES),6.1)" \
		$(if $(CONFIG),--config "$(CONFIG)")

# The module's own code in a process: tests/spin/kernel.h replaces the kernel's headers, except
# linux/types.h: libc uses that one too.
# The TSC's step is found as in the tool.
build/spin/spin: $(addprefix tests/spin/,spin.c first.S kernel.h table.h) $(wildcard module/core/*/*.[chS]) \
		$(addprefix user/tool/,tsc.c tsc.h say.c say.h)
	rm -rf build/spin/linux build/spin/asm
	mkdir -p build/spin/linux build/spin/asm
	touch $(patsubst %,build/spin/%.h,$(addprefix linux/,apic_timer bitfield bitops bits \
		build_bug cfi_types compiler export irq_work irqflags linkage lockdep minmax moduleparam \
		percpu preempt prefetch printk smp) asm/cpufeature asm/ibt asm/mwait asm/processor)
	for name in tsc say; do \
		$(CC) -O2 -Wall -c -o build/spin/$$name.o user/tool/$$name.c || exit; \
	done
	$(CC) -O2 -Wall -D_GNU_SOURCE -include tests/spin/kernel.h -Ibuild/spin -Iinclude \
		-iquote tests/spin -iquote module/core -iquote . -o $@ tests/spin/spin.c \
		tests/spin/first.S $(addprefix module/core/timers/,dispatch.c calibrate.c probe.S) \
		build/spin/tsc.o build/spin/say.o

# The wait of the programs' library.
build/spin/until: tests/spin/until.c tests/spin/table.h user/apic_timer_user.h \
		$(addprefix user/tool/,tsc.c tsc.h say.c say.h) include/uapi/linux/apic_timer.h
	mkdir -p build/spin
	$(CC) -O2 -Wall -Iinclude/uapi -iquote user/tool -iquote . -o $@ \
		tests/spin/until.c user/tool/tsc.c user/tool/say.c

spin: build/spin/spin build/spin/until ## measure the dispatch of an expiry on this CPU, in a process
	build/spin/spin
	@echo
	build/spin/until

# The same for queue.h and queue.c. For "count" the compiler's thread sanitizer reports memory
# accesses, except to tests/queue/main.c.
QUEUE_HEADERS := bitops bits build_bug compiler init ktime limits math64 notifier rbtree
QUEUE_CFLAGS := -O2 -Wall -D_GNU_SOURCE -D_APIC_TIMER_TSC_H -include tests/queue/kernel.h \
	-Ibuild/queue -Iinclude -iquote tests/queue -iquote module/core
build/queue/time build/queue/count: $(wildcard tests/queue/*.[ch]) module/core/lib/queue.c module/core/lib/queue.h \
		include/linux/apic_timer.h
	rm -rf build/queue/linux
	mkdir -p build/queue/linux
	touch $(patsubst %,build/queue/linux/%.h,$(QUEUE_HEADERS))
	$(CC) $(QUEUE_CFLAGS) -o build/queue/time tests/queue/*.c module/core/lib/queue.c
	for name in tests/queue/ops tests/queue/rbtree module/core/lib/queue; do \
		$(CC) $(QUEUE_CFLAGS) -fsanitize=thread -c \
			-o build/queue/$$(basename $$name).o $$name.c || exit; \
	done
	$(CC) $(QUEUE_CFLAGS) -DCOUNT -o build/queue/count tests/queue/main.c build/queue/*.o

queue: build/queue/time ## measure the queue of timers with cold caches, in a process
	build/queue/count
	build/queue/time

# One static program, which also runs where there is no libc, and its manual pages, by scdoc, and
# completion.
TOOL_DIR ?= build/tool
TOOL_CC ?= gcc
TOOL_CFLAGS := -std=gnu11 -O2 -Wall -Wextra -pthread
TOOL_LDFLAGS ?= -static
TOOL_SOURCES := $(wildcard user/tool/*.c user/tool/page/*.c)
$(TOOL_DIR)/apic-timer: $(TOOL_SOURCES) $(wildcard user/tool/*.h user/tool/page/*.h) \
		include/linux/apic_version.h include/uapi/linux/apic_measure.h \
		include/uapi/linux/apic_timer.h user/apic_timer_user.h
	mkdir -p $(TOOL_DIR)
	$(TOOL_CC) $(TOOL_CFLAGS) $(CPPFLAGS) $(CFLAGS) -iquote user/tool \
		-iquote include/uapi/linux -iquote include/linux -iquote user -Iinclude/uapi \
		-o $@.new $(TOOL_SOURCES) $(TOOL_LDFLAGS) $(LDFLAGS)
	mv $@.new $@

$(TOOL_DIR)/%.1: user/tool/man/%.1.scd
	mkdir -p $(TOOL_DIR)
	scdoc <$< >$@.new
	mv $@.new $@

$(TOOL_DIR)/completion.%: $(TOOL_DIR)/apic-timer
	$< --completion $* >$@.new
	mv $@.new $@

tool: $(TOOL_DIR)/apic-timer ## build the program apic-timer in build/tool

tool-pages: $(patsubst user/tool/man/%.scd,$(TOOL_DIR)/%,$(wildcard user/tool/man/*.scd))

tool-extras: tool-pages $(addprefix $(TOOL_DIR)/completion.,bash zsh) ## build its manual pages and completion there

check: ## run the static checks (ONLY="sparse ruff": those with these words in their names)
	tools/setup check
	PYTHONPATH=tools "$$(tools/setup check | tail -n 1)/bin/python3" tools/check $(ONLY)

help: ## print this help
	@sed -n 's|^\([a-z-]*\):[^#]*## |\1\t|p' Makefile | expand -t 15

.PHONY: modules clean install uninstall demo demo-calendar demo-shaper figures report test test-quick \
	test-matrix torture torture-shaper bench results lock \
	docs deb patched-deb spin queue tool tool-pages tool-extras check help
