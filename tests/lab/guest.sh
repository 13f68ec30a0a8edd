# What the sections of a machine's script share. Plain sh: in virtual time it is busybox's.
MODULES=${MODULES:-/modules}
DEBUG=/sys/kernel/debug
TRACING=/sys/kernel/tracing

# Load a module of ours, unless it is there: load NAME [PARAMETER...]
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

# Unload all of ours that are loaded.
unload() {
	for name in busy stress selftest sample measure; do
		if [ -d "/sys/module/apic_timer_$name" ]; then
			rmmod "apic_timer_$name"
		fi
	done
	if [ -d /sys/module/apic_timer ]; then
		rmmod apic_timer
	fi
}

# Kernel log of this section
log() {
	dmesg | awk '/@begin@/ { n = 0 } { line[n++] = $0 } END { for (i = 0; i < n; i++) print line[i] }'
}

# Name of each CPU's tick device
tick_devices() {
	cat /sys/devices/system/clockevents/clockevent*/current_device
}

# Ticks of each CPU since boot, on one line
ticks() {
	awk '/LOC:/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) printf "%s ", $i; print "" }' \
		/proc/interrupts
}

# Seconds since boot
uptime() {
	cut -d ' ' -f 1 /proc/uptime
}

jiffies() {
	awk '$1 == "jiffies:" { print $2; exit }' /proc/timer_list
}
