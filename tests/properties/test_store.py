"""The durable store: what it holds equals a dict, whoever is killed, reads or writes meanwhile, and damage is seen."""

import contextlib
import functools
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from simdup import Scheme
from simdup.fingerprint import Counts, Words
from simdup.store import News, Store
from tests.properties import strategies as some
from tests.properties.command import finish, launch

WIDE = {bits: Scheme(bits=bits) for bits in (64, 128, 256)}
SCHEME = WIDE[64]

Key = int | str
State = dict[Key, tuple[tuple[int, ...], int]]
"""Words and feature count of each id."""

ODD: list[Key] = [
    *(1, "1", 0, "0", -1, "-1", "", " ", "a,b:c", "1 ", "None", "5 str 5", 2**63 - 1, -(2**63), str(2**63)),
    *("nul\0nul", "\0", "\0\0", "a", "A", "é", "e\u0301", "😀", "\ufffe", "'\"%_?", "x" * 10_000, "\n"),
]

keys = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 9),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)


def entries(numbers: Sequence[int], scheme: Scheme = SCHEME) -> tuple[Words, Counts]:
    """For each number the fingerprint that it stands for."""
    words = [np.random.default_rng(number).integers(0, 2**64, scheme.words, np.uint64) for number in numbers]
    return np.array(words, np.uint64).reshape(-1, scheme.words), np.array([n % 7 - 1 for n in numbers], np.int64)


def put(store: Store, ids: Sequence[Key], numbers: Sequence[int], scheme: Scheme = SCHEME) -> None:
    store.put(ids, *entries(numbers, scheme))


def expected(ids: Sequence[Key], numbers: Sequence[int], scheme: Scheme = SCHEME) -> State:
    words, features = entries(numbers, scheme)
    return {key: (tuple(row), n) for key, row, n in zip(ids, words.tolist(), features.tolist(), strict=True)}


def follow(state: State, store: Store) -> State:
    """Take over what is new, and return the state."""
    for news in store.news():
        assert len(news.ids) == len(news.words) == len(news.features) == len(news.present) > 0
        assert [str(array.dtype) for array in news[1:]] == ["uint64", "int64", "bool"]
        for key, words, features, present in zip(news.ids, *(array.tolist() for array in news[1:]), strict=True):
            assert type(key) in (int, str)
            if present:
                state[key] = tuple(words), features
            else:
                assert not any(words)
                assert features == 0
                state.pop(key, None)
    return state


def read(path: Path, scheme: Scheme = SCHEME) -> State:
    with Store(path, scheme) as store:
        return follow({}, store)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def listing(folder: Path) -> dict[str, bytes | None]:
    """What a folder holds, byte for byte, but for the index of the log, which changes as the log is read."""
    return {
        path.name: path.read_bytes() if path.is_file() else None
        for path in folder.iterdir()
        if not path.name.endswith("-shm")
    }


run = functools.partial(launch, __name__)


class TestRoundTrip:
    @given(words=some.word_arrays(), data=st.data())
    @settings(max_examples=30)
    def test_what_was_put_comes_back_in_order(self, words: Words, data: st.DataObject) -> None:
        ids = data.draw(st.lists(keys, min_size=len(words), max_size=len(words), unique=True))
        features = np.array(
            data.draw(st.lists(st.integers(-1, 2**63 - 1), min_size=len(words), max_size=len(words))), np.int64
        )
        scheme = WIDE[64 * words.shape[1]]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a"
            with Store(path, scheme) as store:
                store.put(ids, words, features)
                first = list(store.news())
                assert list(store.news()) == []
            with Store(path, scheme) as store:
                again = list(store.news())
        for news in (first, again):
            assert [key for batch in news for key in batch.ids] == ids
            assert [type(key) for batch in news for key in batch.ids] == [type(key) for key in ids]
            assert [row for batch in news for row in batch.words.tolist()] == words.tolist()
            assert [n for batch in news for n in batch.features.tolist()] == features.tolist()
            assert all(batch.present.all() for batch in news)

    @pytest.mark.parametrize("bits", WIDE)
    def test_odd_ids_are_different_documents(self, tmp_path: Path, bits: int) -> None:
        scheme = WIDE[bits]
        with Store(tmp_path / "a", scheme) as store:
            put(store, ODD, range(len(ODD)), scheme)
        state = read(tmp_path / "a", scheme)
        assert state == expected(ODD, range(len(ODD)), scheme)
        assert [(type(key), key) for key in state] == [(type(key), key) for key in ODD]
        for at, key in enumerate(ODD):
            with Store(tmp_path / "a", scheme) as store:
                store.remove([key])
                with pytest.raises(KeyError):
                    store.remove([key])
                assert follow({}, store) == expected(ODD[at + 1 :], range(at + 1, len(ODD)), scheme)

    def test_numpy_ids(self, tmp_path: Path) -> None:
        given_: list[Any] = [np.int64(5), np.uint8(7), np.str_("5"), np.uint64(2**63 - 1), *np.arange(2)]
        with Store(tmp_path / "a", SCHEME) as store:
            put(store, given_, range(6))
            store.remove(np.array([7]))  # type: ignore[arg-type]
            put(store, np.array(["5", "x"]), [9, 10])  # type: ignore[arg-type]
        state = read(tmp_path / "a")
        assert state == expected([5, 2**63 - 1, 0, 1, "5", "x"], [0, 3, 4, 5, 9, 10])
        assert {type(key) for key in state} == {int, str}

    def test_of_an_id_given_twice_the_last_counts(self, tmp_path: Path) -> None:
        with Store(tmp_path / "a", SCHEME) as store:
            put(store, ["a", "b", "a", 1, "a"], range(5))
            assert follow({}, store) == expected(["b", 1, "a"], [1, 3, 4])
            store.remove(["a", "b", "a"])
            assert follow({}, store) == {}
        assert read(tmp_path / "a") == expected([1], [3])

    def test_nothing_is_little(self, tmp_path: Path) -> None:
        with Store(tmp_path / "a", SCHEME) as store:
            put(store, [], [])
            store.remove([])
            assert list(store.news()) == []
        assert read(tmp_path / "a") == {}

    def test_news_of_many_batches(self, tmp_path: Path) -> None:
        """What is replaced or removed between two batches comes again; what was not asked for comes next time."""
        n = 10_000
        words = np.arange(n, dtype=np.uint64)[:, np.newaxis]
        with Store(tmp_path / "a", SCHEME) as store, Store(tmp_path / "a", SCHEME) as other:
            store.put(range(n), words, np.arange(n))
            news = other.news()
            state = counts(next(news))
            assert 0 < len(state) < n / 2
            store.put([0, n - 1], words[:2], np.array([-1, -1]))
            store.remove([1, n - 2])
            for batch in news:
                state |= counts(batch)
            assert state == {key: key for key in range(n)} | {0: -1, n - 1: -1, 1: None, n - 2: None}
            store.put(range(n), words, np.arange(n))
            first = next(other.news())
            rest = list(other.news())
            assert [key for batch in (first, *rest) for key in batch.ids] == list(range(n))
            assert list(other.news()) == []

    @pytest.mark.parametrize("name", ["a b", "ü😀", "100%", "q?mode=ro", "h#a", "%41", "a'b\"c", ":memory:", "file:x"])
    def test_any_name(self, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with Store(name, SCHEME) as store:
            monkeypatch.chdir("/")  # a relative path means what it meant at the beginning
            put(store, ["a"], [1])
        assert names(tmp_path) == [name]
        assert read(tmp_path / name) == expected(["a"], [1])

    def test_links_are_followed(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "link").symlink_to(Path("data") / "a")
        for number in (1, 2):
            with Store(tmp_path / "link", SCHEME) as store:
                put(store, [number], [number])
        assert (tmp_path / "link").is_symlink()
        assert read(tmp_path / "data" / "a") == expected([1, 2], [1, 2])

    def test_each_put_is_synchronised(self, tmp_path: Path) -> None:
        with Store(tmp_path / "a", SCHEME) as store:
            assert store._connection is not None
            asked = [store._connection.execute(f"PRAGMA {what}").fetchone() for what in ("journal_mode", "synchronous")]
        assert asked == [("wal",), (2,)]  # 2 is FULL

    def test_after_close_the_one_file_is_all_there_is(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with Store(path, SCHEME) as store, Store(path, SCHEME):
            put(store, range(500), range(500))
            assert (tmp_path / "a-wal").stat().st_size > 0
        assert names(tmp_path) == ["a"]
        shutil.copy(path, tmp_path / "copy")
        assert read(tmp_path / "copy") == expected(range(500), range(500))
        assert names(tmp_path) == ["a", "copy"]

    def test_a_new_file_has_the_permissions_of_any_new_file(self, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            Store(tmp_path / "a", SCHEME).close()
        finally:
            os.umask(before)
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def counts(news: News) -> dict[Key, int | None]:
    """The feature count of each id, None if it was removed."""
    features = [n if there else None for n, there in zip(news.features.tolist(), news.present, strict=True)]
    return dict(zip(news.ids, features, strict=True))


class Machine(RuleBasedStateMachine):
    """A store, a second one that follows, and the dict that both should be."""

    few = st.sampled_from([1, "1", 2, "a", "", "b\0", -5])

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "a"
        self.model: State = {}
        self.numbers = count()

    @initialize(bits=st.sampled_from(sorted(WIDE)))
    def begin(self, bits: int) -> None:
        self.scheme = WIDE[bits]
        self.open()
        self.follower = Store(self.path, self.scheme)
        self.followed: State = {}

    def open(self) -> None:
        self.store = Store(self.path, self.scheme)
        self.own: State = {}

    @rule(ids=st.lists(few, max_size=5))
    def put(self, ids: list[Key]) -> None:
        numbers = [next(self.numbers) for _ in ids]
        put(self.store, ids, numbers, self.scheme)
        self.model |= expected(ids, numbers, self.scheme)

    @rule(ids=st.lists(few, max_size=3))
    def remove(self, ids: list[Key]) -> None:
        unknown = [key for key in ids if key not in self.model]
        if unknown:
            with pytest.raises(KeyError) as caught:
                self.store.remove(ids)
            assert caught.value.args == (unknown[0],)
        else:
            self.store.remove(ids)
            for key in ids:
                self.model.pop(key, None)

    @rule(ids=st.lists(few, max_size=3), bad=st.sampled_from([None, True, 1.0, b"a", ("a",), 2**63, "\ud800"]))
    def bad(self, ids: list[Key], bad: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="id "):
            put(self.store, [*ids, bad], range(len(ids) + 1), self.scheme)
        with pytest.raises((TypeError, ValueError), match="id "):
            self.store.remove([*ids, bad])

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @rule()
    def follow(self) -> None:
        assert follow(self.followed, self.follower) == self.model

    @rule()
    def swap(self) -> None:
        """Who followed writes, who wrote follows."""
        self.store, self.follower = self.follower, self.store
        self.own, self.followed = self.followed, self.own

    @invariant()
    def the_writer_sees_it(self) -> None:
        if hasattr(self, "store"):
            assert follow(self.own, self.store) == self.model

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.follower.close()
            self.store.close()
            assert read(self.path, self.scheme) == self.model
            assert names(self.path.parent) == ["a"]
        self.folder.cleanup()


Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestStoreEqualsADict = Machine.TestCase


class TestBadArguments:
    @pytest.mark.parametrize("bad", [True, np.True_, 1.0, np.float64(1), None, b"a", ("a",), ["a"], 1j], ids=repr)
    def test_ids_of_other_kinds(self, tmp_path: Path, bad: Any) -> None:
        self._refused(tmp_path, bad, TypeError, re.escape(f"id {bad!r}: give a str or an int"))

    @pytest.mark.parametrize("bad", [2**63, -(2**63) - 1, 2**200, np.uint64(2**63)], ids=repr)
    def test_ints_beyond_64_bits(self, tmp_path: Path, bad: Any) -> None:
        self._refused(tmp_path, bad, ValueError, re.escape(f"id {bad!r:.80}: an int has 64 bits, signed"))

    @pytest.mark.parametrize("bad", ["\ud800", "a\udfffb", "\ud83d\ude00"], ids=ascii)
    def test_lone_surrogates(self, tmp_path: Path, bad: str) -> None:
        self._refused(tmp_path, bad, ValueError, re.escape(f"id {bad!r}: a lone surrogate"))

    @staticmethod
    def _refused(folder: Path, bad: Any, error: type[Exception], message: str) -> None:
        with Store(folder / "a", SCHEME) as store:
            put(store, ["old"], [1])
            for place in range(3):
                ids = ["new", "old"]
                ids.insert(place, bad)
                with pytest.raises(error, match=message):
                    put(store, ids, range(3))
                with pytest.raises(error, match=message):
                    store.remove(["old", bad][:: 1 if place else -1])
        assert read(folder / "a") == expected(["old"], [1])

    def test_one_string_is_no_sequence_of_ids(self, tmp_path: Path) -> None:
        with Store(tmp_path / "a", SCHEME) as store:
            for ids in ("ab", b"ab"):
                with pytest.raises(TypeError, match="ids come as a sequence"):
                    put(store, ids, [1, 2])
                with pytest.raises(TypeError, match="ids come as a sequence"):
                    store.remove(ids)
        assert read(tmp_path / "a") == {}

    @pytest.mark.parametrize(("ids", "rows"), [(0, 1), (1, 0), (2, 3), (3, 2)])
    def test_lengths_differ(self, tmp_path: Path, ids: int, rows: int) -> None:
        with Store(tmp_path / "a", SCHEME) as store:
            with pytest.raises(ValueError, match=f"{ids} ids and {rows} fingerprints"):
                put(store, range(ids), range(rows))
            words, _ = entries([1, 2])
            with pytest.raises(ValueError, match="do not make fingerprints"):
                store.put(["a", "b"], words, np.array([1]))
        assert read(tmp_path / "a") == {}

    @pytest.mark.parametrize(
        ("words", "features", "error"),
        [
            (np.zeros((1, 2), np.uint64), np.zeros(1, np.int64), ValueError),
            (np.zeros((1, 1), np.int64), np.zeros(1, np.int64), TypeError),
            (np.zeros((1, 1), np.uint64), np.zeros(1), TypeError),
            (np.zeros((1, 1), np.uint64), np.array([-2]), ValueError),
        ],
    )
    def test_other_arrays(self, tmp_path: Path, words: Any, features: Any, error: type[Exception]) -> None:
        with Store(tmp_path / "a", SCHEME) as store, pytest.raises(error, match=r"fingerprint|feature counts"):
            store.put(["a"], words, features)
        assert read(tmp_path / "a") == {}

    def test_strides_and_byte_order_do_not_matter(self, tmp_path: Path) -> None:
        scheme = WIDE[256]
        words, features = entries(range(9), scheme)
        with Store(tmp_path / "a", scheme) as store:
            store.put(range(9), np.asfortranarray(words).astype(">u8"), np.repeat(features, 2)[::2].astype(np.int8))
        assert read(tmp_path / "a", scheme) == expected(range(9), range(9), scheme)

    def test_bad_arguments_make_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match=r"give a simdup\.Scheme"):
            Store(tmp_path / "a", "word2")  # type: ignore[arg-type]
        for timeout in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="timeout="):
                Store(tmp_path / "a", SCHEME, timeout=timeout)
        assert list(tmp_path.iterdir()) == []

    def test_closed(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "a", SCHEME)
        put(store, range(9_000), [1] * 9_000)
        news = store.news()
        next(news)
        store.close()
        store.close()
        for job in (lambda: put(store, [1], [1]), lambda: store.remove([1]), lambda: next(news)):
            with pytest.raises(ValueError, match="a: is closed"):
                job()


def batch(number: int) -> tuple[list[Key], range]:
    """The ids and fingerprints of an operation: ids come again and again, so that rows are replaced everywhere."""
    ids: list[Key] = [*((number * 37 + at) % 400 for at in range(0, 80, 2)), "last"]
    return ids, range(number, number + len(ids))


def operate(store: Store, number: int) -> None:
    """The operation of this number: put a batch, or remove one of its ids."""
    if number % 2:
        store.remove(["last"])
    else:
        put(store, *batch(number))


def advance(state: State, number: int) -> State:
    """What the operation makes of the state."""
    if number % 2:
        return {key: value for key, value in state.items() if key != "last"}
    return state | expected(*batch(number))


def spin(seconds: float) -> None:
    """A moment that no timer of the system rounds."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def kill_writers(path: str, rounds: str) -> None:
    """Kill one child after the other in the middle of its work; each first sees that nothing acknowledged is lost."""
    draw = random.Random(1)
    done, state = 0, State()  # operations acknowledged, and what they make
    for _ in range(int(rounds)):
        # The child before may have been killed between an operation and its acknowledgement.
        after = advance(state, done)
        wanted, delay = draw.choice((0, 1, 2, 5, 20)), draw.random() * draw.choice((0.0003, 0.003, 0.01))
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                store = Store(path, SCHEME)
                found = follow({}, store)
                assert found in (state, after)
                for number in count(done + (found == after)):
                    os.write(theirs, number.to_bytes(4, "little"))
                    operate(store, number)
            os._exit(1)
        os.close(theirs)
        with os.fdopen(ours, "rb", buffering=0) as pipe:
            said = [pipe.read(4) for _ in range(wanted)]
            spin(delay)
            os.kill(child, signal.SIGKILL)
            while said[-1:] != [b""]:
                said.append(pipe.read(4))
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the child failed by itself"
        while said[:-1] and done < int.from_bytes(said[-2], "little"):
            state, done = advance(state, done), done + 1
    found = read(Path(path))
    assert found in (state, advance(state, done))
    print(done)


def kill_creators(folder: str, rounds: str) -> None:
    """Kill children while they create a file: it is not there, or complete."""
    draw = random.Random(2)
    begin = time.perf_counter()
    Store(Path(folder) / "first", SCHEME).close()
    duration = time.perf_counter() - begin
    complete = 0
    for at in range(int(rounds)):
        path = Path(folder) / str(at)
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            store = Store(path, SCHEME)
            os.write(theirs, b"x")
            put(store, ["a"], [1])
            os.write(theirs, b"y")
            signal.pause()
        os.close(theirs)
        with os.fdopen(ours, "rb", buffering=0) as said:
            if at % 10:
                spin(draw.random() * 2 * duration)
            else:
                said.read(1 + at // 10 % 2)
            os.kill(child, signal.SIGKILL)
            written = said.read(9)
        os.waitpid(child, 0)
        complete += path.exists()
        assert path.exists() or not written
        state = read(path)
        assert state in ({}, expected(["a"], [1]))
        assert state or b"y" not in written
        with Store(path, SCHEME) as store:
            put(store, ["b"], [2])
    print(complete)


class TestKilled:
    def test_writers_lose_nothing_acknowledged(self, tmp_path: Path) -> None:
        done = int(finish(run("kill_writers", tmp_path / "a", 300)))
        assert done > 300

    def test_creators_leave_nothing_or_all(self, tmp_path: Path) -> None:
        complete = int(finish(run("kill_creators", tmp_path, 100)))
        assert 10 <= complete <= 100

    def test_the_interrupted_put_is_there_entirely_or_not_at_all(self, tmp_path: Path) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        draw = random.Random(3)
        before = signal.signal(signal.SIGALRM, interrupt)
        state: State = {}
        interrupted = 0
        ids = range(2_000)
        try:
            with Store(tmp_path / "a", SCHEME) as store:
                for number in range(60):
                    words, features = np.full((len(ids), 1), number, np.uint64), np.full(len(ids), number)
                    new: State = dict.fromkeys(ids, ((number,), number))
                    done = False
                    with contextlib.suppress(KeyboardInterrupt):
                        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 0.015))
                        store.put(ids, words, features)
                        done = True
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    interrupted += not done
                    found = follow(dict(state), store)
                    assert found == new or (found == state and not done)
                    state = found
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert interrupted
        assert read(tmp_path / "a") == state


WHOLE = 6_000  # rows of a put, more than one batch of news


def put_again_and_again(path: str, times: str) -> None:
    with Store(path, SCHEME) as store:
        for number in range(1, int(times) + 1):
            store.put(range(WHOLE), np.full((WHOLE, 1), number, np.uint64), np.full(WHOLE, number))
            print(number, flush=True)


def put_own(path: str, name: str, times: str) -> None:
    with Store(path, SCHEME) as store:
        print("open", flush=True)
        sys.stdin.readline()
        for number in range(int(times)):
            put(store, [f"{name} {number} {at}" for at in range(20)], range(number, number + 20))


class TestProcesses:
    def test_readers_see_each_put_entirely_or_not_at_all(self, tmp_path: Path) -> None:
        path, times = tmp_path / "a", 25
        with Store(path, SCHEME) as follower:
            state: State = {}
            process = run("put_again_and_again", path, times)
            assert process.stdout is not None
            seen = set()
            for line in process.stdout:
                for found in (follow(state, follower), read(path)):
                    assert len(found) == WHOLE
                    values = set(found.values())
                    assert len(values) == 1
                    (((word,), features),) = values
                    assert int(line) <= word == features
                    seen.add(word)
            finish(process)
            assert times in seen

    def test_two_writers_take_turns(self, tmp_path: Path) -> None:
        path, times = tmp_path / "a", 100
        writers = [run("put_own", path, name, times) for name in "xy"]
        for writer in writers:
            assert writer.stdout
            assert writer.stdout.readline() == "open\n"
        for writer in writers:
            assert writer.stdin
            writer.stdin.write("\n")
            writer.stdin.flush()
        for writer in writers:
            finish(writer)
        state: State = {}
        for name in "xy":
            for number in range(times):
                state |= expected([f"{name} {number} {at}" for at in range(20)], range(number, number + 20))
        assert read(path) == state

    def test_many_create_one_file(self, tmp_path: Path) -> None:
        """Threads with a store each race as processes do; whoever comes second finds what the first made."""

        def create(name: int, start: threading.Barrier, path: Path) -> None:
            start.wait()
            with Store(path, SCHEME) as store:
                put(store, [name], [name])

        for attempt in range(20):
            start = threading.Barrier(8)
            with ThreadPoolExecutor(8) as pool:
                jobs = [pool.submit(create, name, start, tmp_path / str(attempt)) for name in range(8)]
            for job in jobs:
                job.result()
            assert read(tmp_path / str(attempt)) == expected(range(8), range(8))
        assert names(tmp_path) == sorted(map(str, range(20)))

    def test_who_waits_too_long_gives_up_and_writes_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with Store(path, SCHEME, timeout=0.05) as store, contextlib.closing(_raw(path)) as other:
            put(store, ["a"], [1])
            other.execute("BEGIN IMMEDIATE")
            jobs: list[Callable[[], None]] = [lambda: put(store, ["b"], [2]), lambda: store.remove(["a"])]
            for job in jobs:
                with pytest.raises(ValueError, match="a: is being written by another process: try again"):
                    job()
            assert follow({}, store) == read(path) == expected(["a"], [1])
            other.execute("ROLLBACK")
            put(store, ["b"], [2])
        assert read(path) == expected(["a", "b"], [1, 2])

    def test_who_waits_long_enough_writes(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with Store(path, SCHEME) as store, contextlib.closing(_raw(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            writer = threading.Thread(target=put, args=(store, ["a"], [1]))
            writer.start()
            writer.join(0.3)
            assert writer.is_alive()
            other.execute("ROLLBACK")
            writer.join(60)
            assert not writer.is_alive()
        assert read(path) == expected(["a"], [1])

    def test_threads_take_turns(self, tmp_path: Path) -> None:
        with Store(tmp_path / "a", SCHEME) as store, ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(put, store, [f"{n} {at}" for at in range(9)], range(n, n + 9)) for n in range(100)]
            for job in jobs:
                job.result()
        state: State = {}
        for n in range(100):
            state |= expected([f"{n} {at}" for at in range(9)], range(n, n + 9))
        assert read(tmp_path / "a") == state

    def test_a_forked_child_is_refused_and_harms_nobody(self, tmp_path: Path) -> None:
        assert finish(run("fork", tmp_path / "a")) == "right\n"
        assert read(tmp_path / "a") == expected(["a", "b", "c"], [1, 2, 3])


def refuses_the_child(store: Store) -> None:
    for job in (lambda: put(store, ["b"], [2]), lambda: store.remove(["a"]), lambda: list(store.news())):
        with pytest.raises(RuntimeError, match="a: was opened before the process forked: open it again"):
            job()
    store.close()


def fork(path: str) -> None:
    with Store(path, SCHEME) as store:
        put(store, ["a"], [1])
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                refuses_the_child(store)
                with Store(path, SCHEME) as own:
                    put(own, ["b"], [2])
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        put(store, ["c"], [3])
        assert follow({}, store) == expected(["a", "b", "c"], [1, 2, 3])
    print("right")


def _raw(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


OPERATIONS: list[tuple[list[Key], range]] = [
    ([*range(5, 300), *ODD], range(295 + len(ODD))),
    ([*range(100, 200), "late"], range(101)),
]
REMOVED: list[Key] = [5, "1"]


def write_and_die(path: str) -> None:
    """Leave a log beside the file, as who is killed does; part of it is in the file already."""
    store = Store(path, SCHEME)
    put(store, *OPERATIONS[0])
    with contextlib.closing(_raw(Path(path))) as other:
        other.execute("PRAGMA wal_checkpoint(PASSIVE)")
    put(store, *OPERATIONS[1])
    store.remove(REMOVED)
    os.kill(os.getpid(), signal.SIGKILL)


class Sample:
    """A file with pages of every kind, as bytes, and what it holds."""

    def __init__(self, path: Path, *, killed: bool) -> None:
        if killed:
            with run("write_and_die", path) as process:
                process.communicate()
            assert process.returncode == -signal.SIGKILL
            assert names(path.parent) == ["a", "a-shm", "a-wal"]
        else:
            with Store(path, SCHEME) as store:
                for ids, numbers in OPERATIONS:
                    put(store, ids, numbers)
                store.remove(REMOVED)
        self.files = listing(path.parent)
        self.data = path.read_bytes()
        self.state = expected(*OPERATIONS[0]) | expected(*OPERATIONS[1])
        for key in REMOVED:
            del self.state[key]

    def restore(self, path: Path, data: bytes) -> None:
        """Put the files there, with these bytes as the first."""
        for each in path.parent.iterdir():
            each.unlink()
        for name, content in (self.files | {"a": data}).items():
            path.with_name(name).write_bytes(content or b"")

    def refused(self, path: Path, data: bytes) -> bool:
        """Whether these bytes are refused; if not, they have to hold what is right, and take more."""
        self.restore(path, data)
        before = listing(path.parent)
        message, found = "", State()
        try:
            found = read(path)
        except (ValueError, OSError) as error:
            message = str(error)
        if message:
            assert str(path) in message
            assert "\n" not in message
            assert listing(path.parent) == before
            return True
        assert found == self.state
        with (
            contextlib.suppress(PermissionError),
            Store(path, SCHEME) as store,
        ):  # a byte of the header forbids to write
            put(store, ["more", 7], [1, 2])
            assert follow({}, store) == self.state | expected(["more", 7], [1, 2])
        return False


@pytest.fixture(scope="module", params=[False, True], ids=["closed", "killed"])
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return Sample(tmp_path_factory.mktemp("sample") / "a", killed=request.param)


def flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)


class TestDamaged:
    """Refused with the file as it is, or without effect; never another answer."""

    def test_flipped_bits(self, sample: Sample, tmp_path: Path) -> None:
        draw = random.Random(1)
        bits = [draw.randrange(8 * len(sample.data)) for _ in range(400)]
        refused = sum(sample.refused(tmp_path / "a", flip(sample.data, bit)) for bit in bits)
        assert refused > 100

    def test_every_bit_of_the_header(self, sample: Sample, tmp_path: Path) -> None:
        refused = sum(sample.refused(tmp_path / "a", flip(sample.data, bit)) for bit in range(800))
        assert refused > 200

    def test_noise(self, sample: Sample, tmp_path: Path) -> None:
        draw = random.Random(2)
        refused = 0
        for _ in range(300):
            at = draw.randrange(len(sample.data) - 64)
            refused += sample.refused(tmp_path / "a", sample.data[:at] + draw.randbytes(64) + sample.data[at + 64 :])
        assert refused > 75

    def test_cut(self, sample: Sample, tmp_path: Path) -> None:
        draw = random.Random(3)
        lengths = {0, 1, 99, 100, 512, 4_096, len(sample.data) // 2, len(sample.data) - 1}
        lengths |= {draw.randrange(len(sample.data)) for _ in range(150)} | set(range(0, len(sample.data), 4_096))
        for length in lengths:
            refused = sample.refused(tmp_path / "a", sample.data[:length])
            assert refused or "a-wal" in sample.files, length  # the log may hold what was cut off

    def test_every_bit_of_a_row_and_of_the_scheme_is_guarded(self, tmp_path: Path) -> None:
        (tmp_path / "whole").mkdir()
        (tmp_path / "part").mkdir()
        sample = Sample(tmp_path / "whole" / "a", killed=False)
        words, features = entries([250])  # of id 255
        record = words.astype("<u8").tobytes() + features.astype("<i8").tobytes()
        for content, times in ((record, 1), (b"a,b:c", 2), (SCHEME.id.encode(), 1)):
            places = [match.start() for match in re.finditer(re.escape(content), sample.data)]
            guarded = 0
            for place in places:  # what pages once held is still there, in free space
                bits = range(8 * place, 8 * (place + len(content)))
                guarded += all(sample.refused(tmp_path / "part" / "a", flip(sample.data, bit)) for bit in bits)
            assert guarded == times, content

    def test_the_error_says_what_to_do(self, sample: Sample, tmp_path: Path) -> None:
        path = tmp_path / "a"
        sample.restore(path, sample.data[: len(sample.data) // 2])
        with pytest.raises(
            ValueError, match=r"a: damaged \(.*\): restore a copy, or delete it, .* add the pages again"
        ):
            Store(path, SCHEME)

    def test_a_damaged_row_ends_the_news_and_closes_the_store(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with Store(path, SCHEME) as store:
            put(store, range(5_000), [1] * 5_000)
        with contextlib.closing(_raw(path)) as other:
            other.execute("UPDATE page SET record = zeroblob(16) WHERE id = 4999")
        store = Store(path, SCHEME)
        news = store.news()
        assert next(news).ids[0] == 0
        with pytest.raises(ValueError, match="a row does not match its check"):
            next(news)
        with pytest.raises(ValueError, match="is closed"):
            put(store, [1], [1])
        assert names(tmp_path) == ["a"]

    @pytest.mark.parametrize(
        "change",
        [
            "DELETE FROM scheme",
            "INSERT INTO scheme SELECT * FROM scheme",
            "UPDATE scheme SET id = 'word1-64-tf-xxh64-nfkc14'",
            "UPDATE scheme SET id = x'ff'",
            "DROP TABLE page",
            "ALTER TABLE page ADD COLUMN more",
            "CREATE TABLE more(a)",
            "PRAGMA user_version = 0",
            "UPDATE page SET seq = seq + 100",
            "UPDATE page SET id = CAST(id AS TEXT)",
            "UPDATE page SET id = CAST(id AS BLOB)",
            "UPDATE page SET id = CAST(x'ff' AS TEXT)",
            "UPDATE page SET id = 1.0",
            "UPDATE page SET record = NULL",
            "UPDATE page SET record = 1",
            "UPDATE page SET record = CAST(record AS TEXT)",
            """UPDATE page SET "check" = "check" + 1""",
            """UPDATE page SET "check" = 'a'""",
        ],
    )
    def test_other_contents_in_a_sound_file(self, tmp_path: Path, change: str) -> None:
        path = tmp_path / "a"
        with Store(path, SCHEME) as store:
            put(store, [1], [1])
        with contextlib.closing(_raw(path)) as other:
            other.execute(change)
        before = listing(tmp_path)
        if "record AS TEXT" in change:  # the same bytes, so the same entry
            assert read(path) == expected([1], [1])
            return
        with pytest.raises(ValueError, match=r"a: damaged \(.*\): restore a copy"):
            read(path)
        assert listing(tmp_path) == before


@contextlib.contextmanager
def refused(path: Path, error: type[Exception], message: str) -> Iterator[None]:
    """What the block raises leaves the folder as it is, and no file open."""
    before, files = listing(path.parent), len(names(Path("/dev/fd")))
    with pytest.raises(error, match=message) as caught:
        yield
    assert "\n" not in str(caught.value)
    assert (listing(path.parent), len(names(Path("/dev/fd")))) == (before, files)


class TestOtherFiles:
    @pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
    def test_another_scheme(self, tmp_path: Path, killed: bool) -> None:
        path = tmp_path / "a"
        sample = Sample(path, killed=killed)
        for other in (WIDE[128], Scheme(ngram=3, bits=64), Scheme(bits=64, hash="blake2b")):
            message = re.escape(f"{path}: holds fingerprints of {SCHEME.id}, not of {other.id}: open it with that")
            with refused(path, ValueError, message):
                Store(path, other)
        assert read(path) == sample.state

    def test_a_newer_format(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        Store(path, SCHEME).close()
        with contextlib.closing(_raw(path)) as other:
            other.execute("PRAGMA user_version = 2")
        with refused(path, ValueError, r"a: written by a newer simdup \(format 2\): upgrade simdup"):
            Store(path, SCHEME)

    @pytest.mark.parametrize(
        "content", [b"", b"x", b"a text\n" * 999, b"\0" * 8_192, b"SQLite format 3\0", bytes(range(256))]
    )
    def test_no_database(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a").write_bytes(content)
        with refused(tmp_path / "a", ValueError, "a: no file that simdup wrote"):
            Store(tmp_path / "a", SCHEME)

    @pytest.mark.parametrize("mode", ["delete", "wal"])
    def test_another_database(self, tmp_path: Path, mode: str) -> None:
        path = tmp_path / "a"
        with contextlib.closing(_raw(path)) as other:
            other.execute(f"PRAGMA journal_mode = {mode}")
            other.execute("CREATE TABLE page(a)")
            other.execute("INSERT INTO page VALUES (1)")
            before = listing(tmp_path)
            with pytest.raises(ValueError, match="a: no file that simdup wrote"):
                Store(path, SCHEME)
            assert listing(tmp_path) == before
        with refused(path, ValueError, "a: no file that simdup wrote"):
            Store(path, SCHEME)

    def test_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        with refused(tmp_path / "a", IsADirectoryError, "a"):
            Store(tmp_path / "a", SCHEME)

    def test_no_such_folder(self, tmp_path: Path) -> None:
        with refused(tmp_path, FileNotFoundError, "no such folder"):
            Store(tmp_path / "no" / "a", SCHEME)
        (tmp_path / "file").write_bytes(b"")
        with refused(tmp_path, FileNotFoundError, "no such folder"):
            Store(tmp_path / "file" / "a", SCHEME)

    def test_no_file_at_all(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a")
        with pytest.raises(ValueError, match="a: no file that simdup wrote"):
            Store(tmp_path / "a", SCHEME)
        with pytest.raises(ValueError, match="null: no file that simdup wrote"):
            Store("/dev/null", SCHEME)

    def test_links_that_go_round(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(OSError, match="readable"):
            Store(tmp_path / "a", SCHEME)
        assert names(tmp_path) == ["a", "b"]

    def test_a_log_without_its_file_is_not_taken_for_that_of_a_new_one(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with run("write_and_die", path) as process:
            process.communicate()
        path.rename(tmp_path / "elsewhere")
        with refused(path, ValueError, "a: is gone, but not its a-wal: restore it or delete that"):
            Store(path, SCHEME)
        (tmp_path / "elsewhere").rename(path)
        assert read(path)["late"] == expected(["late"], [100])["late"]

    def test_read_only(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder, path = Path(name) / "folder", Path(name) / "folder" / "a"
            folder.mkdir()
            Store(path, SCHEME).close()
            for each in (Path(name), folder, path):
                each.chmod(0o777)
            for locked, mode in ((path, 0o444), (folder, 0o555)):
                locked.chmod(mode)
                with refused(path, PermissionError, f"must be readable and writable.*{locked.name}'"), nobody_special():
                    Store(path, SCHEME)
                locked.chmod(0o777)
            folder.chmod(0o555)
            with refused(path, PermissionError, "folder"), nobody_special():
                Store(folder / "new", SCHEME)
            folder.chmod(0o777)
            with nobody_special(), Store(path, SCHEME) as store:
                put(store, ["a"], [1])
            assert read(path) == expected(["a"], [1])


@contextlib.contextmanager
def nobody_special() -> Iterator[None]:
    """Root may write whatever is read-only, so become somebody else meanwhile."""
    if os.getuid():
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


class TestFullDisk:
    def test_nothing_is_lost_and_the_next_put_works(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        with Store(path, SCHEME) as store:
            put(store, range(100), range(100))
            limit = (tmp_path / "a-wal").stat().st_size + 20_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
            try:
                with pytest.raises(OSError, match=re.escape(str(path))):
                    store.put(range(9_000), np.zeros((9_000, 1), np.uint64), np.zeros(9_000, np.int64))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            assert follow({}, store) == read(path) == expected(range(100), range(100))
            put(store, ["more"], [5])
        assert read(path) == expected([*range(100), "more"], [*range(100), 5])

    def test_sqlite_says_that_it_is_full(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        with Store(path, SCHEME) as store:
            put(store, ["a"], [1])
            assert store._connection is not None
            store._connection.execute("PRAGMA max_page_count = 10")
            with pytest.raises(OSError, match="full") as caught:
                store.put(range(9_000), np.zeros((9_000, 1), np.uint64), np.zeros(9_000, np.int64))
            assert caught.value.filename == str(path)
            put(store, ["b"], [2])
        assert read(path) == expected(["a", "b"], [1, 2])
