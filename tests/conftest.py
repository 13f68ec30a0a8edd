"""Options of the tests, and their end."""

from lab.background import heed_signals


def pytest_addoption(parser):
    parser.addoption(
        "--matrix", action="store_true",
        help="also the machines, and the tests in them, that take long: see lab/machines.py",
    )  # fmt: skip


def pytest_configure(config):
    heed_signals()
    config.addinivalue_line("markers", "matrix: takes long, left out without --matrix")


def pytest_collection_modifyitems(config, items):
    if config.option.matrix:
        return
    left_out = [item for item in items if item.get_closest_marker("matrix")]
    items[:] = [item for item in items if not item.get_closest_marker("matrix")]
    config.hook.pytest_deselected(items=left_out)
