"""Options of the tests."""


def pytest_addoption(parser):
    parser.addoption(
        "--matrix", action="store_true",
        help="also the machines, and the tests in them, that take long: see lab/machines.py",
    )  # fmt: skip
