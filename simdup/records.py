"""Records of files: read as often as needed, and written again in part, otherwise untouched."""

import abc
import codecs
import contextlib
import gzip
import io
import itertools
import shutil
import stat
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simdup import pages
from simdup.fields import Batch
from simdup.files import fillable, replaceable, whole, whole_folder
from simdup.jsonl import STDIN, line_blocks, name_of
from simdup.pages import Kind, Problems
from simdup.parquet import filtered, parquet_rows, parquet_schema
from simdup.warc import copy_warc

Numbers = NDArray[np.int64]
Keep = NDArray[np.bool_]
# A row group ends at whichever comes first.
_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 1 << 25
_SPOOL_BYTES = 1 << 16
_OUTPUTS: dict[Kind, str] = {
    "JSONL": "a name that ends in .jsonl or .ndjson, or these and .gz, or -",
    "Parquet": "a name that ends in .parquet",
    "WARC": "a name that ends in .warc or .wet, or these and .gz",
    "text": "the name of a new folder",
}


def open_records(paths: Sequence[str], text_field: str = "text", order_field: str | None = None) -> "Records":
    """Open inputs of one kind: JSONL files and "-" for JSONL on standard input, Parquet or WARC files, or texts.

    Parameters
    ----------
    paths
        As `simdup.pages.read_pages` takes them. Parquet files have the same columns. Texts are .txt and .html files and
        folders of them.
    text_field
        The field or column that holds the text.
    order_field
        A field or column that holds a finite number in each record, or a string in each; a Parquet column also
        dates or times, which are read as integers. WARC files and texts have none.

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
        named = " and ".join(f"{name_of(path)} is {kind}" for kind, path in kinds.items())
        raise ValueError(f"{named}: what is kept is written as it was read: give inputs of one kind")
    if list(paths).count(STDIN) > 1:
        raise ValueError("- is given twice: standard input can be read only once")
    kind = next(iter(kinds))
    if order_field is not None and kind in ("WARC", "text"):
        raise ValueError(f"{kind} has no field {order_field!r} to be ordered by: give JSONL or Parquet")
    of_kind: dict[Kind, type[Records]] = {
        "JSONL": _JsonLines,
        "Parquet": _ParquetRows,
        "WARC": _WarcRecords,
        "text": _Texts,
    }
    return of_kind[kind](paths, text_field, order_field)


class _Read(NamedTuple):
    """A batch that was read."""

    before: int
    """How many records stand before it."""
    file: int
    numbers: Sequence[int]
    names: "pa.Array | None"
    broken: set[int]
    """The numbers of records that could not be read."""


class Records(abc.ABC):
    """Inputs of one kind, which can be read again and again and written in part.

    A context: at its end, what was kept of standard input is removed. Without it, as with any open file, that is
    left to the garbage collector.

    Attributes
    ----------
    kind
        What the inputs are, and so what is written.
    problems
        What was wrong with records when all were read last. Those that could not be read are not written.
    """

    kind: Kind
    problems: Problems

    def __init__(self, paths: Sequence[str], text_field: str, order_field: str | None) -> None:
        self._paths = paths
        self._text_field = text_field
        self._order_field = order_field
        self._seen = self._look()
        self._files = [file for file, _ in self._seen]
        # Once all have been read, how many there are.
        self._size: int | None = None
        self._batches: list[_Read] = []
        self._until_exit = contextlib.ExitStack()
        if STDIN in paths:
            stdin: Any = sys.stdin.buffer
            self._coming = iter(lambda: stdin.read1(_SPOOL_BYTES), b"")  # nothing more after its first end
            self._spool = self._until_exit.enter_context(tempfile.TemporaryFile())  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._until_exit.close()

    def batches(self) -> Iterator[Batch]:
        """Read the records, anew with every call.

        Raises
        ------
        ValueError
            For what cannot be read, as `simdup.pages.read_pages` says it, for a field to order by that is missing or
            holds numbers and strings, and at the end if any input has changed since it was opened.
        """
        size, found, sorts, problems = 0, list[_Read](), set(), Problems()
        for at, file in enumerate(self._files):
            with pages.readable(file):
                stdin = self._stdin() if file == STDIN else None
                for numbers, batch in pages.read_file(file, self.kind, self._text_field, self._order_field, stdin):
                    broken = {*batch.problems}.difference(numbers) if batch.problems else set()
                    for number, problem in batch.problems.items():
                        where = pages.place(file, self.kind, number, batch.names.get(number))
                        problems.add(where, problem, left_out=number in broken)
                    names = pa.array([batch.names[number] for number in numbers]) if batch.names else None
                    sorts |= {isinstance(order, str) for order in batch.orders or ()}
                    if len(sorts) > 1:
                        where = f"{name_of(file)}: field {self._order_field!r}"
                        raise ValueError(f"{where} is a number here and a string there: make all of one sort")
                    found.append(_Read(size, at, numbers, names, broken))
                    size += len(numbers)
                    yield batch
        self._unchanged()
        problems.check(size)
        self._size, self._batches, self.problems = size, found, problems

    def __len__(self) -> int:
        """How many records there are, once they have been read to the end."""
        if self._size is None:
            raise RuntimeError("the records have not been read to the end yet")
        return self._size

    def place(self, row: int) -> str:
        """Where a record stands, once all have been read to the end: the id that `simdup.pages` gives it."""
        if not 0 <= row < len(self):
            raise IndexError(f"record {row} of {len(self):,}")
        read = self._batches[bisect_right(self._batches, row, key=itemgetter(0)) - 1]
        at = row - read.before
        return pages.place(self._files[read.file], self.kind, read.numbers[at], read.names and read.names[at].as_py())

    def check_output(self, path: str) -> None:
        """Raise ValueError or OSError if the records could not be written to such a path."""
        if self.kind != ("JSONL" if path == STDIN else (pages.kind_by_name(path) or "text") if path else None):
            raise ValueError(f"{path or 'an empty path'}: {self.kind} is written: give {_OUTPUTS[self.kind]}")
        if path != STDIN:
            (fillable if self.kind == "text" else replaceable)(path)

    def write(self, keep: Keep, path: str) -> None:
        """Write the records to keep, in order, whole or not at all, once all have been read to the end.

        JSONL: the lines as they were, without blank lines and byte-order marks; "-" is standard output. Parquet:
        rows with all columns, the metadata and compression of the first file; timestamps of 96 bits, as Spark writes
        them, get 64, in microseconds. WARC: all records that are no pages too. Texts: a folder with the files under the
        paths they had below the folders given. What is called .gz is compressed, a WARC file record by record.

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
        output = whole_folder if self.kind == "text" else whole
        with contextlib.nullcontext() if path == STDIN else output(path) as target:
            self._write(keep, target, path.endswith(".gz"))
            self._unchanged()

    def _look(self) -> list[tuple[str, Any]]:
        """The files in order, each with what tells whether it has changed."""
        found: list[tuple[str, Any]] = []
        for path in self._paths:
            with pages.readable(path):
                for file in pages.files_of(path):
                    about = None if file == STDIN else Path(file).stat()
                    if about and not stat.S_ISREG(about.st_mode):
                        raise ValueError(f"{file}: not a regular file, so it cannot be read again: make a copy of it")
                    found.append((file, about and (about.st_size, about.st_mtime_ns)))
        return found

    def _unchanged(self) -> None:
        if (now := self._look()) != self._seen:
            changed, _ = min({*now} ^ {*self._seen})
            raise ValueError(f"{changed}: changed while it was read: run again")

    def _stdin(self) -> BinaryIO:
        return io.BufferedReader(_Spooled(self._spool, self._coming), _SPOOL_BYTES)

    def _kept(self, keep: Keep) -> Iterator[tuple[str, Numbers]]:
        """Each file, and the numbers of its records to keep."""
        kept = [[np.empty(0, np.int64)] for _ in self._files]
        for read in self._batches:
            kept[read.file].append(np.asarray(read.numbers, np.int64)[keep[read.before :][: len(read.numbers)]])
        return zip(self._files, map(np.concatenate, kept), strict=True)

    @abc.abstractmethod
    def _write(self, keep: Keep, target: Path | None, compressed: bool, /) -> None:
        """Write to a file or a folder that is there, or to standard output."""


def _chosen(kept: Numbers, first: int, size: int) -> Keep:
    """Which of so many records that stand one after the other are kept."""
    chosen = np.zeros(size, np.bool_)
    start, stop = np.searchsorted(kept, (first, first + size))
    chosen[kept[start:stop] - first] = True
    return chosen


class _JsonLines(Records):
    kind = "JSONL"

    def _write(self, keep: Keep, target: Path | None, compressed: bool, /) -> None:
        ended = True
        with contextlib.ExitStack() as stack:
            out: Any = stack.enter_context(target.open("wb")) if target else sys.stdout.buffer
            if compressed:
                out = stack.enter_context(gzip.GzipFile("", "wb", fileobj=out, mtime=0))
            for file, kept in self._kept(keep):
                for first, lines, _ in line_blocks(file, self._stdin() if file == STDIN else None):
                    if first == 1 and lines:
                        lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
                    if joined := b"".join(itertools.compress(lines, _chosen(kept, first, len(lines)).tobytes())):
                        out.write(joined if ended else b"\n" + joined)
                        ended = joined.endswith(b"\n")
            out.flush()


class _ParquetRows(Records):
    kind = "Parquet"

    def __init__(self, paths: Sequence[str], text_field: str, order_field: str | None) -> None:
        super().__init__(paths, text_field, order_field)
        schemas = [parquet_schema(file, text_field, order_field) for file in self._files]
        self._schema = schemas[0]
        for file, schema in zip(self._files, schemas, strict=True):
            if not schema.equals(self._schema):
                odd = sorted({field.name for field in {*schema} ^ {*self._schema}}) or schema.names
                has = f"{file}: columns {str(odd)[:100]} are not as in {self._files[0]}"
                raise ValueError(f"{has}: give equal names and types in equal order")

    def _write(self, keep: Keep, target: Path | None, _compressed: bool, /) -> None:
        about = pq.read_metadata(self._files[0])
        codec = about.row_group(0).column(0).compression if about.num_row_groups else "SNAPPY"
        with pq.ParquetWriter(target, self._schema, compression=codec.replace("UNCOMPRESSED", "NONE")) as writer:
            group = list[pa.RecordBatch]()
            rows = size = 0
            for file, kept in self._kept(keep):
                written, lost = 0, ""
                for first, batch, problem in parquet_rows(file):
                    if batch is None:
                        lost = f"{pages.place(file, 'Parquet', first)}: {problem}, though its text can be read"
                        continue
                    chosen = _chosen(kept, first, len(batch))
                    if not chosen.any():
                        continue
                    group.append(filtered(batch, chosen))
                    written += len(group[-1])
                    rows += len(group[-1])
                    size += group[-1].nbytes
                    if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                        writer.write_table(pa.Table.from_batches(group, self._schema))
                        group, rows, size = [], 0, 0
                if written < len(kept):
                    raise ValueError(lost)
            if group:
                writer.write_table(pa.Table.from_batches(group, self._schema))


class _WarcRecords(Records):
    kind = "WARC"

    def _write(self, keep: Keep, target: Path | None, compressed: bool, /) -> None:
        assert target is not None
        left_out: list[set[int]] = [set() for _ in self._files]
        for read in self._batches:
            left_out[read.file].update(read.numbers, read.broken)
        with target.open("wb") as out:
            for (file, kept), others in zip(self._kept(keep), left_out, strict=True):
                copy_warc(file, others.difference(kept.tolist()), out, compressed)


class _Texts(Records):
    kind = "text"

    def __init__(self, paths: Sequence[str], text_field: str, order_field: str | None) -> None:
        super().__init__(paths, text_field, order_field)
        self._names: dict[str, str] = {}
        for path in map(Path, paths):
            folder = path if path.is_dir() else path.parent
            for file in pages.files_of(str(path)):
                name = str(Path(file).relative_to(folder))
                if name in self._names:
                    raise ValueError(f"{self._names[name]} and {file} would both be kept as {name}: rename one")
                self._names[name] = file

    def check_output(self, path: str) -> None:
        super().check_output(path)
        for given in self._paths:
            if Path(given).resolve() in fillable(path).parents:
                raise ValueError(f"{path}: lies in {given}, which is read: give a folder elsewhere")

    def _write(self, keep: Keep, target: Path | None, _compressed: bool, /) -> None:
        assert target is not None
        for name, (file, kept) in zip(self._names, self._kept(keep), strict=True):
            if not len(kept):
                continue
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            # "x", for a file system that takes two names for one.
            with Path(file).open("rb") as source, (target / name).open("xb") as copy:
                shutil.copyfileobj(source, copy)


class _Spooled(io.RawIOBase):
    """Standard input from its start: what is kept of it in a file, and then what still comes, which is kept too."""

    def __init__(self, spool: Any, coming: Iterator[bytes]) -> None:
        self._spool = spool
        self._coming = coming
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = next(self._coming, b"") if self._spool.seek(0, io.SEEK_END) == self._at else b""
        try:
            self._spool.write(block)
            self._spool.seek(self._at)
        except OSError as error:
            folder = tempfile.gettempdir()
            raise OSError(error.errno, f"{error.strerror} in {folder}, where it is kept: set TMPDIR") from error
        size: int = self._spool.readinto(buffer)
        self._at += size
        return size
