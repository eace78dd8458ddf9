"""Hamming distance, and all pairs within k by scanning every pair."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simdup.fingerprint import Counts, Fingerprint, Fingerprints, Words, natural, uint64
from simdup.jit import kernel, popcount
from simdup.scheme import same_scheme

# The columns that one pass compares with every row: they stay in the processor's first cache.
_TILE = 2048
# The most pairs that are handed on at once, and the least that this can be: a row may be near to a whole tile.
CHUNK, LEAST_CHUNK = 1 << 20, _TILE
_ITSELF = np.zeros(1, np.int64)


Columns = tuple[Words, ...]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of rows. Those of `all_pairs` and `near_pairs` are sorted by left, then right; left is below right."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distance: NDArray[np.int64]
    """In bits. All three have shape (m,)."""

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, at: slice | NDArray[Any]) -> "Pairs":
        return Pairs(self.left[at], self.right[at], self.distance[at])


@overload
def distance(left: int | Fingerprint, right: int | Fingerprint) -> int: ...
@overload
def distance(left: Fingerprints, right: Fingerprint | Fingerprints) -> Counts: ...
@overload
def distance(left: Fingerprint, right: Fingerprints) -> Counts: ...
def distance(left: Any, right: Any) -> int | Counts:
    """In how many bits two fingerprints differ.

    Parameters
    ----------
    left, right
        Both a `Fingerprint` or `Fingerprints` of one scheme; or both an int in [0, 2^64), taken as 64 bits.

    Returns
    -------
    int
        For two single fingerprints.
    ndarray
        int64, shape (n,): for two columns row by row, for a column and a single one row against that.

    Raises
    ------
    TypeError
        For anything else, strings of digits and a mix of ints and fingerprints among them.
    ValueError
        For ints out of range, different schemes, columns of different lengths.
    """
    kinds = (Fingerprint, Fingerprints)
    if not isinstance(left, kinds) and not isinstance(right, kinds):
        return (natural(left, 64) ^ natural(right, 64)).bit_count()
    if not isinstance(left, kinds) or not isinstance(right, kinds):
        stranger = right if isinstance(left, kinds) else left
        raise TypeError(f"{stranger!r} has no scheme: make it one with Fingerprints.from_ints, from_hex or from_signed")
    same_scheme(left.scheme, right.scheme)
    if isinstance(left, Fingerprint) and isinstance(right, Fingerprint):
        return (left.value ^ right.value).bit_count()
    if isinstance(left, Fingerprints) and isinstance(right, Fingerprints) and len(left) != len(right):
        raise ValueError(f"columns of {len(left)} and {len(right)} fingerprints cannot be compared row by row")
    a, b = (
        Fingerprints.from_ints([side.value], side.scheme).words if isinstance(side, Fingerprint) else side.words
        for side in (left, right)
    )
    apart: Counts = np.bitwise_count(a ^ b).sum(axis=1, dtype=np.int64)
    return apart


@njit(inline="always")
def _apart(columns, row, other):  # type: ignore[no-untyped-def]
    bits = np.uint64(0)
    for column in columns:
        bits += popcount(column[row] ^ column[other])
    return bits


@kernel
def _hits(columns, row, start, stop, k):  # type: ignore[no-untyped-def]
    """How many of the rows from `start` to `stop` are within k of `row`.

    It only counts, which compiles to wide population counts if all indices are unsigned; who they are is looked up
    where there are any.
    """
    hits = np.uint64(0)
    for other in range(np.uint64(start), np.uint64(stop)):
        hits += np.uint64(_apart(columns, np.uint64(row), other) <= k)
    return np.int64(hits)


@njit(inline="always")
def _is_first(columns, row, other, masks, radii, table):  # type: ignore[no-untyped-def]
    """Whether two rows are a candidate pair of this table, and of none before it."""
    for earlier in range(table + 1):
        bits = np.uint64(0)
        for word in range(len(columns)):
            bits += popcount((columns[word][row] ^ columns[word][other]) & masks[earlier, word])
        if bits <= radii[earlier]:
            return earlier == table
    return False


@kernel
def _scan(columns, starts, stops, flips, k, masks, radii, table, state, left, right, apart):  # type: ignore[no-untyped-def]
    """Go on from `state` until all are compared or the output is nearly full, and return how many pairs were found."""
    run, flip, tile, row, examined = state
    found = 0
    while run < len(starts):
        while flip < len(flips):
            other_run = run ^ flips[flip]
            same = flip == 0
            tile = max(tile, starts[other_run]) if other_run >= run else stops[other_run]
            while tile < stops[other_run]:
                tile_stop = min(stops[other_run], tile + _TILE)
                row = max(row, starts[run])
                row_stop = min(stops[run], tile_stop) if same else stops[run]
                while row < row_stop:
                    other = max(row + 1, tile) if same else tile
                    hits = _hits(columns, row, other, tile_stop, k)
                    if hits and found + hits > len(left):
                        state[0], state[1], state[2], state[3], state[4] = run, flip, tile, row, examined
                        return found
                    examined += tile_stop - other
                    for _ in range(hits):
                        bits = _apart(columns, row, other)
                        while bits > k:
                            other += 1
                            bits = _apart(columns, row, other)
                        if _is_first(columns, row, other, masks, radii, table):
                            left[found], right[found], apart[found] = row, other, bits
                            found += 1
                        other += 1
                    row += 1
                row = 0
                tile = tile_stop
            tile = 0
            flip += 1
        flip = 0
        run += 1
    state[0], state[4] = run, examined
    return found


def all_pairs(words: Words, k: int) -> Pairs:
    """Every pair of rows that differ in at most k bits, by comparing all of them.

    Parameters
    ----------
    words
        uint64, shape (n,) or (n, bits // 64).
    k
        Bits, 0 to the width.

    Returns
    -------
    Pairs
        Exact; equal rows are pairs at distance 0. The time grows with n^2.
    """
    columns = columns_of(words)
    check_k(k, 64 * len(columns))
    everything = np.zeros((1, len(columns)), np.uint64), np.zeros(1, np.uint64)
    n = len(columns[0])
    return in_order(scan(columns, np.arange(n), np.array([0]), np.array([n]), k, *everything, 0))


def check_k(k: int, bits: int) -> None:
    """Raise TypeError or ValueError unless k is a number of bits, 0 to `bits`."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k={k!r}: give an int, in bits")
    if not 0 <= k <= bits:
        raise ValueError(f"k={k}: give 0 to {bits} bits")


def scan(
    columns: Columns,
    rows: Counts,
    starts: Counts,
    stops: Counts,
    k: int,
    masks: Words,
    radii: Words,
    table: int,
    flips: Counts = _ITSELF,
    chunk: int = CHUNK,
) -> Generator[Pairs, None, int]:
    """Yield the pairs of rows within k bits that are candidates of a table, in no order.

    Parameters
    ----------
    columns
        The rows' words, column by column; the rows of a run stand one after the other.
    rows
        What each of them is called in the pairs, shape (n,).
    starts, stops
        Where each run begins and ends, shape (runs,).
    k
        Bits.
    masks, radii, table
        Two rows are candidates of table t if they differ in at most ``radii[t]`` of the bits of ``masks[t]``, shape
        (tables, words). A pair that is a candidate of an earlier table is left out.
    flips
        A run is compared with each whose number differs from its own by one of these: the first is 0, for itself.
    chunk
        How many pairs to yield at once, at most: LEAST_CHUNK or more.

    Returns
    -------
    int
        How many candidates were compared.
    """
    state, runs = np.zeros(5, np.int64), len(starts)
    while state[0] < runs:
        left, right, apart = np.empty((3, chunk), np.int64)
        found = _scan(columns, starts, stops, flips, np.uint64(k), masks, radii, table, state, left, right, apart)
        if found:
            yield Pairs(rows[left[:found]], rows[right[:found]], apart[:found].copy())
    return int(state[4])


def in_order(chunks: Iterable[Pairs]) -> Pairs:
    """Put pairs together, sorted by left, then right; left is below right."""
    parts = list(chunks) or [Pairs(*np.empty((3, 0), np.int64))]
    left, right, apart = map(
        np.concatenate, zip(*((part.left, part.right, part.distance) for part in parts), strict=True)
    )
    order = np.argsort(left << 32 | right)  # no two are equal
    return Pairs(left[order], right[order], apart[order])


@kernel
def _count_distances(columns, group, counts):  # type: ignore[no-untyped-def]
    n = len(columns[0])
    apart = np.empty(_TILE, np.uint16)
    for tile in range(0, n, _TILE):
        stop = min(n, tile + _TILE)
        for row in range(stop):
            start = max(row + 1, tile)
            for other in range(np.uint64(start), np.uint64(stop)):
                apart[other - np.uint64(start)] = _apart(columns, np.uint64(row), other)
            for other in range(start, stop):
                if group[other] != group[row]:
                    counts[group[row], apart[other - start]] += 1
                    counts[group[other], apart[other - start]] += 1


def distance_counts(words: Words, group: NDArray[np.int64]) -> Counts:
    """For each group of rows, how many pairs of one of them and one of another group stand at each distance.

    Parameters
    ----------
    words
        uint64, shape (n,) or (n, bits // 64).
    group
        The group of each row, from 0 on, shape (n,).

    Returns
    -------
    ndarray
        int64, shape (groups, bits + 1); each pair counts for both of its groups.
    """
    columns = columns_of(words)
    counts = np.zeros((group.max(initial=-1) + 1, 64 * len(columns) + 1), np.int64)
    _count_distances(columns, group, counts)
    return counts


@kernel
def _widest(columns, starts, stops, widest):  # type: ignore[no-untyped-def]
    for run in range(len(starts)):
        most = np.uint64(0)
        for row in range(starts[run], stops[run]):
            for other in range(np.uint64(row + 1), np.uint64(stops[run])):
                most = max(most, _apart(columns, np.uint64(row), other))
        widest[run] = most


def diameters(words: Words, starts: Counts, stops: Counts) -> Counts:
    """Find the largest distance between two rows of each run.

    Parameters
    ----------
    words
        uint64, shape (n,) or (n, bits // 64).
    starts, stops
        Where each run begins and ends, shape (runs,). Takes the square of its length.

    Returns
    -------
    ndarray
        int64, shape (runs,), in bits; 0 for a run of one row or none.
    """
    widest = np.empty(len(starts), np.int64)
    _widest(columns_of(words), starts, stops, widest)
    return widest


def columns_of(words: Words) -> Columns:
    """The 1, 2 or 4 columns of the words, each contiguous, so that one word of many rows can be read in one go."""
    rows = uint64(words)
    if rows.ndim == 1:
        rows = rows[:, np.newaxis]
    if rows.ndim != 2 or rows.shape[1] not in (1, 2, 4):
        raise ValueError(f"words of shape {rows.shape}: give (n,), (n, 2) or (n, 4)")
    return tuple(np.ascontiguousarray(rows.T))
