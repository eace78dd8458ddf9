"""Pages from files: JSONL, Parquet, text files and folders of them, JSONL on standard input."""

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from simdup.batches import is_text

STDIN = "-"
_JSON_LINES = (".jsonl", ".ndjson")


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
    for path in paths:
        if os.fspath(path) == STDIN:
            if sys.stdin is None:
                raise ValueError("standard input is closed")
            yield from _json_lines(sys.stdin.buffer, "standard input", text_field)
            continue
        if not os.fspath(path):
            raise ValueError("an empty path: give a file, a folder or - for standard input")
        path = Path(path)
        try:
            yield from _read(path, text_field)
        except OSError as error:
            raise ValueError(f"{error.filename or path}: {error.strerror or error}") from error


def _read(path: Path, text_field: str) -> Iterator[Page]:
    if path.is_dir():
        files = sorted(_texts_below(path))
        if not files:
            raise ValueError(f"{path}: no .txt file in this folder")
        for file in files:
            yield Page(str(file), _decode(file.read_bytes(), str(file)))
    elif path.suffix == ".parquet":
        yield from _parquet(path, text_field)
    elif path.suffix in _JSON_LINES:
        with path.open("rb") as lines:
            yield from _json_lines(lines, str(path), text_field)
    elif path.suffix == ".txt" or not path.exists():
        yield Page(str(path), _decode(path.read_bytes(), str(path)))
    else:
        raise ValueError(f"{path}: unknown kind of file: give .jsonl, .ndjson, .parquet, .txt or a folder of .txt")


def _texts_below(folder: Path) -> Iterator[Path]:
    """The .txt files of a folder and those below it. What cannot be read is an error, not fewer pages."""

    def fail(error: OSError) -> None:
        raise error

    for parent, _, names in os.walk(folder, onerror=fail):
        for path in (Path(parent, name) for name in names if name.lower().endswith(".txt")):
            if path.is_file() or not path.exists():  # a pipe or a device is no page; a link to nowhere fails later
                yield path


def _decode(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: not UTF-8 at byte {error.start}: convert it first") from None
    if data.count(0) > max(2, len(data) // 4):
        raise ValueError(f"{where}: not UTF-8: more than a quarter of its bytes are 0, as in UTF-16: convert it first")
    return text


def _json_lines(lines: Iterable[bytes], where: str, text_field: str) -> Iterator[Page]:
    for number, line in enumerate(lines, 1):
        place = f"{where}, line {number}"
        text = _decode(line, place)
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place}: broken JSON: {error}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{place}: an object was expected, not {type(record).__name__}")
        if text_field not in record:
            raise ValueError(f"{place}: no field {text_field!r} ({_has(record)}): name it with --text-field")
        if not isinstance(record[text_field], str):
            raise ValueError(f"{place}: field {text_field!r} is {json.dumps(record[text_field])[:40]}, not a string")
        yield Page(place, record[text_field])


def _parquet(path: Path, text_field: str) -> Iterator[Page]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            if text_field not in names:
                raise ValueError(f"{path}: no column {text_field!r} ({_has(names)}): name it with --text-field")
            kind = file.schema_arrow.field(names.index(text_field)).type
            if not is_text(kind):
                raise ValueError(f"{path}: column {text_field!r} is {kind}, not strings: name it with --text-field")
            row = 0
            for batch in file.iter_batches(columns=[text_field]):
                for value in batch.column(0):
                    row += 1
                    yield Page(f"{path}, row {row}", _text_of(value, f"{path}, row {row}", text_field))
            if row != file.metadata.num_rows:
                raise ValueError(f"{path}: damaged: {row:,} rows of {file.metadata.num_rows:,} could be read")
    except (pa.ArrowException, OSError, UnicodeError) as error:
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
        raise ValueError(f"{path}: not a Parquet file, or damaged: {str(error).splitlines()[0]}") from error


def _text_of(value: Any, where: str, text_field: str) -> str:
    try:
        text = value.as_py()
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: column {text_field!r} is not UTF-8 at byte {error.start}") from None
    if text is None:
        raise ValueError(f"{where}: column {text_field!r} is null")
    return str(text)


def _has(names: Iterable[str]) -> str:
    """Name the first fields that there are instead."""
    named = list(names)
    shown = ", ".join(f"{name!r:.40}" for name in named[:5]) or "none"
    return f"it has {shown}{' and others' if len(named) > 5 else ''}"
