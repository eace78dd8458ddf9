"""Fingerprints by id in one SQLite file: a log in which the last entry of each id stands.

To put or remove an id is to replace its row by one with a higher number, so whoever has read up to a number asks for
what is above it. SQLite has one writer at a time: what is committed later has the higher numbers, and nobody who reads
in their order misses an entry.
"""

import contextlib
import errno
import os
import pathlib
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from simdup.fingerprint import Counts, Fingerprints, Words
from simdup.scheme import Scheme, as_scheme

_APPLICATION = int.from_bytes(b"simd")
_FORMAT = 1
# A column without a type keeps 1 and "1" apart. A record is the words and the feature count, NULL once removed.
_SCHEMA = [
    ("scheme", 'CREATE TABLE scheme(id NOT NULL, "check" NOT NULL)'),
    ("page", 'CREATE TABLE page(seq INTEGER PRIMARY KEY, id NOT NULL UNIQUE, record, "check" NOT NULL)'),
]
# Casts, so that a damaged value is bytes, too.
_NEWS = """SELECT seq, id, CAST(IFNULL(record, '') AS BLOB), "check" FROM page WHERE seq > ? ORDER BY seq LIMIT ?"""
# What of SQLite's errors is the system's, what another process's; all others are due to a damaged file.
_SYSTEM = {
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
}
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_BATCH = 1 << 12
_CACHE_KIB = 1 << 16


class News(NamedTuple):
    """Entries in the order in which they were written; each stands instead of any earlier one of its id."""

    ids: list[int | str]
    words: Words
    """uint64, shape (n, bits // 64)."""
    features: Counts
    """int64, shape (n,)."""
    present: NDArray[np.bool_]
    """Shape (n,): False if the id was removed; its words and features are 0."""


class Store:
    """Fingerprints by id in a file, for any number of processes that read and one at a time that writes.

    Parameters
    ----------
    path
        The file; it is created whole where there is none. While it is open, two more, ``-wal`` and ``-shm``, stand
        beside it and belong to it; once all have closed it, the one file holds everything.
    scheme
        What the fingerprints are made by; the file carries its id.
    timeout
        For how many seconds to wait while another process writes.

    Raises
    ------
    ValueError
        For a file of another scheme, of a newer format, damaged, or that is no such file (an empty one, too). The
        file is then left unchanged.
    OSError
        For a missing folder, a folder as the file, a file or folder that may not be read and written; of `put` and
        `remove`, for a full disk.

    Notes
    -----
    Threads may share a store: they take turns. A child process may not: after a fork all but `close`, which leaves
    it to the parent, raises RuntimeError. Reading checks every row, opening the rest of the file.
    """

    def __init__(self, path: str | os.PathLike[str], scheme: Scheme, *, timeout: float = 30.0) -> None:
        self._scheme = as_scheme(scheme)
        if not 0 <= timeout <= 1e6:
            raise ValueError(f"timeout={timeout!r}: give seconds, 0 to 1,000,000")
        self._path = pathlib.Path(os.path.realpath(path))
        self._salt = crc32(scheme.id.encode())
        self._seen = 0
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        with _explained(self._path):
            # The log is looked for first: another process may create both in between.
            orphan = _log(self._path).exists()
            if not self._path.exists():
                if orphan:
                    raise ValueError(
                        f"{self._path}: is gone, but not its {_log(self._path).name}: restore it or delete that"
                    )
                _create(self._path, scheme)
            _recognise(self._path)
            self._connection = _connect(self._path, "rw", timeout)
        try:
            with self._use() as connection:
                connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                connection.execute("PRAGMA synchronous = FULL")
                self._examine(connection)
        except BaseException:
            self._abandon()
            raise

    def put(self, ids: Sequence[int | str], words: Words, features: Counts) -> None:
        """Write fingerprints, all of them or none; they are on disk when this returns.

        Parameters
        ----------
        ids
            Strings, or ints of 64 bits signed. One that is there is replaced; of one given twice the last counts.
        words
            uint64, shape (n, bits // 64).
        features
            int64, shape (n,).

        Raises
        ------
        TypeError, ValueError
            For ids of another kind, strings with a lone surrogate, lengths or shapes that do not fit, or if another
            process writes for longer than the timeout.
        """
        keys = _keys(ids)
        column = Fingerprints(words, features, self._scheme)
        if len(keys) != len(column):
            raise ValueError(f"{len(keys)} ids and {len(column)} fingerprints: give as many of each")
        table = np.column_stack((column.words, column.features.view(np.uint64))).astype("<u8")
        records = table.view(f"V{table.itemsize * table.shape[1]}").ravel().tolist()
        with self._use() as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._replace(connection, keys, records)

    def remove(self, ids: Sequence[int | str]) -> None:
        """Remove ids, all of them or none; one given twice is removed once.

        Raises
        ------
        KeyError
            With the id that is not there.
        TypeError, ValueError
            As `put`.
        """
        keys = _keys(ids)
        with self._use() as connection:
            connection.execute("BEGIN IMMEDIATE")
            for key in keys:
                if connection.execute("SELECT 1 FROM page WHERE id = ? AND record NOT NULL", (key,)).fetchone() is None:
                    raise KeyError(key)
            self._replace(connection, keys, [None] * len(keys))

    def news(self) -> Iterator[News]:
        """What any process wrote since the last call, or what is there after opening, in batches of at most 4,096.

        After the last batch, what was put in one call is there entirely or not at all; a batch that was not asked for
        comes at the next call.

        Raises
        ------
        ValueError
            If a row is damaged; the store is then closed.
        """
        more = True
        gone = bytes(8 * (self._scheme.words + 1))
        # Until there is none: an entry not yet read may be replaced meanwhile, and then comes with a higher number.
        # Each batch is a transaction of its own, since a long one would keep the log from being written back.
        while more:
            with self._use() as connection:
                rows = connection.execute(_NEWS, (self._seen, _BATCH)).fetchall()
                if not rows:
                    return
                seqs, ids, records, checks = zip(*rows, strict=True)
                if checks != tuple(map(self._check, seqs, ids, records)):
                    raise sqlite3.DatabaseError("a row does not match its check")
                self._seen = seqs[-1]
            more = len(rows) == _BATCH
            table = np.frombuffer(b"".join(record or gone for record in records), "<u8").reshape(len(rows), -1)
            words, features = table[:, :-1].astype(np.uint64), table[:, -1].astype(np.int64)
            yield News(list(ids), words, features, np.array([bool(record) for record in records]))

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if os.getpid() == self._process:
            with self._lock:
                if self._connection is not None:
                    self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _examine(self, connection: sqlite3.Connection) -> None:
        """See that the file is whole, and of this format and scheme."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > _FORMAT:
            raise ValueError(f"{self._path}: written by a newer simdup (format {version}): upgrade simdup")
        schema = "SELECT name, sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid"
        if version < _FORMAT or connection.execute(schema).fetchall() != _SCHEMA:
            raise sqlite3.DatabaseError("its tables are others")
        rows = connection.execute("SELECT * FROM scheme").fetchall()
        if len(rows) != 1 or rows[0][1] != crc32(str(rows[0][0]).encode()):
            raise sqlite3.DatabaseError("its scheme does not match its check")
        scheme = rows[0][0]
        if scheme != self._scheme.id:
            raise ValueError(
                f"{self._path}: holds fingerprints of {scheme}, not of {self._scheme.id}: "
                "open it with that scheme, or choose another file"
            )
        ((found,),) = connection.execute("PRAGMA integrity_check(1)")
        if found != "ok":
            raise sqlite3.DatabaseError(found)

    def _replace(self, connection: sqlite3.Connection, keys: list[int | str], records: Sequence[bytes | None]) -> None:
        (last,) = connection.execute("SELECT IFNULL(MAX(seq), 0) FROM page").fetchone()
        seqs = range(last + 1, last + 1 + len(keys))
        checks = map(self._check, seqs, keys, records)
        connection.executemany("REPLACE INTO page VALUES (?, ?, ?, ?)", zip(seqs, keys, records, checks, strict=True))

    def _check(self, seq: int, key: int | str, record: bytes | None) -> int:
        """SQLite's pages have no checksums, so each row has one, which depends on the scheme, too."""
        return crc32(record or b"", crc32(f"{seq} {type(key).__name__} {key}".encode(), self._salt))

    @contextlib.contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        """The connection for one thread; what was begun is committed, or undone if anything is raised."""
        if os.getpid() != self._process:
            raise RuntimeError(f"{self._path}: was opened before the process forked: open it again in the child")
        with self._lock:
            if self._connection is None:
                raise ValueError(f"{self._path}: is closed")
            try:
                with _explained(self._path), self._connection:
                    yield self._connection
            except _DamagedError:
                self._abandon()
                raise

    def _abandon(self) -> None:
        """Close and leave the file as it is.

        SQLite writes the log back into the file when the last connection closes, unless that one may only read.
        """
        if self._connection is not None:
            with contextlib.ExitStack() as last:
                with contextlib.suppress(sqlite3.Error, FileNotFoundError):
                    if _log(self._path).stat().st_size:
                        reader = last.enter_context(contextlib.closing(_connect(self._path, "ro", 0)))
                        reader.execute("PRAGMA schema_version").fetchone()
                self._connection.close()
            self._connection = None


class _DamagedError(ValueError):
    pass


@contextlib.contextmanager
def _explained(path: pathlib.Path) -> Iterator[None]:
    """Turn what SQLite raises into an error that names the file and says what to do."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # What Python's module raises for text that is no UTF-8 has no code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in _SYSTEM:
            raise OSError(_SYSTEM[code], str(error), str(path)) from error
        if code in _BUSY:
            raise ValueError(f"{path}: is being written by another process: try again") from error
        raise _DamagedError(
            f"{path}: damaged ({' '.join(str(error).split())}): "
            "restore a copy, or delete it, with its -wal if there is one, and add the pages again"
        ) from error


def _log(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(f"{path.name}-wal")


def _connect(path: pathlib.Path, mode: str, timeout: float) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?mode={mode}"
    return sqlite3.connect(uri, timeout=timeout, isolation_level=None, check_same_thread=False, uri=True)


def _create(path: pathlib.Path, scheme: Scheme) -> None:
    """Make the file beside and whole, then give it its name, unless another process has made it meanwhile."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    temporary.touch(exist_ok=False)
    try:
        with contextlib.closing(_connect(temporary, "rw", 0)) as connection:
            connection.execute("BEGIN")
            for _, table in _SCHEMA:
                connection.execute(table)
            connection.execute("INSERT INTO scheme VALUES (?, ?)", (scheme.id, crc32(scheme.id.encode())))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _recognise(path: pathlib.Path) -> None:
    """See that the file is a store, without a change to it or beside it, as even reading would make with SQLite.

    No other look at it would do: to close a file is to lose all locks that this process has on it.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    for each in (path, path.parent):
        if not os.access(each, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, "must be readable and writable", str(each))
    application = None
    if path.is_file():
        try:
            with contextlib.closing(_connect(path, "ro&immutable=1", 0)) as connection:
                (application,) = connection.execute("PRAGMA application_id").fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                return  # damaged, or being written just now: we shall see
    if application != _APPLICATION:
        raise ValueError(
            f"{path}: no file that simdup wrote, or its beginning is damaged: choose another, or restore a copy"
        )


def _keys(ids: Sequence[int | str]) -> list[int | str]:
    if isinstance(ids, str | bytes):
        raise TypeError(f"ids come as a sequence, not as one {type(ids).__name__}: put it into a list")
    return [_key(key) for key in ids]


def _key(key: Any) -> int | str:
    """The id as a plain int or str, or the error that says what it is instead."""
    if isinstance(key, bool) or not isinstance(key, int | np.integer | str):
        raise TypeError(f"id {key!r:.80}: give a str or an int")
    if isinstance(key, str):
        try:
            return key.encode().decode()
        except UnicodeEncodeError:
            raise ValueError(f"id {key!r:.80}: a lone surrogate is no character") from None
    if not -(1 << 63) <= int(key) < 1 << 63:
        raise ValueError(f"id {key!r:.80}: an int has 64 bits, signed: give it as a string")
    return int(key)
