"""Files that appear whole or not at all."""

import contextlib
import errno
import os
import pathlib
import tempfile
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
    if target.exists() and not target.is_file():
        raise FileExistsError(errno.EEXIST, "not a file that could be replaced", str(target))
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    temporary = pathlib.Path(name)
    try:
        yield temporary
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        else:
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
