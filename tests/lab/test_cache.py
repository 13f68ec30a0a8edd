"""A directory appears in the cache atomically, and an interrupted one leaves nothing."""

import pytest
from lab.base.cache import fresh_dir, is_complete
from lab.run import kunit


def test_all_or_nothing(tmp_path):
    final = tmp_path / "final"
    with pytest.raises(KeyError), fresh_dir(final) as temp:
        (temp / "file").touch()
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with fresh_dir(final) as temp:
        assert not final.exists()
    assert is_complete(final) and list(tmp_path.iterdir()) == [final]


def test_what_a_killed_process_has_left(tmp_path):
    """The next one removes it, but neither one in use nor that of another directory."""
    left, other = tmp_path / ".final.abcd_123", tmp_path / ".final.1.abcd_123"
    for directory in (left, other):
        (directory / "below").mkdir(parents=True)
    with fresh_dir(tmp_path / "final") as first, fresh_dir(tmp_path / "final") as second:
        assert first.exists() and second.exists() and not left.exists()
    assert is_complete(tmp_path / "final") and other.exists()


def test_build_directory_of_another_compiler(tmp_path):
    """KUnit's kernels are built anew after the host's compiler has changed, and only then."""
    directory = tmp_path / "build"
    kunit.renew_for_compiler(directory)
    (directory / "object").touch()
    kunit.renew_for_compiler(directory)
    assert (directory / "object").exists()
    (directory / kunit.COMPILER).write_text("gcc 1.0")
    kunit.renew_for_compiler(directory)
    assert [path.name for path in directory.iterdir()] == [kunit.COMPILER]
    (directory / kunit.COMPILER).unlink()
    (directory / "object").touch()
    kunit.renew_for_compiler(directory)
    assert not (directory / "object").exists()
