"""Records of files: read as often as needed, and written again in part, otherwise untouched."""

import abc
import codecs
import contextlib
import io
import itertools
import json
import math
import os
import shutil
import stat
import sys
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simdup import pages
from simdup.batches import is_text
from simdup.files import fillable, replaceable, whole, whole_folder
from simdup.pages import STDIN, Kind

Keep = NDArray[np.bool_]
# A row group ends at whichever comes first.
_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 1 << 25
_JOINED_LINES = 64
# So many bytes of lines are read at a time.
_BLOCK_BYTES = 1 << 21


class Batch(NamedTuple):
    """Some records that stand one after the other."""

    texts: "list[str] | pa.Array"
    orders: list[Any] | None
    """The values that they are ordered by, if they are."""

    def as_list(self) -> list[str]:
        """The texts as strings."""
        return self.texts.to_pylist() if isinstance(self.texts, pa.Array) else self.texts


class Record(NamedTuple):
    """The text of a record, and the value that it is ordered by, if it is."""

    text: str
    order: Any


def open_records(paths: Sequence[str], text_field: str = "text", order_field: str | None = None) -> "Records":
    """Open inputs of one kind: JSONL files and "-" for JSONL on standard input, Parquet files, or texts.

    Parameters
    ----------
    paths
        As `simdup.pages.read_pages` takes them. Parquet files have the same columns. Texts are .txt files and
        folders of them.
    text_field
        The field or column that holds the text.
    order_field
        A field or column that holds a finite number in each record, or a string in each; a Parquet column also
        dates or times, which are read as integers. Texts have none.

    Raises
    ------
    ValueError
        For inputs that are not there, of two kinds, or that cannot be read again and again.
    """
    kinds: dict[Kind, str] = {}
    for path in paths:
        with pages.readable(path):
            kinds.setdefault(pages.kind_of(path), path)
    if not kinds:
        raise ValueError("no input: give files, folders or - for standard input")
    if len(kinds) > 1:
        named = " and ".join(f"{pages.name_of(path)} is {kind}" for kind, path in kinds.items())
        raise ValueError(f"{named}: what is kept is written as it was read: give inputs of one kind")
    return _KINDS[next(iter(kinds))](paths, text_field, order_field)


class _Input(NamedTuple):
    """A file, the path given that it belongs to, and what tells whether it has changed."""

    file: str
    given: str
    size: int = 0
    changed: int = 0


class Records(abc.ABC):
    """Inputs of one kind, which can be read again and again and written in part.

    A context: at its end, what was kept of standard input is removed. Without it, as with any open file, that is
    left to the garbage collector.

    Attributes
    ----------
    kind
        What the inputs are, and so what is written.
    """

    kind: Kind

    def __init__(self, paths: Sequence[str], text_field: str, order_field: str | None) -> None:
        self._paths = paths
        self._text_field = text_field
        self._order_field = order_field
        self._until_exit = contextlib.ExitStack()
        self._seen = self._look()
        self._files = [found.file for found in self._seen]
        # Before the records of each file there are so many, and so many in all.
        self._before: array[int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._until_exit.close()

    def read(self) -> Iterator[Record]:
        """Read the records one by one, as `batches` does."""
        for batch in self.batches():
            yield from map(Record, batch.as_list(), batch.orders or itertools.repeat(None))

    def batches(self) -> Iterator[Batch]:
        """Read the records, anew with every call.

        Raises
        ------
        ValueError
            For what cannot be read, as `simdup.pages.read_pages` says it, and at the end if any input has changed
            since it was opened.
        """
        before = array("q", (0,))
        for file in self._files:
            with pages.readable(file):
                before.append(before[-1])
                for batch in self._read(file):
                    before[-1] += len(batch.texts)
                    yield batch
        self._unchanged()
        self._before = before

    def __len__(self) -> int:
        """How many records there are, once they have been read to the end."""
        return self._counted()[-1]

    def place(self, row: int) -> str:
        """Where a record stands, once all have been read to the end: the id that `simdup.pages` gives it."""
        if not 0 <= row < len(self):
            raise IndexError(f"record {row} of {len(self):,}")
        file = bisect_right(self._counted(), row) - 1
        return self._place(self._files[file], row - self._counted()[file])

    @abc.abstractmethod
    def check_output(self, path: str) -> None:
        """Raise ValueError or OSError if the records could not be written to such a path."""

    def write(self, keep: Keep, path: str) -> None:
        """Write the records to keep, in order, whole or not at all, once all have been read to the end.

        JSONL: the lines as they were, without blank lines and byte-order marks; "-" is standard output. Parquet:
        rows with all columns, the metadata and compression of the first file; timestamps of 96 bits, as Spark writes
        them, get 64, in microseconds. Texts: a folder with the files under the paths they had below the folders given.

        Parameters
        ----------
        keep
            bool, shape (len(self),).
        path
            What `check_output` takes.

        Raises
        ------
        ValueError, OSError
            As `check_output` says, or if any input has changed since it was opened.
        """
        if keep.dtype != np.bool_ or keep.shape != (len(self),):
            raise ValueError(f"keep is {keep.dtype} of shape {keep.shape}, not bool of shape ({len(self)},)")
        self.check_output(path)
        self._unchanged()
        self._write(keep, path)

    def _counted(self) -> "array[int]":
        if self._before is None:
            raise RuntimeError("the records have not been read to the end yet")
        return self._before

    def _by_file(self, keep: Keep) -> Iterator[tuple[str, Keep]]:
        for file, (start, stop) in zip(self._files, itertools.pairwise(self._counted()), strict=True):
            yield file, keep[start:stop]

    def _look(self) -> list[_Input]:
        found = []
        for path in self._paths:
            with pages.readable(path):
                for file in pages.files_of(path):
                    if file == STDIN:
                        found.append(_Input(file, path))
                        continue
                    about = Path(file).stat()
                    if not stat.S_ISREG(about.st_mode):
                        raise ValueError(f"{file}: not a regular file, so it cannot be read again: make a copy of it")
                    found.append(_Input(file, path, about.st_size, about.st_mtime_ns))
        return found

    def _unchanged(self) -> None:
        if (now := self._look()) != self._seen:
            changed = min(found.file for found in {*now} ^ {*self._seen})
            raise ValueError(f"{changed}: changed while it was read: run again")

    @abc.abstractmethod
    def _read(self, file: str) -> Iterator[Batch]: ...

    @abc.abstractmethod
    def _place(self, file: str, row: int) -> str: ...

    @abc.abstractmethod
    def _write(self, keep: Keep, path: str) -> None: ...


class _JsonLines(Records):
    kind = "JSONL"

    def __init__(self, paths: Sequence[str], text_field: str, order_field: str | None) -> None:
        if list(paths).count(STDIN) > 1:
            raise ValueError("- is given twice: standard input can be read only once")
        super().__init__(paths, text_field, order_field)
        self._sort = ""
        if STDIN in paths:
            spool = tempfile.TemporaryFile()  # noqa: SIM115, closed at the end of the context
            self._spool = _Spool(sys.stdin.buffer, self._until_exit.enter_context(spool))
        # Of each file: from which row on how many blank lines stand before.
        self._blank: dict[str, tuple[array[int], array[int]]] = {}

    def check_output(self, path: str) -> None:
        if path != STDIN:
            _check_ending(path, self.kind)
            replaceable(path)

    def _open(self, file: str) -> BinaryIO:
        return self._spool.open() if file == STDIN else Path(file).open("rb")

    def _read(self, file: str) -> Iterator[Batch]:
        rows, blank = array("q"), array("q")
        number, row = 1, 0
        with self._open(file) as lines:
            while some := lines.readlines(_BLOCK_BYTES):
                column = pages.json_column(some, self._text_field) if self._order_field is None else None
                if column is None:
                    numbers, batch = self._one_by_one(file, some, number)
                else:
                    numbers, batch = np.array([number]), Batch(column, None)
                # Rows from which on another number of blank lines stands before.
                before = numbers - np.arange(row, row + len(numbers)) - 1
                changes = np.flatnonzero(np.diff(before, prepend=blank[-1] if blank else -1))
                rows.extend((row + changes).tolist())
                blank.extend(before[changes].tolist())
                number += len(some)
                row += len(batch.texts)
                yield batch
        self._blank[file] = rows, blank

    def _one_by_one(self, file: str, lines: list[bytes], first: int) -> tuple[NDArray[np.int64], Batch]:
        """The records of lines, the first of which has this number, and the numbers of their lines."""
        where = pages.name_of(file)
        numbers, texts, orders = array("q"), list[str](), list[Any]()
        for number, fields in pages.json_lines(lines, where, self._text_field, first):
            numbers.append(number)
            texts.append(fields[self._text_field])
            if self._order_field is not None:
                orders.append(self._order(fields, f"{where}, line {number}"))
        return np.array(numbers, np.int64), Batch(texts, None if self._order_field is None else orders)

    def _order(self, fields: dict[str, Any], place: str) -> Any:
        name = self._order_field
        if name not in fields:
            raise ValueError(
                f"{place}: no field {name!r} ({pages.has(fields)}): each record needs one to be ordered by"
            )
        value = fields[name]
        if isinstance(value, str):
            sort = "a string"
        elif isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value):
            sort = "a number"
        else:
            raise ValueError(f"{place}: field {name!r} is {json.dumps(value)[:40]}, not a finite number or a string")
        self._sort = self._sort or sort
        if sort != self._sort:
            raise ValueError(f"{place}: field {name!r} is {sort}, but {self._sort} before: make all of one sort")
        return value

    def _place(self, file: str, row: int) -> str:
        rows, blank = self._blank[file]
        return f"{pages.name_of(file)}, line {row + 1 + blank[bisect_right(rows, row) - 1]}"

    def _write(self, keep: Keep, path: str) -> None:
        ended = True
        with _output(path) as out:
            for file, kept in self._by_file(keep):
                if not kept.any():
                    continue
                rows, blank = self._blank[file]
                before = np.repeat(blank, np.diff(rows, append=len(kept)))
                numbers = np.flatnonzero(kept) + before[kept]
                wanted = np.zeros(numbers[-1] + 1, bool)
                wanted[numbers] = True
                with self._open(file) as lines:
                    first = lines.readline().removeprefix(codecs.BOM_UTF8)
                    some = itertools.compress(itertools.chain((first,), lines), wanted.tobytes())
                    while joined := list(itertools.islice(some, _JOINED_LINES)):
                        out.write(b"".join(joined) if ended else b"\n" + b"".join(joined))
                        ended = joined[-1].endswith(b"\n")
            self._unchanged()


class _ParquetRows(Records):
    kind = "Parquet"

    def __init__(self, paths: Sequence[str], text_field: str, order_field: str | None) -> None:
        super().__init__(paths, text_field, order_field)
        self._schema, self._compression = self._head(self._files[0])
        for file in self._files[1:]:
            schema, _ = self._head(file)
            if not schema.equals(self._schema):
                pairs = itertools.zip_longest(
                    map(_named, schema), map(_named, self._schema), fillvalue="no more columns"
                )
                here, there = next((pair for pair in pairs if pair[0] != pair[1]), ("columns", "others"))
                raise ValueError(f"{file}: has {here} where {self._files[0]} has {there}: give equal columns")

    def _head(self, file: str) -> tuple[Any, str]:
        """The schema, and the compression of the first column."""
        with pages.readable(file), pages.open_parquet(file) as parquet:
            schema, about = parquet.schema_arrow, parquet.metadata
        pages.text_column(schema, file, self._text_field)
        name, types = self._order_field, pa.types
        if name is not None:
            if name not in schema.names:
                raise ValueError(f"{file}: no column {name!r} ({pages.has(schema.names)}): name another to order by")
            kind = schema.field(schema.names.index(name)).type
            sorts = is_text, types.is_integer, types.is_floating, types.is_date, types.is_timestamp
            if not any(is_sort(kind) for is_sort in sorts):
                raise ValueError(f"{file}: column {name!r} is {kind}, not numbers, strings, dates or times")
        compression = about.row_group(0).column(0).compression if about.num_row_groups else "SNAPPY"
        return schema, "NONE" if compression == "UNCOMPRESSED" else compression

    def check_output(self, path: str) -> None:
        _check_ending(path, self.kind)
        replaceable(path)

    def _read(self, file: str) -> Iterator[Batch]:
        name, before = self._order_field, 0
        columns = [self._text_field] if name in (None, self._text_field) else [self._text_field, name]
        for batch in pages.parquet_batches(file, columns):
            texts = list(pages.parquet_texts(batch, file, before, self._text_field))
            yield Batch(texts, None if name is None else list(_orders(batch, file, before, name)))
            before += len(batch)

    def _place(self, file: str, row: int) -> str:
        return f"{file}, row {row + 1}"

    def _write(self, keep: Keep, path: str) -> None:
        with whole(path) as temporary:
            with pq.ParquetWriter(temporary, self._schema, compression=self._compression) as writer:
                for table in self._groups(keep):
                    writer.write_table(table)
            self._unchanged()

    def _groups(self, keep: Keep) -> Iterator["pa.Table"]:
        """The rows to keep, in tables that make a row group each."""
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        for file, kept in self._by_file(keep):
            before = 0
            for batch in pages.parquet_batches(file):
                some = _filtered(batch, kept[before : before + len(batch)])
                before += len(batch)
                batches += some
                rows += sum(map(len, some))
                size += pa.Table.from_batches(some, self._schema).get_total_buffer_size()
                if rows < _GROUP_ROWS and size < _GROUP_BYTES:
                    continue
                table = pa.Table.from_batches(batches, self._schema)
                if rows < _GROUP_ROWS:  # each batch has dictionaries of its own, of which few rows need but one
                    with contextlib.suppress(pa.ArrowException):  # it may be too large for its indices
                        table = table.combine_chunks()
                batches, size = table.to_batches(), table.get_total_buffer_size()
                if rows >= _GROUP_ROWS or size >= _GROUP_BYTES // 2:
                    yield table
                    batches, rows, size = [], 0, 0
        if batches:
            yield pa.Table.from_batches(batches, self._schema)


def _orders(batch: "pa.RecordBatch", file: str, before: int, name: str) -> Iterator[Any]:
    column = batch.column(batch.schema.names.index(name))
    if is_text(column.type):
        yield from pages.parquet_texts(batch, file, before, name)
        return
    if pa.types.is_temporal(column.type):  # Python's own have no nanoseconds
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    for row, value in enumerate(column.to_pylist(), before + 1):
        if value is None or not _is_finite(value):
            shown = "null" if value is None else value
            raise ValueError(f"{file}, row {row}: column {name!r} is {shown}, not a finite number")
        yield value


def _filtered(batch: "pa.RecordBatch", keep: Keep) -> list["pa.RecordBatch"]:
    if not keep.any():
        return []
    try:
        return [batch.filter(pa.array(keep))]
    except pa.ArrowNotImplementedError:  # as for views of strings: whole runs of rows instead
        edges = np.flatnonzero(np.diff(keep, prepend=False, append=False))
        return [batch.slice(start, stop - start) for start, stop in edges.reshape(-1, 2).tolist()]


class _Texts(Records):
    kind = "text"

    def __init__(self, paths: Sequence[str], text_field: str, order_field: str | None) -> None:
        if order_field is not None:
            raise ValueError(f"texts have no field {order_field!r} to be ordered by: give JSONL or Parquet")
        super().__init__(paths, text_field, order_field)
        self._names: dict[str, str] = {}
        for found in self._seen:
            inside = found.file != str(Path(found.given))
            name = str(Path(found.file).relative_to(found.given)) if inside else Path(found.file).name
            if name in self._names:
                raise ValueError(f"{self._names[name]} and {found.file} would both be kept as {name}: rename one")
            self._names[name] = found.file
        for name, file in self._names.items():
            for folder in Path(name).parents:
                if other := self._names.get(str(folder)):
                    raise ValueError(f"{other} would be kept as {folder}, which {file} needs as a folder: rename one")

    def check_output(self, path: str) -> None:
        if not path or path == STDIN or Path(path).suffix in pages.ENDINGS:
            raise ValueError(f"{path or 'an empty path'}: texts are written to a folder: give the name of a new one")
        target = fillable(path)
        for given in self._paths:
            if Path(os.path.realpath(given)) in target.parents:
                raise ValueError(f"{path}: lies in {given}, which is read: give a folder elsewhere")

    def _read(self, file: str) -> Iterator[Batch]:
        yield Batch([pages.read_text(file)], None)

    def _place(self, file: str, _row: int) -> str:
        return file

    def _write(self, keep: Keep, path: str) -> None:
        with whole_folder(path) as folder:
            for name, file in itertools.compress(self._names.items(), keep.tolist()):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                # "x", for a file system that takes two names for one.
                with Path(file).open("rb") as source, (folder / name).open("xb") as copy:
                    shutil.copyfileobj(source, copy)
            self._unchanged()


_KINDS: dict[Kind, Callable[[Sequence[str], str, str | None], Records]] = {
    "JSONL": _JsonLines,
    "Parquet": _ParquetRows,
    "text": _Texts,
}


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)  # an integer may be too large to ask


def _named(field: "pa.Field") -> str:
    return f"column {field.name!r}, {field.type}{'' if field.nullable else ' not null'}"


def _check_ending(path: str, kind: Kind) -> None:
    endings = [ending for ending, of in pages.ENDINGS.items() if of == kind]
    if Path(path).suffix not in endings:
        raise ValueError(
            f"{path or 'an empty path'}: {kind} is written: give a name that ends in {' or '.join(endings)}"
        )


@contextlib.contextmanager
def _output(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with whole(path) as temporary, temporary.open("wb") as file:
            yield file


class _Spool:
    """Standard input, kept in a temporary file without a name as far as it was read."""

    def __init__(self, source: Any, file: Any) -> None:
        self._source = source
        self._file = file
        self._state = "open"

    def open(self) -> BinaryIO:
        """Read from the start, what is kept first and then what still comes. Several may read in turns."""
        return io.BufferedReader(_FromStart(self), 1 << 16)

    def read_into(self, buffer: memoryview, at: int) -> int:
        self._file.seek(at)
        size: int = self._file.readinto(buffer)
        if size or self._state == "ended":
            return size
        if self._state == "between":  # what was read then is lost
            raise ValueError("standard input: interrupted while it was read: run again")
        self._state = "between"
        block: bytes = self._source.read1(len(buffer))
        try:
            self._file.write(block)
            self._file.flush()
        except OSError as error:
            folder = tempfile.gettempdir()
            raise OSError(error.errno, f"{error.strerror} in {folder}, where it is kept: set TMPDIR") from error
        self._state = "open" if block else "ended"
        buffer[: len(block)] = block
        return len(block)


class _FromStart(io.RawIOBase):
    def __init__(self, spool: _Spool) -> None:
        self._spool = spool
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self._spool.read_into(memoryview(buffer), self._at)
        self._at += size
        return size
