"""Batches: the same fingerprints however the texts come, wherever a batch ends, on any number of threads."""

import importlib
import re
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import ARTICLE, Fingerprints, Scheme, fingerprint, fit_idf
from simdup.batches import Batch, batches
from simdup.text import encode
from tests.properties import strategies as some

module = importlib.import_module("simdup.batches")
fingerprints = importlib.import_module("simdup.fingerprint")

WORD = Scheme("word", 1, 64, "tf")
TEXTS = [" ".join(some.PIECES[at : at + 7]) for at in range(0, len(some.PIECES), 3)]
TEXTS = [*TEXTS, "", "a", "", "", "x " * 300, "", "last"]


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "ignore").decode()


COLUMN = list(map(_without_surrogates, TEXTS))
column_texts = st.lists(some.texts(4).map(_without_surrogates), max_size=12)


def same(one: Fingerprints, two: Fingerprints) -> bool:
    return one == two and one.features.tolist() == two.features.tolist()


def one_by_one(texts: Iterable[str], scheme: Scheme) -> Fingerprints:
    singles = [fingerprint(text, scheme) for text in texts]
    return Fingerprints.from_ints([one.value for one in singles], scheme, [one.features for one in singles])


def limits(texts: int, size: int) -> pytest.MonkeyPatch:
    patch = pytest.MonkeyPatch()
    patch.setattr(module, "BATCH_TEXTS", texts)
    patch.setattr(module, "BATCH_BYTES", size)
    return patch


def content(batch: Batch) -> list[bytes]:
    return [batch.data[start:stop].tobytes() for start, stop in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]


# ---- where a batch ends


@given(
    texts=st.lists(some.texts(4), max_size=12),
    scheme=some.schemes(),
    border=st.tuples(st.integers(1, 5), st.integers(1, 200)),
    threads=st.integers(1, 4),
)
def test_borders_and_threads_change_nothing(
    texts: list[str], scheme: Scheme, border: tuple[int, int], threads: int
) -> None:
    expected = one_by_one(texts, scheme)
    assert same(fingerprint(texts, scheme), expected)
    patch = limits(*border)
    try:
        assert same(fingerprint(iter(texts), scheme, threads=threads), expected)
    finally:
        patch.undo()


@given(texts=column_texts, border=st.tuples(st.integers(1, 5), st.integers(1, 200)), threads=st.integers(1, 3))
def test_borders_in_a_column_change_nothing(texts: list[str], border: tuple[int, int], threads: int) -> None:
    expected = one_by_one(texts, WORD)
    patch = limits(*border)
    try:
        assert same(fingerprint(pa.array(texts, pa.string()), WORD, threads=threads), expected)
        cut = len(texts) // 2
        halves = pa.chunked_array([texts[:cut], [], texts[cut:]], pa.large_string())
        assert same(fingerprint(halves, WORD, threads=threads), expected)
    finally:
        patch.undo()


@pytest.mark.parametrize("texts", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("size", [1, 2, 50, 1000])
def test_batches_hold_every_text_once(texts: int, size: int) -> None:
    patch = limits(texts, size)
    try:
        for source in (COLUMN, pa.array(COLUMN), pa.chunked_array([COLUMN[:5], [], COLUMN[5:]])):
            found = list(batches(source))
            assert [text for batch in found for text in content(batch)] == list(map(encode, COLUMN))
            assert all(1 <= len(content(batch)) <= texts for batch in found)
            # Only the last text of a batch may go beyond the limit.
            assert all(sum(map(len, content(batch)[:-1])) < 4 * size for batch in found)
    finally:
        patch.undo()


@pytest.mark.parametrize("count", [4095, 4096, 4097, 8193])
def test_the_borders_as_they_are(count: int) -> None:
    assert module.BATCH_TEXTS == 4096
    texts = [f"w{number} w{number % 7}" for number in range(count)]
    found = fingerprint(texts, WORD)
    assert len(found) == count
    assert same(found, fingerprint(pa.array(texts), WORD, threads=2))
    at = [0, 4094, *(row for row in (4095, 4096, 8191, 8192) if row < count), count - 1]
    assert same(found[at], one_by_one([texts[row] for row in at], WORD))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_long_texts_on_any_number_of_threads(threads: int) -> None:
    texts = [f"start{number} " * (9000 + number) for number in range(30)]
    patch = limits(100, 300_000)
    try:
        assert same(fingerprint(texts, ARTICLE, threads=threads), one_by_one(texts, ARTICLE))
    finally:
        patch.undo()


@pytest.mark.parametrize("texts", [1, 2, 5, 1000])
def test_fitting_does_not_depend_on_borders(texts: int) -> None:
    expected = fit_idf(TEXTS, WORD)
    patch = limits(texts, 1 << 20)
    try:
        assert fit_idf(iter(TEXTS), WORD).id == expected.id
    finally:
        patch.undo()
    assert fit_idf(reversed(TEXTS), WORD).id == expected.id
    assert fit_idf(pa.array(COLUMN), WORD).id == fit_idf(COLUMN, WORD).id


# ---- iterables


class Watched:
    """An iterable that says how far it was read and refuses a second reading."""

    def __init__(self, count: int) -> None:
        self.count, self.read, self.readings = count, 0, 0

    def __iter__(self) -> Iterator[str]:
        self.readings += 1
        for number in range(self.count):
            self.read += 1
            yield f"text {number}"


def test_an_iterable_is_read_once_and_no_further_than_a_batch() -> None:
    patch = limits(10, 1 << 20)
    try:
        watched = Watched(95)
        for number, batch in enumerate(batches(watched)):
            assert len(content(batch)) == (10 if number < 9 else 5)
            assert watched.read == min(10 * (number + 1), 95)
        assert (watched.read, watched.readings) == (95, 1)
    finally:
        patch.undo()


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_read_no_further_than_two_batches_each(threads: int) -> None:
    patch = limits(10, 1 << 20)
    try:
        watched = Watched(1000)
        results = fingerprints._in_order(batches(watched), WORD, threads)
        for done in range(1, 5):
            next(results)
            assert watched.read <= 10 * (2 * threads + done - 1)
        results.close()
    finally:
        patch.undo()


@pytest.mark.parametrize("threads", [1, 2])
def test_any_iterable(threads: int) -> None:
    expected = one_by_one(TEXTS, WORD)
    for texts in (TEXTS, tuple(TEXTS), iter(TEXTS), (text for text in TEXTS), dict.fromkeys(TEXTS).keys() & set()):
        found = fingerprint(texts, WORD, threads=threads)
        assert same(found, expected) if len(found) else texts == set()
    assert same(fingerprint(np.array(COLUMN, object), WORD), one_by_one(COLUMN, WORD))
    assert same(fingerprint(np.array(["a", "bc"]), WORD), one_by_one(["a", "bc"], WORD))


@pytest.mark.parametrize(
    "empty", [[], (), iter(()), pa.array([], pa.string()), pa.chunked_array([], pa.string())], ids=str
)
@pytest.mark.parametrize("bits", [64, 256])
def test_no_texts(empty: Any, bits: int) -> None:
    found = fingerprint(empty, Scheme(bits=bits))
    assert len(found) == 0
    assert found.words.shape == (0, bits // 64)
    assert found.hex() == []


@pytest.mark.parametrize("make", [lambda: pd.Series([], dtype=object), lambda: pl.Series([]), lambda: pa.array([])])
def test_an_empty_column_without_a_type_has_no_texts(make: Callable[[], Any]) -> None:
    assert len(fingerprint(make(), WORD)) == 0


# ---- columns

COLUMNS: dict[str, Callable[[list[str]], Any]] = {
    "string": lambda texts: pa.array(texts, pa.string()),
    "large_string": lambda texts: pa.array(texts, pa.large_string()),
    "string_view": lambda texts: pa.array(texts, pa.string_view()),
    "dictionary": lambda texts: pa.array(texts, pa.string()).dictionary_encode(),
    "large dictionary": lambda texts: pa.array(texts, pa.large_string()).dictionary_encode(),
    "sliced": lambda texts: pa.array(["before", *texts, "behind"], pa.string()).slice(1, len(texts)),
    "sliced large": lambda texts: pa.array(["vor", "her", *texts, "x"], pa.large_string()).slice(2, len(texts)),
    "sliced view": lambda texts: pa.array(["before" * 9, *texts, "x"], pa.string_view()).slice(1, len(texts)),
    "sliced dictionary": lambda texts: pa.array(["a", *texts, "b"]).dictionary_encode().slice(1, len(texts)),
    "one chunk": lambda texts: pa.chunked_array([texts], pa.string()),
    "chunk each": lambda texts: pa.chunked_array([[text] for text in texts], pa.string()),
    "empty chunks": lambda texts: pa.chunked_array([[], texts[:2], [], texts[2:], []], pa.large_string()),
    "chunked dictionary": lambda texts: pa.chunked_array(
        [pa.array(texts[:2], pa.string()).dictionary_encode(), pa.array(texts[2:], pa.string()).dictionary_encode()]
    ),
    "sliced chunks": lambda texts: pa.chunked_array([["y"], texts[:3], texts[3:], ["z"]], pa.string()).slice(
        1, len(texts)
    ),
    "with a clean mask": lambda texts: pa.array([*texts, None], pa.string()).slice(0, len(texts)),
    "pandas": lambda texts: pd.Series(texts, dtype="str"),
    "pandas object": lambda texts: pd.Series(texts, dtype=object),
    "pandas with an index": lambda texts: pd.Series(
        texts, index=[f"i{at % 3}" for at in range(len(texts))], dtype="str"
    ),
    "pandas category": lambda texts: pd.Series(texts, dtype="str").astype("category"),
    "pandas part": lambda texts: pd.DataFrame({"x": texts, "y": 1})["x"].astype("str"),
    "polars": lambda texts: pl.Series(texts, dtype=pl.String),
    "polars category": lambda texts: pl.Series(texts, dtype=pl.String).cast(pl.Categorical),
    "polars part": lambda texts: pl.Series(["p", *texts, "q"], dtype=pl.String).slice(1, len(texts)),
    "polars chunks": lambda texts: pl.concat(
        [pl.Series(texts[:1], dtype=pl.String), pl.Series(texts[1:], dtype=pl.String)], rechunk=False
    ),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_sort_of_column(kind: str) -> None:
    for scheme in (WORD, Scheme("char", 3, 256, "set", "blake2b")):
        for texts in (COLUMN, ["", "", ""], ["", "a", "", "long" * 9]):
            expected = one_by_one(texts, scheme)
            assert same(fingerprint(COLUMNS[kind](texts), scheme), expected)
            assert same(fingerprint(COLUMNS[kind](texts), scheme, threads=2), expected)


@given(texts=column_texts.filter(bool), kind=st.sampled_from(sorted(COLUMNS)))
def test_any_texts_in_a_column(texts: list[str], kind: str) -> None:
    assert same(fingerprint(COLUMNS[kind](texts), WORD), one_by_one(texts, WORD))


MEMORY = {
    "large_string": COLUMNS["large_string"],
    "string": COLUMNS["string"],
    "string_view": COLUMNS["string_view"],
    "dictionary": COLUMNS["dictionary"],
    "polars": COLUMNS["polars"],
    "pandas object": COLUMNS["pandas object"],
}


@pytest.mark.parametrize("kind", MEMORY)
def test_a_column_takes_memory_by_the_batch(kind: str) -> None:
    """A column of many batches needs no more scratch than one batch, besides the results, in NumPy or in Arrow."""
    texts = [f"word{number % 500} " * 30 for number in range(20_000)]
    column = MEMORY[kind](texts)
    patch = limits(100, 1 << 20)
    watched: list[int] = []
    original = fingerprints.tokenize

    def tokenize(*arguments: Any) -> Any:
        watched.append(pa.total_allocated_bytes())
        return original(*arguments)

    try:
        fingerprint(column[:200], WORD)
        before = pa.total_allocated_bytes()
        patch.setattr(fingerprints, "tokenize", tokenize)
        tracemalloc.start()
        fingerprint(column, WORD)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        patch.undo()
    batch = 100 * 30 * 8
    assert len(watched) >= 200
    assert peak < 30 * batch + 20_000 * 64, f"{peak:,} bytes at the peak for batches of {batch:,} bytes"
    # A dictionary of 500 texts is decoded once, a batch is two at a time.
    assert max(watched) - before < 10 * batch + 500 * 30 * 8


# ---- what is refused


@pytest.mark.parametrize("texts", [b"a", bytearray(b"a"), None, 1, 1.5, {"a": 1}, pa.table({"a": ["x"]})], ids=type)
def test_what_is_no_texts(texts: Any) -> None:
    for job in (fingerprint, lambda value: fit_idf(value, WORD)):
        with pytest.raises(
            TypeError, match=f"texts come as a string or as an iterable of strings, not as {type(texts).__name__}"
        ):
            job(texts)


@pytest.mark.parametrize("value", [None, 1, 1.5, ["a"], float("nan")], ids=repr)
@pytest.mark.parametrize("position", [0, 5, 4096])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_item_that_is_no_text(value: Any, position: int, threads: int) -> None:
    texts: list[Any] = ["a"] * position + [value, "b"]
    with pytest.raises(TypeError, match=re.escape(f"text {position} is {type(value).__name__}, not str")):
        fingerprint(texts, threads=threads)


@pytest.mark.parametrize("value", [None, 1, b"a", ["a"]], ids=repr)
def test_a_column_of_objects_names_the_place(value: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(f"text 2 is {type(value).__name__}, not str")):
        fingerprint(pd.Series(["a", "b", value], dtype=object))


def test_one_string_is_not_many_texts() -> None:
    with pytest.raises(TypeError, match="not as one string: put it into a list"):
        fit_idf("a b c", WORD)


@pytest.mark.parametrize("value", [b"a", bytearray(b"a")], ids=repr)
def test_bytes_are_not_decoded_by_guess(value: Any) -> None:
    with pytest.raises(TypeError, match=f"text 1 is {type(value).__name__}, not str: decode it first"):
        fingerprint(["a", value])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([b"a"]), "binary"),
        (pa.array([1]), "int64"),
        (pa.chunked_array([[1.5]]), "double"),
        (pa.array([["a"]]), "list<"),
        (pa.array([b"a"]).dictionary_encode(), "binary"),
        (pd.Series([1, 2]), "int64"),
        (pd.DataFrame({"a": ["x"]}), "struct<"),
        (pl.Series([1, 2]), "int64"),
        (pl.DataFrame({"a": ["x"]}), "struct<"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_columns_of_something_else(column: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"texts come as a column of strings, not of .*{kind}"):
        fingerprint(column)


@pytest.mark.parametrize(
    ("column", "position"),
    [
        (pa.array(["a", None]), 1),
        (pa.array([None, "a"], pa.large_string()), 0),
        (pa.array(["a", None], pa.string_view()), 1),
        (pa.chunked_array([["a", "b"], [], ["c", None]]), 3),
        (pa.array(["a", None, "b"]).dictionary_encode(), 1),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), 1),
        (pa.array([None, "a", None]).slice(1), 1),
        (pd.Series(["a", "b", None], dtype="str"), 2),
        (pl.Series(["a", None]), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nulls(column: Any, position: int) -> None:
    with pytest.raises(ValueError, match=f"text {position} is null: fill or drop nulls first"):
        fingerprint(column)


@pytest.mark.parametrize("data", [b"\xff", b"\xed\xa0\x80", b"\xc3", b"\xf0\x9f\x98", b"\x80"], ids=repr)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_column_that_is_not_utf8(data: bytes, kind: Any) -> None:
    column = pa.array([b"fine", data], pa.binary() if kind == pa.string() else pa.large_binary()).view(kind)
    with pytest.raises(ValueError, match=r"the column is damaged: .*UTF8"):
        fingerprint(column)


def test_a_lone_surrogate_in_a_pandas_column() -> None:
    """An object column may hold what Arrow cannot: it is read as a list is, or the error names the place."""
    column = pd.Series(["a", "b\ud800"], dtype=object)
    assert same(fingerprint(column, WORD), fingerprint(list(column), WORD))
