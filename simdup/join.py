"""All pairs within k bits among many fingerprints: exact, by blocks that are chosen from the data."""

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from simdup.blocks import Comparison, Plan, Table, drain
from simdup.fingerprint import Counts, Fingerprints, Words, check_threads
from simdup.hamming import CHUNK, LEAST_CHUNK, Pairs, check_k, columns_of, in_order
from simdup.jit import kernel


@kernel
def _first_equal(columns, starts, stops, rows, first):  # type: ignore[no-untyped-def]
    """Say in ``first[row]`` which row is the first that is equal to it, among rows that share a key."""
    others = np.empty(len(rows), np.int64)
    for run in range(len(starts)):
        different = 0
        for at in range(starts[run], stops[run]):
            which = 0
            while which < different:
                equal = True
                for column in columns:
                    equal &= column[at] == column[others[which]]
                if equal:
                    break
                which += 1
            if which == different:
                others[different] = at
                different += 1
            first[rows[at]] = rows[others[which]]


@kernel
def _group(first, places, members, begins):  # type: ignore[no-untyped-def]
    """Put the rows of each group one behind the other, and where each begins; return how many groups there are."""
    n, groups, end = len(first), 0, 0
    for row in range(n):
        if first[row] >= 0:
            places[first[row]] += 1
    for row in range(n):
        if first[row] == row:
            begins[groups] = end
            groups += 1
            end += places[row]
            places[row] = begins[groups - 1]
    begins[groups] = end
    for row in range(n):
        if first[row] >= 0:
            members[places[first[row]]] = row
            places[first[row]] += 1
    return groups


def first_equal(fingerprints: Fingerprints, *more: Words) -> Counts:
    """For each row the first that has the same fingerprint, itself where there is none before.

    Parameters
    ----------
    fingerprints
        Shape (n,).
    more
        Further columns, uint64 of shape (n,), in which equal rows agree too.

    Returns
    -------
    ndarray
        int64, shape (n,); -1 for a text without any feature, which is equal to nothing.
    """
    present = np.flatnonzero(fingerprints.features)
    columns = (*columns_of(fingerprints.words[present]), *(column[present] for column in more))
    every_bit = Table(tuple(range(64 * len(columns))), 0, len(columns))
    rows, starts, stops = every_bit.runs(columns, every_bit.key_bits(len(present)))
    within = np.arange(len(present))
    _first_equal(tuple(column.take(rows) for column in columns), starts, stops, rows, within)
    first = np.full(len(fingerprints), -1, np.int64)
    first[present] = present[within]
    return first


class Groups:
    """Rows, group by group of equal ones: those of group g are ``members[begins[g] : begins[g + 1]]``, ascending.

    Parameters
    ----------
    first
        As `first_equal` gives it. The groups stand in the order of their first rows.
    """

    def __init__(self, first: Counts) -> None:
        members, begins = np.empty_like(first), np.empty(len(first) + 1, np.int64)
        groups = _group(first, np.zeros_like(first), members, begins)
        self.members, self.begins = members[: begins[groups]], begins[: groups + 1]

    def __len__(self) -> int:
        return len(self.begins) - 1

    @functools.cached_property
    def firsts(self) -> Counts:
        """The first row of each group, ascending, shape (groups,)."""
        return self.members[self.begins[:-1]]

    @functools.cached_property
    def sizes(self) -> Counts:
        """How many rows each group has, shape (groups,)."""
        return np.diff(self.begins)

    @property
    def within(self) -> Pairs:
        """The groups of several rows as pairs with themselves."""
        several = np.flatnonzero(self.sizes > 1)
        return Pairs(several, several, np.zeros_like(several))

    def expanded(self, pairs: Pairs, chunk: int = CHUNK) -> Iterator[tuple[Pairs, NDArray[np.int64]]]:
        """Yield every pair of rows for pairs of groups, so many at a time, and which pair of groups each comes from.

        Of a group with itself each pair of rows comes once.
        """
        sizes = self.sizes
        many = sizes[pairs.left] * sizes[pairs.right]
        for start in range(0, len(pairs), chunk):  # of groups of one row each there is nothing to expand
            alone = start + np.flatnonzero(many[start : start + chunk] == 1)
            one, other = self.firsts[pairs.left[alone]], self.firsts[pairs.right[alone]]
            yield Pairs(np.minimum(one, other), np.maximum(one, other), pairs.distance[alone]), alone
        several = np.flatnonzero(many > 1)
        stops = np.cumsum(many[several])
        for start in range(0, int(stops[-1]) if len(stops) else 0, chunk):
            at = np.arange(start, min(start + chunk, stops[-1]))
            place = np.searchsorted(stops, at, side="right")
            pair = several[place]
            left, right = pairs.left[pair], pairs.right[pair]
            one, other = np.divmod(at - (stops[place] - many[pair]), sizes[right])
            wanted = (left != right) | (one < other)
            rows = self.members[self.begins[left] + one][wanted], self.members[self.begins[right] + other][wanted]
            pair = pair[wanted]
            yield Pairs(np.minimum(*rows), np.maximum(*rows), pairs.distance[pair]), pair


class Join:
    """All pairs of fingerprints within k bits, some at a time.

    Iterating yields `Pairs` of at most `chunk` pairs, in no order; left is below right, and each pair comes once.

    Parameters
    ----------
    fingerprints
        Those of texts without any feature are in no pair.
    k
        Bits, 0 to the width.
    threads
        How many tables are worked on at once. With more than one, their pairs are held until they are asked for.
    chunk
        How many pairs to yield at once, at most; not fewer than 2,048.
    blocks
        How many blocks to deal the bits to, 0 to compare every pair; by default what takes the least time, by a
        sample of the fingerprints. The pairs are the same.

    Raises
    ------
    TypeError, ValueError
        For a k that is no number of bits.
    """

    def __init__(
        self,
        fingerprints: Fingerprints,
        k: int,
        *,
        threads: int = 1,
        chunk: int = CHUNK,
        blocks: int | None = None,
    ) -> None:
        if not isinstance(fingerprints, Fingerprints):
            raise TypeError(f"{type(fingerprints).__name__} is no column of fingerprints: give Fingerprints")
        bits = fingerprints.scheme.bits
        check_k(k, bits)
        check_threads(threads)
        if blocks is not None and not 0 <= blocks <= bits:
            raise ValueError(f"blocks={blocks}: give 0 to {bits}")
        self._threads, self._chunk = threads, max(chunk, LEAST_CHUNK)
        self._groups = Groups(first_equal(fingerprints))
        columns = columns_of(fingerprints.words[self._groups.firsts])
        self.plan = Plan.choose(columns, k, blocks)
        """Which rows are compared; `str` says it in short."""
        self.examined = 0
        """How many candidates have been compared so far. Equal fingerprints count as one."""
        self._comparison = Comparison(columns, k, self.plan.tables, self._chunk)

    def __iter__(self) -> Iterator[Pairs]:
        for pairs in chain((self._groups.within,), self._found()):
            yield from (rows for rows, _ in self._groups.expanded(pairs, self._chunk) if len(rows))

    def _found(self) -> Iterator[Pairs]:
        """Yield the pairs of different fingerprints, by the numbers of their `Groups`."""
        self.examined = 0
        tables = range(len(self.plan.tables))
        if self._threads == 1:
            for number in tables:
                self.examined += yield from self._comparison.pairs(number)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            for parts, examined in pool.map(lambda number: drain(self._comparison.pairs(number)), tables):
                yield from parts
                self.examined += examined


def near_pairs(fingerprints: Fingerprints, k: int, *, threads: int = 1) -> Pairs:
    """Every pair of fingerprints that differ in at most k bits.

    Parameters
    ----------
    fingerprints
        Those of texts without any feature are in no pair.
    k
        Bits, 0 to the width.
    threads
        How many work at once.

    Returns
    -------
    Pairs
        Exact, for every k and whatever the fingerprints; equal ones are pairs at distance 0. A pair takes 24 bytes,
        and 80 while they are sorted: n equal fingerprints are n (n - 1) / 2 pairs. `Join` gives them some at a time.
    """
    return in_order(Join(fingerprints, k, threads=threads))
