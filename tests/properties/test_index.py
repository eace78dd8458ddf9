"""The index: equal to a dict and brute force, in memory and in a file, whoever reads, writes or is killed meanwhile."""

import contextlib
import functools
import itertools
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.typing import NDArray

from simdup import Fingerprints, Scheme, distance, fingerprint
from simdup import index as module
from simdup.blocks import Plan
from simdup.fingerprint import Words
from simdup.index import Index
from tests.properties.command import finish, launch

WIDE = {bits: Scheme(bits=bits) for bits in (64, 128, 256)}
SCHEME = WIDE[64]

Answer = list[tuple[Any, int]]
Model = dict[Any, tuple[int, int]]
"""Value and feature count of each id, in the order in which they were added last."""


def column(values: Iterable[int], scheme: Scheme = SCHEME, features: Any = None) -> Fingerprints:
    return Fingerprints.from_ints(values, scheme, features)


def update(model: Model, ids: Iterable[Any], values: Iterable[int], features: Iterable[int]) -> None:
    for id_, value, many in zip(ids, values, features, strict=True):
        model.pop(id_, None)
        model[id_] = value, many


def brute_force(model: Model, queries: Fingerprints, k: int) -> list[Answer]:
    """What each query should find: every distance, in the order that is promised."""
    kept = column([value for value, _ in model.values()], queries.scheme)
    order = [
        (0, id_) if isinstance(id_, int | np.integer) else (1, id_) if isinstance(id_, str) else (2, at)
        for at, id_ in enumerate(model)
    ]
    answers = []
    for query in queries:
        apart = distance(kept, query).tolist()
        entries = zip(apart, order, model.items(), strict=True)
        hits = [
            (bits, place, id_) for bits, place, (id_, (_, many)) in entries if bits <= k and many and query.features
        ]
        answers.append([(id_, bits) for bits, _, id_ in sorted(hits, key=lambda hit: hit[:2])])
    return answers


def typed(answers: list[Answer]) -> list[list[tuple[type, Any, int]]]:
    """1, 1.0 and True are equal, but not the same id to whoever gave one of them."""
    return [[(type(id_), id_, bits) for id_, bits in answer] for answer in answers]


class Chosen:
    """Plans of so many blocks, however few the rows: any number of them must find the same."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks

    def choose(self, columns: tuple[Words, ...], k: int, *, costs: object) -> Plan:
        assert costs
        return Plan.choose(columns, k, blocks=self.blocks)


@contextlib.contextmanager
def small(blocks: int = 4) -> Iterator[None]:
    """Segments, tables, merging and compaction from a few rows on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WAITING", 8)
        patch.setattr(module, "Plan", Chosen(blocks))
        yield


Make = Callable[..., Index]


@pytest.fixture(params=["memory", "file"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Make an index, in memory or in a new file."""
    numbers = itertools.count()
    with contextlib.ExitStack() as stack:

        def make(k: int = 3, scheme: Scheme = SCHEME) -> Index:
            path = tmp_path / f"{next(numbers)}" if request.param == "file" else None
            return stack.enter_context(Index(k, scheme, path))

        yield make


class Machine(RuleBasedStateMachine):
    """An index and the dict that it should be."""

    ids = st.sampled_from([*range(-1, 4), "", "1", "a", "a,b:c", np.int64(2), *(f"{n}" for n in range(5))])
    bad: tuple[Any, ...] = ([], {}, {1}, [1])

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.model: Model = {}

    @initialize(data=st.data(), bits=st.sampled_from(sorted(WIDE)))
    def begin(self, data: st.DataObject, bits: int) -> None:
        self.scheme = WIDE[bits]
        self.k = data.draw(st.one_of(st.integers(0, 8), st.integers(0, bits), st.just(bits)), "k")
        possible = [n for n in range(bits + 1) if (math.comb(n, self.k) if n > self.k else n) <= 30]
        self.stack.enter_context(small(data.draw(st.sampled_from(possible), "blocks")))
        self.centres = [0, (1 << bits) - 1, random.Random(bits).getrandbits(bits)]
        self.index = self.open()

    def open(self) -> Index:
        return Index(self.k, self.scheme)

    def value(self, data: st.DataObject) -> int:
        """A fingerprint that is near to one of three."""
        value = data.draw(st.sampled_from(self.centres))
        most = min(self.scheme.bits, self.k + 2)
        for bit in data.draw(st.lists(st.integers(0, self.scheme.bits - 1), max_size=min(most, 12))):
            value ^= 1 << bit
        return value

    @rule(data=st.data(), ids=st.lists(ids, max_size=5))
    def add(self, data: st.DataObject, ids: list[Any]) -> None:
        values = [self.value(data) for _ in ids]
        features = [data.draw(st.sampled_from((-1, 0, 1, 9))) for _ in ids]
        self.index.add((id_ for id_ in ids), column(values, self.scheme, features or None))
        update(self.model, self.as_kept(ids), values, features)

    @rule(seed=st.integers(0, 99), many=st.integers(8, 30), first=st.sampled_from([10, 20, 1000]))
    def add_many(self, seed: int, many: int, first: int) -> None:
        draw = random.Random(seed)
        flips = [sum({1 << draw.randrange(self.scheme.bits) for _ in range(draw.randrange(4))}) for _ in range(many)]
        values = [draw.choice(self.centres) ^ flip for flip in flips]
        self.index.add(range(first, first + many), column(values, self.scheme))
        update(self.model, range(first, first + many), values, [-1] * many)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(list(self.model)), max_size=20))
        self.index.remove(id_ for id_ in ids)
        for id_ in ids:
            self.model.pop(id_, None)

    @rule(data=st.data())
    def remove_what_is_not_there(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from([*self.model, "none such"]), max_size=4))
        with pytest.raises(KeyError) as caught:
            self.index.remove([*ids, "none such"])
        assert caught.value.args == ("none such",)

    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        ids = [*data.draw(st.lists(self.ids, max_size=3)), data.draw(st.sampled_from(self.bad))]
        with pytest.raises((TypeError, ValueError)):
            self.index.add(ids, column([0] * len(ids), self.scheme))
        with pytest.raises((TypeError, ValueError, KeyError)):
            self.index.remove(ids)

    @rule(data=st.data())
    def query(self, data: st.DataObject) -> None:
        queries = column([self.value(data) for _ in range(data.draw(st.integers(0, 5)))], self.scheme)
        answers = self.index.query(queries)
        assert typed(answers) == typed(brute_force(self.model, queries, self.k))
        assert [self.index.query(query) for query in queries] == answers

    @invariant()
    def it_equals_the_dict(self) -> None:
        if hasattr(self, "index"):
            self.check(self.index)

    def check(self, index: Index) -> None:
        queries = column([*self.centres, 0], self.scheme, [1, -1, 5, 0])
        assert typed(index.query(queries)) == typed(brute_force(self.model, queries, self.k))
        assert len(index) == len(self.model)
        assert all(id_ in index for id_ in self.model)
        assert "none such" not in index

    def as_kept(self, ids: list[Any]) -> list[Any]:
        return ids

    def teardown(self) -> None:
        self.stack.close()


class MemoryMachine(Machine):
    ids = st.one_of(Machine.ids, st.sampled_from([True, 1.0, None, (1, "a"), 2.5, b"a", frozenset(), Fraction(1, 3)]))


class FileMachine(Machine):
    """With a second index on the file, which reads and sometimes writes, too."""

    bad = (None, True, 1.0, b"a", ("a",), 2**63, "\ud800", [])

    def open(self) -> Index:
        if not hasattr(self, "path"):
            self.path = Path(self.stack.enter_context(tempfile.TemporaryDirectory())) / "a"
            self.other = self.stack.enter_context(Index(self.k, self.scheme, self.path))
        return Index(self.k, self.scheme, self.path)

    def as_kept(self, ids: list[Any]) -> list[Any]:
        return [id_ if isinstance(id_, str) else int(id_) for id_ in ids]

    @rule()
    def reopen(self) -> None:
        self.index.close()
        self.index = self.open()

    @rule()
    def read_elsewhere(self) -> None:
        self.check(self.other)

    @rule()
    def swap(self) -> None:
        """Who read writes, who wrote reads."""
        self.index, self.other = self.other, self.index

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.check(self.other)
            self.index.close()
            self.other.close()
            with self.open() as index:
                self.check(index)
            assert [path.name for path in self.path.parent.iterdir()] == ["a"]
        super().teardown()


MemoryMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=20)
FileMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=20)
TestMemoryEqualsADict = MemoryMachine.TestCase
TestFileEqualsADict = FileMachine.TestCase


Distances = NDArray[np.int64]


def zipf_like(random: np.random.Generator, n: int, bits: int) -> Words:
    """Bits that are set more or less often, as in the fingerprints of real text."""
    share = random.uniform(0, 0.5, bits)
    ones = random.uniform(0, 1, bits) < 0.5
    return np.packbits((random.uniform(0, 1, (n, bits)) < share) ^ ones, axis=1).view(np.uint64)


class Crowd:
    """Many fingerprints, with planted near ones, queries, and the distance of each query from each of them."""

    def __init__(self, bits: int, kind: str) -> None:
        random = np.random.default_rng(bits)
        rows, words = 60_000, bits // 64
        table = (
            random.integers(0, 2**64, (rows, words), np.uint64) if kind == "random" else zipf_like(random, rows, bits)
        )
        planted = table[random.integers(0, rows, 3_000)]
        for turn in range(24):
            bit = random.integers(0, bits, len(planted))
            mask = np.where(np.arange(len(planted)) % 25 > turn, np.uint64(1) << (bit & 63).astype(np.uint64), 0)
            planted[np.arange(len(planted)), bit >> 6] ^= mask.astype(np.uint64)
        self.fingerprints = Fingerprints.from_words(random.permutation(np.concatenate((table, planted))), WIDE[bits])
        self.queries = Fingerprints.from_words(np.concatenate((planted[:150], table[:50])), WIDE[bits])
        self.apart: Distances = np.array([distance(self.fingerprints, query) for query in self.queries])

    def check(self, index: Index, row_of: NDArray[np.int64]) -> int:
        """Compare the index with brute force, id i having the fingerprint of row_of[i], and count the hits."""
        ids = np.flatnonzero(row_of >= 0)
        apart = self.apart[:, row_of[ids]]
        near = apart <= index.k
        asked = int(np.searchsorted(np.cumsum(near.sum(axis=1)), 100_000)) + 1  # of those that find all, a few will do
        answers = index.query(self.queries[:asked])
        for row, answer in enumerate(answers):
            bits = apart[row, near[row]]
            order = np.argsort(bits, kind="stable")
            assert answer == list(zip(ids[near[row]][order].tolist(), bits[order].tolist(), strict=True))
        return sum(map(len, answers))


@pytest.fixture(scope="module")
def crowds() -> Callable[[int, str], Crowd]:
    made: dict[tuple[int, str], Crowd] = {}

    def crowd(bits: int, kind: str) -> Crowd:
        if (bits, kind) not in made:
            made.clear()
            made[bits, kind] = Crowd(bits, kind)
        return made[bits, kind]

    return crowd


class TestManyRows:
    @pytest.mark.parametrize(
        ("bits", "kind", "k"),
        [
            (bits, kind, k)
            for bits in WIDE
            for kind in ("random", "zipf")
            for k in (0, 3, 6, 10, 20, 40)
            if k < 40 or bits == 256
        ],
    )
    def test_equals_brute_force(self, crowds: Callable[[int, str], Crowd], bits: int, kind: str, k: int) -> None:
        crowd = crowds(bits, kind)
        rows = len(crowd.fingerprints)
        row_of = np.arange(rows)
        index = Index(k, WIDE[bits])
        for start in range(0, rows, 7_001):  # so that segments of several sizes are there, and some rows wait
            part = crowd.fingerprints[start : start + 7_001]
            index.add(range(start, start + len(part)), part)
        assert crowd.check(index, row_of) > 0 or k == 0
        index.remove(range(0, rows, 3))
        row_of[::3] = -1
        crowd.check(index, row_of)
        again = np.arange(0, rows, 2)  # some that were removed, some that are replaced
        row_of[again] = again[::-1]
        index.add(again.tolist(), crowd.fingerprints[again[::-1]])
        crowd.check(index, row_of)

    @pytest.mark.parametrize("blocks", [1, 2, 3, 6, 7])
    def test_any_number_of_blocks_finds_the_same(
        self, crowds: Callable[[int, str], Crowd], blocks: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of up to six the rows within some bits of a key are looked up, which no plan of these rows would choose."""
        monkeypatch.setattr(module, "Plan", Chosen(blocks))
        crowd = crowds(64, "random")
        rows = len(crowd.fingerprints)
        index = Index(6, SCHEME)
        index.add(range(rows), crowd.fingerprints)
        assert len(index._segments[0]._directories) == blocks
        assert crowd.check(index, np.arange(rows)) > 100

    def test_in_a_file(self, crowds: Callable[[int, str], Crowd], tmp_path: Path) -> None:
        crowd = crowds(64, "random")
        rows = len(crowd.fingerprints)
        row_of = np.arange(rows)
        with Index(6, SCHEME, tmp_path / "a") as index:
            index.add(range(rows), crowd.fingerprints)
            index.remove(range(0, rows, 3))
            row_of[::3] = -1
            assert crowd.check(index, row_of) > 100
        with Index(6, SCHEME, tmp_path / "a") as index:
            assert len(index) == np.count_nonzero(row_of >= 0)
            crowd.check(index, row_of)

    def test_masses_of_equal_rows(self) -> None:
        """Each is found, however many, but they are compared once; so it stays when some are removed."""
        random = np.random.default_rng(0)
        words = random.integers(0, 2**64, (60_000, 1), np.uint64)
        words[random.permutation(60_000)[:40_000]] = 7
        index = Index(3, SCHEME)
        index.add(range(60_000), Fingerprints.from_words(words, SCHEME))
        equal = np.flatnonzero(words == 7).tolist()
        for _ in range(3):
            assert index.query(column([6, 7, 2**64 - 1])) == [
                [(id_, 1) for id_ in equal],
                [(id_, 0) for id_ in equal],
                [],
            ]
            index.remove(equal[::3])
            equal = [id_ for at, id_ in enumerate(equal) if at % 3]
        (segment,) = index._segments
        assert [len(directory.rows) for directory in segment._directories] == [20_001] * 4

    def test_few_different_rows(self) -> None:
        index = Index(3, SCHEME)
        index.add(range(40_000), column([id_ % 5 for id_ in range(40_000)]))
        assert len(index._segments[0]._rows) == 5
        (answer,) = index.query(column([2**63 + 15]))
        assert answer == [(id_, 3) for id_ in range(40_000) if id_ % 5 == 3]

    def test_many_hits_of_a_batch(self) -> None:
        """More than there is room for at first."""
        index = Index(64, SCHEME)
        index.add(range(50), column(range(50)))
        assert [len(answer) for answer in index.query(column(range(2_000)))] == [50] * 2_000
        index = Index(64, SCHEME)
        for many in range(100, 900, 100):  # some more than there is room for, and many more
            index.add(range(many), column(range(many)))
            assert len(index.query(column([0])[0])) == many

    def test_plans_are_made(self) -> None:
        """So that what is tried above is more than looking through all."""
        random = np.random.default_rng(0)
        for bits, scheme in WIDE.items():
            index = Index(3, scheme)
            words = random.integers(0, 2**64, (60_000, bits // 64), np.uint64)
            index.add(range(60_000), Fingerprints.from_words(words, scheme))
            assert [len(segment._directories) for segment in index._segments] == [4]


class TestContract:
    def test_order_of_an_answer(self, tmp_path: Path) -> None:
        index = Index(3, SCHEME)
        ids: list[Any] = [(2,), "b", 10, None, "a", 9, 1.5, "", np.int64(-3), (1,), "near", "B", True]
        index.add(ids, column([1 if id_ == "near" else 3 for id_ in ids]))
        near = [("near", 0)]
        rest = [np.int64(-3), True, 9, 10, "", "B", "a", "b", (2,), None, 1.5, (1,)]
        assert index.query(column([1])) == [near + [(id_, 1) for id_ in rest]]
        index.add([(2,)], column([3]))
        assert [id_ for id_, _ in index.query(column([3]))[0]][-5:] == [None, 1.5, (1,), (2,), "near"]
        kept = [9, "b", 10, "", "a", -3]
        with Index(3, SCHEME, tmp_path / "a") as index:
            index.add(kept, column([3] * 6))
            assert index.query(column([3]))[0] == [(id_, 0) for id_ in (-3, 9, 10, "", "a", "b")]

    def test_odd_ids_are_documents_of_their_own(self, tmp_path: Path) -> None:
        ids: list[Any] = [1, "1", "a,b:c", ""]
        path: Path | None
        for path in (None, tmp_path / "a"):
            index = Index(0, SCHEME, path)
            index.add(ids, column(range(4)))
            if path:
                index.close()
                index = Index(0, SCHEME, path)
            answers = index.query(column(range(4)))
            assert typed(answers) == [[(type(id_), id_, 0)] for id_ in ids]
            assert len(index) == 4
            index.close()

    def test_numpy_ids(self, make: Make) -> None:
        index = make()
        index.add(np.arange(9, -1, -1), column([0] * 10))
        assert [id_ for id_, _ in index.query(column([0]))[0]] == list(range(10))
        assert 3 in index
        index.remove(np.array([3]))
        assert np.int64(3) not in index

    def test_adding_again_replaces(self, make: Make) -> None:
        index = make(3)
        index.add(["a"], column([0]))
        index.add(["a"], column([0b1111]))
        assert len(index) == 1
        assert index.query(column([0, 0b1111, 1])) == [[], [("a", 0)], [("a", 3)]]

    def test_of_an_id_given_twice_the_last_counts(self, make: Make) -> None:
        index = make(0)
        index.add(["a", "b", "a"], column([1, 2, 3]))
        assert index.query(column([1, 2, 3])) == [[], [("b", 0)], [("a", 0)]]
        index.remove(["a", "a"])
        assert "a" not in index
        assert len(index) == 1

    def test_an_unknown_id_removes_nothing(self, make: Make) -> None:
        index = make()
        index.add([1, 2], column([1, 2]))
        for unknown in ("1", 3):
            with pytest.raises(KeyError) as caught:
                index.remove([1, unknown, 2])
            assert caught.value.args == (unknown,)
        assert len(index) == 2
        assert len(index.query(column([1]))[0]) == 2

    def test_iterables_are_read_once(self, make: Make) -> None:
        index = make()
        read: list[int] = []

        def ids(many: int) -> Iterator[int]:
            for id_ in range(many):
                read.append(id_)
                yield id_

        index.add(ids(5), column(range(5)))
        index.remove(ids(2))
        assert read == [*range(5), *range(2)]
        assert len(index) == 3

    @pytest.mark.parametrize("many", [0, 1, 3])
    def test_lengths_that_differ(self, make: Make, many: int) -> None:
        index = make()
        with pytest.raises(ValueError, match=f"{many} ids for 2 fingerprints: give one for each"):
            index.add(range(many), column([1, 2]))
        assert len(index) == 0

    def test_one_string_is_no_list_of_ids(self, make: Make) -> None:
        index = make()
        index.add(["a", "b"], column([1, 2]))
        with pytest.raises(TypeError, match="not as one str: put it into a list"):
            index.add("ab", column([3, 4]))
        with pytest.raises(TypeError, match="not as one bytes: put it into a list"):
            index.add(b"ab", column([3, 4]))
        with pytest.raises(TypeError, match="not as one str: put it into a list"):
            index.remove("ab")
        assert index.query(column([1]))[0] == [("a", 0), ("b", 2)]

    def test_nothing_is_little(self, make: Make) -> None:
        index = make()
        for _ in range(2):
            index.add([], column([]))
            index.remove([])
            assert index.query(column([])) == []
            assert index.query(column([0])[0]) == []
            assert len(index) == 0

    def test_texts_without_features_are_kept_but_never_found(self, make: Make) -> None:
        index = make(64)
        index.add(["none", "some", "unknown"], column([0, 0, 0], features=[0, 1, -1]))
        assert len(index) == 3
        assert "none" in index
        assert index.query(column([0, 0, 2**64 - 1], features=[0, 2, -1])) == [
            [],
            [("some", 0), ("unknown", 0)],
            [("some", 64), ("unknown", 64)],
        ]
        assert index.query(fingerprint("!!!", SCHEME)) == []
        index.add(["some", "none"], column([0, 0], features=[0, 1]))
        assert index.query(column([0])[0]) == [("none", 0), ("unknown", 0)]
        index.remove(["none", "some"])
        assert len(index) == 1

    def test_all_values_are_values(self, make: Make) -> None:
        for scheme in WIDE.values():
            index = make(0, scheme)
            most = (1 << scheme.bits) - 1
            index.add(["0", "most"], column([0, most], scheme))
            assert index.query(column([most, 0], scheme)) == [[("most", 0)], [("0", 0)]]

    def test_what_was_given_is_copied(self, make: Make) -> None:
        index = make(0)
        words = np.array([[1], [2]], np.uint64)
        index.add(["a", "b"], Fingerprints(words, np.array([1, 1]), SCHEME))
        words[:] = 0
        assert index.query(column([1]))[0] == [("a", 0)]
        index.query(column([1]))[0].clear()
        assert index.query(column([1]))[0] == [("a", 0)]

    def test_queries_change_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with Index(3, SCHEME, path) as index:
            index.add(range(100), column(range(100)))
        before = path.read_bytes()
        with Index(3, SCHEME, path) as index:
            first = index.query(column(range(200)))
            for _ in range(3):
                assert index.query(column(range(200))) == first
                assert index.query(column(range(200), features=[0] * 200)) == [[]] * 200
            assert len(index) == 100
        assert path.read_bytes() == before

    def test_other_schemes(self, make: Make) -> None:
        index = make()
        index.add(["a"], column([1]))
        for other in (WIDE[128], Scheme(bits=64, ngram=4), Scheme(bits=64, hash="blake2b")):
            with pytest.raises(ValueError, match="different schemes"):
                index.add(["b"], column([1], other))
            with pytest.raises(ValueError, match="different schemes"):
                index.query(column([1], other))
            with pytest.raises(ValueError, match="different schemes"):
                index.query(column([1], other)[0])
        assert len(index) == 1

    def test_what_is_no_fingerprint(self, make: Make) -> None:
        index = make()
        stranger: Any
        for stranger in (1, "a", None, [1], np.array([[1]], np.uint64)):
            with pytest.raises(TypeError, match="give Fingerprints"):
                index.add(["b"], stranger)
            with pytest.raises(TypeError, match="give a Fingerprint, or Fingerprints"):
                index.query(stranger)
        with pytest.raises(TypeError, match="give Fingerprints"):
            index.add(["b"], column([1])[0])  # type: ignore[arg-type]
        assert len(index) == 0

    def test_memory_refuses_what_has_no_hash(self) -> None:
        index = Index(3, SCHEME)
        with pytest.raises(TypeError, match="list"):
            index.add(["a", [1]], column([1, 2]))  # type: ignore[list-item]
        assert len(index) == 0
        with pytest.raises(TypeError, match="list"):
            index.remove([[1]])  # type: ignore[list-item]

    @pytest.mark.parametrize("bad", [None, True, 1.0, b"a", ("a",), 2**63, -(2**63) - 1, "\ud800"], ids=repr)
    def test_a_file_refuses_ids_that_it_cannot_keep(self, tmp_path: Path, bad: Hashable) -> None:
        with Index(3, SCHEME, tmp_path / "a") as index:
            index.add(["b"], column([1]))
            with pytest.raises((TypeError, ValueError), match="id "):
                index.add(["a", bad], column([1, 2]))
            with pytest.raises((TypeError, ValueError), match="id "):
                index.remove(["b", bad])
            assert index.query(column([1])[0]) == [("b", 0)]

    @pytest.mark.parametrize("k", [-1, 65, 1.5, True, "3", None])
    def test_k_that_is_none(self, tmp_path: Path, k: Any) -> None:
        for path in (None, tmp_path / "a"):
            with pytest.raises((TypeError, ValueError), match=r"give (an int|0 to 64 bits)"):
                Index(k, SCHEME, path)
        assert list(tmp_path.iterdir()) == []

    def test_scheme_that_is_none(self) -> None:
        with pytest.raises(TypeError, match=r"give a simdup\.Scheme"):
            Index(3, "word1")  # type: ignore[arg-type]

    def test_a_closed_index_says_so(self, make: Make) -> None:
        index = make()
        index.add(["a"], column([1]))
        index.close()
        index.close()
        uses: list[Callable[[], object]] = [
            lambda: index.add(["b"], column([2])),
            lambda: index.add([], column([])),
            lambda: index.remove(["a"]),
            lambda: index.query(column([1])),
            lambda: index.query(column([])),
            lambda: len(index),
            lambda: "a" in index,
        ]
        for use in uses:
            with pytest.raises(ValueError, match="the index is closed: make a new one"):
                use()

    def test_the_same_file_with_another_k(self, tmp_path: Path) -> None:
        with Index(1, SCHEME, tmp_path / "a") as index, Index(64, SCHEME, tmp_path / "a") as other:
            index.add(["a"], column([0]))
            assert index.query(column([3])) == [[]]
            assert other.query(column([3])) == [[("a", 2)]]

    def test_what_was_replaced_takes_no_room(self, make: Make) -> None:
        """However often all pages are added again."""
        with small():
            index = make()
            for turn in range(40):
                index.add(range(50), column(range(turn, turn + 50)))
            assert len(index._ids) <= 2 * 50 + 8
            assert index.query(column([39]))[0][0] == (0, 0)


def interrupted(at: int, use: Callable[[], object]) -> bool:
    """Raise KeyboardInterrupt before this line of the module that is reached, and say whether it came to that."""
    left = at
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != module.__file__:
            return None
        left -= event == "line"
        if left < 0:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        use()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


class TestInterrupts:
    def test_an_interrupted_add_is_whole_or_the_index_is_closed(self, make: Make, tmp_path: Path) -> None:
        outcomes = set()
        query = column([0])
        for at in itertools.count():
            with small():
                index = make(64)
                index.add(range(30), column(range(30)))
                index.add(range(10), column([0] * 10))
                before = index.query(query)
                more = column([2**64 - 1] * 20)
                happened = interrupted(at, lambda index=index, more=more: index.add(range(5, 25), more))  # type: ignore[misc]
                model: Model = {}
                update(
                    model, [*range(30), *range(10), *range(5, 25)], [*range(30), *[0] * 10, *[2**64 - 1] * 20], [1] * 60
                )
                after = brute_force(model, query, 64)
                try:
                    now = index.query(query)
                except ValueError:
                    with pytest.raises(ValueError, match="the index is closed"):
                        len(index)
                    outcomes.add("closed")
                else:
                    assert now in (before, after)
                    outcomes.add("before" if now == before else "after")
                    assert happened or now == after
                index.close()
                if (path := tmp_path / f"{at}").exists():
                    with Index(64, SCHEME, path) as again:
                        assert again.query(query) in (before, after)
                        assert happened or again.query(query) == after
            if not happened:
                break
        assert outcomes == {"before", "closed", "after"}
        assert at > 20


run = functools.partial(launch, __name__)


def batch(number: int) -> tuple[range, Fingerprints]:
    """Seven pages, of which all fingerprints are near to 0."""
    return range(7 * number, 7 * number + 7), column([1 << (7 * number + at) % 64 for at in range(7)])


def batches_in(index: Index) -> int:
    """How many batches it holds, the first and no others, each of them whole."""
    (answer,) = index.query(column([0]))
    number, rest = divmod(len(answer), 7)
    assert rest == 0
    assert answer == [(id_, 1) for id_ in range(7 * number)]
    return number


def write_on_request(path: str) -> None:
    """For each line of standard input add a batch, and then say so."""
    with Index(3, SCHEME, path) as index:
        for number, _ in enumerate(sys.stdin):
            index.add(*batch(number))
            print("added", flush=True)


def write_all(path: str, first: str, many: str) -> None:
    """Once standard input says so, add so many pages one by one."""
    with Index(3, SCHEME, path) as index:
        print("ready", flush=True)
        sys.stdin.readline()
        for id_ in range(int(first), int(first) + int(many)):
            index.add([id_], column([id_]))


def ask(path: str) -> None:
    with Index(10, SCHEME, path) as index:
        print(index.query(column([1, 2, 5])), len(index))


def die_again_and_again(folder: str, many: str) -> None:
    """Fork writers, each of which is killed while it adds, and open what they left."""
    draw = random.Random(0)
    path = Path(folder) / "a"
    Index(3, SCHEME, path).close()
    held = 0
    for _ in range(int(many)):
        hears, says = os.pipe()
        writer = os.fork()
        if not writer:
            try:
                os.close(hears)
                index = Index(3, SCHEME, path)
                for number in itertools.count(held):
                    index.add(*batch(number))
                    os.write(says, b".")
            finally:
                os._exit(1)
        os.close(says)
        acknowledged = 0
        for _ in range(draw.randrange(6)):
            acknowledged += len(os.read(hears, 1))
        for _ in range(draw.randrange(20_000)):  # a moment that is never the same
            pass
        os.kill(writer, signal.SIGKILL)
        assert os.waitpid(writer, 0)[1] == signal.SIGKILL
        while more := len(os.read(hears, 1000)):
            acknowledged += more
        os.close(hears)
        with Index(3, SCHEME, path) as index:
            there = batches_in(index)
        assert held + acknowledged <= there <= held + acknowledged + 1
        held = there
    print(held)


class TestProcesses:
    def test_written_in_one_and_queried_in_another(self, tmp_path: Path) -> None:
        with Index(10, SCHEME, tmp_path / "a") as index:
            index.add([1, "1", "a,b:c", ""], column([1, 2, 3, 2**64 - 1]))
            expected = f"{index.query(column([1, 2, 5]))} 4\n"
            assert finish(run("ask", tmp_path / "a")) == expected
        assert finish(run("ask", tmp_path / "a")) == expected

    def test_a_reader_sees_each_acknowledged_batch(self, tmp_path: Path) -> None:
        with Index(3, SCHEME, tmp_path / "a") as index, run("write_on_request", tmp_path / "a") as writer:
            assert writer.stdin
            assert writer.stdout
            for number in range(50):
                assert batches_in(index) == number
                assert len(index) == 7 * number
                print(file=writer.stdin, flush=True)
                assert writer.stdout.readline() == "added\n"
            assert batches_in(index) == 50
            finish(writer)

    def test_kill_loses_nothing_acknowledged(self, tmp_path: Path) -> None:
        assert int(finish(run("die_again_and_again", tmp_path, 60))) > 60
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_two_writers(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        writers = [run("write_all", path, first, 300) for first in (0, 300)]
        with Index(64, SCHEME, path) as index:
            for writer in writers:
                assert writer.stdout
                assert writer.stdout.readline() == "ready\n"
            for writer in writers:
                assert writer.stdin
                print(file=writer.stdin, flush=True)
            for writer in writers:
                finish(writer)
            assert sorted(id_ for id_, _ in index.query(column([0])[0])) == list(range(600))

    def test_a_writer_that_does_not_wait_is_told(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with Index(3, SCHEME, path, timeout=0) as index, contextlib.closing(sqlite3.connect(path)) as other:
            index.add(["a"], column([1]))
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ValueError, match="is being written by another process: try again"):
                index.add(["b"], column([1]))
            with pytest.raises(ValueError, match="is being written by another process: try again"):
                index.remove(["a"])
            assert index.query(column([1])[0]) == [("a", 0)]
            other.execute("ROLLBACK")
            index.add(["b"], column([1]))
            assert len(index) == 2

    @pytest.mark.parametrize("where", ["memory", "file"])
    def test_threads_see_some_first_batches(self, where: str, tmp_path: Path) -> None:
        most = 120
        done = threading.Event()

        def ask(index: Index) -> list[int]:
            seen: list[int] = []
            while not (seen and done.is_set()):
                seen.append(batches_in(index))
            return [*seen, batches_in(index)]

        with contextlib.ExitStack() as stack:
            stack.enter_context(small())
            index = stack.enter_context(Index(3, SCHEME, tmp_path / "a" if where == "file" else None))
            asked = [index, index]
            if where == "file":
                asked.append(stack.enter_context(Index(3, SCHEME, tmp_path / "a")))
            pool = stack.enter_context(ThreadPoolExecutor(4))
            answers = [pool.submit(ask, each) for each in asked]
            try:
                for number in range(most):
                    index.add(*batch(number))
                    index.add(range(-9, 0), column([2**64 - 1] * 9))  # replaced each time, so that rows are left out
            finally:
                done.set()
            for future in answers:
                seen = future.result()
                assert seen == sorted(seen)
                assert seen[-1] == most


class TestFiles:
    @staticmethod
    def _written(folder: Path) -> Path:
        with Index(3, SCHEME, folder / "a") as index:
            index.add(range(2_000), column(range(2_000)))
        return folder / "a"

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda data: data[: len(data) // 2], r"a: damaged \(.*\): restore a copy"),
            (lambda data: data[:-1], r"a: damaged \(.*\): restore a copy"),
            (lambda data: data[:64], r"a: (no file that simdup wrote|damaged)"),
            (lambda _: random.Random(0).randbytes(64), "a: no file that simdup wrote"),
            (lambda _: b"", "a: no file that simdup wrote"),
            (
                lambda data: data[:50_000] + bytes([data[50_000] ^ 1]) + data[50_001:],
                r"a: damaged \(.*\): restore a copy",
            ),
        ],
        ids=["half", "but one byte", "64 bytes", "noise", "empty", "one bit"],
    )
    def test_damage(self, tmp_path: Path, damage: Callable[[bytes], bytes], message: str) -> None:
        path = self._written(tmp_path)
        data = damage(path.read_bytes())
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message) as caught:
            Index(3, SCHEME, path)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == data
        assert [each.name for each in tmp_path.iterdir()] == ["a"]

    def test_another_scheme_or_a_newer_format(self, tmp_path: Path) -> None:
        path = self._written(tmp_path)
        before = path.read_bytes()
        with pytest.raises(ValueError, match=r"a: holds fingerprints of .*, not of .*: open it with that scheme"):
            Index(3, WIDE[128], path)
        assert path.read_bytes() == before
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA user_version = 99")
        with pytest.raises(ValueError, match=r"a: written by a newer simdup \(format 99\): upgrade simdup"):
            Index(3, SCHEME, path)

    def test_a_folder_or_none(self, tmp_path: Path) -> None:
        with pytest.raises(IsADirectoryError, match=tmp_path.name):
            Index(3, SCHEME, tmp_path)
        with pytest.raises(FileNotFoundError, match="no such folder"):
            Index(3, SCHEME, tmp_path / "no" / "a")

    def test_read_only(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            path = self._written(Path(folder))
            Path(folder).chmod(0o777)
            path.chmod(0o444)
            if not os.getuid():  # who may do anything becomes somebody else meanwhile
                os.setresuid(65534, 65534, 0)
                stack.callback(os.setresuid, 0, 0, 0)
            with pytest.raises(PermissionError, match="must be readable and writable"):
                Index(3, SCHEME, path)

    def test_a_file_that_is_damaged_while_it_is_open(self, tmp_path: Path) -> None:
        path = self._written(tmp_path)
        with Index(3, SCHEME, path) as index, contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("UPDATE page SET seq = 9999, record = zeroblob(16) WHERE id = 5")
            other.commit()
            for use in (lambda: index.query(column([1])), lambda: len(index)):
                with pytest.raises(ValueError, match=r"a: (damaged \(.*\): restore a copy|is closed)"):
                    use()

    def test_a_child_that_was_forked_opens_its_own(self, tmp_path: Path) -> None:
        assert finish(run("fork", tmp_path / "a")) == "RuntimeError 1\n"

    def test_a_copy_of_the_closed_file_is_an_index(self, tmp_path: Path) -> None:
        path = self._written(tmp_path)
        shutil.copy(path, tmp_path / "b")
        with Index(0, SCHEME, path) as one, Index(0, SCHEME, tmp_path / "b") as other:
            assert one.query(column(range(50))) == other.query(column(range(50))) == [[(n, 0)] for n in range(50)]


def fork(path: str) -> None:
    """Use an index in a child of the process that opened it, then one of its own."""
    with Index(3, SCHEME, path) as index:
        index.add(["a"], column([1]))
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            return
        try:
            len(index)
        except RuntimeError as error:
            with Index(3, SCHEME, path) as own:
                print(type(error).__name__, len(own), flush=True)
    os._exit(0)


class TestRoom:
    """Bytes for each page, as the docstring of Index states them."""

    @staticmethod
    def _add(index: Index, ids: list[int]) -> None:
        words = np.random.default_rng(0).integers(0, 2**64, (len(ids), index.scheme.words), np.uint64)
        fingerprints = Fingerprints.from_words(words, index.scheme)
        for start in range(0, len(ids), 10_000):
            index.add(ids[start : start + 10_000], fingerprints[start : start + 10_000])

    def test_in_memory(self) -> None:
        """Where the tables and the dict have just become larger, and where they have not."""
        rooms = []
        self._add(Index(3, SCHEME), list(range(30_000)))  # compiles
        for many in (140_000, 175_000, 200_000):
            ids = list(range(many))
            tracemalloc.start()
            try:
                index = Index(3, SCHEME)
                self._add(index, ids)
                rooms.append(tracemalloc.get_traced_memory()[0] / many)
            finally:
                tracemalloc.stop()
        assert min(rooms) > 130
        assert max(rooms) <= 180

    @pytest.mark.parametrize(("bits", "most"), [(64, 50), (128, 58), (256, 74)])
    def test_in_a_file(self, tmp_path: Path, bits: int, most: int) -> None:
        many = 200_000
        with Index(3, WIDE[bits], tmp_path / "a") as index:
            self._add(index, list(range(many)))
        assert most - 10 < (tmp_path / "a").stat().st_size / many <= most


HELD = """
import sys
import numpy as np
from simdup import Fingerprints, Index, Scheme

def trace(frame, event, argument):
    if frame.f_code.co_name == "__enter__" and "contextlib" in frame.f_code.co_filename:
        caller = frame.f_back.f_code.co_name
        def leave(frame, event, argument):
            if event == "return" and caller == "news":
                sys.settrace(None)
                raise KeyboardInterrupt
            return leave
        return leave

scheme = Scheme(bits=64)
index = Index(3, scheme, sys.argv[1])
sys.settrace(trace)
try:
    index.add(range(5), Fingerprints.from_words(np.arange(5, dtype=np.uint64), scheme))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_that_leaves_the_lock_held_does_not_hang(tmp_path: Path) -> None:
    """As a Ctrl-C does that comes just when the file was locked: what closes the index must not wait for it."""
    run = subprocess.run(
        [sys.executable, "-c", HELD, tmp_path / "index"], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "interrupted\n"
    with Index(3, Scheme(bits=64), tmp_path / "index") as index:
        assert len(index) in (0, 5)
