"""The program's path, its commands, and the files of a machine without faults."""

from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
TOOL = TREE / "build/tool/apic-timer"
COMMANDS = ("status", "hist", "top", "trace", "doctor", "clocks", "cycles", "memory",
            "accuracy", "chain", "pio", "bench", "report")  # fmt: skip

# A machine without faults. Files of debugfs are as the module writes them.
GOOD = {
    "sys/module/apic_timer/version": "0.1.0\n",
    "sys/module/apic_timer/parameters/late_ns": "1000\n",
    "sys/module/apic_timer/parameters/defer_ns": "20000\n",
    "sys/module/apic_timer/parameters/spin_budget_ns": "5000\n",
    "sys/module/apic_timer/parameters/busy_us": "500\n",
    "sys/module/apic_timer/parameters/watchdog_ms": "100\n",
    "sys/module/apic_timer/parameters/latency_qos": "Y\n",
    "sys/kernel/debug/apic_timer/info": (
        "cpu 0: source proxy, one-shot LAPIC timer, xAPIC, TSC 2000000 kHz, nonstop, stable\n"
        "cpu 1: source proxy, one-shot LAPIC timer, xAPIC, TSC 2000000 kHz, nonstop, stable\n"
        "TSC epoch: 0\ndefault mode: exact\nlatency requests: cpu 1 4 us\n"
    ),
    "sys/kernel/debug/apic_timer/lead": (
        "cpu 0: exact 4000, 5000 when the tick is stopped; mean 900 busy 950 idle 1200 stopped; "
        "defer 9000; dispatch 120 exact, 90 plain, call 20, learn 60, at once 30, steps 0\n"
        "cpu 1: exact 4200, 5100 when the tick is stopped; mean 900 busy 950 idle 1200 stopped; "
        "defer 9100; dispatch 120 exact, 90 plain, call 20, learn 60, at once 30, steps 0\n"
    ),
    "sys/kernel/debug/apic_timer/stats": (
        "cpu                         0            1\n"
        "added                    1200            7\n"
        "expired                  1199            5\n"
        "added_late                  3            0\n"
        "throttled                   0            0\n"
        "expired_late                0            0\n"
        "skipped                     0            0\n"
        "hw_dead                     0            0\n"
        "deferred                   12            1\n"
    ),
    "sys/kernel/debug/apic_timer/errors": "cycles cpu0 cpu1\n0..0 1000 5\n8..15 199 0\n",
    "sys/kernel/debug/apic_timer/pending": (
        "cpu 0: expires 91000, in 30000 cycles, flags 0x0, pace_tick [pacer]\n"
        "cpu 1: expires 81000, in 20000 cycles, flags 0x1, pace_tick [pacer]\n"
        "cpu 1: expires 99000, in 38000 cycles, flags 0x0, watch_tick\n"
    ),
    "sys/module/apic_clock/version": "0.1.0\n",
    "sys/kernel/debug/apic_clock/verdict": (
        "TSC constant, never stops; counts in steps of 1 cycles\n"
        "kernel trusts the TSC; its clocks use the TSC; its watchdog watches the TSC\n"
        "host none\nTSC_ADJUST equal or absent; one package\n"
        "skew known for 2 CPUs, unknown for 0 (0 contradictory); 0 is possible\n"
        "rate +12 ppb of the kernel's frequency, within 150; moved 0 times\n"
        "stops 0 found, ahead 0 times; 0 of these are certain\n"
        "cpu 0: TSC_ADJUST 0, residue 0 of 1, stops 0, lost 0 cycles, ahead 0\n"
        "cpu 1: TSC_ADJUST 0, residue 0 of 1\n"
        "reason no evidence against it\n"
        "verdict exact: moments on two CPUs are the same within 22 cycles\n"
    ),
    "sys/bus/cpu/uevent": "",
    "sys/devices/system/cpu/online": "0-1\n",
    "sys/devices/system/cpu/isolated": "\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/latency": "0\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/disable": "0\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/latency": "2\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C1\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/disable": "0\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/kernel/debug/sched/preempt": "none voluntary (full)\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
    "proc/stat": "cpu  100000 0 50000 800000 50 0 30 10 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n",
    "proc/cpuinfo": (
        "processor\t: 0\nflags\t\t: fpu tsc arat\nvmx flags\t: vnmi\n\n"
        "processor\t: 1\nflags\t\t: fpu tsc arat\nvmx flags\t: vnmi\n\n"
    ),
    "proc/irq/24/smp_affinity_list": "0-1\n",
    "proc/irq/25/smp_affinity_list": "0\n",
    "proc/sys/vm/percpu_pagelist_high_fraction": "1048576\n",
    "proc/zoneinfo": (
        "Node 0, zone      DMA\n        high     27\n  pagesets\n    cpu: 0\n"
        "              count: 0\n              high:  4\n              batch: 1\n"
        "Node 0, zone    DMA32\n        high     811\n  pagesets\n    cpu: 0\n"
        "              count: 93\n              high:  252\n              batch: 63\n"
        "    cpu: 1\n"
        "              count: 62\n              high:  252\n              batch: 63\n"
        "  vm stats threshold: 6\n"
    ),
    "dev/cpu_dma_latency": "",
    # Measurements of the machine.
    "native": (
        "vendor GenuineIntel\nname Example CPU\ninvariant 1\ndeadline 1\nkhz 2000000\n"
        "looked 0-1\nstep 1\ngap 9000\ngap_switched 0\ngaps 0\ngap_cpu 1\nsmis 0\nwake 120000\n"
        "wake_awake 100000\ncore_slept 1020\ncore_busy 1000\nclock 58\ntai 37\n"
    ),
}
