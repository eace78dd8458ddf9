"""Texts as they come, to batches of UTF-8: one buffer and its offsets."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from simdup.text import Bytes, Offsets, encode, joined

# A batch ends at whichever comes first. Its tokens and hashes then stay within the processor's cache.
BATCH_BYTES = 1 << 20
BATCH_TEXTS = 1 << 12


class Batch(NamedTuple):
    """Texts in UTF-8, one after the other: text d is ``data[offsets[d] : offsets[d + 1]]``."""

    data: Bytes
    offsets: Offsets


def one_text(text: str) -> Batch:
    """The batch of one text."""
    data = np.frombuffer(encode(text), np.uint8)
    return Batch(data, np.array((0, len(data))))


def batches(texts: Iterable[str]) -> Iterator[Batch]:
    """Cut texts into batches: an iterable is read once and never further than a batch, a column is not copied.

    Raises
    ------
    TypeError, ValueError
        As `simdup.fingerprint` says, with the position of what is no text.
    """
    if isinstance(texts, str):
        raise TypeError("texts come as an iterable of strings, not as one string: put it into a list")
    if isinstance(texts, bytes | bytearray | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"texts come as a string or as an iterable of strings, not as {type(texts).__name__}")
    column = None
    if isinstance(texts, pa.Array):
        column = pa.chunked_array([texts])
    elif isinstance(texts, pa.ChunkedArray):
        column = texts
    elif hasattr(texts, "__arrow_c_stream__") and str(getattr(texts, "dtype", "")) != "object":
        # A column of Python strings with a lone surrogate cannot become Arrow, but can be read as an iterable.
        with contextlib.suppress(UnicodeEncodeError):
            column = pa.chunked_array(texts)
    yield from _of_iterable(texts) if column is None else _of_column(column)


def _of_iterable(texts: Iterable[str]) -> Iterator[Batch]:
    waiting: list[str] = []
    size = 0
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            hint = ": decode it first" if isinstance(text, bytes | bytearray) else ""
            raise TypeError(f"text {position} is {type(text).__name__}, not str{hint}")
        waiting.append(text)
        size += len(text)
        if size >= BATCH_BYTES or len(waiting) == BATCH_TEXTS:
            yield _of_list(waiting)
            waiting, size = [], 0
    if waiting:
        yield _of_list(waiting)


def _of_list(texts: list[str]) -> Batch:
    try:
        return _of_array(pa.array(texts, pa.large_string()))
    except UnicodeEncodeError:  # a lone surrogate
        return Batch(*joined(list(map(encode, texts))))


def is_text(kind: "pa.DataType") -> bool:
    """Whether a column of this type holds strings, or nothing but nulls."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    sorts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    return any(is_sort(kind) for is_sort in sorts)


def _of_column(chunked: "pa.ChunkedArray") -> Iterator[Batch]:
    encoded = pa.types.is_dictionary(chunked.type)
    if not is_text(chunked.type):
        raise TypeError(f"texts come as a column of strings, not of {chunked.type}")
    position = 0
    for chunk in chunked.chunks:
        try:
            chunk.validate(full=True)
        except pa.ArrowException as error:
            raise ValueError(f"the column is damaged: {error}") from error
        dictionary = chunk.dictionary.cast(pa.large_string()) if encoded else None
        # Piece by piece: whatever is no large_string takes memory when it becomes one.
        for start in range(0, len(chunk), BATCH_TEXTS):
            piece = chunk.slice(start, BATCH_TEXTS)
            texts = piece.cast(pa.large_string()) if dictionary is None else dictionary.take(piece.indices)
            if texts.null_count:
                null = position + pc.index(texts.is_null(), True).as_py()
                raise ValueError(f"text {null} is null: fill or drop nulls first")
            position += len(texts)
            yield from _cut(_of_array(texts))


def _cut(batch: Batch) -> Iterator[Batch]:
    """Cut a batch of many bytes."""
    start, texts = 0, len(batch.offsets) - 1
    while start < texts:
        full = int(np.searchsorted(batch.offsets, batch.offsets[start] + BATCH_BYTES))
        stop = min(max(full, start + 1), texts)
        first, last = batch.offsets[start], batch.offsets[stop]
        yield Batch(batch.data[first:last], batch.offsets[start : stop + 1] - first)
        start = stop


def _of_array(array: "pa.LargeStringArray") -> Batch:
    _, offsets, data = array.buffers()
    return Batch(
        np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8),
        np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1],
    )
