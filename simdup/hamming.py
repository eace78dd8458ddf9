"""Hamming distance, and all pairs within k by scanning every pair."""

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from simdup.fingerprint import Counts, Fingerprint, Fingerprints, Words, natural, uint64
from simdup.jit import kernel
from simdup.scheme import same_scheme

# The columns that one pass compares with every row: they stay in the processor's first cache.
_TILE = 2048


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of rows, sorted by left, then right; left is below right. All three have shape (m,)."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distance: NDArray[np.int64]
    """In bits."""

    def __len__(self) -> int:
        return len(self.left)


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


@intrinsic
def _popcount(_context, _word):  # type: ignore[no-untyped-def]
    """The processor's own population count, which the compiler widens to many words at once."""

    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(inline="always")
def _apart(columns, row, other):  # type: ignore[no-untyped-def]
    bits = np.uint64(0)
    for column in columns:
        bits += _popcount(column[row] ^ column[other])
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


@kernel
def _count_pairs(columns, k, hits):  # type: ignore[no-untyped-def]
    """Count in ``hits[tile, row]`` the rows of each tile behind `row` that are within k of it."""
    n = len(columns[0])
    for tile in range(len(hits)):
        stop = min(n, (tile + 1) * _TILE)
        for row in range(stop):
            hits[tile, row] = _hits(columns, row, max(row + 1, tile * _TILE), stop, k)


@kernel
def _collect_pairs(columns, k, hits, left, right, apart):  # type: ignore[no-untyped-def]
    found = 0
    for row in range(len(columns[0])):
        for tile in range(row // _TILE, len(hits)):
            other = max(row + 1, tile * _TILE)
            for _ in range(hits[tile, row]):
                bits = _apart(columns, row, other)
                while bits > k:
                    other += 1
                    bits = _apart(columns, row, other)
                left[found], right[found], apart[found] = row, other, bits
                found += 1
                other += 1


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
        Exact; equal rows are pairs at distance 0. The time grows with n^2, the memory is n^2 / 1024 bytes and 24 for
        each pair found.
    """
    columns = _columns(words)
    bits = 64 * len(columns)
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k={k!r}: give an int, in bits")
    if not 0 <= k <= bits:
        raise ValueError(f"k={k}: give 0 to {bits} bits")
    n = len(columns[0])
    hits = np.zeros((-(-n // _TILE), n), np.int16)
    _count_pairs(columns, np.uint64(k), hits)
    left, right, apart = np.empty((3, int(hits.sum(dtype=np.int64))), np.int64)
    _collect_pairs(columns, np.uint64(k), hits, left, right, apart)
    return Pairs(left, right, apart)


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
    columns = _columns(words)
    counts = np.zeros((group.max(initial=-1) + 1, 64 * len(columns) + 1), np.int64)
    _count_distances(columns, group, counts)
    return counts


def _columns(words: Words) -> tuple[Words, ...]:
    """The 1, 2 or 4 columns of the words, each contiguous, so that one word of many rows can be read in one go."""
    rows = uint64(words)
    if rows.ndim == 1:
        rows = rows[:, np.newaxis]
    if rows.ndim != 2 or rows.shape[1] not in (1, 2, 4):
        raise ValueError(f"words of shape {rows.shape}: give (n,), (n, 2) or (n, 4)")
    return tuple(np.ascontiguousarray(rows.T))
