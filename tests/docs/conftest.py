"""Say at the end of a run whether docs/results is of other sources than the tests have run on."""

from docs import results


def pytest_terminal_summary(terminalreporter):
    found = results.stale()
    if found:
        terminalreporter.section("results")
        terminalreporter.write_line("\n".join(found))
