"""Blocks of bits by which near rows find each other, and the tables that are made of them.

Whatever differs in at most k bits agrees in one of k + 1 blocks of bits, in two of k + 2, and so on; or it differs in
at most r bits of one of fewer blocks (the pigeonhole principle: Manku, Jain and Das Sarma 2007; Norouzi, Punjani and
Fleet 2012). So a table arranges rows by some of the blocks, and only rows that stand together are compared.
"""

import functools
import math
from collections.abc import Generator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import NamedTuple, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simdup.fingerprint import Counts, Words
from simdup.hamming import CHUNK, Columns, Pairs, scan
from simdup.jit import kernel

# Odd numbers without pattern (the golden ratio's and XXH64's), for one word after the other.
_MIX = np.array((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5), np.uint64)
# Bits that one pass of the sort looks at: its counters stay in the processor's first cache.
_DIGIT = 11
# Rows that a plan is tried on: half a million pairs, of which one stands for less than a table costs.
_SAMPLE = 1024
_TRIED_TABLES = 2


@njit(inline="always")
def _hash(columns, row, mask, mix):  # type: ignore[no-untyped-def]
    """Equal for rows that are equal under the mask; its upper bits differ for nearly all others."""
    key = np.uint64(0)
    for word in range(len(columns)):
        key ^= columns[word][row] & mask[word]
        key = (key ^ key >> np.uint64(32)) * mix[word & 3]
    return key


@kernel
def _hashed(columns, mask, mix, shift, packed):  # type: ignore[no-untyped-def]
    """Pack a hash of the masked bits above the row's number."""
    for row in range(np.uint64(len(packed))):
        packed[row] = _hash(columns, row, mask, mix) >> shift << shift | row


@kernel
def _gathered(columns, words, places, shift, packed):  # type: ignore[no-untyped-def]
    """Pack the bits themselves, one beside the other, above the row's number."""
    for row in range(np.uint64(len(packed))):
        packed[row] = row
    for bit in range(len(words)):
        column, place, target = columns[words[bit]], places[bit], shift + np.uint64(bit)
        for row in range(np.uint64(len(packed))):
            packed[row] |= (column[row] >> place & np.uint64(1)) << target


@kernel
def _radix_sort(packed, scratch, low, digit):  # type: ignore[no-untyped-def]
    """Sort by the bits from `low` up, so many at once. Return the array that holds the result."""
    mask = np.uint64((1 << digit) - 1)
    begins = np.empty((1 << digit) + 1, np.int64)
    for shift in range(np.uint64(low), np.uint64(64), np.uint64(digit)):
        begins[:] = 0
        for value in packed:
            begins[(value >> shift & mask) + np.uint64(1)] += 1
        for at in range(len(begins) - 1):
            begins[at + 1] += begins[at]
        for value in packed:
            at = value >> shift & mask
            scratch[begins[at]] = value
            begins[at] += 1
        packed, scratch = scratch, packed
    return packed


@kernel
def _runs(packed, shift, rows, starts, stops):  # type: ignore[no-untyped-def]
    """Keep the rows that share their key with another, and where each run of them begins and ends."""
    mask = (np.uint64(1) << shift) - np.uint64(1)
    kept, runs, at = 0, 0, 0
    while at < len(packed):
        key, stop = packed[at] >> shift, at + 1
        while stop < len(packed) and packed[stop] >> shift == key:
            stop += 1
        if stop - at > 1:
            starts[runs] = kept
            for place in range(at, stop):
                rows[kept] = packed[place] & mask
                kept += 1
            stops[runs] = kept
            runs += 1
        at = stop
    return kept, runs


def sort_packed(packed: Words, key_bits: int) -> Words:
    """Sort numbers by their upper bits; those that are equal in them keep their order."""
    digit = -(-key_bits // -(-key_bits // _DIGIT))
    ordered: Words = _radix_sort(packed, np.empty_like(packed), 64 - key_bits, digit)
    return ordered


@dataclass(frozen=True)
class Table:
    """Two rows are candidates if they differ in at most `radius` of some bits, of which rows have a key."""

    bits: tuple[int, ...]
    """Which: bit b is bit ``b % 64``, counted from the lowest, of word ``b // 64``."""
    radius: int
    words: int
    """How many words a row has."""

    @functools.cached_property
    def mask(self) -> Words:
        """The bits as a mask, uint64, shape (words,)."""
        chosen = np.zeros(64 * self.words, np.uint8)
        chosen[list(self.bits)] = 1
        return np.packbits(chosen, bitorder="little").view("<u8").astype(np.uint64)

    @property
    def ball(self) -> int:
        """How many keys differ from a given one in at most `radius` bits."""
        return sum(math.comb(len(self.bits), size) for size in range(self.radius + 1))

    @property
    def flips(self) -> Counts:
        """How they differ, 0 first: shape (ball,)."""
        chosen = chain.from_iterable(combinations(range(len(self.bits)), size) for size in range(self.radius + 1))
        return np.array([sum(1 << bit for bit in some) for some in chosen])

    def key_bits(self, n: int) -> int:
        """How many bits a key among n rows has: those of the table, or of a hash where none of them may differ."""
        # Twice as many keys as rows: more would only take more time to sort.
        return len(self.bits) if self.radius else min(n.bit_length() + 1, 64 - n.bit_length())

    def packed(self, columns: Columns, key_bits: int) -> Words:
        """The key of each row in the upper bits, its number below."""
        packed = np.empty(len(columns[0]), np.uint64)
        shift = np.uint64(64 - key_bits)
        if self.radius:
            bits = np.array(self.bits)
            _gathered(columns, bits >> 6, (bits & 63).astype(np.uint64), shift, packed)
        else:
            _hashed(columns, self.mask, _MIX, shift, packed)
        return packed

    def runs(self, columns: Columns, key_bits: int) -> tuple[Counts, Counts, Counts]:
        """The rows that share their key with another, key by key, and where the run of each begins and ends."""
        n = len(columns[0])
        rows, starts, stops = np.empty((3, n), np.int64)
        ordered = sort_packed(self.packed(columns, key_bits), key_bits)
        kept, runs = _runs(ordered, np.uint64(64 - key_bits), rows, starts, stops)
        return rows[:kept], starts[:runs], stops[:runs]

    def directory(self, columns: Columns, key_bits: int) -> tuple[Counts, Counts]:
        """All rows, key by key, and where those of each possible key begin, which is where those of the last end."""
        ordered = sort_packed(self.packed(columns, key_bits), key_bits)
        keys = (ordered >> np.uint64(64 - key_bits)).astype(np.int64)
        begins = np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=1 << key_bits))))
        return (ordered & np.uint64((1 << 64 - key_bits) - 1)).astype(np.int64), begins


class Costs(NamedTuple):
    """What it takes, in nanoseconds. Only their proportions matter, and only for speed."""

    row: float
    """To put a row into a table."""
    key: float
    """To look for the rows of one key."""
    candidate: float
    """To compare a word of two rows that share a key."""


SCANNED = 0.12
"""Nanoseconds to compare a word of two rows where all stand one after the other."""
_JOINED = Costs(row=12, key=8, candidate=SCANNED)
# What a pair that is near costs besides, and for each table that might have found it before.
_FOUND, _FOUND_BEFORE = 10, 4
_NOT_WORTH_PLANNING = 3e6


@dataclass(frozen=True)
class Plan:
    """The tables by which rows are compared: every pair within k bits is a candidate of one of them."""

    blocks: int
    """How many blocks the bits are dealt to; 0 if every row is compared with every other."""
    tables: tuple[Table, ...]

    def __str__(self) -> str:
        if not self.blocks:
            return "all pairs"
        if radius := max(table.radius for table in self.tables):
            return f"{self.blocks} blocks, within {radius} bits"
        return f"{self.blocks} blocks, {len(self.tables)} tables"

    @classmethod
    def of(cls, blocks: int, k: int, order: NDArray[np.int64], widest: int) -> Self:
        """Deal the bits in this order, the most telling first, to so many blocks, back and forth.

        Of k + 1 blocks or more k may differ, and the others together are a key. Of fewer each is a key, of its
        `widest` first bits, in which a few may differ.
        """
        words = len(order) // 64
        if not blocks:
            return cls(0, (Table((), 0, words),))
        turn, place = np.divmod(np.arange(len(order)), blocks)
        block = np.where(turn % 2, blocks - 1 - place, place)
        hands = [tuple(order[block == number].tolist()) for number in range(blocks)]
        if blocks > k:
            return cls(blocks, tuple(Table((*chain(*some),), 0, words) for some in combinations(hands, blocks - k)))
        each, more = divmod(k + 1, blocks)
        radii = [each if number < more else each - 1 for number in range(blocks)]
        tables = (Table(hand[:widest], radius, words) for hand, radius in zip(hands, radii, strict=True))
        return cls(blocks, tuple(tables))

    @classmethod
    def choose(cls, columns: Columns, k: int, blocks: int | None = None, costs: Costs = _JOINED) -> Self:
        """Choose the number of blocks that takes the least time, by what a sample of the rows says."""
        n, bits = len(columns[0]), 64 * len(columns)
        best = cls.of(0, k, np.arange(bits), 0)
        least = n * n / 2 * SCANNED * len(columns)
        if least < _NOT_WORTH_PLANNING and blocks is None:
            return best
        rows = np.unique(np.random.default_rng(0).integers(0, n, _SAMPLE)) if n else np.arange(0)
        sample = tuple(column[rows] for column in columns)
        bytes_ = np.column_stack(sample).astype("<u8").view(np.uint8)
        ones = np.unpackbits(bytes_, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        order, widest = np.argsort(np.abs(2 * ones - len(rows)), kind="stable"), max(1, n.bit_length() - 4)
        if blocks is not None:
            return cls.of(blocks, k, order, widest)

        near = best._share(sample, k, n, near=True)
        least += n * n / 2 * near * _FOUND

        def cost(plan: Self, share: float) -> float:
            each_row = sum(costs.row + costs.key * (table.ball + 1) / 2 for table in plan.tables)
            each_near = _FOUND + _FOUND_BEFORE * len(plan.tables)
            return n * each_row + n * n / 2 * (share * costs.candidate * len(columns) + near * each_near)

        for number in (*range(k + 1, bits + 1), *range(min(k, bits), 0, -1)):
            if number > k and math.comb(number, k) * n * (costs.row + costs.key) > least:
                continue
            plan = cls.of(number, k, order, widest)
            # No distribution has fewer candidates than the uniform one.
            uniform = sum(table.ball / 2 ** len(table.bits) for table in plan.tables)
            if cost(plan, uniform) < least and (found := cost(plan, plan._share(sample, k, n))) < least:
                best, least = plan, found
        return best

    def _share(self, sample: Columns, k: int, n: int, *, near: bool = False) -> float:
        """Which share of all pairs are candidates, or near, by a sample of n rows, summed over all tables."""
        tried = self.tables[:: max(1, len(self.tables) // _TRIED_TABLES)]
        compared = [drain(Comparison(sample, k, (table,), n=n).pairs(0)) for table in tried]
        counted = sum(sum(map(len, parts)) if near else examined for parts, examined in compared)
        return counted / math.comb(len(sample[0]), 2) * len(self.tables) / len(tried)


class Comparison:
    """The comparison of rows with each other, table by table; or of a sample of n rows."""

    def __init__(
        self, columns: Columns, k: int, tables: tuple[Table, ...], chunk: int = CHUNK, n: int | None = None
    ) -> None:
        self._n = len(columns[0]) if n is None else n
        self._columns, self._k, self._tables, self._chunk = columns, k, tables, chunk
        self._masks = np.array([table.mask for table in tables])
        self._radii = np.array([table.radius for table in tables], np.uint64)

    def pairs(self, number: int) -> Generator[Pairs, None, int]:
        """Yield the pairs within k bits that this table is the first to find, and return how many were candidates."""
        table = self._tables[number]
        key_bits = table.key_bits(self._n)
        if table.radius:
            rows, begins = table.directory(self._columns, key_bits)
            starts, stops = begins[:-1], begins[1:]
        else:
            rows, starts, stops = table.runs(self._columns, key_bits)
        columns = tuple(column.take(rows) for column in self._columns)
        return (
            yield from scan(
                columns, rows, starts, stops, self._k, self._masks, self._radii, number, table.flips, self._chunk
            )
        )


def drain(pairs: Generator[Pairs, None, int]) -> tuple[list[Pairs], int]:
    """Everything that a generator yields, and what it returns."""
    parts: list[Pairs] = []
    while True:
        try:
            parts.append(next(pairs))
        except StopIteration as end:
            return parts, int(end.value)
