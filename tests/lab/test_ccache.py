"""ccache returns a stored object only if none of its dependencies differ."""

import pytest
from lab.kernels import ccache, kernels

SOURCE = '#include "header.h"\nint value(void) { return VALUE; }\n'
COMPILE = ["gcc", "-O2", "-Wp,-MMD,/tree/.a.d", "-c", "-o", "/tree/a.o", "/tree/a.c"]


@pytest.fixture
def compiled(tmp_path, patch_here):
    """Return a function that compiles SOURCE in a new directory into an object and hits."""
    store = tmp_path / "store"
    store.mkdir()
    patch_here(ccache, "cache_dir", lambda *_: store)
    root = kernels.ensure(kernels.SUPPORTED[0]).root
    count = 0

    def run(value: int, *options: str) -> tuple[bytes, int]:
        nonlocal count
        directory = tmp_path / f"{count}"
        count += 1
        directory.mkdir()
        (directory / "a.c").write_text(SOURCE)
        (directory / "header.h").write_text(f"#define VALUE {value}\n")
        done = ccache.run(root, [*COMPILE, *options], {directory: "tree"})
        assert done.returncode == 0, done.stdout
        assert "header.h" in (directory / ".a.d").read_text()
        said = ccache.run(root, [*ccache.CCACHE.split(), "--print-stats"]).stdout
        counted = dict(line.split("\t") for line in said.splitlines())
        return (directory / "a.o").read_bytes(), int(counted["direct_cache_hit"])

    return run


def test_same_file_elsewhere(compiled):
    first, hits = compiled(1)
    assert hits == 0
    second, hits = compiled(1)
    assert hits == 1 and second == first


def test_another_header_or_option(compiled):
    first, _ = compiled(1)
    second, hits = compiled(2)
    assert hits == 0 and second != first
    third, hits = compiled(2, "-O0")
    assert hits == 0 and third != second


PIGGY = '.incbin "/tree/payload"\n'
ASSEMBLE = ["gcc", "-Wp,-MMD,/tree/.a.d", "-c", "-o", "/tree/a.o", "/tree/a.S"]


def test_included_file_that_no_compiler_lists(tmp_path, compiled):
    """A kernel's image has its own payload, not that of the previous build."""
    root = kernels.ensure(kernels.SUPPORTED[0]).root
    for payload in (b"payload of the first", b"payload of the second"):
        directory = tmp_path / payload.split()[-1].decode()
        directory.mkdir()
        (directory / "a.S").write_text(PIGGY)
        (directory / "payload").write_bytes(payload)
        done = ccache.run(root, ASSEMBLE, {directory: "tree"})
        assert done.returncode == 0, done.stdout
        assert payload in (directory / "a.o").read_bytes()
