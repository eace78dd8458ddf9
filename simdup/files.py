"""Files and folders that appear whole or not at all."""

import contextlib
import errno
import os
import pathlib
import secrets
import shutil
from collections.abc import Iterator


def replaceable(path: str | os.PathLike[str]) -> pathlib.Path:
    """Where a file at `path` would stand, links followed. Raises OSError if there can be none."""
    target = _in_a_folder(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if target.exists() and not target.is_file():
        raise FileExistsError(errno.EEXIST, "not a file that could be replaced", str(target))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return target


def fillable(path: str | os.PathLike[str]) -> pathlib.Path:
    """Where a new folder at `path` would stand, links followed. Raises OSError if one is there that is not empty."""
    target = _in_a_folder(path)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(target))
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(errno.ENOTEMPTY, "not empty: give a new folder", str(target))
    if target.is_mount():  # it can be filled, but not be replaced in one step
        raise OSError(errno.EBUSY, "another file system begins here: give a folder below it", str(target))
    return target


def _in_a_folder(path: str | os.PathLike[str]) -> pathlib.Path:
    target = pathlib.Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    if target.is_symlink():  # what is left of links that go round in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(target))
    return target


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yield a path to write to; rename it to `path` when the block ends well, remove it otherwise.

    The temporary file stands in the same folder, so that the rename is one step. An existing `path` keeps its
    permissions; a link is followed, so that what it points at is replaced.
    """
    target = replaceable(path)
    temporary = _beside(target)
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yield a folder to fill; rename it to `path` when the block ends well, remove it with all in it otherwise.

    `path` may be an empty folder, which keeps its permissions, but none that holds anything.
    """
    target = fillable(path)
    temporary = _beside(target)
    temporary.mkdir()
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
            target.rmdir()  # fails if somebody else filled it meanwhile
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(target: pathlib.Path) -> pathlib.Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}")
