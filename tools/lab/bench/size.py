"""How much the benchmark measures: full, short, or limited to the time that tests have."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """Counts are per seed, that is per boot; a row combines the seeds."""

    seeds: tuple[int, ...]
    loads: tuple[str, ...]  # of `error`
    shots: int  # per row of `error`
    jiffy_shots: int  # the same for timer_list, under load
    distances: dict[int, int]  # ns -> shots
    periods: tuple[int, ...]  # ns
    period_ms: int  # duration of each
    pending: tuple[int, ...]  # numbers of timers pending while operations are measured
    operations: int  # how many times each is measured
    guest_shots: int  # per kind of timer that `guest` measures
    guest_seconds: int  # time in which idle wake-ups are counted
    spin_seconds: int  # duration of each rate
    quantiles: tuple[int, ...]  # of `spin`, in 1/10000
    chain_shots: int  # per series of `chain`, in one boot


FULL = Size(
    seeds=(1, 2, 3, 4, 5),
    loads=("idle", "user", "syscall", "net", "timers", "irqoff"),
    shots=20_000,
    jiffy_shots=200,
    distances={1_000: 2000, 2_000: 2000, 5_000: 2000, 10_000: 2000, 100_000: 2000,
               1_000_000: 2000, 100_000_000: 1000, 1_000_000_000: 500, 10_000_000_000: 300,
               60_000_000_000: 200},
    periods=(100_000, 17_000, 15_000, 10_000, 5_000, 3_000, 2_500, 2_000, 1_500, 1_000),
    period_ms=10_000,
    pending=(1, 10, 100, 1000, 10_000, 100_000, 1_000_000),
    operations=1000,
    guest_shots=10_000,
    guest_seconds=10,
    spin_seconds=10,
    quantiles=(9000, 9900, 9990, 9999, 10_000),
    chain_shots=10_000,
)  # fmt: skip

SHORT = Size(
    seeds=(1,),
    loads=FULL.loads,
    shots=2_000,
    jiffy_shots=50,
    distances={ns: 100 if ns < 1_000_000_000 else 30 for ns in FULL.distances},
    periods=(100_000, 10_000, 5_000, 2_000, 1_000),
    period_ms=200,
    pending=(1, 1000, 100_000),
    operations=200,
    guest_shots=1_000,
    guest_seconds=10,
    spin_seconds=1,
    quantiles=(9000, 10_000),
    chain_shots=300,
)
