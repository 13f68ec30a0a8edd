"""The second boot of a machine whose tests failed, without booting one."""

from functools import partial
from types import SimpleNamespace

import pytest
import second_try
from lab.errors import LostVM
from lab.result import Result
from machines import TABLE, Boot, Pool, Section, some

MACHINE = TABLE[0]
FIRST, SECOND = (Section(MACHINE, name, "true") for name in ("first", "second"))


@pytest.fixture
def pool():
    """Where two sections are asked of a machine; returns what is booted, too."""
    booted, lost = [], []

    def boot(machine, sections):
        booted.append([section.name for section in sections])
        ended = sections[: len(sections) - len(lost)]
        text = "".join(f"@begin@ {s.name}\n@end@ {s.name} 0\n" for s in ended)
        if lost:
            return Boot(1, None, LostVM(lost.pop(), text))
        return Boot(1, Result("ok", text, "", ""), None)

    pool = Pool(boot)
    pool.plan([FIRST, SECOND], [])
    yield pool, booted, lost
    pool.close()


def test_only_what_failed_runs_again(pool):
    pool, booted, _ = pool
    pool.start()
    pool.get(MACHINE)
    assert pool.again(MACHINE, SECOND).outcome(SECOND).status == 0
    assert booted == [["first", "second"], ["second"]]


def test_all_runs_again_once_after_a_loss(pool):
    pool, booted, lost = pool
    lost.append("no verdict")
    pool.start()
    with pytest.raises(LostVM):
        pool.get(MACHINE).outcome(SECOND)
    assert pool.again(MACHINE, SECOND).outcome(SECOND).status == 0
    assert pool.get(MACHINE).outcome(FIRST).status == 0
    assert booted == [["first", "second"]] * 2


def test_a_second_loss_is_final(pool):
    pool, booted, lost = pool
    lost += ["no verdict", "no verdict"]
    pool.start()
    for _ in range(2):
        with pytest.raises(LostVM):
            pool.again(MACHINE, SECOND).outcome(SECOND)
    assert booted == [["first", "second"]] * 2


def test_where_time_is_virtual_after_a_loss_only():
    markers = {}
    for machine in (*some(engine="smp", kernel="6.1", cpus=2, source="proxy"),
                    *some(engine="virtual", kernel="6.1", cpus=1, source="proxy")):  # fmt: skip
        callspec = SimpleNamespace(params={"machine": machine})
        add = partial(markers.setdefault, machine.engine)
        second_try.allow([SimpleNamespace(callspec=callspec, add_marker=add)])
    assert "only_rerun" not in markers["smp"].kwargs
    assert markers["virtual"].kwargs["only_rerun"] is LostVM
    assert all(marker.kwargs["reruns"] == 1 for marker in markers.values())
