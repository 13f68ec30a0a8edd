"""Units of apic-timer: the TSC's step, bounds of a skew, shares, lists of CPUs, ciphers, JSON."""

import errno
import json
import os
import random

import pytest
from kernel_texts import by_handler, histogram


def reads(step: int, residue: int, unique: bool, seed: int = 1) -> str:
    """Return values of a TSC that counts in steps, at random times; some within one step."""
    rng = random.Random(seed)
    true, last, values = 10**12, 0, []
    for _ in range(2000):
        true += rng.choice((20, 23, 31, 57, 90, 20000 if rng.random() < 0.01 else 40))
        value = true // step * step + residue
        # Like a CPU that makes values unique: one more than the last.
        last = last + 1 if unique and value <= last else value
        values.append(last)
    return "\n".join(map(str, values))


@pytest.mark.parametrize("step, residue", [(2, 1), (10, 0), (26, 13), (36, 5), (100, 99)])
@pytest.mark.parametrize("unique", [False, True])
def test_step(units, step, residue, unique):
    found, at = map(int, units("step", text=reads(step, residue, unique)).split())
    assert (found, at) == (step, residue)


def test_no_step(units):
    assert units("step", text=reads(1, 0, False)).split()[0] == "1"


@pytest.mark.parametrize("text", ["", "5", "5\n5\n5\n"])
def test_step_of_too_little(units, text):
    assert units("step", text=text).split()[0] == "1"


def rounds(skew: int, there: int, back: int, disturbed: bool) -> str:
    """Return messages in both roles between CPUs whose TSCs differ by `skew`.

    there, back: minimum cycles of a message from A to B, and from B to A
    """
    rng, lines, now = random.Random(2), [], 10**9
    for role, (out, home, ahead) in enumerate([(there, back, skew), (back, there, -skew)]):
        for _ in range(1000):
            late = [rng.randrange(40) for _ in range(2)]
            if disturbed and rng.random() < 0.2:
                late[rng.randrange(2)] += rng.randrange(10**6)
            arrives = now + out + late[0]
            lines.append(f"{role} {now} {arrives + ahead} {arrives + home + late[1]}")
            now += 10**7
    return "\n".join(lines)


@pytest.mark.parametrize("skew", [0, 1, -7, 300, -1000, 100000])
@pytest.mark.parametrize("there, back", [(140, 140), (100, 600)])
@pytest.mark.parametrize("disturbed", [False, True])
def test_skew(units, skew, there, back, disturbed):
    """The true skew is within the bounds, whose width is the length of the ways."""
    text = rounds(skew, there, back, disturbed)
    low, middle, high, trip = map(int, units("skew", text=text).split())
    assert low <= skew <= high
    assert high - low <= there + back + 10
    assert abs(middle - (low + high) // 2) <= max(there, back)
    assert there + back <= trip < there + back + 20


def test_no_skew_of_a_cpu_that_went_away(units):
    """A thread that was moved has compared another CPU's TSC."""
    assert units("moved").split() == ["1", "0"]


def test_skew_that_changes(units):
    """Contradictory bounds are reported."""
    text = rounds(0, 100, 100, False) + "\n" + rounds(5000, 100, 100, False)
    low, _, high, _ = map(int, units("skew", text=text).split())
    assert low > high


@pytest.mark.parametrize(
    "parts",
    [(1, 1, 1), (0, 0, 5), (13402, 332, 0), (1, 999, 1), (333, 333, 334), (10**15, 7, 10**14),
     (1, 2, 3, 4, 5, 6, 7), (2, 1, 0)],
)  # fmt: skip
def test_shares_add_up(units, parts):
    tenths = [int(n) for n in units("shares", *parts).split()]
    assert sum(tenths) == 1000
    for part, found in zip(parts, tenths, strict=True):
        assert abs(found - part * 1000 / sum(parts)) < 1
        assert part or not found


def test_shares_of_nothing(units):
    assert units("shares", 0, 0, 0).split() == ["0", "0", "0"]


@pytest.mark.parametrize(
    "text, expected",
    [("0", "0"), ("0-2,5", "0 1 2 5"), ("", ""), ("3,1", "1 3"), ("63", "63"), ("64", "none"),
     ("2-1", "none"), ("a", "none"), ("1-", "none"), ("1;2", "none"), ("-1", "none"),
     ("0-99999999999999999999", "none")],
)  # fmt: skip
def test_cpulist(units, text, expected):
    assert units("cpulist", text).split() == expected.split()


# Places of tables in the option --by of apic-timer memory.
SET, ALIGNMENT = 1, 2


@pytest.mark.parametrize("after, repetitions", [(0, 1), (1, 2), (18, 2)])
def test_misjudged_figures_are_measured_again(units, tmp_path, after, repetitions):
    """All of them: the shortest probe was wrong for each, whenever that is found out."""
    row, begun = units("memory", ALIGNMENT, after, tmp_path).splitlines()
    tables = json.loads(row)
    assert len(tables["by_alignment_l1"]) == len(tables["by_alignment_l2"]) == 9
    assert int(begun) == 18 * repetitions


def test_the_cache_is_that_of_the_cpu(units, tmp_path):
    """CPU 0 may have another core, or be offline."""
    own = max(os.sched_getaffinity(0))
    for cpu, ways, sets in (("cpu0", 4, 128), (f"cpu{own}", 12, 64)):
        cache = tmp_path / "sys/devices/system/cpu" / cpu / "cache/index0"
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "type").write_text("Data\n")
        (cache / "ways_of_associativity").write_text(f"{ways}\n")
        (cache / "number_of_sets").write_text(f"{sets}\n")
    row = units("memory", SET, 0, tmp_path, cpu=own).splitlines()[0]
    first, *_ = json.loads(row)["by_set"]
    assert (first["stride"], first["nodes"]) == (4096, 6)


@pytest.mark.parametrize("possible", [1, 1024, 1025, 8192])
def test_allowed_cpus(units, possible):
    """The kernel may have more CPUs than a cpu_set_t has room for."""
    ends = [part.split("-") for part in units("allowed", possible).strip().split(",")]
    found = {cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)}
    assert found == {cpu for cpu in os.sched_getaffinity(0) if cpu < 1024}


def test_an_interval_has_its_own_drops(units, tmp_path):
    """The kernel counts since the start; top prints them next to the expiries of an interval."""
    (tmp_path / "since").write_text(histogram([by_handler("f", 1, 10)], hits=110, dropped=100))
    (tmp_path / "until").write_text(histogram([by_handler("f", 1, 15)], hits=118, dropped=103))
    assert units("between", tmp_path / "since", tmp_path / "until").split() == ["8", "3"]


@pytest.mark.parametrize("arguments, expected", [
    # The first two examples of Rivest's paper, and a well-known one for DES.
    (("rc5", "0", "0", "0", "0", "0", "0"), "EEDBA521 6D8F4B15"),
    (("rc5", "EEDBA521", "6D8F4B15", "19465F91", "51B241BE", "01A55563", "91CEA910"),
     "AC13C0F7 52892B5B"),
    (("des", "133457799BBCDFF1", "0123456789ABCDEF"), "85E813540F0AB405"),
    # A weak key: encryption undoes itself.
    (("des", "0101010101010101", "95F8A5E5DD31D900"), "8000000000000000"),
    (("des", "0101010101010101", "8000000000000000"), "95F8A5E5DD31D900"),
])  # fmt: skip
def test_ciphers(units, arguments, expected):
    assert units("encrypt", *arguments).strip() == expected


@pytest.mark.parametrize("cipher", ["rc5", "des"])
@pytest.mark.parametrize("number", [2, 1000, 4097])
def test_a_search_finds_its_key(units, cipher, number):
    """It is found once among the keys of the measured loop."""
    assert units("search", cipher, number).split() == ["0", "1"]


def test_period_whose_sleep_fails(units):
    """It stays where it was, so that the next call counts the moments that were skipped."""
    assert units("period", 10**9, 1000).split() == [str(-errno.EBADF), "0"]


@pytest.mark.parametrize("largest, early, buckets, quantiles", [
    (0, 0, [], [0, 0, 0]),
    (6, 0, [50, 0, 0, 50], [0, 6, 6]),
    (0, 49, [51], [0, 0, 0]),
    (0, 50, [50], [-1, 0, 0]),  # mode mean
    (900, 90, [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4], [-1, 900, 900]),
    (5, 199, [0, 0, 0, 1], [-1, -1, 5]),
    (0, 100, [], [-1, -1, -1]),
])  # fmt: skip
def test_counted_quantiles(units, largest, early, buckets, quantiles):
    """An error below 0 is early, not 0."""
    found = units("counted", largest, early, *buckets)
    assert [int(n) for n in found.split()] == quantiles


@pytest.mark.parametrize("passed", [0, 1])
def test_no_period(units, passed):
    assert units("period", 0, passed).split() == [str(-errno.EINVAL), "0"]


@pytest.mark.parametrize("text, read", [
    ('a "b" \\c\x01\n\x7f', None),
    ("Gr\u00fc\u00dfe \u20ac \U0001f600", None),
    (b"cut \xc3", "cut \ufffd"),
    (b"alone \x80 \xff", "alone \ufffd \ufffd"),
    (b"too long \xc0\xaf", "too long \ufffd\ufffd"),
    (b"half a pair \xed\xa0\x80", "half a pair \ufffd\ufffd\ufffd"),
    (b"too much \xf4\x90\x80\x80", "too much " + 4 * "\ufffd"),
])  # fmt: skip
def test_json(units, text, read):
    """Text is UTF-8, and valid JSON for any bytes; what is no number is null."""
    assert json.loads(units("json", os.fsdecode(text))) == [text if read is None else read, None]
