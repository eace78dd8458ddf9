"""Parquet files: their texts, and their rows."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simdup.batches import is_text
from simdup.fields import Batch, check_names, check_order, wrong

# So many rows are in memory at a time, and so many bytes of each column.
_BATCH_ROWS = 1024
_BUFFER_BYTES = 1 << 20
_BROKEN = (pa.ArrowException, OSError, UnicodeError)


def read_parquet(file: str, text_field: str, order_field: str | None) -> Iterator[tuple[Sequence[int], Batch]]:
    """Read records as `simdup.pages.read_file` says it."""
    parquet_schema(file, text_field, order_field)
    for first, rows, problem in parquet_rows(file, [name for name in (text_field, order_field) if name is not None]):
        if rows is None:
            yield (), Batch([], problems={first: problem})
            continue
        numbers: Sequence[int] = range(first, first + len(rows))
        problems = _no_texts(rows.column(text_field), numbers, text_field)
        if problems:
            good = np.array([number not in problems for number in numbers], np.bool_)
            numbers, rows = list(itertools.compress(numbers, good)), filtered(rows, good)
        orders = None
        if order_field is not None:
            column = rows.column(order_field)
            if pa.types.is_temporal(column.type):  # Python's own have no nanoseconds
                column = column.view(f"int{column.type.bit_width}")
            orders = column.to_pylist()
            for row, order in zip(numbers, orders, strict=True):
                try:
                    check_order(order_field, order)
                except ValueError as error:
                    raise ValueError(f"{file}, row {row}: {error}") from None
        yield numbers, Batch(rows.column(text_field), orders, problems)


def parquet_schema(path: str, text_field: str, order_field: str | None) -> "pa.Schema":
    """The schema of a Parquet file that has these columns."""
    with _open_parquet(path) as file:
        schema = file.schema_arrow
    try:
        check_names(schema.names, text_field, order_field)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    kind = schema.field(text_field).type
    if not is_text(kind):
        raise ValueError(f"{path}: field {text_field!r} is {kind}, not strings: name another with --text-field")
    return schema


def parquet_rows(path: str, columns: list[str] | None = None) -> Iterator[tuple[int, "pa.RecordBatch | None", str]]:
    """Read a Parquet file, or only some columns of it, some rows at a time, with the number of the first.

    For rows that cannot be read comes what is wrong; in the next row group it goes on.
    """
    with _open_parquet(path) as file:
        stop = 1
        for group in range(file.num_row_groups):
            first, stop, problem = stop, stop + file.metadata.row_group(group).num_rows, "fewer rows than it claims"
            try:
                for batch in file.iter_batches(_BATCH_ROWS, [group], columns):
                    yield first, batch, ""
                    first += len(batch)
            except _BROKEN as error:
                problem = str(error).splitlines()[0]
            if first < stop:
                yield first, None, f"damaged, and so is what follows up to row {stop - 1}: {problem}"
            elif first > stop:
                raise OSError(f"more rows than the {stop - 1:,} it claims")
        if stop - 1 != file.metadata.num_rows:
            raise OSError(f"{stop - 1:,} rows of {file.metadata.num_rows:,} could be read")


@contextlib.contextmanager
def _open_parquet(path: str) -> Iterator["pq.ParquetFile"]:
    """Open a Parquet file. What goes wrong within the block is put down to the file."""
    try:
        with pq.ParquetFile(
            path,
            pre_buffer=False,
            buffer_size=_BUFFER_BYTES,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit="us",  # as Spark means them; as nanoseconds the year 9999 would be another
        ) as file:
            yield file
    except _BROKEN as error:
        raise ValueError(f"{path}: not a Parquet file, or damaged: {str(error).splitlines()[0]}") from error


def _no_texts(texts: "pa.Array", numbers: Sequence[int], text_field: str) -> dict[int, str]:
    """What is wrong with the rows that hold no text."""
    problems = dict[int, str]()
    with contextlib.suppress(pa.ArrowInvalid):
        texts.validate(full=True)
        if not texts.null_count:
            return problems
    for row, number in enumerate(numbers):
        one = texts.slice(row, 1)
        try:
            one.validate(full=True)
            if one.null_count:
                problems[number] = wrong(text_field, None, "a string")
        except pa.ArrowInvalid as error:
            problems[number] = f"field {text_field!r}: {error}"
    return problems


def filtered(rows: "pa.RecordBatch", keep: NDArray[np.bool_]) -> "pa.RecordBatch":
    """The rows to keep."""
    try:
        return rows.filter(pa.array(keep))
    except NotImplementedError:  # as for views of strings: whole runs of rows instead
        edges = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2).tolist()
        return pa.concat_batches([rows.slice(start, stop - start) for start, stop in edges] or [rows.slice(0, 0)])
