"""Pages from files: JSONL, Parquet, text files and folders of them, JSONL on standard input."""

import contextlib
import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from simdup.batches import is_text

STDIN = "-"
Kind = Literal["JSONL", "Parquet", "text"]
ENDINGS: dict[str, Kind] = {".jsonl": "JSONL", ".ndjson": "JSONL", ".parquet": "Parquet", ".txt": "text"}
# So many rows and bytes of each column are in memory at a time, however large the file and its row groups are.
_BATCH_ROWS = 1024
_BUFFER_BYTES = 1 << 20
# What json.loads calls for a line without white space around it, without its detours: a third faster.
_raw_decode = json.JSONDecoder().raw_decode
_LINE_ENDS = ("", "\n", "\r\n")
# Arrow reads "Inf" as a number, which is no JSON, not even Python's.
_ARROWS_INFINITY = tuple(b"Inf" + after for after in (b",", b"}", b"]", b" ", b"\t", b"\r", b"\n"))


class Page(NamedTuple):
    """A page: where it was read, and its text."""

    id: str
    text: str


def read_pages(paths: Iterable[str | os.PathLike[str]], text_field: str = "text") -> Iterator[Page]:
    """Read pages one by one.

    Parameters
    ----------
    paths
        Files (.jsonl, .ndjson, .parquet, .txt), folders (their .txt files, however deep, in order of their
        names), or "-" for JSONL on standard input. Text is UTF-8.
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
                yield from _READERS[kind](file, text_field)


def _of_json_lines(file: str, text_field: str) -> Iterator[Page]:
    with contextlib.nullcontext(sys.stdin.buffer) if file == STDIN else Path(file).open("rb") as lines:
        for number, fields in json_lines(lines, name_of(file), text_field):
            yield Page(f"{name_of(file)}, line {number}", fields[text_field])


def _of_parquet(file: str, text_field: str) -> Iterator[Page]:
    with open_parquet(file) as parquet:
        text_column(parquet.schema_arrow, file, text_field)
    before = 0
    for batch in parquet_batches(file, [text_field]):
        texts = parquet_texts(batch, file, before, text_field)
        yield from (Page(f"{file}, row {row}", text) for row, text in enumerate(texts, before + 1))
        before += len(batch)


def _of_text(file: str, _text_field: str) -> Iterator[Page]:
    yield Page(file, read_text(file))


_READERS: dict[Kind, Callable[[str, str], Iterator[Page]]] = {
    "JSONL": _of_json_lines,
    "Parquet": _of_parquet,
    "text": _of_text,
}


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
    if file.is_dir():
        return "text"
    if file.suffix not in ENDINGS:
        file.stat()  # a file that is not there is missing, whatever its ending
        raise ValueError(f"{file}: unknown kind of file: give .jsonl, .ndjson, .parquet, .txt or a folder of .txt")
    return ENDINGS[file.suffix]


def name_of(path: str) -> str:
    """How a path is called in places and in errors."""
    return "standard input" if path == STDIN else str(Path(path))


def files_of(path: str) -> list[str]:
    """The files that a path stands for: those of a folder, in order of their names, or itself."""
    if path == STDIN or not Path(path).is_dir():
        return [path if path == STDIN else str(Path(path))]
    files = sorted(_texts_below(Path(path)))
    if not files:
        raise ValueError(f"{Path(path)}: no .txt file in this folder")
    return [str(file) for file in files]


def _texts_below(folder: Path) -> Iterator[Path]:
    """The .txt files of a folder and those below it. What cannot be read is an error, not fewer pages."""

    def fail(error: OSError) -> None:
        raise error

    for parent, _, names in os.walk(folder, onerror=fail):
        for path in (Path(parent, name) for name in names if name.lower().endswith(".txt")):
            if path.is_file() or not path.exists():  # a pipe or a device is no page; a link to nowhere fails later
                yield path


def read_text(file: str) -> str:
    """The text of a .txt file."""
    try:
        return _decode(Path(file).read_bytes())
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _decode(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}: convert it first") from None
    if 0 in data and data.count(0) > max(2, len(data) // 4):
        raise ValueError("not UTF-8: more than a quarter of its bytes are 0, as in UTF-16: convert it first")
    return text.removeprefix("\ufeff")


def json_lines(
    lines: Iterable[bytes], where: str, text_field: str, first: int = 1
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the objects of the lines that are not blank, each with the number of its line. Their text is a string."""
    for number, line in enumerate(lines, first):
        try:
            text = _decode(line)
            if not text or text.isspace():
                continue
            fields = _parsed(text)
            if not isinstance(fields, dict):
                raise ValueError(f"an object was expected, not {type(fields).__name__}")
            if text_field not in fields:
                raise ValueError(f"no field {text_field!r} ({has(fields)}): name it with --text-field")
            if not isinstance(fields[text_field], str):
                raise ValueError(f"field {text_field!r} is {json.dumps(fields[text_field])[:40]}, not a string")
        except ValueError as error:
            raise ValueError(f"{where}, line {number}: {error}") from None
        yield number, fields


def json_column(lines: list[bytes], text_field: str) -> "pa.LargeStringArray | None":
    """The texts of lines that are one object each, from the first byte to the last; None for any others.

    It takes a fifth of the time of `json_lines` and gives the same texts, and those of two sorts of lines that Python
    cannot read too: with numbers of more than 4,300 digits, and with thousands of brackets in each other.
    """
    block = b"".join(lines)
    ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)))
    bytes_ = np.frombuffer(block, np.uint8)
    last = ends - 1 - (bytes_[ends - 1] == ord("\n"))
    last -= bytes_[last] == ord("\r")
    # An object over several lines would need something else than braces at their ends, two on a line make one more.
    if (bytes_[ends - np.diff(ends, prepend=0)] != ord("{")).any() or (bytes_[last] != ord("}")).any():
        return None
    if any(infinity in block for infinity in _ARROWS_INFINITY):
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
    column = table.column(0)
    if len(column) != len(lines) or column.null_count:
        return None
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _parsed(text: str) -> Any:
    try:
        value, end = _raw_decode(text)
        if text[end:] in _LINE_ENDS:
            return value
    except (ValueError, RecursionError):  # white space before it, or broken: json.loads says which
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"broken JSON: {error}") from None


@contextlib.contextmanager
def open_parquet(path: str) -> Iterator["pq.ParquetFile"]:
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
        if not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
        raise ValueError(f"{path}: not a Parquet file, or damaged: {str(error).splitlines()[0]}") from error


def text_column(schema: "pa.Schema", path: str, text_field: str) -> None:
    """Raise ValueError if a Parquet file has no such column, or not of strings."""
    names = schema.names
    if text_field not in names:
        raise ValueError(f"{path}: no column {text_field!r} ({has(names)}): name it with --text-field")
    kind = schema.field(names.index(text_field)).type
    if not is_text(kind):
        raise ValueError(f"{path}: column {text_field!r} is {kind}, not strings: name it with --text-field")


def parquet_batches(path: str, columns: list[str] | None = None) -> Iterator["pa.RecordBatch"]:
    """Read a Parquet file, or only some columns of it, batch by batch; fewer rows than it claims are an error."""
    with open_parquet(path) as file:
        rows = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            rows += len(batch)
            yield batch
        if rows != file.metadata.num_rows:
            raise ValueError(f"{path}: damaged: {rows:,} rows of {file.metadata.num_rows:,} could be read")


def parquet_texts(batch: "pa.RecordBatch", path: str, before: int, text_field: str) -> Iterable[str]:
    """The texts of a batch with so many rows of its file before it."""
    column = batch.column(batch.schema.names.index(text_field))
    with contextlib.suppress(UnicodeDecodeError):
        texts: list[str] = column.to_pylist()
        if None not in texts:
            return texts
    return _one_by_one(column, path, before, text_field)


def _one_by_one(column: "pa.Array", path: str, before: int, text_field: str) -> Iterator[str]:
    """The texts before one that is none, and then the error."""
    for row, value in enumerate(column, before + 1):
        try:
            text = value.as_py()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, row {row}: column {text_field!r} is not UTF-8 at byte {error.start}") from None
        if text is None:
            raise ValueError(f"{path}, row {row}: column {text_field!r} is null")
        yield text


def has(names: Iterable[str]) -> str:
    """Name the first fields that there are instead."""
    named = list(names)
    shown = ", ".join(f"{name!r:.40}" for name in named[:5]) or "none"
    return f"it has {shown}{' and others' if len(named) > 5 else ''}"
