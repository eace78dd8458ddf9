"""Files and folders that appear whole or not at all."""

import contextlib
import errno
import functools
import os
import pathlib
import secrets
import shutil
from collections.abc import Callable, Iterator


def replaceable(path: str | os.PathLike[str]) -> pathlib.Path:
    """Where a file at `path` would stand, links followed. Raises OSError if there can be none."""
    target = _in_a_folder(path)
    if target.exists() and not target.is_file():
        raise FileExistsError(errno.EEXIST, "a directory or a device: give the name of a file", str(target))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return target


def fillable(path: str | os.PathLike[str]) -> pathlib.Path:
    """Where a new folder at `path` would stand, links followed. Raises OSError if one is there that is not empty."""
    target = _in_a_folder(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(errno.EEXIST, "not an empty folder: give a new one", str(target))
    if target.is_mount():  # it can be filled, but not be replaced in one step
        raise OSError(errno.EBUSY, "another file system begins here: give a folder below it", str(target))
    return target


def _in_a_folder(path: str | os.PathLike[str]) -> pathlib.Path:
    target = pathlib.Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    return target


def whole(path: str | os.PathLike[str]) -> contextlib.AbstractContextManager[pathlib.Path]:
    """Yield a path to write to; rename it to `path` when the block ends well, remove it otherwise.

    The temporary file stands in the same folder, so that the rename is one step. An existing `path` keeps its
    permissions; a link is followed, so that what it points at is replaced.
    """
    return _whole(replaceable(path), pathlib.Path.touch, functools.partial(pathlib.Path.unlink, missing_ok=True))


def whole_folder(path: str | os.PathLike[str]) -> contextlib.AbstractContextManager[pathlib.Path]:
    """Yield a folder to fill; rename it to `path` when the block ends well, remove it with all in it otherwise.

    `path` may be an empty folder, which keeps its permissions, but none that holds anything.
    """
    return _whole(fillable(path), pathlib.Path.mkdir, functools.partial(shutil.rmtree, ignore_errors=True))


@contextlib.contextmanager
def _whole(
    target: pathlib.Path, make: Callable[[pathlib.Path], object], remove: Callable[[pathlib.Path], object]
) -> Iterator[pathlib.Path]:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    make(temporary)
    try:
        yield temporary
        if temporary.is_file():  # on the disk before its name is, for when the power fails
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        if target.is_dir():
            target.rmdir()  # fails if somebody else filled it meanwhile
        temporary.replace(target)
    finally:
        remove(temporary)
