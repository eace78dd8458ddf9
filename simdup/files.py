"""Files that appear whole or not at all."""

import contextlib
import errno
import os
import pathlib
import secrets
import shutil
from collections.abc import Iterator


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yield a path to write to; rename it to `path` when the block ends well, remove it otherwise.

    The temporary file stands in the same folder, so that the rename is one step. An existing `path` keeps its
    permissions; a link is followed, so that what it points at is replaced.
    """
    target = pathlib.Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if target.is_symlink():  # what is left of links that go round in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(target))
    if target.exists() and not target.is_file():
        raise FileExistsError(errno.EEXIST, "not a file that could be replaced", str(target))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
