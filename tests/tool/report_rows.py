"""Rows as commands of apic-timer write them, and a folder with them, for `report --draw`."""

import json
from pathlib import Path

THREE = {"p50": 10, "p99": 20, "p999": 25, "max": 30}
COUNTS = {"early": 0, "p50": 7, "p99": 15, "max": 13, "powers_of_2": [0, 0, 4, 90, 6]}
SAW = [25 + (7 * i) % 26 for i in range(160)]
LOOP = {"of": "loop", "cpu": 0, "tsc_step": 26, "caches": "as they are", "rows": [
    {"way": way, "n": 500, "min": 25, "p1": 26, "p50": 58, "p90": 75, "p99": 102, "max": 9000,
     "sd": 16.9, "period": 26, "repeats": 0.36, "turn": 1.42,
     "first": SAW} for way in ("rdtsc", "counted")]}  # fmt: skip
CHAIN = {"cpu": 0, "load": None, "rows": [
    {"trigger": trigger, "route": route, "shots": 100, "disorder": 0, "entry": THREE,
     "length": THREE, "wake": THREE, "user": THREE,
     "entry_buckets": [[-1, 2], [2, 90], [640, 8]], "user_buckets": [[3072, 91], [65536, 9]]}
    for trigger in ("apic", "hrtimer") for route in ("direct", "tasklet", "thread")] + [
    {"trigger": "apic", "route": "device", "shots": 100, "disorder": 0, "user": THREE,
     "user_buckets": [[2, 99], [12, 1]]}]}  # fmt: skip
CYCLES = {"tsc_per_core_cycle": 0.7, "tsc_step": 26, "runs": 5, "rows": [
    {"loop": "ROL", "cycles": 1.0, "ipc": 3.0, "lowest": 1.0, "highest": 1.0,
     "spread_percent": 0.01, "cycles_1998": ["2", "2", "3"]}], "searches": [
    {"cipher": cipher, "cycles": cycles, "kkeys_per_s": 8860.9, "lowest": cycles,
     "highest": cycles, "spread_percent": 0.07}
    for cipher, cycles in (("RC5", 473.4), ("DES", 268.3))]}  # fmt: skip
MEMORY = {"runs": 5, "by_size": [
    {"kib": kib, "cycles": 4.0 + kib / 100, "spread_percent": 0.5} for kib in (4, 64, 1024)],
    "by_set": [{"stride": 4096, "nodes": 9, "cycles": 30.7, "spread_percent": 0.6}],
    **{f"by_alignment_{cache}": [{"offset": offset, "cycles": cycles, "spread_percent": 0.1}
                                 for offset, cycles in ((0, within), (60, across))]
       for cache, within, across in (("l1", 4.04, 5.03), ("l2", 12.97, 18.99))}}  # fmt: skip
CLOCKS = {"tsc_khz": 2000000, "clocksource": "tsc", "tsc_step": 26, "clocks": [
    {"name": "rdtsc", "cycles_p50": 25.1, "cycles_p99": 26.0, "step": 26, "step_unit": "cycles"},
    {"name": "REALTIME", "cycles_p50": 62.5, "cycles_p99": 70.0, "step": 1, "step_unit": "ns"},
    {"name": "(getppid)", "cycles_p50": 435.0, "cycles_p99": 500.0, "step": 0, "step_unit": ""}],
    "skew": [{"cpu": 1, "against": 0, "low": -77, "high": 81, "middle": 2, "round_trip": 158,
              "residue": 3, "changed": False}]}  # fmt: skip
PIO = {
    "cpu": 0,
    "nothing": 50,
    "rows": [
        {"access": "rtc", "what": "the clock", "cycles": 2048, "p5": 2000, "p99": 2100, "max": 9000}
    ],
}


def timer(period: int, behind: str, mode: str = "raw") -> dict:
    """Return rows of `accuracy periodic`."""
    return {"of": "periodic", "mode": mode, "period_us": period, "behind": behind,
            "caches": "as they are", "keep": "all", "n": 200, "kept": 200, "missed": 0,
            "errors": COUNTS, "bodies": COUNTS, "error": THREE, "error_min": 3, "error_sd": 4.5,
            "body": THREE, "body_min": 9, "body_period": 8, "body_repeats": 0.92,
            "first": [400 + i % 8 for i in range(200)]}  # fmt: skip


def doctor(hypervisor: str) -> dict:
    """Return rows of `doctor`, for a machine whose name has HTML syntax."""
    return {"cpu": "CPU <b>&\"x\"</b>", "hypervisor": hypervisor, "tsc_khz": 2000000, "findings": [
        {"id": "tsc.step", "level": "note", "finding": "steps of 26", "cost_cycles": 26},
        {"id": "module", "level": "ok", "finding": "is well", "read": "", "cost_cycles": None},
    ]}  # fmt: skip


ALL = {
    "clocks": CLOCKS, "cycles": CYCLES, "memory": MEMORY,
    "pio": PIO, "loop": LOOP, "loop-walk": LOOP, "100-nop": timer(100, "nop"),
    "15-cpuid": timer(15, "cpuid"), "100-nop-exact": timer(100, "nop", "exact"),
    "chain": CHAIN, "chain-load": CHAIN,
}  # fmt: skip
# As of the lab's plug-ins: tools/lab/run/modelled.py and ports.py
MODEL = {"caches": [
    {"of": "L1D", "kib": 32, "ways": 8, "line": 64, "cycles": 0},
    {"of": "L2", "kib": 256, "ways": 8, "line": 64, "cycles": 10},
    {"of": "TLB", "kib": 256, "ways": 4, "line": 4096, "cycles": 20},
    {"of": "memory", "banks": 8, "row_kib": 8, "open": 60, "closed": 100, "refresh_each": 7800,
     "refresh": 350}]}  # fmt: skip
BODIES = {"first_bodies": [30 + 10 * (i % 8 == 0) for i in range(200)]}
STORED = {"steps": [{"samples": 8, "bytes": 64, "cycles": 31},
                    {"samples": 512, "bytes": 4096, "cycles": 19}],
          "lines": [[8 * n, 110 + 20 * (n % 64 == 0)] for n in range(200)], "lines_most": 177,
          "lines_left_out": 3}  # fmt: skip
OFF = {"caches": "off", "error": {**THREE, "p50": 17_000}}
MODELLED = {
    "model": MODEL, "loop": LOOP, "loop-off": {**LOOP, "caches": "off"},
    "100-nop": timer(100, "nop"), "15-nop-off": {**timer(15, "nop"), **OFF},
    "15-nop-stored": {**timer(15, "nop"), **BODIES, **STORED},
    "15-nop-counted": {**timer(15, "nop"), **BODIES, "keep": "none"},
}  # fmt: skip
PORTS = {"accesses": 90_000, "clock": [
    {"cycles": 0, "way": "out", "port": "0x70", "value": 10, "by": "rtc_cmos_read"},
    {"cycles": 1, "way": "in", "port": "0x71", "value": 38, "by": "rtc_cmos_read"}],
    "ports": [{"port": "0x42", "in": 71_000, "out": 3, "by": "pit_hpet_ptimer"}]}  # fmt: skip
MACHINES = {"hardware": "", "guest": "KVMKVMKVM", "virtual-time": "TCGTCGTCGTCG"}


def write(folder: Path, machines: dict[str, str] = MACHINES) -> Path:
    """Write the rows of machines, by hypervisor; return the folder."""
    for name, hypervisor in machines.items():
        rows = folder / "rows" / name
        rows.mkdir(parents=True)
        for file, row in {"doctor": doctor(hypervisor), **ALL}.items():
            (rows / f"{file}.json").write_text(json.dumps(row))
    return folder


def write_lab(folder: Path) -> Path:
    """Write the rows that only the lab has, and those of all machines; return the folder."""
    write(folder)
    (folder / "rows/virtual-time/ports.json").write_text(json.dumps(PORTS))
    (folder / "rows/modelled").mkdir()
    for file, row in MODELLED.items():
        (folder / f"rows/modelled/{file}.json").write_text(json.dumps(row))
    return folder
