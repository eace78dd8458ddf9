"""Records: what is read, again and again, and what is written of it, byte for byte or value for value."""

import contextlib
import datetime
import decimal
import gzip
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import compress, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup.pages import Page, read_pages
from simdup.records import Keep, Records, open_records

BOM = b"\xef\xbb\xbf"
MASKS = st.integers(0, 2**64 - 1)


def mask(bits: int, size: int) -> Keep:
    return np.array([bits >> at % 64 & 1 for at in range(size)], bool)


def written(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return os.fspath(path)


def parquet(path: Path, table: Any, **options: Any) -> str:
    pq.write_table(table, path, **options)
    return os.fspath(path)


def line(text: str, **fields: Any) -> bytes:
    return json.dumps({"text": text} | fields).encode()


def texts_of(records: Records) -> Iterator[str]:
    return (text for batch in records.batches() for text in batch.as_list())


def read(records: Records) -> list[str]:
    return list(texts_of(records))


def orders(records: Records) -> list[Any]:
    return [order for batch in records.batches() for order in batch.orders or ()]


def kept(paths: Sequence[str], keep: Callable[[int], Keep], output: Path) -> None:
    with open_records(paths) as records:
        read(records)
        records.write(keep(len(records)), os.fspath(output))


def everything(size: int) -> Keep:
    return np.ones(size, bool)


def nothing(size: int) -> Keep:
    return np.zeros(size, bool)


def fails(action: Callable[[], object], *parts: str, error: type[Exception] = ValueError) -> None:
    """Raises in one line that holds the parts, in this order."""
    with pytest.raises(error) as raised:
        action()
    message = str(raised.value)
    assert re.search(".*".join(map(re.escape, parts)), message), message
    assert "\n" not in message


def fails_to_open(paths: Sequence[str | Path], *parts: str, **options: Any) -> None:
    fails(lambda: open_records([os.fspath(path) for path in paths], **options), *parts)


def fails_to_read(paths: Sequence[str | Path], *parts: str, **options: Any) -> None:
    def attempt() -> None:
        with open_records([os.fspath(path) for path in paths], **options) as records:
            read(records)

    fails(attempt, *parts)


@contextlib.contextmanager
def piped(data: bytes) -> Iterator[None]:
    """Standard input is a real pipe that brings the data, from a process of its own."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        with subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
            with mock.patch.object(sys, "stdin", SimpleNamespace(buffer=cat.stdout)):
                yield
            cat.stdout.read()  # type: ignore[union-attr]


@contextlib.contextmanager
def stdout() -> Iterator[io.BytesIO]:
    out = io.BytesIO()
    with mock.patch.object(sys, "stdout", SimpleNamespace(buffer=out)):
        yield out


# A file of JSONL: lines and blank ones, each with an end, but perhaps the last; perhaps a mark before them.
ENDS = st.sampled_from([b"\n", b"\r\n", b" \n"])
BLANK = st.sampled_from([b"", b" ", b"\t\r", "\u00a0\u2003".encode()])
TEXT_LINES = st.text(max_size=8).map(lambda text: line(text, n=len(text)))
LINES = st.lists(st.tuples(st.one_of(TEXT_LINES, TEXT_LINES, BLANK), ENDS), max_size=12)
JSONL_FILES = st.tuples(LINES, st.booleans(), st.booleans())


def jsonl(file: tuple[list[tuple[bytes, bytes]], bool, bool]) -> tuple[bytes, list[bytes]]:
    """Return the file, and the lines in it that are records."""
    parts, marked, unended = file
    lines = [content + end for content, end in parts]
    if lines and unended:
        lines[-1] = parts[-1][0]
    return BOM * marked + b"".join(lines), [one for one in lines if one.decode().strip()]


class TestJsonLines:
    @given(files=st.lists(JSONL_FILES, min_size=1, max_size=3), bits=MASKS, piped_at=st.sampled_from([None, 0, 1]))
    def test_the_kept_lines_are_those_bytes(
        self, tmp_path_factory: pytest.TempPathFactory, files: list[Any], bits: int, piped_at: int | None
    ) -> None:
        folder = tmp_path_factory.mktemp("jsonl")
        made = [jsonl(file) for file in files]
        paths = [written(folder / f"{number}.jsonl", data) for number, (data, _) in enumerate(made)]
        lines = [one for _, some in made for one in some]
        data = b""
        if piped_at is not None and piped_at < len(paths):
            paths[piped_at], data = "-", made[piped_at][0]
        with (
            mock.patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data))),
            open_records(paths) as records,
        ):
            assert read(records) == [json.loads(one)["text"] for one in lines]
            keep = mask(bits, len(lines))
            records.write(keep, os.fspath(folder / "kept.jsonl"))
            with stdout() as out:
                records.write(keep, "-")
        expected = list(compress(lines, keep))
        expected[:-1] = [one if one.endswith(b"\n") else one + b"\n" for one in expected[:-1]]
        assert (folder / "kept.jsonl").read_bytes() == b"".join(expected)
        assert out.getvalue() == b"".join(expected)

    @given(file=JSONL_FILES)
    def test_places_are_the_ids_of_pages(self, tmp_path_factory: pytest.TempPathFactory, file: Any) -> None:
        folder = tmp_path_factory.mktemp("jsonl")
        paths = [
            written(folder / f"{n}.ndjson", data)
            for n, data in enumerate([b"\n", jsonl(file)[0], b"", b'{"text": ""}'])
        ]
        with open_records(paths) as records:
            texts = read(records)
            assert [Page(records.place(row), text) for row, text in enumerate(texts)] == list(read_pages(paths))

    @pytest.mark.parametrize(("keep", "expected"), [(everything, line("a") + b"\n" + line("b")), (nothing, b"")])
    def test_all_and_nothing(self, tmp_path: Path, keep: Callable[[int], Keep], expected: bytes) -> None:
        path = written(tmp_path / "a.jsonl", line("a") + b"\n" + line("b"))
        kept([path], keep, tmp_path / "kept.ndjson")
        assert (tmp_path / "kept.ndjson").read_bytes() == expected

    def test_many_lines(self, tmp_path: Path) -> None:
        """More than are joined at a time, and a last line that is followed by another file, though not by its lines."""
        lines = [line(str(number)) + b"\n" for number in range(1000)]
        a = written(tmp_path / "a.jsonl", b"".join(lines).removesuffix(b"\n"))
        b = written(tmp_path / "b.jsonl", b"".join(lines))
        kept([a, b], lambda size: np.arange(size) < 1000, tmp_path / "kept.jsonl")
        assert (tmp_path / "kept.jsonl").read_bytes() == Path(a).read_bytes()
        kept([a, b], lambda size: np.arange(size) % 1000 == 999, tmp_path / "kept.jsonl")
        assert (tmp_path / "kept.jsonl").read_bytes() == lines[-1] * 2

    def test_what_is_broken_is_not_written(self, tmp_path: Path) -> None:
        a = written(tmp_path / "a.jsonl", BOM + b"{\n" + line("a") + b"\n\n{}\n" + line("b") + b"\n[]")
        b = written(tmp_path / "b.jsonl.gz", gzip.compress(line("c") + b"\n[]\n" + line("d") + b"\n" * 99)[:-1])
        with open_records([a, b]) as records:
            assert read(records) == read(records) == list("abcd")
            assert [where for where, _ in records.problems.examples] == [
                *(f"{a}, line {number}" for number in (1, 4, 6)),
                *(f"{b}, line {number}" for number in (2, 102)),
            ]
            assert [records.place(row) for row in (1, 3)] == [f"{a}, line 5", f"{b}, line 3"]
            records.write(np.array([True, False, True, True]), f"{tmp_path}/kept.jsonl")
            records.write(np.array([True, False, True, True]), f"{tmp_path}/kept.jsonl.gz")
        expected = b"".join(line(text) + b"\n" for text in "acd")
        assert (tmp_path / "kept.jsonl").read_bytes() == expected
        assert gzip.decompress((tmp_path / "kept.jsonl.gz").read_bytes()) == expected

    def test_many_problems_are_counted(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", b"{\n" * 999 + line("a"))
        with open_records([path]) as records:
            read(records)
            read(records)
            assert (records.problems.left_out, len(records.problems.examples)) == (999, 20)

    def test_one_file_twice(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", b"\n" + line("a"))
        kept([path, path], everything, tmp_path / "kept.jsonl")
        assert (tmp_path / "kept.jsonl").read_bytes() == line("a") + b"\n" + line("a")

    def test_places_of_a_million_records(self, tmp_path: Path) -> None:
        """Nothing for each record, or 8 bytes if blank lines are between, and what grows besides: twice that."""
        size = 1_000_000
        path = written(tmp_path / "a.jsonl", (line("") + b"\n") * size)
        gaps = written(tmp_path / "gaps.jsonl", (line("") + b"\n\n") * (size // 10))
        for paths, bound in (([path], 100_000), ([gaps], 100_000 + 2 * 8 * size // 10)):
            with open_records(paths) as records:
                for _ in records.batches():
                    break
                tracemalloc.start()
                try:
                    for _ in records.batches():
                        pass
                    taken, _ = tracemalloc.get_traced_memory()
                finally:
                    tracemalloc.stop()
                assert taken < bound
        assert records.place(size // 10 - 1) == f"{gaps}, line {2 * (size // 10) - 1}"

    def test_output_that_cannot_be(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", line("a"))
        (tmp_path / "folder.jsonl").mkdir()
        with open_records([path]) as records:
            for name in ("kept.parquet", "kept", "kept.txt", "kept.json", ""):
                fails(lambda name=name: records.check_output(name), name, ".jsonl or .ndjson")  # type: ignore[misc]
            fails(lambda: records.check_output(f"{tmp_path}/none/kept.jsonl"), "no such folder", error=OSError)
            fails(lambda: records.check_output(f"{tmp_path}/folder.jsonl"), "a directory", error=OSError)
            records.check_output("-")
            records.check_output(path)

    @pytest.mark.parametrize(
        ("second", "parts"),
        [
            (line("b"), ["no field 'date'", "'text'"]),
            (line("b", date=None), ["field 'date' is null, not a finite number or a string"]),
            (line("b", date=True), ["field 'date' is true"]),
            (line("b", date=[1]), ["field 'date' is [1]"]),
            (line("b", date=math.nan), ["field 'date' is NaN"]),
            (b'{"text": "b", "date": 1e999}', ["field 'date' is Infinity"]),
        ],
        ids=lambda value: repr(value)[:40],
    )
    def test_order_errors_name_the_place(self, tmp_path: Path, second: bytes, parts: list[str]) -> None:
        path = written(tmp_path / "a.jsonl", line("a", date=1))
        other = written(tmp_path / "b.jsonl", b"\n" + second)
        fails_to_read([path, other], f"{other}, line 2: ", *parts, order_field="date")

    def test_orders_of_two_sorts(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", line("a", date=1))
        other = written(tmp_path / "b.jsonl", line("b", date="2024"))
        fails_to_read([path, other], f"{other}: field 'date' is a number here and a string there", order_field="date")

    @pytest.mark.parametrize("values", [[3, 1.5, -(10**400), 0], ["b", "", "\ud800"]])
    def test_orders(self, tmp_path: Path, values: list[Any]) -> None:
        path = written(tmp_path / "a.jsonl", b"\n".join(line("a", date=value) for value in values))
        with open_records([path], order_field="date") as records:
            assert orders(records) == values

    def test_the_text_may_be_the_order(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", line("a"))
        assert orders(open_records([path], "text", "text")) == ["a"]
        path = parquet(tmp_path / "a.parquet", pa.table({"text": ["b"]}))
        assert orders(open_records([path], "text", "text")) == ["b"]


class TestStandardInput:
    DATA = b"".join(line(f"page {number} {'x' * 50}", n=number) + b"\n" for number in range(5000))

    def test_passes_over_a_pipe(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Half of a pass, then whole ones, one that lags behind another, and the lines that were kept."""
        monkeypatch.setattr("simdup.jsonl._BLOCK_BYTES", 9999)
        with piped(self.DATA), open_records(["-"]) as records:
            first = texts_of(records)
            texts = [next(first) for _ in range(700)]
            behind = texts_of(records)
            assert next(behind) == texts[0]
            del first
            again = read(records)
            assert again[:700] == texts
            assert list(behind) == again[1:]
            assert read(records) == again == [json.loads(one)["text"] for one in self.DATA.splitlines()]
            assert records.place(4999) == "standard input, line 5000"
            records.write(np.arange(5000) % 3 == 0, os.fspath(tmp_path / "kept.jsonl"))
        assert (tmp_path / "kept.jsonl").read_bytes() == b"".join(self.DATA.splitlines(keepends=True)[::3])

    def test_streams(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The records of a block of lines are there before the input has ended."""
        monkeypatch.setattr("simdup.jsonl._BLOCK_BYTES", 1)
        out, into = os.pipe()
        with open(out, "rb") as pipe, open(into, "wb", buffering=0) as feed:  # noqa: PTH123, they are numbers
            feed.write(line("a") + b"\n")
            with mock.patch.object(sys, "stdin", SimpleNamespace(buffer=pipe)), open_records(["-"]) as records:
                reading = texts_of(records)
                assert next(reading) == "a"
                feed.write(line("b") + b"\n")
                feed.close()
                assert list(reading) == ["b"]

    def test_what_comes_after_its_end_is_not_read(self, tmp_path: Path) -> None:
        """As when it is a log that still grows: every pass has the same records."""
        path = written(tmp_path / "a.log", line("a") + b"\n")
        with (
            Path(path).open("rb") as log,
            mock.patch.object(sys, "stdin", SimpleNamespace(buffer=log)),
            open_records(["-"]) as records,
        ):
            assert read(records) == ["a"]
            with Path(path).open("ab") as more:
                more.write(line("b"))
            assert read(records) == ["a"]
            records.write(everything(1), os.fspath(tmp_path / "kept.jsonl"))
        assert (tmp_path / "kept.jsonl").read_bytes() == line("a") + b"\n"

    def test_with_files(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", line("a"))
        with piped(line("b")), open_records([path, "-"]) as records, stdout() as out:
            assert read(records) == ["a", "b"]
            records.write(everything(2), "-")
        assert out.getvalue() == line("a") + b"\n" + line("b")

    def test_errors(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fails_to_open(["-", "-"], "- is given twice")
        fails_to_open(["-", written(tmp_path / "a.txt", b"")], "standard input is JSONL", "a.txt is text")
        with piped(b"\n{"):
            fails_to_read(["-"], "standard input, line 2: broken JSON")
        monkeypatch.setattr(sys, "stdin", None)
        fails_to_open(["-"], "standard input is closed")

    def test_no_space_for_it(self) -> None:
        """Under a limit of the system, in a process of its own."""
        code = (
            "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999))\n"
            "from simdup.records import open_records\n"
            "with open_records(['-']) as records:\n    list(records.batches())"
        )
        found = subprocess.run([sys.executable, "-c", code], input=self.DATA, capture_output=True, check=False)
        assert re.search(rb"ValueError: standard input: .* in .*, where it is kept: set TMPDIR", found.stderr)

    def test_nothing_is_left(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
        with piped(self.DATA), open_records(["-"]) as records:
            read(records)
            assert not list(tmp_path.iterdir())  # not even meanwhile


TABLE = {
    "text": pa.array(["a", "b", "", "zwei Seiten\n", "😀"] * 20),
    "large": pa.array(["a", None, "", "x" * 99, "😀"] * 20, pa.large_string()),
    "choice": pa.array(["a", None, "b", "a", "c"] * 20).dictionary_encode(),
    "nested": pa.array([[{"a": 1, "b": ["x"]}], None, [], [None], [{"a": None, "b": None}]] * 20),
    "map": pa.array([[("a", 1)], None, [], [("b", None)], [("a", 2), ("c", 3)]] * 20, pa.map_(pa.string(), pa.int64())),
    "time": pa.array([1, None, 2**62, -1, 0] * 20, pa.timestamp("ns", "Europe/Berlin")),
    "day": pa.array([datetime.date(2024, 2, day) for day in (1, 2, 3, 4, 29)] * 20),
    "price": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-99999.99"), decimal.Decimal(0), None] * 20),
    "number": pa.array([1.5, math.inf, None, -0.0, 1e-300] * 20),
    "big": pa.array([2**64 - 1, 0, None, 2**63, 1] * 20, pa.uint64()),
    "bytes": pa.array([b"\xff\x00", b"", None, b"x", b"y"] * 20),
    "view": pa.array(["a", None, "", "more than twelve bytes", "😀"] * 20, pa.string_view()),
    "none": pa.nulls(100),
}


def same(found: Any, expected: Any) -> None:
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)


class TestParquet:
    @given(
        columns=st.sets(st.sampled_from(sorted({*TABLE} - {"text"}))),
        bits=MASKS,
        cuts=st.lists(st.integers(0, 100), max_size=2),
        rows=st.integers(1, 100),
        codec=st.sampled_from(["NONE", "SNAPPY", "ZSTD", "GZIP", "LZ4", "BROTLI"]),
    )
    def test_the_kept_rows_are_those_values(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        columns: set[str],
        bits: int,
        cuts: list[int],
        rows: int,
        codec: str,
    ) -> None:
        folder = tmp_path_factory.mktemp("parquet")
        names = [name for name in TABLE if name in {*columns, "text"}]
        fields = [pa.field(name, TABLE[name].type, metadata={"about": name}) for name in names]
        table = pa.table(
            [TABLE[name] for name in names], schema=pa.schema(fields, {"made": "here", "pandas": "no JSON"})
        )
        edges = [0, *sorted(cuts), 100]
        paths = [
            parquet(folder / f"{n}.parquet", table.slice(a, b - a), row_group_size=rows, compression=codec)
            for n, (a, b) in enumerate(pairwise(edges))
        ]
        keep = mask(bits, 100)
        with open_records(paths) as records:
            assert read(records) == TABLE["text"].to_pylist()
            records.write(keep, os.fspath(folder / "kept.parquet"))
        expected = pa.concat_tables([pq.read_table(path) for path in paths])
        chosen = np.flatnonzero(keep).tolist()
        expected = pa.concat_tables([expected.slice(0, 0), *(expected.slice(at, 1) for at in chosen)])
        same(pq.read_table(folder / "kept.parquet"), expected)
        first = pq.read_metadata(paths[0])
        if first.num_row_groups and chosen:
            found = pq.read_metadata(folder / "kept.parquet").row_group(0).column(0).compression
            assert found == first.row_group(0).column(0).compression

    @pytest.mark.parametrize("keep", [everything, nothing])
    def test_all_and_nothing(self, tmp_path: Path, keep: Callable[[int], Keep]) -> None:
        path = parquet(tmp_path / "a.parquet", pa.table(TABLE))
        kept([path], keep, tmp_path / "kept.parquet")
        same(pq.read_table(tmp_path / "kept.parquet"), pq.read_table(path).slice(0, 100 * (keep is everything)))

    def test_frames(self, tmp_path: Path) -> None:
        """What pandas and Polars know of a column beyond Arrow is in the metadata, and stays."""
        frame = pd.DataFrame({"text": ["a", "b", "c"], "sort": pd.Categorical(["x", "y", "x"])}, index=[5, 7, 9])
        frame.to_parquet(tmp_path / "pandas.parquet")
        kept([f"{tmp_path}/pandas.parquet"], lambda _: mask(0b101, 3), tmp_path / "kept.parquet")
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "kept.parquet"), frame.iloc[[0, 2]])
        other = pl.DataFrame({"text": ["a", "b", "c"], "sort": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y"]))})
        other.write_parquet(tmp_path / "polars.parquet")
        kept([f"{tmp_path}/polars.parquet"], lambda _: mask(0b101, 3), tmp_path / "kept.parquet")
        assert pl.read_parquet(tmp_path / "kept.parquet").equals(other[[0, 2]])
        assert pl.read_parquet(tmp_path / "kept.parquet").schema == other.schema

    def test_timestamps_of_spark(self, tmp_path: Path) -> None:
        """Those of 96 bits, of which nanoseconds in 64 hold but the years 1677 to 2262."""
        times = pa.array([datetime.datetime(9999, 12, 31), datetime.datetime(1, 1, 1, 0, 0, 0, 1)], pa.timestamp("us"))
        table = pa.table({"text": ["a", "b"], "time": times})
        path = parquet(tmp_path / "a.parquet", table, use_deprecated_int96_timestamps=True)
        kept([path], everything, tmp_path / "kept.parquet")
        assert pq.read_table(tmp_path / "kept.parquet").equals(table)

    def test_metadata_of_the_first(self, tmp_path: Path) -> None:
        table = pa.table({"text": ["a"]})
        paths = [
            parquet(tmp_path / f"{name}.parquet", table.replace_schema_metadata({"name": name})) for name in ("x", "y")
        ]
        kept(paths, everything, tmp_path / "kept.parquet")
        assert pq.read_schema(tmp_path / "kept.parquet").metadata == {b"name": b"x"}

    def test_places_are_the_ids_of_pages(self, tmp_path: Path) -> None:
        tables = (
            pa.table({"text": ["a", "b"]}),
            pa.table({"text": pa.array([], pa.string())}),
            pa.table({"text": ["c"]}),
        )
        paths = [parquet(tmp_path / f"{number}.parquet", table) for number, table in enumerate(tables)]
        with open_records(paths) as records:
            texts = read(records)
            assert [Page(records.place(row), text) for row, text in enumerate(texts)] == list(read_pages(paths))
            for row in (-1, 3):
                with pytest.raises(IndexError):
                    records.place(row)

    @pytest.mark.parametrize("size", [4, 400])
    def test_few_rows_of_many_share_a_row_group(self, tmp_path: Path, size: int) -> None:
        """Or few groups, where the batches have large dictionaries, however few rows of them are kept."""
        texts = pa.array([f"{number} {'x' * 1000}" for number in range(size)])
        column = pa.DictionaryArray.from_arrays(pa.array(np.arange(300_000) % size, pa.int32()), texts)
        path = parquet(tmp_path / "a.parquet", pa.table({"text": column}))
        kept([path], lambda size: np.arange(size) % 100 == 0, tmp_path / "kept.parquet")
        assert pq.read_metadata(tmp_path / "kept.parquet").num_row_groups <= (1 if size == 4 else 8)
        assert (
            pq.read_table(tmp_path / "kept.parquet")["text"].to_pylist()
            == column.take(pa.array(range(0, 300_000, 100))).to_pylist()
        )

    @pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
    def test_memory(self, tmp_path: Path) -> None:
        """600 MB in three row groups, in a process of its own: never a whole row group that is read."""
        path = tmp_path / "a.parquet"
        with pq.ParquetWriter(path, pa.schema({"text": pa.string()}), compression="NONE") as writer:
            for number in range(3):
                texts = [f"{number} {row} " + "x" * 2000 for row in range(100_000)]
                writer.write_table(pa.table({"text": texts}))
        code = (
            "import re, sys, numpy as np\nfrom pathlib import Path\nfrom simdup.records import open_records\n"
            "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])\n"
            "before = peak()\n"
            "with open_records([sys.argv[1]]) as records:\n"
            "    for _ in records.batches():\n        pass\n"
            "    print(peak() - before)\n"
            "    records.write(np.ones(len(records), bool), sys.argv[2])\n"
            "print(peak() - before)"
        )
        command = [sys.executable, "-c", code, os.fspath(path), os.fspath(tmp_path / "kept.parquet")]
        found = subprocess.run(command, capture_output=True, check=True)
        reading, both = map(int, found.stdout.split())
        assert reading < 150_000  # kilobytes; measured 50,000, and 630,000 where all is read ahead
        assert both < 450_000  # measured 280,000, and 700,000 where all becomes one row group
        about = pq.read_metadata(tmp_path / "kept.parquet")
        assert (about.num_rows, about.num_row_groups < 30) == (300_000, True)

    @pytest.mark.parametrize(
        ("column", "values"),
        [
            (pa.array([3, 1, 2], pa.int8()), [3, 1, 2]),
            (pa.array([0.5, -1.0, 2.0], pa.float32()), [0.5, -1.0, 2.0]),
            (pa.array(["b", "a", "c"]).dictionary_encode(), ["b", "a", "c"]),
            (pa.array([datetime.date(1970, 1, 3), datetime.date(1969, 12, 31), datetime.date(1970, 1, 1)]), [2, -1, 0]),
            (pa.array([5, -(2**62), 3], pa.timestamp("ns", "Asia/Tokyo")), [5, -(2**62), 3]),
        ],
        ids=["integers", "floats", "choices", "dates", "times"],
    )
    def test_orders(self, tmp_path: Path, column: Any, values: list[Any]) -> None:
        path = parquet(tmp_path / "a.parquet", pa.table({"date": column, "text": ["a", "b", "c"]}))
        with open_records([path], order_field="date") as records:
            assert orders(records) == values

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            (pa.array([1, None]), ", row 2: field 'date' is null"),
            (pa.array([1.0, math.nan]), ", row 2: field 'date' is NaN, not a finite number"),
            (pa.array(["a", None]), ", row 2: field 'date' is null"),
            (pa.array([True, False]), ", row 1: field 'date' is true, not a finite number or a string"),
            (pa.array([[1], [2]]), ", row 1: field 'date' is [1], not"),
            (pa.array([decimal.Decimal("1.5"), None]), ", row 1: field 'date' is \"1.5\", not"),
        ],
        ids=["null", "nan", "no string", "bool", "lists", "decimals"],
    )
    def test_order_errors(self, tmp_path: Path, column: Any, message: str) -> None:
        path = parquet(tmp_path / "a.parquet", pa.table({"text": ["a", "b"], "date": column}))
        fails_to_read([path], f"{path}{message}", order_field="date")
        fails_to_open([path], f"{path}: no field 'day'", "'text', 'date'", order_field="day")

    def test_errors(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", pa.table({"text": pa.array([None, None], pa.string()), "n": [1, 2]}))
        other = parquet(tmp_path / "b.parquet", pa.table({"text": ["a"], "n": [1.5]}))
        fewer = parquet(tmp_path / "c.parquet", pa.table({"text": ["a"]}))
        numbers = parquet(tmp_path / "d.parquet", pa.table({"text": [1]}))
        fails_to_read([path], f"{path}, row 1: field 'text' is null", "nor can 1 more be read")
        fails_to_open([path, other], f"{other}: columns ['n'] are not as in {path}: give equal")
        fails_to_open([path, fewer], f"{fewer}: columns ['n'] are not as in {path}: give equal")
        turned = parquet(tmp_path / "e.parquet", pa.table({"n": [1], "text": ["a"]}))
        fails_to_open([path, turned], f"{turned}: columns ['n', 'text'] are not as in {path}", "equal order")
        fails_to_open([path], f"{path}: no field 'body'", text_field="body")
        fails_to_open([numbers], f"{numbers}: field 'text' is int64, not strings")
        fails_to_open([written(tmp_path / "f.parquet", b"PAR1")], "f.parquet: not a Parquet file, or damaged")

    def test_what_is_broken_is_not_written(self, tmp_path: Path) -> None:
        """A row without a text, and a row group that is damaged in the column that is read."""
        table = pa.table({"text": ["a", None, *map(str, range(30))], "n": range(32)})
        path = parquet(tmp_path / "a.parquet", table, row_group_size=10, compression="NONE", use_dictionary=False)
        data = bytearray(Path(path).read_bytes())
        where = pq.read_metadata(path).row_group(1).column(0).data_page_offset
        data[where : where + 8] = bytes(8)
        Path(path).write_bytes(data)
        other = parquet(tmp_path / "b.parquet", table.slice(2, 3))
        with open_records([path, other]) as records:
            assert read(records) == ["a", *map(str, [*range(8), *range(18, 30), 0, 1, 2])]
            assert records.problems.left_out == 2
            records.write(np.arange(len(records)) % 2 == 0, f"{tmp_path}/kept.parquet")
        kept = pq.read_table(f"{tmp_path}/kept.parquet")
        assert kept["n"].to_pylist() == [0, *range(2, 10), *range(20, 32), 2, 3, 4][::2]

    def test_damage_in_the_middle_leaves_nothing(self, tmp_path: Path) -> None:
        """Of a column that is not read before it is written."""
        numbers = np.arange(50_000)
        table = pa.table({"text": ["a"] * 50_000, "n": numbers})
        path = parquet(
            tmp_path / "a.parquet", table, write_page_checksum=True, compression="NONE", use_dictionary=False
        )
        data = bytearray(Path(path).read_bytes())
        at = data.index(numbers[25_000:25_010].tobytes())
        data[at] ^= 1
        Path(path).write_bytes(data)
        fails(
            lambda: kept([path], everything, tmp_path / "kept.parquet"),
            f"{path}, row ",
            "damaged",
            "though its text can",
        )
        assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]

    def test_output_that_cannot_be(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", pa.table({"text": ["a"]}))
        with open_records([path]) as records:
            for name in ("kept.jsonl", "kept", "-", ""):
                fails(lambda name=name: records.check_output(name), name, ".parquet")  # type: ignore[misc]
            fails(lambda: records.check_output(f"{tmp_path}/none/kept.parquet"), "no such folder", error=OSError)


FOLDERS = st.dictionaries(
    st.builds(
        "{}{}".format,
        st.lists(st.sampled_from(["a", "ä b", "c"]), min_size=1, max_size=3).map("/".join),
        st.sampled_from([".txt", ".html"]),
    ),
    st.text(max_size=9).map(str.encode) | st.just(BOM + b"x\r\n"),
    min_size=1,
    max_size=8,
)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class TestTexts:
    @given(files=FOLDERS, bits=MASKS)
    def test_the_kept_files_are_those_bytes(
        self, tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], bits: int
    ) -> None:
        folder = tmp_path_factory.mktemp("texts")
        for name, data in files.items():
            written(folder / "in" / name, data)
        written(folder / "in" / "other.md", b"no text")
        single = written(folder / "single.txt", b"single")
        with open_records([single, f"{folder}/in"]) as records:
            pages = list(read_pages([single, f"{folder}/in"]))
            assert [Page(records.place(row), text) for row, text in enumerate(read(records))] == pages
            keep = mask(bits, len(pages))
            records.write(keep, os.fspath(folder / "kept"))
        names = ["single.txt", *(str(Path(page.id).relative_to(folder / "in")) for page in pages[1:])]
        everything = files | {"single.txt": b"single"}
        assert contents(folder / "kept") == {name: everything[name] for name in compress(names, keep)}
        assert {path.name for path in folder.iterdir()} == {"in", "kept", "single.txt"}

    def test_all_and_nothing(self, tmp_path: Path) -> None:
        written(tmp_path / "in" / "a.txt", b"a")
        kept([f"{tmp_path}/in"], everything, tmp_path / "all")
        kept([f"{tmp_path}/in"], nothing, tmp_path / "none")
        assert contents(tmp_path / "all") == {"a.txt": b"a"}
        assert contents(tmp_path / "none") == {}

    def test_paths_below_the_working_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        written(tmp_path / "in" / "deep" / "a.txt", b"a")
        for number, path in enumerate((".", "in/", "./in", "in/../in", "in/deep/../deep/a.txt")):
            kept([path], everything, tmp_path.parent / f"kept {number}")
        found = [contents(tmp_path.parent / f"kept {number}") for number in range(5)]
        assert [list(files) for files in found] == [["in/deep/a.txt"], *[["deep/a.txt"]] * 3, ["a.txt"]]

    def test_one_name_for_two(self, tmp_path: Path) -> None:
        a = written(tmp_path / "a" / "x.txt", b"a")
        b = written(tmp_path / "b" / "x.txt", b"b")
        for paths in ([f"{tmp_path}/a", f"{tmp_path}/b"], [a, b], [a, f"{tmp_path}/b"]):
            fails_to_open(paths, f"{a} and {b} would both be kept as x.txt")
        fails_to_open([a, a], f"{a} and {a} would both")

    def test_output_that_cannot_be(self, tmp_path: Path) -> None:
        written(tmp_path / "in" / "a.txt", b"a")
        written(tmp_path / "full" / "b", b"b")
        with open_records([f"{tmp_path}/in"]) as records:
            read(records)
            for name in ("kept.jsonl", "kept.parquet", "-", ""):
                fails(lambda name=name: records.check_output(name), name, "folder")  # type: ignore[misc]
            for name, why in (("full", "not an empty"), ("none/kept", "no such folder"), ("in", "not an empty")):
                path = f"{tmp_path}/{name}"
                fails(lambda path=path: records.check_output(path), why, error=OSError)  # type: ignore[misc]
                fails(lambda path=path: records.write(everything(1), path), why, error=OSError)  # type: ignore[misc]
            fails(lambda: records.check_output(f"{tmp_path}/in/kept"), "lies in")
            records.check_output(f"{tmp_path}/kept")
        assert len(list(tmp_path.rglob("*"))) == 4

    def test_what_is_broken_is_not_written(self, tmp_path: Path) -> None:
        written(tmp_path / "in" / "a.txt", b"a")
        bad = written(tmp_path / "in" / "bad.txt", b"\xff")
        written(tmp_path / "in" / "c.html", b"<p>c")
        with open_records([f"{tmp_path}/in"]) as records:
            assert read(records) == ["a", "c"]
            assert records.problems.examples == [(bad, "not UTF-8 at byte 0: convert it first")]
            records.write(np.array([False, True]), f"{tmp_path}/kept")
        assert contents(tmp_path / "kept") == {"c.html": b"<p>c"}

    def test_texts_have_no_order(self, tmp_path: Path) -> None:
        fails_to_open([written(tmp_path / "a.txt", b"a")], "text has no field 'date'", order_field="date")

    def test_what_cannot_be_read(self, tmp_path: Path) -> None:
        bad = written(tmp_path / "in" / "bad.txt", b"\xff")
        fails_to_read([f"{tmp_path}/in"], f"{bad}: not UTF-8 at byte 0")
        (tmp_path / "empty").mkdir()
        fails_to_open([f"{tmp_path}/empty"], "empty: no .txt or .html file in this folder")
        (tmp_path / "in" / "link.txt").symlink_to("nowhere")
        fails_to_open([f"{tmp_path}/in"], "link.txt: No such file or directory")


def some_inputs(folder: Path) -> dict[str, tuple[str, str]]:
    """An input of each kind, with three records, and a good name for the output."""
    for number in range(3):
        written(folder / "texts" / f"{number}.txt", str(number).encode())
    return {
        "JSONL": (written(folder / "a.jsonl", b"\n".join(map(line, "012")) + b"\n"), f"{folder}/kept.jsonl"),
        "Parquet": (parquet(folder / "a.parquet", pa.table({"text": list("012")})), f"{folder}/kept.parquet"),
        "text": (f"{folder}/texts", f"{folder}/kept"),
    }


KINDS = pytest.mark.parametrize("kind", ["JSONL", "Parquet", "text"])


class TestAllKinds:
    @KINDS
    def test_passes(self, tmp_path: Path, kind: str) -> None:
        """Repeated, abandoned, one within the other: each gives all, and only a whole one counts them."""
        path, output = some_inputs(tmp_path)[kind]
        with open_records([path]) as records:
            assert records.kind == kind
            assert next(texts_of(records)) == "0"
            for early in (lambda: len(records), lambda: records.place(0), lambda: records.write(everything(0), output)):
                with pytest.raises(RuntimeError, match="not been read to the end"):
                    early()
            pairs = [(a, b) for a in texts_of(records) for b in texts_of(records)]
            assert pairs == [(a, b) for a in "012" for b in "012"]
            assert len(records) == 3
            next(records.batches())
            records.write(everything(3), output)
            assert next(records.batches()).orders is None

    @KINDS
    def test_changed_between_passes(self, tmp_path: Path, kind: str) -> None:
        path, output = some_inputs(tmp_path)[kind]
        file = Path(path, "1.txt") if kind == "text" else Path(path)
        with open_records([path]) as records:
            read(records)
            data = file.read_bytes()
            file.write_bytes(data)
            os.utime(file, ns=(0, 1))
            for again in (lambda: read(records), lambda: records.write(everything(3), output)):
                fails(again, f"{file}: changed while it was read: run again")
            with stdout() as out:
                if kind == "JSONL":
                    fails(lambda: records.write(everything(3), "-"), "changed while it was read")
            assert out.getvalue() == b""
        assert not Path(output).exists()

    @pytest.mark.parametrize("change", ["more", "fewer"])
    def test_a_folder_of_other_files(self, tmp_path: Path, change: str) -> None:
        path, output = some_inputs(tmp_path)["text"]
        with open_records([path]) as records:
            read(records)
            if change == "more":
                written(Path(path, "3.txt"), b"")
            else:
                Path(path, "3.txt").unlink(missing_ok=True)
                Path(path, "2.txt").unlink()
            fails(lambda: records.write(everything(3), output), f"{path}/{3 if change == 'more' else 2}.txt: changed")
        assert not Path(output).exists()

    @KINDS
    def test_changed_during_a_pass(self, tmp_path: Path, kind: str) -> None:
        path, _ = some_inputs(tmp_path)[kind]
        file = Path(path, "0.txt") if kind == "text" else Path(path)
        with open_records([path]) as records:
            reading = records.batches()
            next(reading)
            os.utime(file, ns=(0, 1))
            fails(lambda: list(reading), f"{file}: changed")
            with pytest.raises(RuntimeError):
                len(records)

    @KINDS
    @pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
    def test_an_exception_in_the_middle_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, error: type[BaseException]
    ) -> None:
        path, output = some_inputs(tmp_path)[kind]
        before = sorted(tmp_path.rglob("*"))
        with open_records([path]) as records:
            read(records)
            seen = []
            look = Records._look

            def interrupted(self: Records) -> Any:
                """At the last look, all is written, but not in its place."""
                seen.append(sorted(tmp_path.rglob("*")))
                if len(seen) == 2:
                    raise error
                return look(self)

            monkeypatch.setattr(Records, "_look", interrupted)
            with pytest.raises(error):
                records.write(everything(3), output)
        assert seen[0] == before != seen[1]
        assert sorted(tmp_path.rglob("*")) == before

    @KINDS
    def test_a_wrong_mask(self, tmp_path: Path, kind: str) -> None:
        path, output = some_inputs(tmp_path)[kind]
        with open_records([path]) as records:
            read(records)
            for keep in (np.ones(2, bool), np.ones(4, bool), np.ones((3, 1), bool), np.ones(3, np.int64)):
                fails(lambda keep=keep: records.write(keep, output), "keep is", "(3,)")  # type: ignore[misc]
        assert not Path(output).exists()

    def test_mixed_kinds(self, tmp_path: Path) -> None:
        inputs = some_inputs(tmp_path)
        for a, b in (("JSONL", "Parquet"), ("Parquet", "text"), ("text", "JSONL")):
            fails_to_open([inputs[a][0], inputs[b][0]], f"{inputs[a][0]} is {a} and {inputs[b][0]} is {b}", "one kind")

    @pytest.mark.parametrize("name", ["no.txt", "no.jsonl", "no.parquet", "no", "no.csv", "none/no.txt"])
    def test_missing_is_known_before_reading(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        fails_to_open([path], f"{path}: No such file or directory")

    def test_inputs_that_cannot_be(self, tmp_path: Path) -> None:
        fails_to_open([], "no input")
        fails_to_open([""], "an empty path")
        fails_to_open([written(tmp_path / "a.csv", b"a")], "a.csv: unknown kind of file")
        for name in ("a.jsonl", "b.parquet", "c.txt"):
            os.mkfifo(tmp_path / name)
            fails_to_open([tmp_path / name], f"{name}: not a regular file")

    def test_the_process_may_write_to_a_closed_pipe(self, tmp_path: Path) -> None:
        path, _ = some_inputs(tmp_path)["JSONL"]
        out, into = os.pipe()
        os.close(out)
        with (
            open(into, "wb") as closed,  # noqa: PTH123, it is a number
            open_records([path]) as records,
            mock.patch.object(sys, "stdout", SimpleNamespace(buffer=closed)),
        ):
            read(records)
            with pytest.raises(BrokenPipeError):
                records.write(everything(3), "-")
            with contextlib.suppress(BrokenPipeError):
                closed.close()
