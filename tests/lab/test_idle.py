"""Readings of a guest with idle states are parsed, and made into a page, correctly."""

from lab.run import idle

from docs.results import idle_page

OUTPUT = """\
state 0 0 1000 2000
state 1 0 0 5000000
state 0 0 1000 10002000
state 1 560000 600000 13840000
cycles cpu0 cpu1
0..0 5 0
65536..131071 5 5
"""


def test_shares():
    """Shares are of 10 s, and only of the time between the two readings."""
    assert idle.shares(OUTPUT.splitlines(), 10) == [[0.0, 0.0, 100.0], [5.6, 6.0, 88.4]]
    assert idle.latest(OUTPUT) == "65536..131071"


def test_page():
    row = {"setting": "latency_qos_us=0", "timers": [5.6, 6.0, 88.4], "other": [0.0, 0.0, 100.0],
           "error": "2..3"}  # fmt: skip
    page = idle_page.text({"rows": [row]})
    assert "state, of 20 s, or 10 s in short; with `/dev/cpu_dma_latency`, of 3 s.\n" in page
    assert "\n| parameter | its CPU: polling | its CPU: shallow | its CPU: deep | other" in page
    assert ("\n| `latency_qos_us=0` | 5.6 % | 6.0 % | 88.4 % | 0.0 % | 0.0 % | 100.0 % | 2..3 |\n"
            in page)  # fmt: skip
