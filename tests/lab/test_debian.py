"""Debian's archive is found among the repositories that this machine's apt knows."""

import os

import pytest
from lab.base.errors import LabError
from lab.kernels import debian

# apt reads files in the order of their names.
OTHERS = {
    "brave-browser.list": "deb [arch=amd64] https://brave.example/ stable main",
    "code.list": "deb [arch=amd64] https://code.example/repos/code stable main extra",
}
DEBIAN = {
    "debian.sources": """\
Types: deb deb-src
URIs: http://mirror.example/{path}
Suites: bookworm{more}
Components: main contrib

Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
"""
}
FOUND = ("http://mirror.example/debian/", "http://security.example/debian-security/")


@pytest.fixture
def apt(tmp_path, patch_here):
    """Return a function that gives apt these files and no lists; origins are those given."""
    usual = debian._run
    (tmp_path / "parts").mkdir()
    (tmp_path / "lists").mkdir()
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{tmp_path}/parts";\n'
        f'Dir::State::lists "{tmp_path}/lists";\nAPT::Architecture "amd64";\n'
        'APT::Architectures { "amd64"; };\n'
    )

    def configure(files, origins=""):
        for name, text in files.items():
            (tmp_path / "parts" / name).write_text(f"{text}\n")

        def run(argv, *_):
            if any("ORIGIN" in word for word in argv):
                return origins
            return usual(argv, {**os.environ, "APT_CONFIG": f"{tmp_path}/apt.conf"})

        patch_here(debian, "_run", run)

    return configure


def with_debian(path="debian", more=" bookworm-updates"):
    return OTHERS | {name: text.format(path=path, more=more) for name, text in DEBIAN.items()}


@pytest.mark.parametrize("files", [with_debian(), with_debian(more="")], ids=["updates", "path"])
def test_other_repositories_come_first(apt, files):
    apt(files)
    assert debian.mirrors() == FOUND


def test_known_by_its_origin(apt):
    """Its path and suites may be of any kind; apt has not fetched the lists of all."""
    apt(with_debian("mirror", ""), "https://brave.example/ Brave Software\n"
        "http://mirror.example/mirror/ Debian\n")  # fmt: skip
    assert debian.mirrors() == ("http://mirror.example/mirror/", FOUND[1])


def test_known_by_its_updates(apt):
    apt(with_debian("mirror"))
    assert debian.mirrors() == ("http://mirror.example/mirror/", FOUND[1])


def test_no_repository(apt):
    apt({})
    with pytest.raises(LabError, match="no Debian mirror with component main"):
        debian.mirrors()
