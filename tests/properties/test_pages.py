"""Pages from files: what is read, in which order, and what is said where something cannot be read."""

import errno
import gzip
import io
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup.jsonl import json_column, json_lines
from simdup.pages import Page, read_pages

TEXTS = ["one page", "zwei Seiten\nmit Zeile", "第三页 😀", "", 'tab\t "quote" \\ \u2028']


def texts(*paths: str | os.PathLike[str], **options: str) -> list[str]:
    """The texts of pages, of which nothing is left out."""
    pages = list(read_pages(paths, **options))
    assert [page for page in pages if page.text is None] == []
    return [page.text for page in pages if page.text is not None]


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def fails(paths: Iterable[str | os.PathLike[str]], *parts: str, **options: str) -> None:
    """Reading raises in one line that holds the parts, in this order, and starts with the first."""
    with pytest.raises(ValueError) as raised:  # noqa: PT011, the message is taken apart below
        list(read_pages(paths, **options))
    message = str(raised.value)
    assert message.startswith(parts[0]), message
    assert re.search(".*".join(map(re.escape, parts)), message), message
    assert "\n" not in message
    assert len(message) < 300 + len(parts[0])


def leaves_out(paths: Iterable[str | os.PathLike[str]], *parts: str, **options: str) -> list[str]:
    """One record cannot be read: its place and problem hold the parts, in this order. Returns the other texts."""
    pages = list(read_pages(paths, **options))
    (broken,) = [page for page in pages if page.text is None]
    message = f"{broken.id}: {' '.join(broken.problems)}"
    assert message.startswith(parts[0]), message
    assert re.search(".*".join(map(re.escape, parts)), message), message
    assert "\n" not in message
    assert len(message) < 300 + len(parts[0])
    assert [page for page in pages if page.text is not None and page.problems] == []
    return [page.text for page in pages if page.text is not None]


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Any:
    def feed(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    return feed


class TestJsonLines:
    @pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson"])
    def test_texts(self, tmp_path: Path, name: str) -> None:
        path = written(tmp_path / name, lines(*({"id": n, "text": text} for n, text in enumerate(TEXTS))))
        assert texts(path) == TEXTS
        assert texts(os.fspath(path)) == TEXTS

    @given(some=st.lists(st.text(max_size=20), max_size=5), ascii_only=st.booleans())
    def test_any_text(self, some: list[str], ascii_only: bool) -> None:
        data = "".join(json.dumps({"text": text}, ensure_ascii=ascii_only) + "\n" for text in some).encode()
        with mock.patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data))):
            assert texts("-") == some

    def test_ids_are_places(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", b'{"text": "a"}\n\n{"text": "b"}\n')
        assert list(read_pages([path])) == [Page(f"{path}, line 1", "a"), Page(f"{path}, line 3", "b")]

    @pytest.mark.parametrize(
        "data",
        [
            b'\xef\xbb\xbf{"text": "a"}\n{"text": "b"}\n',
            b'{"text": "a"}\r\n{"text": "b"}\r\n',
            b'\n \n{"text": "a"}\n\t\r\n{"text": "b"}\n\n\n',
            b'{"text": "a"}\n{"text": "b"}',
            b'  {"text" :"a"}  \n{"other": {"text": 1}, "text": "b"}\n',
        ],
        ids=["BOM", "CRLF", "blank lines", "no end of line", "spaces"],
    )
    def test_forms(self, tmp_path: Path, data: bytes) -> None:
        assert texts(written(tmp_path / "a.jsonl", data)) == ["a", "b"]

    def test_text_field(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", lines({"text": "wrong", "body": "right", "": "empty name"}))
        assert texts(path, text_field="body") == ["right"]
        assert texts(path, text_field="") == ["empty name"]

    def test_surrogates_in_escapes(self, tmp_path: Path) -> None:
        """A pair is one character; a lone one is part of the text, as it is part of a token (field case 16)."""
        path = written(tmp_path / "a.jsonl", rb'{"text": "\ud83d\ude00"}' + b"\n" + rb'{"text": "x\ud800y"}')
        assert texts(path) == ["😀", "x\ud800y"]

    @given(before=st.text(" \t\r\n\u00a0x", max_size=3), after=st.text(" \t\r\u00a0,}x", max_size=3))
    def test_what_surrounds_an_object(self, before: str, after: str) -> None:
        """Read or refused as json.loads does it."""
        line = f'{before}{{"text": "a"}}{after}'.replace("\n", "")
        with mock.patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(line.encode() + b"\n"))):
            try:
                json.loads(line)
            except ValueError:
                fails(["-"], "standard input, line 1: broken JSON: ")  # nothing else could be read
            else:
                assert texts("-") == ["a"]

    @pytest.mark.parametrize(
        ("line", "parts"),
        [
            (b'{"text": "a"', ["broken JSON"]),
            (b"{'text': 'a'}", ["broken JSON"]),
            (b'{"text": "a"} x', ["broken JSON"]),
            (b"null nul", ["broken JSON"]),
            (b"[" * 100_000, ["broken JSON"]),
            (b'{"text": ' + b"[" * 100_000, ["broken JSON"]),
            (b'{"text": "a\x00b"}', ["broken JSON"]),
            (b'["text"]', ["an object was expected, not list"]),
            (b'"text"', ["an object was expected, not str"]),
            (b"17", ["an object was expected, not int"]),
            (b"null", ["an object was expected, not NoneType"]),
            (b'{"body": "a", "title": "b"}', ["no field 'text'", "'body', 'title'", "--text-field"]),
            (b"{}", ["no field 'text'", "none", "--text-field"]),
            (b'{"text": null}', ["field 'text' is null, not a string"]),
            (b'{"text": 17}', ["field 'text' is 17, not a string"]),
            (b'{"text": ["a"]}', ["field 'text' is [\"a\"], not a string"]),
            (b'{"text": {"a": "' + b"b" * 9999 + b'"}}', ["field 'text' is", "not a string"]),
            (b'{"text": "caf\xe9"}', ["not UTF-8 at byte 13"]),
            ('{"text": "a"}'.encode("utf-16"), ["not UTF-8 at byte 0"]),
        ],
        ids=lambda value: repr(value)[:40],
    )
    def test_what_is_broken_is_left_out(self, tmp_path: Path, line: bytes, parts: list[str]) -> None:
        """It is said what and where, and the rest goes on; if there is no rest, that is an error."""
        a, b = lines({"text": "a"}), lines({"text": "b"})
        path = written(tmp_path / "a.jsonl", a + b"\n" + line + b"\n" + b)
        assert leaves_out([path], f"{path}, line 3: ", *parts) == ["a", "b"]
        path = written(tmp_path / "b.jsonl", b"\n" + line + b"\n")
        fails([path], f"{path}, line 2: ", *parts)
        more = written(tmp_path / "c.jsonl", line + b"\n" + line)
        fails([more, path], f"{more}, line 1: ", "(nor can 2 more be read)")

    def test_many_fields_are_not_all_named(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.jsonl", lines({f"field {n}": n for n in range(1000)}))
        fails([path], f"{path}, line 1: no field 'text'", "'field 0'")

    def test_a_number_of_too_many_digits(self, tmp_path: Path) -> None:
        """Python refuses to read it, and says so with a ValueError of its own; Arrow does not mind."""
        line = b'{"n": ' + b"9" * 5000 + b', "text": "a"}'
        assert texts(written(tmp_path / "a.jsonl", line)) == ["a"]
        path = written(tmp_path / "b.jsonl", b" " + line)
        fails([path], f"{path}, line 1: broken JSON")


class TestStandardInput:
    def test_texts(self, stdin: Any, tmp_path: Path) -> None:
        stdin(lines({"text": "a"}, {"text": "b"}))
        path = written(tmp_path / "c.txt", b"c")
        assert list(read_pages(["-", path])) == [
            Page("standard input, line 1", "a"),
            Page("standard input, line 2", "b"),
            Page(os.fspath(path), "c"),
        ]

    def test_errors(self, stdin: Any) -> None:
        stdin(lines({"text": "a"}) + b"{")
        assert leaves_out(["-"], "standard input, line 2: broken JSON") == ["a"]
        stdin(b"{")
        fails(["-"], "standard input, line 1: broken JSON")

    def test_empty(self, stdin: Any) -> None:
        stdin(b"")
        assert texts("-") == []

    def test_a_file_of_that_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        written(tmp_path / "-", b"no")
        fails(["./-"], "-: unknown kind of file")


class TestCompressedLines:
    LINES = lines(*({"text": f"page {number} {number * 7919}"} for number in range(5000)))

    @pytest.mark.parametrize("name", ["a.jsonl.gz", "a.ndjson.gz", "a.b.jsonl.gz"])
    def test_texts(self, tmp_path: Path, name: str) -> None:
        path = written(tmp_path / name, gzip.compress(self.LINES[:9999]) + gzip.compress(self.LINES[9999:]))
        pages = list(read_pages([path]))
        assert [page.text for page in pages] == [f"page {number} {number * 7919}" for number in range(5000)]
        assert pages[-1].id == f"{path}, line 5000"

    @pytest.mark.parametrize("damage", ["cut", "flipped", "more", "checksum"])
    def test_damaged(self, tmp_path: Path, damage: str) -> None:
        """What stands before is read, whole lines and nothing else."""
        data = bytearray(gzip.compress(self.LINES))
        if damage == "cut":
            del data[len(data) // 2 :]
        elif damage == "more":
            data += b"junk"
        else:
            data[len(data) // 2 if damage == "flipped" else -5] ^= 255
        path = written(tmp_path / "a.jsonl.gz", bytes(data))
        *pages, last = read_pages([path])
        assert len(pages) > 500
        problem = "broken JSON" if damage == "flipped" and last.problems[0].startswith("broken") else "damaged: "
        assert last.text is None
        assert last.problems[0].startswith(problem)
        texts = [page.text for page in pages if page.text is not None]
        if damage != "flipped":
            assert texts == [f"page {number} {number * 7919}" for number in range(len(pages))]
            assert last.id == f"{path}, line {len(pages) + 1}"

    @pytest.mark.parametrize("data", [b"", b"junk", lines({"text": "a"}), gzip.compress(b"")[:-9]])
    def test_none_at_all(self, tmp_path: Path, data: bytes) -> None:
        path = written(tmp_path / "a.jsonl.gz", data)
        if data:
            fails([path], f"{path}, line 1: damaged: ")
        else:
            assert texts(path) == []

    @pytest.mark.parametrize("compressed", [False, True])
    def test_lines_that_are_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool) -> None:
        """They cost one record each, however long, and count as one line; one byte less is read."""
        monkeypatch.setattr("simdup.jsonl.LONGEST_TEXT", 40)
        monkeypatch.setattr("simdup.fields.LONGEST_TEXT", 40)
        monkeypatch.setattr("simdup.jsonl._BLOCK_BYTES", 7)
        for size in (*range(24, 32), 60, 80, 100):
            data = lines({"text": "a"}, {"text": "b" * size}, {"text": "c"}, {"text": "d" * size})
            path = tmp_path / ("a.jsonl.gz" if compressed else "a.jsonl")
            written(path, gzip.compress(data) if compressed else data)
            pages = list(read_pages([path]))
            assert [page.id for page in pages] == [f"{path}, line {number}" for number in range(1, 5)]
            long = len(data.splitlines(keepends=True)[1]) > 40
            assert [page.text for page in pages][::2] == ["a", "c"]
            assert [page.text for page in pages][1::2] == ([None] * 2 if long else ["b" * size, "d" * size])


class TestText:
    def test_one_page_as_it_is(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.txt", "one\r\n\r\nzwei – 三\n".encode())
        assert list(read_pages([path])) == [Page(os.fspath(path), "one\r\n\r\nzwei – 三\n")]

    @pytest.mark.parametrize(("data", "text"), [(b"", ""), (b"\xef\xbb\xbfa", "a"), (b"a\x00b", "a\x00b")])
    def test_forms(self, tmp_path: Path, data: bytes, text: str) -> None:
        assert texts(written(tmp_path / "a.txt", data)) == [text]

    @pytest.mark.parametrize(("data", "at"), [(b"caf\xe9", 3), (b"\xff\xfea\x00", 0), (b"ok \xed\xa0\x80", 3)])
    def test_wrong_encoding(self, tmp_path: Path, data: bytes, at: int) -> None:
        path = written(tmp_path / "a.txt", data)
        fails([path], f"{path}: not UTF-8 at byte {at}")

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
    def test_utf_16_without_a_mark(self, tmp_path: Path, encoding: str) -> None:
        """All of it would be UTF-8: letters with a zero byte between, each a word of its own."""
        path = written(tmp_path / "a.txt", "The quick brown fox".encode(encoding))
        fails([path], f"{path}: not UTF-8: more than a quarter of its bytes are 0, as in UTF-16")


class TestFolder:
    def test_deep_and_in_order_of_names(self, tmp_path: Path) -> None:
        names = ["b.txt", "a/z.txt", "a/b/c.txt", "c/d/e/f.txt", "10.txt", "9.txt", "ä.txt"]
        for name in names:
            written(tmp_path / "in" / name, name.encode())
        written(tmp_path / "in" / "no.md", b"not me")
        (tmp_path / "in" / "folder.txt").mkdir()
        written(tmp_path / "in" / "folder.txt" / "x.txt", b"folder.txt/x.txt")
        expected = sorted([*names, "folder.txt/x.txt"], key=lambda name: name.split("/"))
        assert texts(tmp_path / "in") == expected
        assert [page.id for page in read_pages([tmp_path / "in"])] == [f"{tmp_path}/in/{name}" for name in expected]

    def test_without_text_files(self, tmp_path: Path) -> None:
        written(tmp_path / "a.md", b"a")
        fails([tmp_path], f"{tmp_path}: no .txt or .html file in this folder")

    def test_one_that_is_called_like_a_file(self, tmp_path: Path) -> None:
        for name in ("x.txt", "x.jsonl", "x.parquet"):
            written(tmp_path / name / "a.txt", name.encode())
            assert texts(tmp_path / name) == [name]

    def test_a_bad_file_inside_is_named(self, tmp_path: Path) -> None:
        written(tmp_path / "a.txt", b"good")
        bad = written(tmp_path / "b" / "bad.txt", b"\xff")
        assert leaves_out([tmp_path], f"{bad}: not UTF-8 at byte 0") == ["good"]

    def test_a_broken_link_inside_is_named(self, tmp_path: Path) -> None:
        """Nothing that looks like a page is left out in silence."""
        written(tmp_path / "a.txt", b"good")
        (tmp_path / "b.txt").symlink_to("nowhere")
        assert leaves_out([tmp_path], f"{tmp_path / 'b.txt'}: No such file or directory") == ["good"]

    @pytest.mark.parametrize(("name", "most"), [("a.txt", "LONGEST_TEXT"), ("a.html", "LARGEST")])
    def test_a_file_that_is_too_large(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: str
    ) -> None:
        """A page of 16 MiB of HTML takes long to read, one of 1 GB more memory than there is."""
        written(tmp_path / "b.txt", b"good")
        big = written(tmp_path / name, b"<p>page")
        monkeypatch.setattr(f"simdup.{'html' if name.endswith('html') else 'fields'}.{most}", 6)
        assert leaves_out([tmp_path], f"{big}: l", "er than") == ["good"]

    def test_capitals(self, tmp_path: Path) -> None:
        written(tmp_path / "A.TXT", b"loud")
        assert texts(tmp_path) == ["loud"]

    def test_a_pipe_is_no_page(self, tmp_path: Path) -> None:
        written(tmp_path / "a.txt", b"good")
        os.mkfifo(tmp_path / "b.txt")
        assert texts(tmp_path) == ["good"]

    def test_a_folder_inside_that_cannot_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        written(tmp_path / "in" / "a.txt", b"good")
        written(tmp_path / "in" / "closed" / "b.txt", b"hidden")
        original = os.scandir

        def closed(path: Any) -> Any:
            if Path(path).name == "closed":
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
            return original(path)

        monkeypatch.setattr(os, "scandir", closed)
        fails([tmp_path / "in"], f"{tmp_path / 'in' / 'closed'}: Permission denied")


def _texts_or_error(path: Path, data: bytes) -> tuple[list[str], str]:
    """The texts that can be read, and whatever is said about the others."""
    path.write_bytes(data)
    try:
        pages = list(read_pages([path]))
    except ValueError as error:
        return [], str(error)
    said = [f"{page.id}: {problem}" for page in pages for problem in page.problems]
    return [page.text for page in pages if page.text is not None], "".join(said)


class TestParquet:
    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
    def test_texts(self, tmp_path: Path, kind: Any) -> None:
        path = parquet(tmp_path / "a.parquet", text=pa.array(TEXTS, pa.string()).cast(kind), other=list(range(5)))
        assert list(read_pages([path])) == [Page(f"{path}, row {n}", text) for n, text in enumerate(TEXTS, 1)]

    def test_many_row_groups(self, tmp_path: Path) -> None:
        many = [f"page {n}" for n in range(1000)]
        pq.write_table(pa.table({"text": many}), tmp_path / "a.parquet", row_group_size=77)
        assert texts(tmp_path / "a.parquet") == many

    def test_text_field(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", text=["wrong"], body=["right"])
        assert texts(path, text_field="body") == ["right"]
        fails([path], f"{path}: no field 'title'", "'text', 'body'", "--text-field", text_field="title")

    def test_a_name_with_a_dot(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", **{"page.text": ["right"], "page": ["wrong"]})
        assert texts(path, text_field="page.text") == ["right"]
        path = parquet(tmp_path / "b.parquet", page=[{"text": "wrong"}], **{"page.text": ["right"]})
        assert texts(path, text_field="page.text") == ["right"]

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            (pa.array([None, None]), ", row 1: field 'text' is null, not a string (nor can 1 more be read)"),
            (pa.array([1, 2]), ": field 'text' is int64, not strings"),
            (pa.array([["a"], ["b"]]), ": field 'text' is list<element: string>, not strings"),
            (pa.array([{"a": "b"}]), ": field 'text' is struct<a: string>, not strings"),
            (pa.array([b"a"]), ": field 'text' is binary, not strings"),
            (pa.array([2**31 - 1], pa.date32()), ": field 'text' is date32[day], not strings"),
            (pa.array([2**62], pa.timestamp("us")), ": field 'text' is timestamp[us], not strings"),
        ],
        ids=["nothing", "numbers", "lists", "structs", "bytes", "dates", "times"],
    )
    def test_what_is_no_text(self, tmp_path: Path, column: Any, message: str) -> None:
        path = parquet(tmp_path / "a.parquet", text=column)
        fails([path], f"{path}{message}")

    def test_rows_are_counted_over_batches(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": [*map(str, range(200_000)), None]}), path, row_group_size=70_000)
        assert len(leaves_out([path], f"{path}, row 200001: field 'text' is null")) == 200_000

    @pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str)
    def test_rows_without_text_are_left_out(self, tmp_path: Path, kind: Any) -> None:
        path = parquet(tmp_path / "a.parquet", text=pa.array(["a", None, "b", "c"]).cast(kind))
        assert leaves_out([path], f"{path}, row 2: field 'text' is null, not a string") == ["a", "b", "c"]

    def test_a_flipped_bit_is_named_or_changes_nothing(self, tmp_path: Path) -> None:
        """Never fewer pages in silence, nor other texts, if the file has checksums: one bit of each byte in turn."""
        path = tmp_path / "a.parquet"
        table = pa.table({"text": [f"page {number} {number * 7919}" for number in range(12)]})
        pq.write_table(table, path, row_group_size=5, write_page_checksum=True)
        data, expected = path.read_bytes(), texts(path)
        found = [
            _texts_or_error(path, data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
            for at in range(len(data))
        ]
        for answer, said in found:
            assert answer == expected or str(path) in said
            assert answer in ([], expected[:5] + expected[10:], expected[:10], expected[5:], expected), said
        assert sum(answer == [] for answer, _ in found) > len(data) / 10
        assert sum(0 < len(answer) < 12 for answer, _ in found) > len(data) / 10

    @pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all", b'{"text": "a"}\n'], ids=repr)
    def test_none_at_all(self, tmp_path: Path, damage: bytes) -> None:
        path = written(tmp_path / "a.parquet", damage)
        fails([path], f"{path}: not a Parquet file, or damaged")

    def test_a_damaged_row_group_is_left_out(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pages = [f"page {n} of many" for n in range(5000)]
        pq.write_table(pa.table({"text": pages}), path, row_group_size=1000, compression="NONE")
        data = bytearray(path.read_bytes())
        where = pq.read_metadata(path).row_group(2).column(0).dictionary_page_offset
        data[where : where + 8] = bytes(8)
        path.write_bytes(data)
        parts = f"{path}, row 2001: damaged, and so is what follows up to row 3000: "
        assert leaves_out([path], parts) == pages[:2000] + pages[3000:]

    @pytest.mark.parametrize("where", ["cut", "middle", "tail"])
    def test_damaged(self, tmp_path: Path, where: str) -> None:
        path = parquet(tmp_path / "a.parquet", text=[f"page {n} of many" for n in range(5000)])
        data = bytearray(path.read_bytes())
        if where == "cut":
            del data[len(data) // 2 :]
        else:
            start = 4 if where == "middle" else len(data) - 200
            data[start : start + 64] = bytes(range(64, 128))
        path.write_bytes(data)
        fails([path], str(path), "damaged")

    def test_text_that_is_not_utf_8(self, tmp_path: Path) -> None:
        """Arrow writes such bytes unseen when they claim to be a string."""
        offsets = pa.py_buffer(bytes((0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0)))
        data = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xffb")])
        path = parquet(tmp_path / "a.parquet", text=data)
        assert leaves_out([path], f"{path}, row 1: field 'text'", "UTF8") == ["b"]


class TestPaths:
    def test_in_the_order_given(self, tmp_path: Path) -> None:
        b = written(tmp_path / "b.txt", b"b")
        a = written(tmp_path / "a.jsonl", lines({"text": "a"}))
        assert texts(b, a, b) == ["b", "a", "b"]

    @pytest.mark.parametrize("name", ["no.txt", "no.jsonl", "no.parquet", "no", "no.csv", "none/no.txt"])
    def test_missing(self, tmp_path: Path, name: str) -> None:
        fails([tmp_path / name], f"{tmp_path / name}: No such file or directory")

    @pytest.mark.parametrize("name", ["a.csv", "a.docx", "a", "a.json", "a.txt.gz", "a.PDF"])
    def test_unknown_kind(self, tmp_path: Path, name: str) -> None:
        path = written(tmp_path / name, b"a")
        fails([path], f"{path}: unknown kind of file", ".jsonl, .ndjson, .warc, .wet", ".parquet, .txt")

    @pytest.mark.parametrize("name", ["a.TXT", "A.JSONL", "a.Parquet"])
    def test_an_ending_in_capitals_is_none_of_ours(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        if name.lower().endswith("parquet"):
            parquet(path, text=["a"])
        else:
            written(path, b"a" if name.endswith("TXT") else lines({"text": "a"}))
        fails([path], f"{path}: unknown kind of file")

    def test_the_empty_path(self) -> None:
        fails([""], "an empty path")

    def test_a_nul_in_the_path(self) -> None:
        with pytest.raises(ValueError, match="null"):
            texts("a\0b.txt")

    def test_nothing(self) -> None:
        assert texts() == []


class TestJsonColumn:
    """Blocks of lines that are read at once: the texts that are read line by line, or nothing."""

    _fields = st.dictionaries(
        st.sampled_from(("text", "id", "a b", "ü")),
        st.recursive(
            st.one_of(st.text(max_size=6), st.integers(), st.floats(), st.booleans(), st.none()),
            lambda inner: st.one_of(
                st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)
            ),
            max_leaves=4,
        ),
        max_size=3,
    )
    _texts = st.one_of(
        st.text(max_size=9), st.sampled_from(("}{", "\ud800", "\ud83d\ude00", "\x00", "\n", '"}', "\x7f"))
    )

    _pieces = tuple(
        b'{ } " , : [ ] \\ // 0 - e NaN null Inf Infinity -Inf \\u00 \\ud800 "text" "text":"b" }{ \xff'.split(b" ")
    )
    _pieces += (b" ", b"\t", b"\r", b"\n", b"\x00", b"} {", b"\xe2\x80\xa8")

    @st.composite
    @staticmethod
    def _lines(draw: st.DrawFn) -> list[bytes]:
        lines = []
        for _ in range(draw(st.integers(1, 5))):
            record = draw(TestJsonColumn._fields)
            if draw(st.integers(0, 9)):
                record["text"] = draw(TestJsonColumn._texts)
            data = json.dumps(record, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
            for _ in range(draw(st.sampled_from((0, 0, 0, 0, 1, 2)))):  # whatever else may stand in a line
                at = draw(st.integers(0, len(data)))
                piece = draw(st.sampled_from(TestJsonColumn._pieces))
                data = data[:at] + piece + data[at + draw(st.integers(0, 2)) :]
            lines.append(data + draw(st.sampled_from((b"\n", b"\n", b"\r\n"))))
        if draw(st.booleans()):
            lines[-1] = lines[-1].rstrip(b"\n")
        return io.BytesIO(b"".join(lines)).readlines()

    @given(lines=_lines())
    def test_equals_line_by_line(self, lines: list[bytes]) -> None:
        column = json_column(lines, "text")
        if column is None:
            return
        numbers, expected = json_lines(lines, "here", "text")
        assert list(numbers) == list(range(1, len(lines) + 1))
        assert column.to_pylist() == expected.texts

    def test_plain_lines_are_read_at_once(self) -> None:
        records = [
            {"id": i, "text": f'page {i} ü \U0001f600 \\ " {{}}', "more": {"a": [i, None, 1.5]}} for i in range(50)
        ]
        for ascii_only in (True, False):
            block = b"".join(json.dumps(record, ensure_ascii=ascii_only).encode() + b"\n" for record in records)
            for data in (block, block.replace(b"\n", b"\r\n"), block.rstrip(b"\n")):
                column = json_column(io.BytesIO(data).readlines(), "text")
                assert column is not None
                assert column.to_pylist() == [record["text"] for record in records]

    @pytest.mark.parametrize(
        "line",
        [
            b'{"text": "a"} {"text": "b"}',
            b'{"text": "a"},{"text": "b"}',
            b'{"text": "a", "text": "b"}',
            b'{"text": null}',
            b'{"text": 1}',
            b'{"text": ["a"]}',
            b'{"tex": "a"}',
            b"{}",
            b"",
            b'  {"text": "a"}',
            b'{"text": "a"}  ',
            b'[{"text": "a"}]',
            b'{"text": "a\tb"}',
            b'{"text": "a\x00b"}',
            b'{"text": "\xff"}',
            b'{"text": "a", "other": "\xff"}',
            b'{"text": "\\ud800"}',
            b'{"text": "a", "n": NaN}',
            b'{"text": "a", "n": Inf}',
            b'{"text": "a", "n": -Inf }',
            b'{"text": "a", "n": [Inf,-Inf\t]}',
            b'{"n": Inf, "text": "a"}',
            b'{"text": "a", "n": 01}',
            b'{"text": "a",}',
            b"\xef\xbb\xbf" + b'{"text": "a"}',
            '{"text": "a"}'.encode("utf-16"),
        ],
    )
    def test_what_is_unusual(self, line: bytes) -> None:
        """Alone, and among lines that are not."""
        plain = b'{"text": "a"}'
        for lines in (
            [line],
            [plain + b"\n", line],
            [line + b"\n", plain + b"\n"],
            [plain + b"\n", line + b"\n", plain],
        ):
            column = json_column([one for one in lines if one], "text")
            if column is None:
                continue
            _, expected = json_lines(lines, "here", "text")
            assert column.to_pylist() == expected.texts

    def test_one_object_over_two_lines_and_two_on_one(self) -> None:
        lines = [b'{"text": "a", "m": {}\n', b"}\n", b'{"text": "b"} {"text": "c"}\n']
        assert json_column(lines, "text") is None
        assert json_column([b'{"text": "a", "m":\n', b"{}}\n", b'{"text": "b"} {"text": "c"}\n'], "text") is None


def test_html_files_give_their_main_text(tmp_path: Path) -> None:
    menu = "<nav><ul><li>menu here</ul></nav>"
    story = "<p>The main part of this page is a paragraph of many words: Größe.</p>" * 5
    (tmp_path / "a.html").write_bytes(f"<meta charset=latin-1>{menu}{story}".encode("latin-1"))
    (tmp_path / "b.HTM").write_text(story, encoding="utf-8")
    (tmp_path / "c.txt").write_text("<p>", encoding="utf-8")
    pages = [(page.id, page.text or "") for page in read_pages([tmp_path])]
    assert [Path(name).name for name, _ in pages] == ["a.html", "b.HTM", "c.txt"]
    assert pages[0][1].split() == pages[1][1].split()
    assert "Größe" in pages[0][1]
    assert "menu" not in pages[0][1]
    assert pages[2][1] == "<p>"
