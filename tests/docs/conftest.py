"""Say at the end of a run whether docs/results is of other sources than the tests have run on."""

from docs.results import made


def pytest_terminal_summary(terminalreporter):
    found = made.stale()
    if found:
        terminalreporter.section("results")
        terminalreporter.write_line("\n".join(found))
