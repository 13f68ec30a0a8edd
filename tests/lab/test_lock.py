"""The lab fetches what packages.lock lists, or reports the difference."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab.base.cache import STAMP, cache_dir
from lab.base.errors import LabError
from lab.build import plugins, tool
from lab.kernels import debian, kernels, lock, sources, unpacked
from lab.kernels.debian import Package
from lab.run import kunit

OLD = Package("busybox-static", "1:1.37.0-6+b8", "a" * 64)
NEW = Package("busybox-static", "1:1.37.0-6+b9", "b" * 64)
OTHER = Package("libc6", "2.41-12", "c" * 64)


class Archive:
    """A stand-in for debian.Archive, with the available packages."""

    suites = ("trixie",)
    there = (NEW, OTHER)
    unpacked: list = []
    absent: tuple = ()

    def __init__(self, *suites):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def gone(self, packages):
        return [p for p in packages if p not in self.there]

    def resolve(self, groups):
        return tuple(p for p in self.there if p.name in groups[0][0])

    def unpack_exactly(self, packages, into):
        Archive.unpacked += [tuple(packages)]


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """Return a function that locks packages of the root "some", and one that unpacks it."""
    monkeypatch.setattr(lock, "LOCK", tmp_path / "packages.lock")
    monkeypatch.setattr(unpacked, "Archive", Archive)
    monkeypatch.setattr(unpacked, "cache_dir", lambda *parts: tmp_path)
    monkeypatch.setattr(Archive, "unpacked", [])

    def write(*packages):
        lock._read.cache_clear()
        lock.LOCK.write_text(lock.text({"some": lock.Root(("trixie",), packages)}))
        return lambda: unpacked.unpacked("some", ["trixie"], ["busybox-static", "libc6"])

    yield write
    lock._read.cache_clear()


def test_lock_is_read_as_it_was_written():
    roots = {"some": lock.Root(("trixie", "trixie-security"), (NEW, OTHER)),
             "kernel-6.1": lock.Root(("bookworm",), (OTHER,))}  # fmt: skip
    assert lock.parse(lock.text(roots)) == roots


@pytest.mark.parametrize("line", ["busybox-static 1.37", f"a b {'c' * 64}", "[some: trixie"])
def test_line_that_is_none_of_a_lock(line):
    with pytest.raises(LabError, match=r"packages\.lock:3: neither a root nor a root's"):
        lock.parse(f"# a lock\n[some: trixie]\n{line}\n")
    with pytest.raises(LabError, match="packages.lock:1: "):
        lock.parse(f"{' '.join(OTHER)}\n")  # part of no root


def test_lock_of_this_tree():
    roots = lock.parse(lock.LOCK.read_text())
    assert lock.text(roots) == lock.LOCK.read_text()
    assert {"userland", "bochs", *map(kernels.part, kernels.SUPPORTED)} <= roots.keys()
    for series in kernels.SUPPORTED:
        name, version = roots[kernels.part(series)].version(kernels.IMAGE)
        assert name.startswith(f"linux-image-{series}.") and version.startswith(f"{series}.")


def test_locked_packages_are_unpacked_once(locked, capsys):
    root = locked(NEW, OTHER)
    first = root()
    assert root() == first
    assert Archive.unpacked == [(NEW, OTHER)]
    assert lock.differing("some", first) == []
    assert "not as locked" not in capsys.readouterr().err


def test_package_that_is_gone(locked, capsys):
    """The newest are used, once, with a message there and in the results' header."""
    root = locked(OLD, OTHER)
    first = root()
    said = [line for line in capsys.readouterr().err.splitlines() if "not as locked" in line]
    assert said == ["lab: some: Debian no longer has busybox-static 1:1.37.0-6+b8: using the "
                    "newest packages, not as locked (`make lock` renews the lock)"]  # fmt: skip
    assert root() == first and Archive.unpacked == [(NEW, OTHER)]
    assert lock.differing("some", first) == ["busybox-static 1:1.37.0-6+b9"]


def test_no_security_archive(locked, monkeypatch, capsys):
    """A machine whose apt does not know it cannot have what was locked from there."""
    monkeypatch.setattr(Archive, "absent", ("trixie-security",))
    locked(OLD, OTHER)()
    assert ("this machine's apt sources lack Debian's security archive, and so busybox-static "
            "1:1.37.0-6+b8: using the newest packages") in capsys.readouterr().err  # fmt: skip


def test_other_packages_other_root(locked):
    first = locked(OLD, OTHER)()
    second = locked(NEW, OTHER)()
    assert first != second
    # The first was made of the newest too, and so were its samples.
    assert lock.identity(first) == lock.identity(second)
    (second / lock.RECORD).write_text("# for x\n" + " ".join(OLD))
    assert lock.identity(first) != lock.identity(second)


@pytest.fixture
def root(tmp_path, patch_here, own_cache):
    """Return a function that makes a kernel whose root has packages; builds in it say their key."""
    directory = tmp_path / "kernels/6.1_6.1.0-1-amd64_00000000"
    (directory / "boot").mkdir(parents=True)
    kernel = kernels.Kernel("6.1", "6.1.0-1-amd64", directory, directory / "boot/vmlinuz")

    def packages(text: str) -> kernels.Kernel:
        (directory / lock.RECORD).write_text(f"# for {'0' * 8}\n{text}\n")
        return kernel

    def run_in(root, argv, bound):
        source = next(source for source, inside in bound.items() if inside == "lab/output")
        (source / Path(argv[argv.index("-o") + 1]).name).touch()
        return SimpleNamespace(returncode=0, stdout="")

    patch_here(kernels, "ensure", lambda series: kernel)
    for module in (plugins, tool):
        patch_here(module, "run_in", run_in)
    patch_here(tool, "libc", lambda: tmp_path / "libc")
    patch_here(plugins.userland, "root", lambda: tmp_path / "userland")
    patch_here(plugins, "load", lambda file: "")
    return packages


@pytest.mark.parametrize("build", [tool.tool, lambda: plugins.plugin("pause")],
                         ids=["tool", "plugin"])  # fmt: skip
def test_what_another_compiler_builds_is_another_file(root, build):
    root("gcc-12 12.2.0-14")
    first = build()
    root("gcc-12 12.2.0-14+deb12u1")
    second = build()
    root("gcc-12 12.2.0-14")
    assert build() == first != second


def test_another_root_gets_its_own_clang(root, patch_here):
    class Archive:
        suites = ("bookworm",)

        def __init__(self, *suites):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            pass

        def unpack(self, packages, root):
            (root / "usr/bin").mkdir(parents=True)

    patch_here(kernels, "Archive", Archive)
    patch_here(kernels, "namespace", lambda: ())
    first = kernels.with_clang(root("gcc-12 12.2.0-14"))
    second = kernels.with_clang(root("gcc-12 12.2.0-14+deb12u1"))
    assert first.root != second.root and first.root.exists()
    assert kernels.with_clang(root("gcc-12 12.2.0-14")) == first


def test_tree_of_the_locked_source(patch_here, own_cache):
    """KUnit and the static checks use no other one that the cache happens to have."""
    other = cache_dir("kunit", "linux-source-6.1_6.1.8-1")
    (other / STAMP).touch()
    patch_here(sources, "ensure", lambda series: sources.Source(series, "6.1.9-1", Path("/none")))

    def unpack(source, into, exclude):
        (into / "drivers").mkdir()
        (into / "drivers/Kconfig").write_text("menu\nendmenu\n")
        (into / "drivers/Makefile").write_text("")

    patch_here(sources, "unpack", unpack)
    tree = kunit.ensure_source()
    assert tree.name == "linux-source-6.1_6.1.9-1"
    patch_here(sources, "unpack", None)
    assert kunit.ensure_source() == tree


def test_kernel_of_before_the_lock(tmp_path, monkeypatch, patch_here):
    """It stays in use as long as it and its compiler match the lock."""
    monkeypatch.setattr(lock, "LOCK", tmp_path / "packages.lock")
    patch_here(kernels, "cache_dir", lambda *parts: tmp_path)
    root = tmp_path / "6.1-6.1.0-56-amd64"
    said = {"boot/vmlinuz-6.1.0-56-amd64": "#1 SMP Debian 6.1.192-2 (2026-11-16)",
            "usr/bin/gcc": "(Debian 12.2.0-14+deb12u1) ", "complete": ""}  # fmt: skip
    for name, text in said.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    def found(image, compiler):
        packages = (Package("gcc-12", compiler, "d" * 64),
                    Package("linux-image-6.1.0-56-amd64", image, "e" * 64))  # fmt: skip
        lock.LOCK.write_text(lock.text({"kernel-6.1": lock.Root(("bookworm",), packages)}))
        lock._read.cache_clear()
        return kernels.cached("6.1")

    assert found("6.1.192-2", "12.2.0-14+deb12u1").release == "6.1.0-56-amd64"
    assert found("6.1.192-1", "12.2.0-14+deb12u1") is None
    assert found("6.1.192-2", "12.2.0-14") is None
    lock._read.cache_clear()


def test_package_of_another_hash(tmp_path, monkeypatch):
    archive = debian.Archive("trixie")
    archive.home = tmp_path

    def fetch(*args, cwd):
        with open(f"{cwd}/libc6_2.41-12_amd64.deb", "w") as deb:
            deb.write("forged")

    monkeypatch.setattr(archive, "_fetch", fetch)
    with pytest.raises(LabError, match=f"is not {'c' * 64}"):
        archive.unpack_exactly([OTHER], tmp_path)
    unpacked_ones = []
    monkeypatch.setattr(debian, "unpack_deb", lambda deb, into: unpacked_ones.append(deb.name))
    right = OTHER._replace(sha256=hashlib.sha256(b"forged").hexdigest())
    archive.unpack_exactly([right], tmp_path)
    assert unpacked_ones == ["libc6_2.41-12_amd64.deb"]


def test_what_an_archive_has(tmp_path, monkeypatch):
    archive = debian.Archive("trixie")
    said = {"pkgnames": "libc6\nbusybox-static\n",
            "madison": " libc6 | 2.41-12 | http://localhost trixie/main\n"
                       "busybox-static | 1:1.37.0-6+b9 | http://x trixie/main\n"}  # fmt: skip
    monkeypatch.setattr(archive, "_apt", lambda tool, what, *names: said[what])
    assert archive.gone([OTHER, NEW]) == []
    assert archive.gone([OTHER, OLD, Package("none", "1", "f" * 64)]) == [
        OLD, Package("none", "1", "f" * 64)]  # fmt: skip
