"""Report at the end of a run whether docs/results was made from other sources than were tested."""

from docs.results import made


def pytest_terminal_summary(terminalreporter):
    found = made.stale()
    if found:
        terminalreporter.section("results")
        terminalreporter.write_line("\n".join(found))
