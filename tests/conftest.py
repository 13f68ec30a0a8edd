"""Options of the tests, the end of a run, and fixtures that several directories need."""

import threading

import pytest
from lab.base import progress
from lab.base.background import heed_signals
from lab.base.cache import cache_dir, separate_cache, temporary
from machines import is_long

pytest_plugins = ["guests"]


def pytest_addoption(parser):
    parser.addoption(
        "--matrix", action="store_true",
        help="also the machines, and the tests in them, that take long: see harness/machines.py",
    )  # fmt: skip
    parser.addoption(
        "--quick", action="store_true",
        help="for the edit loop: what is not marked as long, on two machines and none",
    )  # fmt: skip
    parser.addoption(
        "--no-second-try", action="store_true",
        help="a test that fails once has failed: see harness/second_try.py",
    )  # fmt: skip
    parser.addoption(
        "--seed", type=int, help="of the machines in virtual time: another is another sample",
    )  # fmt: skip


def pytest_configure(config):
    heed_signals()
    config.addinivalue_line("markers", "matrix: takes long, left out without --matrix")
    config.addinivalue_line(
        "markers", "long(but=()): takes some seconds, left out with --quick; except some cases"
    )


def pytest_sessionstart(session):
    """Show what is fetched and built, because it takes minutes and pytest would capture it."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.option.capture != "no":
        progress.show.append(reporter.write_line)


def pytest_collection_modifyitems(config, items):
    if config.option.quick:
        left_out = [item for item in items if not _quick(item)]
    elif config.option.matrix:
        return
    else:
        left_out = [item for item in items if item.get_closest_marker("matrix")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _quick(item) -> bool:
    """Tell whether --quick takes a test; tests/harness/guests.py selects the machines."""
    if is_long(item) or item.get_closest_marker("matrix"):
        return False
    directory = item.path.parent.name
    if directory == "kunit":
        return item.callspec.params["target"] == "um"
    return directory != "patches"


@pytest.fixture
def own_cache(tmp_path):
    """Have a cache of its own for the test, but not for the threads that boot machines."""
    with separate_cache(tmp_path / "cache"):
        yield


@pytest.fixture
def patch_here(monkeypatch):
    """Replace a module's function, as monkeypatch does, but not for the threads that boot machines.

    patch_here(module, name, function)
    """
    here = threading.get_ident()

    def patch(module, name: str, function) -> None:
        usual = getattr(module, name)

        def either(*arguments, **more):
            return (function if threading.get_ident() == here else usual)(*arguments, **more)

        monkeypatch.setattr(module, name, either)

    return patch


@pytest.fixture
def scratch():
    """Yield a directory for large files."""
    with temporary("tmp", cache_dir("scratch")) as directory:
        yield directory
