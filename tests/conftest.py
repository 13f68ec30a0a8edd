"""Options of the tests, their end, and what those of several directories need."""

import tempfile
from pathlib import Path

import pytest
from lab.background import heed_signals
from lab.cache import cache_dir


def pytest_addoption(parser):
    parser.addoption(
        "--matrix", action="store_true",
        help="also the machines, and the tests in them, that take long: see lab/machines.py",
    )  # fmt: skip
    parser.addoption(
        "--no-second-try", action="store_true",
        help="a test that fails once has failed: see lab/second_try.py",
    )  # fmt: skip


def pytest_configure(config):
    heed_signals()
    config.addinivalue_line("markers", "matrix: takes long, left out without --matrix")


def pytest_collection_modifyitems(config, items):
    if config.option.matrix:
        return
    left_out = [item for item in items if item.get_closest_marker("matrix")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def scratch():
    """Yield a directory for big things."""
    with tempfile.TemporaryDirectory(dir=cache_dir("scratch")) as directory:
        yield Path(directory)
