# Common to all sections of a machine's script. Plain sh: in virtual time it is busybox's.

# Sections keep their files here. In an SMP guest, programs and modules go there too: starting one
# from the file system that it shares with this machine takes several times as long.
mkdir -p /dev/shm
if [ -n "$SHARED" ]; then
	mkdir /dev/shm/bin
	cp "$(command -v busybox)" /dev/shm/bin
	/dev/shm/bin/busybox --install -s /dev/shm/bin
	cp -r "$MODULES" /dev/shm/modules
	PATH=/dev/shm/bin:$PATH
fi
# Python keeps compiled files next to a source: compiling takes it seconds.
PROGRAMS=/dev/shm/programs
if [ -n "$SHARED" ] && [ -e "$SHARED/device.py" ]; then
	mkdir -p $PROGRAMS
	cp "$SHARED"/*.py $PROGRAMS
fi
# iproute2, its plug-in, and the sender. In virtual time they are installed.
NETWORK=
if [ -n "$SHARED" ] && [ -e "$SHARED/usr/sbin/tc" ]; then
	NETWORK=/dev/shm/network
	mkdir -p $NETWORK
	cp -r "$SHARED/usr" "$SHARED/lib64" $NETWORK
fi
export TC_LIB_DIR=$NETWORK/usr/lib/x86_64-linux-gnu/tc
# A prefix for their command line, if any: "nsenter -t PID -n", say.
IN=

# Run with its own libraries: network PROGRAM [ARGUMENT...]
network() {
	program=$NETWORK$1
	shift
	if [ -n "$NETWORK" ]; then
		set -- --library-path $NETWORK/usr/lib/x86_64-linux-gnu "$program" "$@"
		program=$NETWORK/lib64/ld-linux-x86-64.so.2
	fi
	# shellcheck disable=SC2086 # words
	$IN "$program" "$@"
}

# busybox has its own ip.
ip() {
	network /usr/bin/ip -c=never "$@"
}

tc() {
	network /usr/sbin/tc -c=never "$@"
}

udpsend() {
	$IN $NETWORK/usr/bin/udpsend "$@"
}

# Write a line to the kernel's log, with the sum of the CPUs' idle seconds.
mark() {
	read -r _ idle </proc/uptime
	echo "$1 $idle" >/dev/kmsg
}

MODULES=$([ -d /modules ] && echo /modules || echo /dev/shm/modules)
# shellcheck disable=SC2034 # for the sections
DEBUG=/sys/kernel/debug
# shellcheck disable=SC2034
TRACING=/sys/kernel/tracing

# The program apic-timer: in an initramfs, or in an SMP guest's shared directory.
# shellcheck disable=SC2034
TOOL=${SHARED:-}/apic-timer

# Load a module of ours, unless it is loaded: load NAME [PARAMETER...]
load() {
	if [ ! -d "/sys/module/$1" ]; then
		name=$1
		shift
		if [ "$name" = apic_timer ]; then
			set -- "source=$SOURCE" "$@"
		fi
		insmod "$MODULES/$name.ko" "$@"
	fi
}

# Unload all of our modules that are loaded.
unload() {
	if [ -d /sys/module/apic_timer_sink ]; then
		rmmod apic_timer_sink
	fi
	if [ -d /sys/module/sch_apic ]; then
		rmmod sch_apic
	fi
	for name in apic_calendar_pulse apic_calendar; do
		if [ -d "/sys/module/$name" ]; then
			rmmod "$name"
		fi
	done
	for name in dev train indirect crowd leave misbehave frequency sleep idle busy torture \
		selftest accuracy_test accuracy sample bench_ours bench; do
		if [ -d "/sys/module/apic_timer_$name" ]; then
			rmmod "apic_timer_$name"
		fi
	done
	for name in apic_measure apic_clock_test apic_fake_net apic_fake_phc apic_clock; do
		if [ -d "/sys/module/$name" ]; then
			rmmod "$name"
		fi
	done
	if [ -d /sys/module/apic_timer ]; then
		rmmod apic_timer
	fi
}

# Run a rule of one of the programs, in a process that has loaded them: rule MODULE NAME
rule() {
	if [ ! -p $PROGRAMS/status ]; then
		mkfifo $PROGRAMS/wanted $PROGRAMS/status
		# Not a child of this shell, and open at both ends: there is not always a writer.
		(cd $PROGRAMS && python3 rules.py device calendar_rules <>wanted >/dev/null 2>&1 &)
	fi
	echo "$1 $2" >$PROGRAMS/wanted
	read -r verdict <$PROGRAMS/status
	cat $PROGRAMS/output
	return "$verdict"
}

# Wait for the end of the torture, and print its verdict.
torture_result() {
	while grep -q ^running "$DEBUG/apic_timer_torture/result"; do
		sleep 0.2
	done
	cat "$DEBUG/apic_timer_torture/result"
}

# Wait for a command to succeed, for 20 s at most. On a busy machine a CPU may do nothing for most
# of a second, so wait for an event instead of a time: patiently COMMAND...
patiently() {
	patience=200
	until "$@"; do
		patience=$((patience - 1))
		[ "$patience" -gt 0 ] || return 1
		sleep 0.1
	done
}

# Kernel log of this section
log() {
	dmesg | awk '/@begin@/ { n = 0 } { line[n++] = $0 } END { for (i = 0; i < n; i++) print line[i] }'
}

# Name of each CPU's tick device
tick_devices() {
	cat /sys/devices/system/clockevents/clockevent*/current_device
}

# Ticks of each CPU since boot, on one line: from its LAPIC, or, the first interrupt, the HPET
ticks() {
	awk '/LOC:|^ *0:/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) sum[i] += $i; if (i > last) last = i }
		END { for (i = 2; i < last; i++) printf "%s ", sum[i]; print "" }' /proc/interrupts
}

# Seconds since boot
uptime() {
	cut -d ' ' -f 1 /proc/uptime
}

jiffies() {
	awk '$1 == "jiffies:" { print $2; exit }' /proc/timer_list
}
