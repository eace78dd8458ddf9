"""Pages from files: JSONL, Parquet, text and HTML files and folders of them, JSONL on standard input."""

import contextlib
import json
import math
import os
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from simdup.batches import is_text
from simdup.html import text_from_html

STDIN = "-"
Kind = Literal["JSONL", "Parquet", "text"]
_HTML = (".html", ".htm", ".xhtml")
TEXTS = (".txt", *_HTML)
ENDINGS: dict[str, Kind] = {".jsonl": "JSONL", ".ndjson": "JSONL", ".parquet": "Parquet"}
ENDINGS |= dict.fromkeys(TEXTS, "text")
# So many bytes of lines are in memory at a time; of a Parquet file so many rows, and bytes of each column.
_BLOCK_BYTES = 1 << 21
_BATCH_ROWS = 1024
_BUFFER_BYTES = 1 << 20
# What json.loads calls, without its detours: a third faster.
_raw_decode = json.JSONDecoder().raw_decode
_OBJECT_ENDS = (b"}\n", b"}\r\n", b"}")
# Arrow reads it as a number, which is no JSON, not even Python's.
_ARROWS_INFINITY = re.compile(rb"Inf[\s,\]}]")


class Page(NamedTuple):
    """A page: where it was read, and its text."""

    id: str
    text: str


class Batch(NamedTuple):
    """Some records that stand one after the other."""

    texts: "list[str] | pa.Array"
    orders: list[Any] | None
    """The values that they are ordered by, if they are."""

    def as_list(self) -> list[str]:
        """The texts as strings."""
        return self.texts.to_pylist() if isinstance(self.texts, pa.Array) else self.texts


def read_pages(paths: Iterable[str | os.PathLike[str]], text_field: str = "text") -> Iterator[Page]:
    """Read pages one by one.

    Parameters
    ----------
    paths
        Files (.jsonl, .ndjson, .parquet, .txt, .html), folders (their .txt and .html files, however deep, in order
        of their names), or "-" for JSONL on standard input. Text is UTF-8; of HTML, in whatever encoding, it is the
        main part (`simdup.html`).
    text_field
        The field or column that holds the text.

    Raises
    ------
    ValueError
        For what cannot be read, in one line that says what and where.
    """
    for path in (os.fspath(given) for given in paths):
        with readable(path):
            kind = kind_of(path)
            for file in files_of(path):
                for numbers, batch in read_file(file, kind, text_field):
                    for number, text in zip(numbers, batch.as_list(), strict=True):
                        yield Page(place(file, kind, number), text)


@contextlib.contextmanager
def readable(path: str) -> Iterator[None]:
    """Say in one line which file could not be read, and why."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{error.filename or name_of(path)}: {error.strerror or error}") from error


def kind_of(path: str) -> Kind:
    """What a path holds, by its ending; folders hold text, standard input JSONL."""
    if path == STDIN:
        if sys.stdin is None:
            raise ValueError("standard input is closed")
        return "JSONL"
    if not path:
        raise ValueError("an empty path: give a file, a folder or - for standard input")
    file = Path(path)
    file.stat()  # a file that is not there is missing, whatever its ending
    if file.is_dir():
        return "text"
    if file.suffix not in ENDINGS:
        raise ValueError(f"{file}: unknown kind of file: give .jsonl, .ndjson, .parquet, .txt, .html or a folder")
    return ENDINGS[file.suffix]


def name_of(path: str) -> str:
    """How a path is called in places and in errors."""
    return "standard input" if path == STDIN else path


def files_of(path: str) -> list[str]:
    """The files that a path stands for: those of a folder, in order of their names, or itself."""
    if path == STDIN or not Path(path).is_dir():
        return [str(Path(path))]

    def fail(error: OSError) -> None:  # what cannot be read is an error, not fewer pages
        raise error

    walk = os.walk(Path(path), onerror=fail)
    files = sorted(Path(parent, name) for parent, _, names in walk for name in names if name.lower().endswith(TEXTS))
    # A pipe or a device is no page; a link to nowhere fails later.
    files = [file for file in files if file.is_file() or not file.exists()]
    if not files:
        raise ValueError(f"{Path(path)}: no .txt or .html file in this folder")
    return [str(file) for file in files]


def place(file: str, kind: Kind, number: int) -> str:
    """Where a record stands: the file, and the number of the line or row in it."""
    return file if kind == "text" else f"{name_of(file)}, {'line' if kind == 'JSONL' else 'row'} {number}"


def read_file(
    file: str, kind: Kind, text_field: str, order_field: str | None = None, stdin: BinaryIO | None = None
) -> Iterator[tuple[Sequence[int], Batch]]:
    """Read the records of a file, some at a time, each with the number of its line or row.

    Parameters
    ----------
    file, kind
        One of `files_of`, and the `kind_of` its path.
    text_field, order_field
        The field or column that holds the text, and that which holds a string or a finite number to be ordered by.
    stdin
        What to read for "-", if not standard input itself.
    """
    if kind == "JSONL":
        for first, lines in line_blocks(file, stdin):
            column = json_column(lines, text_field) if order_field is None else None
            if column is None:
                yield json_lines(lines, name_of(file), text_field, order_field, first)
            else:
                yield range(first, first + len(lines)), Batch(column, None)
    elif kind == "Parquet":
        yield from _parquet_columns(file, text_field, order_field)
    else:
        try:
            data = Path(file).read_bytes()
            text = text_from_html(data) if file.lower().endswith(_HTML) else _decode(data)
            yield range(1, 2), Batch([text], None)
        except (ValueError, ImportError) as error:
            raise ValueError(f"{file}: {error}") from None


def line_blocks(file: str, stdin: BinaryIO | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a file, many at a time, with the number of the first. The same ones whenever it is read."""
    with contextlib.nullcontext(stdin or sys.stdin.buffer) if file == STDIN else Path(file).open("rb") as source:
        first = 1
        while lines := source.readlines(_BLOCK_BYTES):
            yield first, lines
            first += len(lines)


def json_lines(
    lines: Iterable[bytes], where: str, text_field: str, order_field: str | None = None, first: int = 1
) -> tuple[Sequence[int], Batch]:
    """Read the objects of the lines that are not blank, and the numbers of these lines."""
    numbers, texts, orders = array("q"), list[str](), list[Any]()
    for number, line in enumerate(lines, first):
        try:
            content = _decode(line)
            if not content or content.isspace():
                continue
            fields = _parsed(content)
            _check_names(fields, text_field, order_field)
            if not isinstance(fields[text_field], str):
                raise ValueError(_wrong(text_field, fields[text_field], "a string"))
            if order_field is not None:
                if not _is_order(fields[order_field]):
                    raise ValueError(_wrong(order_field, fields[order_field], "a finite number or a string"))
                orders.append(fields[order_field])
        except ValueError as error:
            raise ValueError(f"{where}, line {number}: {error}") from None
        numbers.append(number)
        texts.append(fields[text_field])
    return numbers, Batch(texts, None if order_field is None else orders)


def json_column(lines: list[bytes], text_field: str) -> "pa.LargeStringArray | None":
    """The texts of lines that are one object each, from the first byte to the last; None for any others.

    It takes a fifth of the time of `json_lines` and gives the same texts, and those of two sorts of lines that Python
    cannot read too: with numbers of more than 4,300 digits, and with thousands of brackets in each other.
    """
    # An object over several lines would need something else than braces at their ends, two on a line make one more.
    if not all(line.startswith(b"{") and line.endswith(_OBJECT_ENDS) for line in lines):
        return None
    block = b"".join(lines)
    if _ARROWS_INFINITY.search(block):
        return None
    schema = pa.schema([(text_field, pa.large_string())])
    try:
        block.decode()
        table = pj.read_json(
            pa.BufferReader(block),
            pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
            pj.ParseOptions(schema, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowException, UnicodeError):
        return None
    column = table.column(0).combine_chunks()
    return None if len(column) != len(lines) or column.null_count else column


def _decode(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}: convert it first") from None
    if 0 in data and data.count(0) > max(2, len(data) // 4):
        raise ValueError("not UTF-8: more than a quarter of its bytes are 0, as in UTF-16: convert it first")
    return text.removeprefix("\ufeff")


def _parsed(line: str) -> dict[str, Any]:
    line = line.strip(" \t\r\n")
    try:
        fields, end = _raw_decode(line)
        if end < len(line):
            raise ValueError(f"{line[end:]!r:.40} after its end")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"broken JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"an object was expected, not {type(fields).__name__}")
    return fields


def parquet_schema(path: str, text_field: str, order_field: str | None) -> "pa.Schema":
    """The schema of a Parquet file that has these columns."""
    with _open_parquet(path) as file:
        schema = file.schema_arrow
    try:
        _check_names(schema.names, text_field, order_field)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    kind = schema.field(text_field).type
    if not is_text(kind):
        raise ValueError(f"{path}: field {text_field!r} is {kind}, not strings: name another with --text-field")
    return schema


def parquet_rows(path: str, columns: list[str] | None = None) -> Iterator["pa.RecordBatch"]:
    """Read a Parquet file, or only some columns of it, some rows at a time; fewer than it claims are an error."""
    with _open_parquet(path) as file:
        rows = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            rows += len(batch)
            yield batch
        if rows != file.metadata.num_rows:
            raise OSError(f"{rows:,} rows of {file.metadata.num_rows:,} could be read")


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
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise ValueError(f"{path}: not a Parquet file, or damaged: {str(error).splitlines()[0]}") from error


def _parquet_columns(file: str, text_field: str, order_field: str | None) -> Iterator[tuple[Sequence[int], Batch]]:
    parquet_schema(file, text_field, order_field)
    first = 1
    for rows in parquet_rows(file, [name for name in (text_field, order_field) if name is not None]):
        numbers, texts, orders = range(first, first + len(rows)), rows.column(text_field), None
        if texts.null_count:
            row = numbers[texts.is_null().index(True).as_py()]
            raise ValueError(f"{file}, row {row}: {_wrong(text_field, None, 'a string')}")
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{file}, rows {first} to {numbers[-1]}: field {text_field!r}: {error}") from None
        if order_field is not None:
            column = rows.column(order_field)
            if pa.types.is_temporal(column.type):  # Python's own have no nanoseconds
                column = column.view(f"int{column.type.bit_width}")
            orders = column.to_pylist()
            for row, order in zip(numbers, orders, strict=True):
                if not _is_order(order):
                    wrong = _wrong(order_field, order, "a finite number or a string")
                    raise ValueError(f"{file}, row {row}: {wrong}")
        yield numbers, Batch(texts, orders)
        first += len(rows)


def _check_names(names: Iterable[str], text_field: str, order_field: str | None) -> None:
    for name, option in ((text_field, "--text-field"), (order_field, "--keep")):
        if name is not None and name not in names:
            has = ", ".join(map(repr, names))[:100] or "none"
            raise ValueError(f"no field {name!r} (it has {has}): name one with {option}")


def _is_order(value: Any) -> bool:
    return type(value) is str or (type(value) in (int, float) and abs(value) < math.inf)


def _wrong(name: str, value: Any, wanted: str) -> str:
    return f"field {name!r} is {json.dumps(value, default=str)[:40]}, not {wanted}"
