"""An index of fingerprints by id: add, remove, and ask which are near, in memory or in a file."""

import os
import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simdup.blocks import Costs, Plan
from simdup.fingerprint import Counts, Fingerprint, Fingerprints, Words
from simdup.hamming import Columns, check_k, columns_of
from simdup.jit import kernel, popcount
from simdup.join import Groups, first_equal
from simdup.scheme import Scheme, as_scheme, same_scheme
from simdup.store import News, Store

# Rows are put into a segment when so many wait; until then they are compared one by one, which takes microseconds.
_WAITING = 1 << 14
_EVERY = np.arange(_WAITING, dtype=np.uint32)
# A segment that is less than so many times as large as the one behind it is put together with it.
_GROWTH = 4
# A look-up fetches what is far apart in memory; to make the tables is paid once.
_LOOKED_UP = Costs(row=0, key=60, candidate=4)


Rows = NDArray[np.uint32]


@njit(inline="always")
def _apart(queries, query, columns, row, mask):  # type: ignore[no-untyped-def]
    bits = np.uint64(0)
    for word in range(len(columns)):
        bits += popcount((queries[word][query] ^ columns[word][row]) & mask[word])
    return bits


@njit(inline="always")
def _put(hits, found, query, start, row, following, alive, bits):  # type: ignore[no-untyped-def]
    """Put (query, row, distance) of a row and all that are equal to it into `hits`, and count them."""
    more = True
    while more:
        if alive[start + row]:
            if found < len(hits):
                hits[found, 0], hits[found, 1], hits[found, 2] = query, start + row, bits
            found += 1
        more = following[row] != row
        row = following[row]
    return found


@kernel
def _look_up(  # type: ignore[no-untyped-def]
    queries, keys, flips, rows, begins, columns, k, masks, radii, table, everything, start, following, alive, hits
):
    """Put the hits that this table is the first to find into `hits`, and count them."""
    found = 0
    for query in range(len(keys)):
        for flip in flips:
            key = keys[query] ^ flip
            for place in range(begins[key], begins[key + np.uint64(1)]):
                row = rows[place]
                bits = _apart(queries, query, columns, start + row, everything)
                if bits <= k:
                    first = 0
                    while _apart(queries, query, columns, start + row, masks[first]) > radii[first]:
                        first += 1
                    if first == table:
                        found = _put(hits, found, query, start, row, following, alive, bits)
    return found


@kernel
def _look_through(queries, columns, rows, k, everything, start, following, alive, hits):  # type: ignore[no-untyped-def]
    """Put the hits among these rows, whose columns are given, into `hits`, and count them."""
    found = 0
    for query in range(np.uint64(len(queries[0]))):
        near = np.uint64(0)
        for row in range(np.uint64(len(rows))):  # only counts, which compiles to wide population counts
            near += np.uint64(_apart(queries, query, columns, row, everything) <= k)
        at = np.uint64(0)
        while near:
            bits = _apart(queries, query, columns, at, everything)
            if bits <= k:
                near -= np.uint64(1)
                found = _put(hits, found, query, start, rows[at], following, alive, bits)
            at += np.uint64(1)
    return found


class _Directory(NamedTuple):
    """The rows of a segment by their keys in one table."""

    key_bits: int
    flips: Words
    rows: Rows
    begins: Rows


class _Segment:
    """The rows from `start` to `stop`, arranged so that the near ones are found without looking at all."""

    def __init__(self, entries: Fingerprints, start: int, k: int) -> None:
        self.start, self.stop = start, start + len(entries)
        self._k = np.uint64(k)
        self._everything = np.full(entries.scheme.words, ~np.uint64(0))
        self._rows, self._following = _different(entries)
        self._own = columns_of(entries.words[self._rows])
        self._tables = Plan.choose(self._own, k, costs=_LOOKED_UP).tables
        self._masks = np.array([table.mask for table in self._tables])
        self._radii = np.array([table.radius for table in self._tables], np.uint64)
        self._directories = []
        for table in self._tables if any(table.bits for table in self._tables) else ():
            key_bits, flips = table.key_bits(len(self._rows)), table.flips.astype(np.uint64)
            places, begins = table.directory(self._own, key_bits)
            self._directories.append(_Directory(key_bits, flips, self._rows[places], begins.astype(np.uint32)))
        if self._directories:
            self._own, self._rows = (), _EVERY[:0]

    def near(self, queries: Columns, columns: Columns, alive: NDArray[np.bool_]) -> Iterator[Counts]:
        """Yield (query, row, distance) of what is near, shape (hits, 3), in no order."""
        everything, k = self._everything, self._k
        these = everything, np.uint64(self.start), self._following, alive
        if not self._directories:
            yield _all_hits(_look_through, queries, self._own, self._rows, k, *these)
        for number, directory in enumerate(self._directories):
            keys = self._tables[number].packed(queries, directory.key_bits) >> np.uint64(64 - directory.key_bits)
            found = keys, *directory[1:], columns, k, self._masks, self._radii, number
            yield _all_hits(_look_up, queries, *found, *these)


def _different(entries: Fingerprints) -> tuple[Rows, Rows]:
    """The first row of each fingerprint that there is, and for each row the next that is equal, or itself."""
    groups = Groups(first_equal(entries))
    following, members = np.arange(len(entries), dtype=np.uint32), groups.members.astype(np.uint32)
    ends = groups.begins[1:] - 1
    next_ = np.roll(members, -1)
    next_[ends] = members[ends]
    following[members] = next_
    return groups.firsts.astype(np.uint32), following


def _all_hits(kernel_: Any, queries: Columns, *arguments: Any) -> Counts:
    """The hits of a kernel, which counts those that there is no room for, too."""
    hits = np.empty((256 + 2 * len(queries[0]), 3), np.int64)
    found = kernel_(queries, *arguments, hits)
    if found > len(hits):
        hits = np.empty((found, 3), np.int64)
        kernel_(queries, *arguments, hits)
    return hits[:found]


class Index:
    """Fingerprints by id, in memory or in a file.

    Answers are exact. In a file (SQLite), what `add` and `remove` did is there for good when they return, whatever
    happens to the process; other processes see it with their next call. Several threads may use an index, one at a
    time works. A process that was forked opens the file anew.

    Parameters
    ----------
    k
        Bits, 0 to the width: how far apart what `query` finds may be.
    scheme
        The scheme of all its fingerprints.
    path
        The file, made where there is none. Without it, the index is gone with the process.
    timeout
        Seconds to wait for another process that writes to the file.

    Raises
    ------
    ValueError
        For a k or a file that does not fit: one of another scheme, of a newer simdup, damaged, or none of ours. For
        any use once it is closed; so it is, too, if whoever waits for `add` interrupts it half-way (Ctrl-C).
    OSError
        For a folder that is missing, or a file or folder that may not be read and written.

    Notes
    -----
    With k = 3 and 64 bits a page takes 130 to 190 bytes in memory beside its id, and 50 in a file if its id is a small
    int. Each 64 bits more take some 10 bytes in memory and 8 in a file.
    """

    def __init__(
        self, k: int, scheme: Scheme, path: str | os.PathLike[str] | None = None, *, timeout: float = 30.0
    ) -> None:
        check_k(k, as_scheme(scheme).bits)
        self.k = k
        self.scheme = scheme
        self._lock = threading.RLock()
        self._closed = False
        self._rows: dict[Any, int] = {}
        self._ids: list[Any] = []
        self._columns: Columns = (np.empty(0, np.uint64),) * scheme.words
        self._alive = np.empty(0, np.bool_)
        self._segments: list[_Segment] = []
        self._store = None if path is None else Store(path, scheme, timeout=timeout)
        try:
            self._follow()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index, and its file; a second time does nothing."""
        self._closed = True
        if self._store:
            self._store.close()

    def __len__(self) -> int:
        with self._lock:
            self._follow()
            return len(self._rows)

    def __contains__(self, id_: object) -> bool:
        with self._lock:
            self._follow()
            return id_ in self._rows

    def add(self, ids: Iterable[Hashable], fingerprints: Fingerprints) -> None:
        """Add fingerprints, or replace those of ids that are there already.

        Parameters
        ----------
        ids
            One for each fingerprint; of an id that is given twice the last counts. In memory anything that is
            hashable, where ``1`` and ``1.0`` are the same; in a file str and int.
        fingerprints
            Those of texts without any feature are kept, but never found.

        Raises
        ------
        TypeError, ValueError
            For ids that cannot be kept, other lengths, another scheme. Nothing is added then.
        OSError
            If the disk is full. Nothing is added then.
        """
        if not isinstance(fingerprints, Fingerprints):
            raise TypeError(f"{type(fingerprints).__name__} is no column of fingerprints: give Fingerprints")
        same_scheme(self.scheme, fingerprints.scheme)
        keys = _listed(ids)
        if len(keys) != len(fingerprints):
            raise ValueError(f"{len(keys)} ids for {len(fingerprints)} fingerprints: give one for each")
        with self._lock:
            self._follow()
            if self._store:
                self._store.put(keys, fingerprints.words, fingerprints.features)
                self._follow()
            else:
                set(keys)  # raises for what is not hashable
                present = np.ones(len(keys), np.bool_)
                self._take([News(keys, fingerprints.words, fingerprints.features, present)])

    def remove(self, ids: Iterable[Hashable]) -> None:
        """Remove ids.

        Raises
        ------
        KeyError
            For an id that is not there. Nothing is removed then.
        """
        keys = _listed(ids)
        with self._lock:
            self._follow()
            if self._store:
                self._store.remove(keys)
                self._follow()
                return
            for id_ in keys:
                if id_ not in self._rows:
                    raise KeyError(id_)
            for id_ in set(keys):
                self._alive[self._rows[id_]] = False
                del self._rows[id_]

    @overload
    def query(self, fingerprints: Fingerprint) -> list[tuple[Any, int]]: ...
    @overload
    def query(self, fingerprints: Fingerprints) -> list[list[tuple[Any, int]]]: ...
    def query(self, fingerprints: Fingerprint | Fingerprints) -> Any:
        """Find what is within k bits.

        Parameters
        ----------
        fingerprints
            One, or many at once, which takes much less time for each. A text without any feature finds nothing.

        Returns
        -------
        list
            For one fingerprint: (id, distance in bits) of all that is near, by distance, then id: integers, then
            strings, then other ids as they were added last. For many: such a list for each of them.
        """
        if not isinstance(fingerprints, Fingerprint | Fingerprints):
            raise TypeError(f"{type(fingerprints).__name__} is no fingerprint: give a Fingerprint, or Fingerprints")
        same_scheme(self.scheme, fingerprints.scheme)
        if isinstance(fingerprints, Fingerprint):
            one = Fingerprints.from_ints([fingerprints.value], self.scheme, [fingerprints.features])
            return self.query(one)[0]
        asked = np.flatnonzero(fingerprints.features)
        queries = columns_of(fingerprints.words[asked])
        hits: list[list[tuple[int, int]]] = [[] for _ in range(len(fingerprints))]
        with self._lock:
            self._follow()
            for found in self._near(queries):
                for query, row, bits in zip(asked[found[:, 0]].tolist(), *found.T[1:].tolist(), strict=True):
                    hits[query].append((bits, row))
            return [[(self._ids[row], bits) for bits, row in sorted(found, key=self._place)] for found in hits]

    def _near(self, queries: Columns) -> Iterator[Counts]:
        """Yield (query, row, distance) of what is near, shape (hits, 3), in no order."""
        for segment in self._segments:
            yield from segment.near(queries, self._columns, self._alive)
        start, stop = self._arranged, len(self._ids)
        if start < stop:
            waiting, each = tuple(column[start:stop] for column in self._columns), _EVERY[: stop - start]
            everything = np.full(len(queries), ~np.uint64(0))
            these = np.uint64(self.k), everything, np.uint64(start), each, self._alive
            yield _all_hits(_look_through, queries, waiting, each, *these)

    def _place(self, hit: tuple[int, int]) -> tuple[Any, ...]:
        """Where a hit stands in an answer."""
        bits, row = hit
        id_ = self._ids[row]
        if isinstance(id_, int | np.integer):
            return bits, 0, id_
        return (bits, 1, id_) if isinstance(id_, str) else (bits, 2, row)

    def _follow(self) -> None:
        """Take in what was written to the file since the last time."""
        if self._closed:
            raise ValueError("the index is closed: make a new one")
        if self._store:
            self._take(self._store.news())

    def _take(self, news: Iterable[News]) -> None:
        """Take in all that is new, or close: what is taken in by half would make for wrong answers."""
        try:
            for entries in news:
                self._apply(*entries)
        except (ValueError, OSError, RuntimeError):  # the store's, which has given nothing
            raise
        except BaseException:
            self.close()
            raise

    def _apply(self, ids: Sequence[Any], words: Words, features: Counts, present: NDArray[np.bool_]) -> None:
        """Add rows; of those that are not present, only forget the id."""
        start, stop = len(self._ids), len(self._ids) + len(ids)
        if stop > len(self._alive):
            room = stop + stop // 4
            self._columns = tuple(_longer(column, room) for column in self._columns)
            self._alive = _longer(self._alive, room)
        for column, values in zip(self._columns, words.T, strict=True):
            column[start:stop] = values
        self._alive[start:stop] = present & (features != 0)
        for row, (id_, is_present) in enumerate(zip(ids, present.tolist(), strict=True), start):
            before = self._rows.pop(id_, None)
            if before is not None:
                self._alive[before] = False
            if is_present:
                self._rows[id_] = row
        self._ids += ids
        if stop > 2 * len(self._rows) + _WAITING:
            self._compact()
        if len(self._ids) - self._arranged > _WAITING:
            self._arrange()

    @property
    def _arranged(self) -> int:
        """How many rows stand in segments."""
        return self._segments[-1].stop if self._segments else 0

    def _arrange(self) -> None:
        """Put the rows that wait into a segment, together with those that are not much larger."""
        start, stop = self._arranged, len(self._ids)
        while self._segments and start - self._segments[-1].start < _GROWTH * (stop - start):
            start = self._segments.pop().start
        words = np.column_stack([column[start:stop] for column in self._columns])
        entries = Fingerprints(words, self._alive[start:stop].astype(np.int64), self.scheme)
        self._segments.append(_Segment(entries, start, self.k))

    def _compact(self) -> None:
        """Leave out the rows that are no id's any more."""
        rows = np.fromiter(self._rows.values(), np.int64, len(self._rows))  # ascending, as they were added
        self._ids = [self._ids[row] for row in rows.tolist()]
        self._columns = tuple(column[rows] for column in self._columns)
        self._alive = self._alive[rows]
        self._rows = {id_: row for row, id_ in enumerate(self._ids)}
        self._segments = []


def _listed(ids: Iterable[Hashable]) -> list[Any]:
    if isinstance(ids, str | bytes):
        raise TypeError(f"ids come one for each fingerprint, not as one {type(ids).__name__}: put it into a list")
    return list(ids)


def _longer(array: NDArray[Any], room: int) -> NDArray[Any]:
    longer = np.zeros(room, array.dtype)
    longer[: len(array)] = array
    return longer
