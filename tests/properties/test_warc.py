"""WARC and WET files: pages found among all sorts of records, damage left out and named, copies of the rest."""

import gzip
import io
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st

import simdup.html
import simdup.warc
from simdup.html import read_html
from simdup.pages import Page, read_pages
from simdup.records import open_records
from simdup.warc import Found, read_warc

STORY = "<p>The main part of page {} is a paragraph of many words that nobody else has.</p>"


def record(kind: str, url: str, content_type: str, content: bytes) -> bytes:
    fields = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{random.Random(url).getrandbits(128):032x}>",
        "WARC-Target-URI": url,
        "WARC-Date": "2024-03-01T00:00:00Z",
        "Content-Type": content_type,
        "Content-Length": str(len(content)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"WARC/1.1\r\n{head}\r\n".encode() + content + b"\r\n\r\n"


def response(
    url: str, body: bytes, content_type: str = "text/html", status: str = "200 OK", fields: Iterable[str] = ()
) -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {content_type}", *fields, "", ""])
    return record("response", url, "application/http; msgtype=response", head.encode() + body)


def page(number: int) -> bytes:
    return response(f"http://example.org/{number}", STORY.format(number).encode())


def text(number: int) -> str:
    return STORY.format(number)[3:-4]


INFO = record("warcinfo", "", "application/warc-fields", b"software: a test\r\n")
REQUEST = record("request", "http://example.org/0", "application/http; msgtype=request", b"GET /0 HTTP/1.1\r\n\r\n")
RECORDS = [INFO, REQUEST, page(0), page(1), page(2), page(3)]


def warc(path: Path, records: Sequence[bytes]) -> str:
    path.write_bytes(b"".join(map(gzip.compress, records) if path.suffix == ".gz" else records))
    return os.fspath(path)


def found(path: str | Path) -> list[tuple[int, str | None]]:
    return [(each.number, each.text) for each in read_warc(os.fspath(path))]


def problems(path: str | Path) -> list[tuple[int, str]]:
    return [(each.number, each.problem) for each in read_warc(os.fspath(path)) if each.problem]


def only(path: Path, one: bytes) -> Found:
    """What is read of a record that stands between two pages, which are read whatever it is."""
    before, each, after = read_warc(warc(path, [page(0), one, page(1)]))
    assert (before.number, before.text) == (1, text(0))
    assert (after.number, after.text) == (3, text(1))
    assert each.number == 2
    return each


ENDINGS = pytest.mark.parametrize("ending", ["warc", "warc.gz"])


class TestPages:
    @ENDINGS
    def test_numbers_urls_and_texts(self, tmp_path: Path, ending: str) -> None:
        path = warc(tmp_path / f"a.{ending}", RECORDS)
        assert list(read_warc(path)) == [Found(n + 3, f"http://example.org/{n}", text(n), "") for n in range(4)]
        assert list(read_pages([path])) == [
            Page(f"{path}, record {n + 3} (http://example.org/{n})", text(n), (), "example.org") for n in range(4)
        ]

    def test_compressed_as_a_whole(self, tmp_path: Path) -> None:
        """Not the custom, but what gzip does to a file."""
        (tmp_path / "a.warc.gz").write_bytes(gzip.compress(b"".join(RECORDS)))
        assert found(tmp_path / "a.warc.gz") == [(n + 3, text(n)) for n in range(4)]

    def test_wet(self, tmp_path: Path) -> None:
        lines = "Größe\n第三页\n"
        one = record("conversion", "http://example.org/", "text/plain", lines.encode())
        assert found(warc(tmp_path / "a.warc.wet.gz", [INFO, one])) == [(2, lines)]
        assert [page.text for page in read_pages([warc(tmp_path / "a.wet", [one])])] == [lines]

    @pytest.mark.parametrize(
        ("one", "expected"),
        [
            (response("u", b"<p>a", "text/html; charset=utf-8"), "a"),
            (response("u", b"<p>a", "Application/XHTML+XML"), "a"),
            (response("u", b"a <p>", "text/plain"), "a <p>"),
            (record("resource", "u", "text/html", b"<p>a"), "a"),
            (record("resource", "u", "text/plain; charset=x", b"a"), "a"),
            (response("u", b""), ""),
        ],
        ids=["charset", "xhtml", "plain", "resource", "plain resource", "empty"],
    )
    def test_what_is_a_page(self, tmp_path: Path, one: bytes, expected: str) -> None:
        assert only(tmp_path / "a.warc.gz", one)[2:] == (expected, "")

    @pytest.mark.parametrize(
        "one",
        [
            INFO,
            REQUEST,
            record("metadata", "u", "application/warc-fields", b"a: b\r\n"),
            record("revisit", "u", "application/http; msgtype=response", b"HTTP/1.1 200 OK\r\n\r\n"),
            record("something", "u", "text/html", b"<p>a"),
            record("response", "dns:example.org", "text/dns", b"example.org 1 IN A 127.0.0.1"),
            response("u", b"<p>a", status="404 Not Found"),
            response("u", b"", status="301 Moved"),
            response("u", b"%PDF", "application/pdf"),
            response("u", b"{}", "application/json"),
            response("u", b"<p>a", ""),
        ],
    )
    @ENDINGS
    def test_what_is_no_page(self, tmp_path: Path, one: bytes, ending: str) -> None:
        assert found(warc(tmp_path / f"a.{ending}", [page(0), one, page(1)])) == [(1, text(0)), (3, text(1))]

    @pytest.mark.parametrize(
        ("charset", "declared"), [("gbk", ""), ("gbk", "utf-8"), ("gbk", "big5"), ("shift_jis", "")]
    )
    def test_the_server_says_the_encoding(self, tmp_path: Path, charset: str, declared: str) -> None:
        """Before what the page says, as for a browser; a byte-order mark and UTF-8 itself come before both."""
        words = "日本の中国" * 5
        meta = f"<meta charset={declared}>" if declared else ""
        one = response("u", f"{meta}<p>{words}".encode(charset), f"text/html; charset={charset}")
        assert only(tmp_path / "a.warc", one).text == words
        wrong = response("u", f"{meta}<p>{words}".encode(), f"text/html; charset={charset}")
        assert only(tmp_path / "a.warc", wrong).text == words

    @pytest.mark.parametrize("charset", ["base64", "undefined", "idna", "no-such", "utf-16", '"', "ü", "x" * 999])
    def test_what_is_no_encoding_is_not_believed(self, tmp_path: Path, charset: str) -> None:
        one = response("u", "<p>Größe und Straße".encode("latin-1"), f"text/html; charset={charset}")
        assert only(tmp_path / "a.warc", one).text == "Größe und Straße"

    def test_all_text_for_want_of_a_main_part(self, tmp_path: Path) -> None:
        content = b"<nav>" + b"<a href=x>word</a> " * 400 + b"</nav><p>x"
        _, problem = read_html(content)
        assert problem == "no main part found: all text was taken"
        each = only(tmp_path / "a.warc", response("u", content))
        assert each.problem == problem
        assert (each.text or "").count("word") == 400


class TestContents:
    """Contents as servers send them."""

    BODY = b"<p>" + b"word after word " * 99
    CHUNKED = b"5\r\n<p>wo\r\n%x\r\n" % (len(BODY) - 5) + BODY[5:] + b"\r\n0\r\n\r\n"
    PACKED = gzip.compress(BODY)

    @pytest.mark.parametrize(
        ("content", "fields"),
        [
            (CHUNKED, ["Transfer-Encoding: chunked"]),
            (PACKED, ["Content-Encoding: gzip"]),
            (PACKED, ["content-encoding: X-GZIP"]),
            (zlib.compress(BODY), ["Content-Encoding: deflate"]),
            (gzip.compress(PACKED), ["Content-Encoding: gzip, gzip"]),
            (zlib.compress(PACKED), ["Content-Encoding: gzip, deflate"]),
            (
                b"%x\r\n" % len(PACKED) + PACKED + b"\r\n0\r\n\r\n",
                ["Transfer-Encoding: chunked", "Content-Encoding: gzip"],
            ),
            (BODY, ["Content-Encoding: identity"]),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_decoded(self, tmp_path: Path, content: bytes, fields: list[str]) -> None:
        assert only(tmp_path / "a.warc", response("u", content, fields=fields))[2:] == (read_html(self.BODY))

    @pytest.mark.parametrize(
        "field",
        [
            "Transfer-Encoding: chunked",
            *(f"Content-Encoding: {name}" for name in ("gzip", "deflate", "br", "zstd", "x")),
        ],
    )
    def test_decoded_already_by_the_crawler(self, tmp_path: Path, field: str) -> None:
        assert only(tmp_path / "a.warc", response("u", self.BODY, fields=[field]))[2:] == (read_html(self.BODY))

    def test_damaged(self, tmp_path: Path) -> None:
        noise = random.Random(0).randbytes(999)
        each = only(tmp_path / "a.warc", response("u", noise, fields=["Content-Encoding: gzip"]))
        assert each.text is None
        assert each.problem.startswith("damaged: ")
        assert each.url == "u"

    def test_heads_that_are_none(self, tmp_path: Path) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
        for content in (head + b"A: b\r\n" * 99_999 + b"\r\n", head, head + b"A: b\r\n<p>A page"):
            each = only(tmp_path / "a.warc", record("response", "u", "application/http", content))
            assert each[1:] == ("u", None, "damaged: the head of the response has no end")

    @pytest.mark.parametrize("content", [b"", b"nonsense", b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 2000\r\n\r\n", b"\0" * 99])
    def test_responses_that_are_none(self, tmp_path: Path, content: bytes) -> None:
        path = warc(tmp_path / "a.warc", [page(0), record("response", "u", "application/http", content), page(1)])
        assert found(path) == [(1, text(0)), (3, text(1))]


class TestDamage:
    @ENDINGS
    def test_cut_short(self, tmp_path: Path, ending: str) -> None:
        """Anywhere in the last record: those before are there, and it is named, unless all of its text is there."""
        path = Path(warc(tmp_path / f"a.{ending}", RECORDS))
        data = path.read_bytes()
        last = len(gzip.compress(RECORDS[-1]) if ending == "warc.gz" else RECORDS[-1])
        for cut in range(1, last - 8):
            path.write_bytes(data[:-cut])
            each = found(path)
            assert each[:3] == [(n + 3, text(n)) for n in range(3)], cut
            if cut <= 20 and each[3] == (6, text(3)):
                assert each[4:] in ([], [(7, None)])
            else:
                assert each[3:] == [(6, None)], cut

    def test_cut_short_where_it_is_compressed_as_a_whole(self, tmp_path: Path) -> None:
        data = gzip.compress(b"".join([*RECORDS, *map(page, range(4, 400))]))
        (tmp_path / "a.warc.gz").write_bytes(data[: len(data) // 2])
        pages = list(read_warc(f"{tmp_path}/a.warc.gz"))
        assert len(pages) > 50
        assert [(each.number, each.text) for each in pages[:-1]] == [(n + 3, text(n)) for n in range(len(pages) - 1)]
        assert pages[-1].problem

    @ENDINGS
    @pytest.mark.parametrize("which", range(6))
    def test_one_damaged_record_costs_one(self, tmp_path: Path, ending: str, which: int) -> None:
        damaged = list(map(gzip.compress, RECORDS)) if ending == "warc.gz" else list(RECORDS)
        one = bytearray(damaged[which])
        at = 12 if ending == "warc.gz" else 0
        one[at : at + 4] = b"\xff\xff\xff\xff"
        damaged[which] = bytes(one)
        path = tmp_path / f"a.{ending}"
        path.write_bytes(b"".join(damaged))
        texts = [text(n) for n in range(4) if n != which - 2]
        assert [each for _, each in found(path) if each is not None] == texts
        ((number, problem),) = problems(path)
        assert (number, problem[:9]) == (which + 1, "damaged: ")

    def test_a_wrong_length(self, tmp_path: Path) -> None:
        """One that claims all that follows, more, or too little: the next record is found."""
        for claimed in (b"999999", b"600", b"200", b"70"):
            length = page(1).split(b"Content-Length: ")[1].split(b"\r\n")[0]
            wrong = page(1).replace(b"Content-Length: " + length, b"Content-Length: " + claimed)
            path = warc(tmp_path / "a.warc", [page(0), wrong, page(2), page(3)])
            texts = [each for _, each in found(path) if each is not None]
            assert texts[0] == text(0)
            assert texts[-2:] == [text(2), text(3)]
            assert len(problems(path)) == 1

    @pytest.mark.parametrize("size", [1, 5, 200, 1 << 20, (1 << 20) + 3, 3 << 20])
    @ENDINGS
    def test_junk_between_records(self, tmp_path: Path, ending: str, size: int) -> None:
        """However much; what looks like the start of a record is in it too."""
        junk = random.Random(size).randbytes(size)
        junk += b"\x1f\x8b\x08 WARC/ \x1f\x8b\x08\x00" if size == 200 else b""
        pack = gzip.compress if ending == "warc.gz" else bytes
        path = tmp_path / f"a.{ending}"
        path.write_bytes(pack(page(0)) + junk + (b"" if ending == "warc.gz" else b"\n") + pack(page(1)))
        assert found(path) == [(1, text(0)), (2, None), (3, text(1))]

    @pytest.mark.parametrize("data", [b"junk", b"<html>" * 999, gzip.compress(b"no"), b"WARC/1.0\r\n", b"\x1f\x8b\x08"])
    def test_nothing_but_junk(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "a.warc.gz"
        path.write_bytes(data)
        assert [number for number, _ in problems(path)] == [1]
        with pytest.raises(ValueError, match=r"a\.warc\.gz, record 1: damaged: "):
            list(read_pages([path]))

    def test_empty(self, tmp_path: Path) -> None:
        (tmp_path / "a.warc").write_bytes(b"")
        assert list(read_pages([tmp_path / "a.warc"])) == []

    @given(
        compressed=st.booleans(),
        damage=st.lists(st.tuples(st.integers(0, 2**16), st.binary(max_size=4), st.integers(0, 9)), max_size=3),
    )
    def test_any_damage(
        self, tmp_path_factory: pytest.TempPathFactory, compressed: bool, damage: list[tuple[int, bytes, int]]
    ) -> None:
        """Never a crash; every page is there as it was, or a problem is named; both passes count alike."""
        folder = tmp_path_factory.mktemp("warc")
        path = folder / ("a.warc.gz" if compressed else "a.warc")
        data = Path(warc(path, RECORDS)).read_bytes()
        for at, put, size in damage:
            at %= len(data) + 1
            data = data[:at] + put + data[at + size :]
        path.write_bytes(data)
        each = list(read_warc(os.fspath(path)))
        if compressed:  # with a checksum
            texts = [one.text for one in each]
            assert texts == list(map(text, range(4))) or any(one.problem for one in each), texts
        assert [one.number for one in each] == sorted({one.number for one in each})
        out = io.BytesIO()
        broken = {one.number for one in each if one.text is None}
        simdup.warc.copy_warc(os.fspath(path), broken, out, False)
        (folder / "b.warc").write_bytes(out.getvalue())
        again = [(one.url, one.text) for one in read_warc(f"{folder}/b.warc")]
        assert again == [(one.url, one.text) for one in each if one.text is not None]


class TestBounds:
    """Memory is bounded whatever a file unfolds to: in a process of its own, whose memory is measured."""

    CODE = (
        "import sys, resource\n"
        "from simdup.pages import read_pages\n"
        "list(read_pages(sys.argv[2:3]))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for page in read_pages(sys.argv[1:2]):\n    print(len(page.text or ''), *page.problems)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )

    @staticmethod
    def unfolds(head: bytes, size: int, end: bytes = b"") -> bytes:
        """Compressed: something, so many MiB of spaces, and something."""
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        spaces = b" " * (1 << 20)
        parts = [packer.compress(head), *(packer.compress(spaces) for _ in range(size)), packer.compress(end)]
        return b"".join(parts) + packer.flush()

    def measured(self, path: Path, small: str) -> tuple[list[str], int]:
        done = subprocess.run(
            [sys.executable, "-c", self.CODE, path, small], capture_output=True, text=True, check=True, timeout=300
        )
        *lines, memory = done.stdout.splitlines()
        return lines, int(memory)

    def test_of_1_gb(self, tmp_path: Path) -> None:
        size = 1024
        length = size << 20
        http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
        head = record("response", "http://bomb/", "application/http", http).partition(b"Content-Length")[0]
        head += b"Content-Length: %d\r\n\r\n" % (length + len(http)) + http
        packed = response("http://inner/", self.unfolds(b"", size), fields=["Content-Encoding: gzip"])
        path = tmp_path / "a.warc.gz"
        path.write_bytes(
            self.unfolds(head, size, b"\r\n\r\n")
            + gzip.compress(packed)
            + self.unfolds(b"WARC/1.1\r\nWARC-Type: response\r\nX: ", size)
            + gzip.compress(page(1))
        )
        lines, memory = self.measured(path, warc(tmp_path / "b.warc.gz", RECORDS))
        assert [line.partition(" ")[2][:10] for line in lines] == ["larger tha", "larger tha", "damaged: M", ""]
        assert memory < 200  # MiB

    def test_lines_of_1_gb(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl.gz"
        path.write_bytes(self.unfolds(b'{"text": "', 1024, b'"}\n{"text": "good"}\n'))
        (tmp_path / "b.jsonl").write_bytes(b'{"text": "a"}\n')
        lines, memory = self.measured(path, f"{tmp_path}/b.jsonl")
        assert lines == ["0 longer than 128 MiB", "4"]
        assert memory < 3 * 128 + 100


class TestRecords:
    """What dedup does: some pages are kept, and all that are none."""

    @ENDINGS
    @pytest.mark.parametrize("output", ["warc", "warc.gz"])
    @pytest.mark.parametrize("bits", range(0, 16, 3))
    def test_kept(self, tmp_path: Path, ending: str, output: str, bits: int) -> None:
        keep = np.array([bits >> n & 1 for n in range(4)], bool)
        path = warc(tmp_path / f"a.{ending}", RECORDS)
        with open_records([path]) as records:
            assert sum(len(batch.texts) for batch in records.batches()) == 4
            assert [records.place(row) for row in range(4)] == [page.id for page in read_pages([path])]
            records.write(keep, f"{tmp_path}/kept.{output}")
        expected = [*RECORDS[:2], *(page(n) for n in range(4) if keep[n])]
        written = (tmp_path / f"kept.{output}").read_bytes()
        assert (gzip.decompress(written) if output == "warc.gz" else written) == b"".join(expected)
        starts = [each.stream_pos for each in ArchiveIterator(io.BytesIO(written), parse_http=False)]
        assert len(set(starts)) == len(expected)  # compressed one by one

    @ENDINGS
    def test_damaged_records_are_not_written(self, tmp_path: Path, ending: str) -> None:
        large = response("http://large/", b"<p>" + b"x" * simdup.html.LARGEST)
        other = response("http://video/", bytes(simdup.html.LARGEST + 1), "video/mp4")
        path = Path(warc(tmp_path / f"a.{ending}", [page(0), large, other, page(1), other]))
        path.write_bytes(path.read_bytes()[:-99])
        with open_records([os.fspath(path)]) as records:
            texts = [text for batch in records.batches() for text in batch.as_list()]
            assert texts == [text(0), text(1)]
            assert {problem for _, problem in records.problems.examples} == {"larger than 16 MiB", "damaged: cut short"}
            records.write(np.array([True, True]), f"{tmp_path}/kept.warc")
        assert (tmp_path / "kept.warc").read_bytes() == page(0) + other + page(1)

    def test_several_files(self, tmp_path: Path) -> None:
        paths = [warc(tmp_path / f"{n}.warc.gz", [INFO, page(n), page(n + 1)]) for n in (0, 2)] * 2
        with open_records(paths) as records:
            for _ in records.batches():
                pass
            records.write(np.arange(8) % 3 == 0, f"{tmp_path}/kept.wet")
        expected = [INFO, page(0), INFO, page(3), INFO, INFO, page(2)]
        assert (tmp_path / "kept.wet").read_bytes() == b"".join(expected)

    def test_errors(self, tmp_path: Path) -> None:
        path = warc(tmp_path / "a.warc", RECORDS)
        with pytest.raises(ValueError, match="WARC has no field 'date'"):
            open_records([path], order_field="date")
        records = open_records([path])
        for name in ("kept.jsonl", "kept.gz", "kept", "-", "kept.warc.zst"):
            with pytest.raises(ValueError, match=r"WARC is written: give a name that ends in \.warc or \.wet"):
                records.check_output(name)

    def test_without_fastwarc(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "fastwarc.warc", None)
        with pytest.raises(ValueError, match=r"a\.warc: WARC needs fastwarc: pip install 'simdup\[pages\]'"):
            list(read_pages([warc(tmp_path / "a.warc", RECORDS)]))
