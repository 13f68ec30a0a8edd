"""`make check` finds places that name a different version, kernel or interface than the rest."""

import importlib.util
import shutil
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
FILES = ("include/linux/apic_version.h", "module/core/compat/supported.h", "dkms.conf", "README.md",
         "docs/reference/support.md", "docs/CHANGELOG.md", "debian/changelog",
         "include/linux/apic_timer.h", "debian/control", "docs/howto/install.md")  # fmt: skip


@pytest.fixture(scope="module")
def check():
    loader = SourceFileLoader("check", str(TREE / "tools/check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / file, tmp_path / file)
    monkeypatch.chdir(tmp_path)


def test_this_tree(check, tree):
    assert check.consistency() == ""


@pytest.mark.parametrize(
    "file, old, new, reason",
    [
        ("dkms.conf", 'PACKAGE_VERSION="', 'PACKAGE_VERSION="9', "dkms.conf has another version"),
        ("docs/CHANGELOG.md", "\n## ", "\n## 9", "CHANGELOG.md begins with another version"),
        ("debian/changelog", "(", "(9", "changelog begins with another version"),
        ("debian/changelog", "UNRELEASED", "unstable", "differ over whether"),
        ("docs/CHANGELOG.md", "`APIC_TIMER_API` ", "`APIC_TIMER_API` 9", "does not say of"),
        ("debian/changelog", "APIC_TIMER_API ", "APIC_TIMER_API 9", "does not say of"),
        ("include/linux/apic_timer.h", "APIC_TIMER_API\t", "APIC_TIMER_API\t9", "does not say of"),
        ("README.md", "Linux 6.1 to", "Linux 6.2 to", 'README.md does not say "Linux 6.1 to'),
        ("debian/control", "Linux 6.1 to", "Linux 6.2 to", 'debian/control does not say'),
        ("docs/howto/install.md", "Linux 6.1 to", "Linux 6.2 to", "install.md does not say"),
        ("docs/reference/support.md", "Linux 6.1 to", "Linux 6.0 to", "support.md does not say"),
        ("module/core/compat/supported.h", "KERNEL_VERSION(6, 1, 0)", "KERNEL_VERSION(6, 2, 0)",
         "dkms.conf and supported.h differ over 6.1"),
        ("dkms.conf", 'BUILD_EXCLUSIVE_KERNEL="', 'BUILD_EXCLUSIVE_KERNEL="x', "differ over 6.1"),
        ("dkms.conf", 'BUILD_EXCLUSIVE_CONFIG="', 'BUILD_EXCLUSIVE_CONFIG="CONFIG_NO ',
         "need different options"),
        ("docs/reference/support.md", "CONFIG_", "CONFIX_", "support.md does not name CONFIG_"),
    ],
)  # fmt: skip
def test_mistakes(check, tree, file, old, new, reason):
    text = Path(file).read_text()
    assert old in text
    Path(file).write_text(text.replace(old, new))
    assert reason in check.consistency()
