"""A file or a folder appears whole or not at all."""

import contextlib
import os
import stat
import threading
from pathlib import Path

import pytest

from simdup.files import fillable, replaceable, whole, whole_folder


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    with whole(target) as temporary:
        temporary.write_text("half")
        assert not target.exists()
        assert temporary.parent == tmp_path
        temporary.write_text("whole")
    assert target.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


def fail_halfway(target: Path, error: type[BaseException]) -> None:
    with whole(target) as temporary:
        temporary.write_text("half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_not_at_all(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "a.json"
    for before in (None, "old"):
        if before:
            target.write_text(before)
        with pytest.raises(error):
            fail_halfway(target, error)
        assert [path.read_text() for path in tmp_path.iterdir()] == ([before] if before else [])


def test_nothing_written_is_an_empty_file(tmp_path: Path) -> None:
    with whole(tmp_path / "a"):
        pass
    assert (tmp_path / "a").read_bytes() == b""


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_an_existing_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    target.chmod(mode)
    with whole(target) as temporary:
        temporary.write_text("new")
    assert (permissions(target), target.read_text()) == (mode, "new")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path, mask: int) -> None:
    """Not those of a temporary file, which nobody else may read."""
    before = os.umask(mask)
    try:
        with whole(tmp_path / "a") as temporary:
            temporary.write_text("new")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert permissions(tmp_path / "a") == 0o666 & ~mask


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    with pytest.raises(PermissionError), whole(tmp_path / "a"):
        pass
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_the_mask_of_the_process_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads make files meanwhile: to read the mask is to change it for them."""
    monkeypatch.setattr(os, "umask", lambda _mask: pytest.fail("the mask was changed"))
    with whole(tmp_path / "a") as temporary:
        temporary.write_text("a")
    assert (tmp_path / "a").read_text() == "a"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    target, link = tmp_path / "data" / "a", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(Path("data") / "a")
    with whole(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert len(list(tmp_path.rglob("*"))) == 3


def test_a_link_to_what_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with whole(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


def test_a_missing_folder_fails_before_any_work(tmp_path: Path) -> None:
    began = False
    with pytest.raises(FileNotFoundError), whole(tmp_path / "none" / "a"):
        began = True
    assert not began
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="a"), whole(tmp_path / "a") as temporary:
        temporary.write_text("new")
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]


def test_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with whole("a") as temporary:
        temporary.write_text("new")
    assert Path("a").read_text() == "new"


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    """A pipe here, /dev/null in life: whoever may write to that folder must not lose the device."""
    os.mkfifo(tmp_path / "pipe")
    with contextlib.suppress(OSError, ValueError), whole(tmp_path / "pipe") as temporary:
        temporary.write_text("new")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert len(list(tmp_path.iterdir())) == 1


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    """Each writes its own temporary file: whoever ends last wins, and the file is always one of the two, whole."""
    target = tmp_path / "a"
    both = threading.Barrier(2)

    def write(text: str) -> None:
        with whole(target) as temporary:
            temporary.write_text(text)
            both.wait(10)

    threads = [threading.Thread(target=write, args=(letter * 9999,)) for letter in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() in ("x" * 9999, "y" * 9999)
    assert list(tmp_path.iterdir()) == [target]


def test_what_could_not_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("old")
    (tmp_path / "empty").mkdir()
    assert replaceable(tmp_path / "new") == tmp_path / "new"
    assert replaceable(tmp_path / "link") == tmp_path / "file"
    assert fillable(tmp_path / "new") == tmp_path / "new"
    assert fillable(tmp_path / "empty") == tmp_path / "empty"
    for name in ("full", "empty", "none/a", "file/a"):
        with pytest.raises(OSError, match=name.removesuffix("/a")):
            replaceable(tmp_path / name)
    for name in ("full", "file", "link", "none/a", "file/a"):
        with pytest.raises(OSError, match=name.removesuffix("/a").replace("link", "file")):
            fillable(tmp_path / name)
    assert len(list(tmp_path.rglob("*"))) == 5


@pytest.mark.parametrize("before", [False, True])
def test_a_whole_folder(tmp_path: Path, before: bool) -> None:
    target = tmp_path / "kept"
    if before:
        target.mkdir(0o700)
    with whole_folder(target) as temporary:
        (temporary / "deep").mkdir()
        (temporary / "deep" / "a.txt").write_text("a")
        assert temporary.parent == tmp_path
        assert target.exists() == before
    assert list(tmp_path.iterdir()) == [target]
    assert (target / "deep" / "a.txt").read_text() == "a"
    assert not before or permissions(target) == 0o700


def test_a_folder_with_nothing_in_it(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "kept"):
        pass
    assert list(tmp_path.rglob("*")) == [tmp_path / "kept"]


def fail_halfway_in_a_folder(target: Path, error: type[BaseException]) -> None:
    with whole_folder(target) as temporary:
        (temporary / "deep").mkdir()
        (temporary / "deep" / "a.txt").write_text("half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("before", [False, True])
def test_no_folder_at_all(tmp_path: Path, error: type[BaseException], before: bool) -> None:
    if before:
        (tmp_path / "kept").mkdir()
    with pytest.raises(error):
        fail_halfway_in_a_folder(tmp_path / "kept", error)
    assert list(tmp_path.rglob("*")) == ([tmp_path / "kept"] if before else [])


def test_a_folder_that_is_filled_meanwhile_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    with pytest.raises(OSError, match="kept"), whole_folder(tmp_path / "kept"):
        (tmp_path / "kept" / "b").write_text("theirs")
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "kept", tmp_path / "kept" / "b"]


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    with whole_folder(tmp_path / "link") as temporary:
        (temporary / "a").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "empty" / "a").read_text() == "new"


def test_where_another_file_system_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be renamed over, which is better said before any work than after."""
    (tmp_path / "disk").mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path.name == "disk")
    with pytest.raises(OSError, match="another file system"):
        fillable(tmp_path / "disk")
    assert fillable(tmp_path / "disk" / "kept") == tmp_path / "disk" / "kept"


def test_a_file_is_on_the_disk_before_its_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut may leave the name with nothing behind it."""
    done: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(number: int) -> None:
        done.append("sync")
        sync(number)

    def named(path: Path, target: Path) -> Path:
        done.append("name")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", named)
    with whole(tmp_path / "a") as temporary:
        temporary.write_bytes(b"content")
    assert done == ["sync", "name"]
    assert (tmp_path / "a").read_bytes() == b"content"
