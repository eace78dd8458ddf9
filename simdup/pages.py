"""Pages from files: JSONL, Parquet, WARC, text and HTML files and folders of them, JSONL on standard input."""

import contextlib
import functools
import gzip
import itertools
import json
import math
import os
import re
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from simdup.batches import is_text
from simdup.html import LARGEST, read_html
from simdup.warc import read_warc

STDIN = "-"
Kind = Literal["JSONL", "Parquet", "WARC", "text"]
_HTML = (".html", ".htm", ".xhtml")
TEXTS = (".txt", *_HTML)
_ENDINGS: dict[Kind, tuple[str, ...]] = {
    "JSONL": (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    "Parquet": (".parquet",),
    "WARC": (".warc", ".wet", ".warc.gz", ".wet.gz"),
    "text": TEXTS,
}
_GIVE = "give .jsonl, .ndjson, .warc, .wet (all of them also .gz), .parquet, .txt, .html or a folder"
# So many bytes of lines are in memory at a time, or one longer line; of a Parquet file so many rows, and bytes of each
# column; of other files so many pages.
_BLOCK_BYTES = 1 << 21
_LONGEST_LINE = 1 << 27
_SOME_PAGES = 256
_BATCH_ROWS = 1024
_EXAMPLES = 20
_BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
_BROKEN_PARQUET = (pa.ArrowException, OSError, UnicodeError)
_BUFFER_BYTES = 1 << 20
# What json.loads calls, without its detours: a third faster.
_raw_decode = json.JSONDecoder().raw_decode
_OBJECT_ENDS = (b"}\n", b"}\r\n", b"}")
# Arrow reads it as a number, which is no JSON, not even Python's.
_ARROWS_INFINITY = re.compile(rb"Inf[\s,\]}]")


class Page(NamedTuple):
    """A page: where it was read, its text, and what is wrong with it."""

    id: str
    text: str | None
    """None if it cannot be read."""
    problems: tuple[str, ...] = ()


class Batch(NamedTuple):
    """Some records that stand one after the other."""

    texts: "list[str] | pa.Array"
    orders: list[Any] | None = None
    """The values that they are ordered by, if they are."""
    problems: Mapping[int, str] = MappingProxyType({})
    """By number: what is wrong with a record that could not be read, and so has no text, or with another."""
    names: Mapping[int, str] = MappingProxyType({})
    """By number: what a record is called besides, readable or not, if it is."""

    def as_list(self) -> list[str]:
        """The texts as strings."""
        return self.texts.to_pylist() if isinstance(self.texts, pa.Array) else self.texts


class Problems:
    """What was wrong with records.

    Attributes
    ----------
    left_out
        How many could not be read.
    examples
        The first 20 of these: where, and what was wrong.
    unusual
        What was wrong with others, and how often.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self.examples: list[tuple[str, str]] = []
        self.unusual: Counter[str] = Counter()

    def add(self, place: str, problem: str, *, left_out: bool) -> None:
        """Count a record."""
        if not left_out:
            self.unusual[problem] += 1
            return
        self.left_out += 1
        if self.left_out <= _EXAMPLES:
            self.examples.append((place, problem))

    def check(self, read: int) -> None:
        """Raise ValueError if nothing could be read."""
        if self.left_out and not read:
            more = f" (nor can {self.left_out - 1:,} more be read)" if self.left_out > 1 else ""
            raise ValueError(f"{': '.join(self.examples[0])}{more}")


def read_pages(paths: Iterable[str | os.PathLike[str]], text_field: str = "text") -> Iterator[Page]:
    """Read pages one by one.

    Parameters
    ----------
    paths
        Files (.jsonl, .ndjson, .warc and .wet, all of them also .gz; .parquet, .txt, .html), folders (their .txt and
        .html files, however deep, in order of their names), or "-" for JSONL on standard input. Text is UTF-8; of HTML,
        in whatever encoding, it is the main part (`simdup.html`, `simdup.warc`).
    text_field
        The field or column that holds the text.

    Yields
    ------
    Page
        Also for a record that cannot be read, with no text; the rest goes on. Of text up to 128 MiB are read, of HTML
        16.

    Raises
    ------
    ValueError
        In one line that says what and where: for an input that cannot be opened or has no such column, and at the end
        if nothing could be read.
    """
    problems, read = Problems(), 0
    for path in (os.fspath(given) for given in paths):
        with readable(path):
            kind = kind_of(path)
            for file in files_of(path):
                for numbers, batch in read_file(file, kind, text_field):
                    texts = dict(zip(numbers, batch.as_list(), strict=True))
                    for number in sorted({**texts, **batch.problems}):
                        text, what = texts.get(number), batch.problems.get(number)
                        page = Page(place(file, kind, number, batch.names.get(number)), text, (what,) if what else ())
                        if what:
                            problems.add(page.id, what, left_out=text is None)
                        read += text is not None
                        yield page
    problems.check(read)


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
    kind = "text" if file.is_dir() else kind_by_name(path)
    if kind is None:
        raise ValueError(f"{file}: unknown kind of file: {_GIVE}")
    return kind


def kind_by_name(path: str) -> Kind | None:
    """What a file holds that has such a name."""
    suffixes = Path(path).suffixes
    ending = "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])
    return next((kind for kind, endings in _ENDINGS.items() if ending in endings), None)


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


def place(file: str, kind: Kind, number: int, name: str | None = None) -> str:
    """Where a record stands: the file, the number of the line, row or record in it, and its name."""
    if kind == "text":
        return file
    unit = {"JSONL": "line", "Parquet": "row", "WARC": "record"}[kind]
    return f"{name_of(file)}, {unit} {number}" + (f" ({name})" if name else "")


def read_file(
    file: str, kind: Kind, text_field: str, order_field: str | None = None, stdin: BinaryIO | None = None
) -> Iterator[tuple[Sequence[int], Batch]]:
    """Read the records of a file, some at a time, each with the number of its line, row or record.

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
        for first, lines, problem in line_blocks(file, stdin):
            plain = order_field is None and lines and len(lines[-1]) <= _LONGEST_LINE
            column = json_column(lines, text_field) if plain else None
            if problem:
                yield (), Batch([], problems={first: problem})
            elif column is None:
                yield json_lines(lines, name_of(file), text_field, order_field, first)
            else:
                yield range(first, first + len(lines)), Batch(column)
    elif kind == "Parquet":
        yield from _parquet_columns(file, text_field, order_field)
    else:
        try:
            yield from _warc_pages(file) if kind == "WARC" else [_text(file)]
        except ImportError as error:
            raise ValueError(f"{file}: {error}") from None


def _text(file: str) -> tuple[Sequence[int], Batch]:
    try:
        is_html = file.lower().endswith(_HTML)
        with Path(file).open("rb") as source:
            data = source.read((LARGEST if is_html else _LONGEST_LINE) + 1)
        text, problem = read_html(data) if is_html else (_decode(data), "")
        return (1,), Batch([text], problems={1: problem} if problem else {})
    except (ValueError, OSError) as error:
        return (), Batch([], problems={1: getattr(error, "strerror", None) or str(error)})


def _warc_pages(file: str) -> Iterator[tuple[Sequence[int], Batch]]:
    found = read_warc(file)
    while some := list(itertools.islice(found, _SOME_PAGES)):
        pages = [page for page in some if page.text is not None]
        problems = {page.number: page.problem for page in some if page.problem}
        texts = [cast("str", page.text) for page in pages]
        yield [page.number for page in pages], Batch(texts, None, problems, {page.number: page.url for page in some})


def line_blocks(file: str, stdin: BinaryIO | None = None) -> Iterator[tuple[int, list[bytes], str]]:
    """The lines of a file, many at a time, with the number of the first. The same ones whenever it is read.

    At last, if it is compressed and damaged, come no lines, the number of the next, and what is wrong.
    """
    first, lines, size, problem = 1, list[bytes](), 0, ""
    with _opened(file, stdin) as source:
        try:
            for line in iter(functools.partial(source.readline, _LONGEST_LINE + 1), b""):
                more = line
                while len(line) > _LONGEST_LINE and more and not more.endswith(b"\n"):
                    more = source.readline(_BLOCK_BYTES)  # what is not kept
                lines.append(line)
                size += len(line)
                if size >= _BLOCK_BYTES:
                    yield first, lines, ""
                    first, lines, size = first + len(lines), [], 0
        except _BROKEN_GZIP as error:
            problem = f"damaged: {error}"
    if lines:
        yield first, lines, ""
    if problem:
        yield first + len(lines), [], problem


def _opened(file: str, stdin: BinaryIO | None) -> contextlib.AbstractContextManager[Any]:
    if file == STDIN:
        return contextlib.nullcontext(stdin or sys.stdin.buffer)
    return gzip.open(file) if file.endswith(".gz") else Path(file).open("rb")


def json_lines(
    lines: Iterable[bytes], where: str, text_field: str, order_field: str | None = None, first: int = 1
) -> tuple[Sequence[int], Batch]:
    """Read the objects of the lines that are not blank, and the numbers of these lines."""
    numbers, texts, orders, problems = array("q"), list[str](), list[Any](), dict[int, str]()
    for number, line in enumerate(lines, first):
        try:
            content = _decode(line)
            if not content or content.isspace():
                continue
            fields = _parsed(content)
            _check_names(fields, text_field)
            if not isinstance(fields[text_field], str):
                raise ValueError(_wrong(text_field, fields[text_field], "a string"))
        except ValueError as error:
            problems[number] = str(error)
            continue
        if order_field is not None:
            try:
                _check_names(fields, text_field, order_field)
                orders.append(_order(order_field, fields[order_field]))
            except ValueError as error:
                raise ValueError(f"{where}, line {number}: {error}") from None
        numbers.append(number)
        texts.append(fields[text_field])
    return numbers, Batch(texts, None if order_field is None else orders, problems)


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
    if len(data) > _LONGEST_LINE:
        raise ValueError(f"longer than {_LONGEST_LINE >> 20} MiB")
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
            except _BROKEN_PARQUET as error:
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
    except _BROKEN_PARQUET as error:
        raise ValueError(f"{path}: not a Parquet file, or damaged: {str(error).splitlines()[0]}") from error


def _parquet_columns(file: str, text_field: str, order_field: str | None) -> Iterator[tuple[Sequence[int], Batch]]:
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
                    _order(order_field, order)
                except ValueError as error:
                    raise ValueError(f"{file}, row {row}: {error}") from None
        yield numbers, Batch(rows.column(text_field), orders, problems)


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
                problems[number] = _wrong(text_field, None, "a string")
        except pa.ArrowInvalid as error:
            problems[number] = f"field {text_field!r}: {error}"
    return problems


def filtered(rows: "pa.RecordBatch", keep: "np.typing.NDArray[np.bool_]") -> "pa.RecordBatch":
    """The rows to keep."""
    try:
        return rows.filter(pa.array(keep))
    except NotImplementedError:  # as for views of strings: whole runs of rows instead
        edges = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2).tolist()
        return pa.concat_batches([rows.slice(start, stop - start) for start, stop in edges] or [rows.slice(0, 0)])


def _check_names(names: Iterable[str], text_field: str, order_field: str | None = None) -> None:
    for name, option in ((text_field, "--text-field"), (order_field, "--keep")):
        if name is not None and name not in names:
            has = ", ".join(map(repr, names))[:100] or "none"
            raise ValueError(f"no field {name!r} (it has {has}): name one with {option}")


def _order(name: str, value: Any) -> Any:
    """The value, if records can be ordered by it."""
    if type(value) is str or (type(value) in (int, float) and abs(value) < math.inf):
        return value
    raise ValueError(_wrong(name, value, "a finite number or a string"))


def _wrong(name: str, value: Any, wanted: str) -> str:
    return f"field {name!r} is {json.dumps(value, default=str)[:40]}, not {wanted}"
