"""WARC and WET files: the pages among their records, and copies without some of these."""

import functools
import io
import re
import zlib
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from simdup.html import LARGEST, TOO_LARGE, decoded, read_html

_NEEDED = "WARC needs fastwarc: pip install 'simdup[pages]'"
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = "text/plain"
# So long may be what stands before the content of a record, and before that of a response.
_LONGEST_HEAD = 1 << 16
_BLOCK_BYTES = 1 << 20
# What a record begins with, at the start of a line or compressed; of that so many bytes tell.
_WARC = b"WARC/"
_BEGINS = re.compile(rb"\x1f\x8b\x08|(?<=\n)WARC/")
_TELLING = 1 << 10
_GZIP = zlib.MAX_WBITS | 16
_FOUND = re.compile(rb"HTTP/[0-9.]+ +200\b")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.ASCII | re.IGNORECASE)


class Found(NamedTuple):
    """A page, or a record that cannot be read."""

    number: int
    """Which record of the file it is, from 1."""
    url: str
    text: str | None
    """None if it cannot be read."""
    problem: str
    """What is wrong, if anything is."""


def read_warc(path: str) -> Iterator[Found]:
    """Read the pages of a WARC or WET file, compressed or not.

    Pages are responses of status 200, resources and conversions, if they are HTML, of which the main part is taken
    (`simdup.html`), or plain text. Instead of what is damaged, cut short or larger than 16 MiB comes what is wrong, and
    the rest goes on.

    Raises
    ------
    OSError
        If there is no such file.
    ImportError
        Without fastwarc, which ``simdup[pages]`` brings.
    """
    for number, record, problem in _records(path):
        url, text = "", None
        if record is not None:
            url = (record.headers.get("WARC-Target-URI") or "").strip("<>")
            try:
                page = _page(record)
                if page is None:
                    continue
                text, problem = page
            except ValueError as error:
                problem = str(error)
        yield Found(number, url, text, problem)


def copy_warc(path: str, leave_out: Container[int], out: BinaryIO, compressed: bool) -> None:
    """Append all records but those of some numbers to a file: the same fields and contents, compressed one by one."""
    from fastwarc.stream_io import GzipWriter

    for number, record, _ in _records(path):
        if record is not None and number not in leave_out:
            if compressed:
                member = GzipWriter(out)
                record.write(member)
                member.finish()
            else:
                record.write(out)


def _records(path: str) -> Iterator[tuple[int, Any, str]]:
    """Every record with its number, its content in memory unless it is too large for a page; or None and what is wrong.

    Between two records that can be read one is counted, however many there were. The same numbers in every pass.
    """
    try:
        from fastwarc.warc import ArchiveIterator
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    with Path(path).open("rb") as file:
        number, start, sound = 0, 0, True
        while start >= 0:
            file.seek(start)
            try:
                begin, size = start, 0
                for record in ArchiveIterator(file, parse_http=False, max_header_len=_LONGEST_HEAD):
                    start, size = max(start, record.stream_pos), record.content_length
                    if size <= LARGEST:
                        record.freeze()
                    if record.content_length < size or not record.headers.get("Content-Length"):
                        raise OSError("cut short")
                    number, sound = number + 1, True
                    yield number, record, ""
                start = _unread(file, begin, start, size)
                if start < 0:
                    return
                raise OSError("cut short")
            except OSError as error:
                if sound:
                    number += 1
                    yield number, None, f"damaged: {error}"
                sound = False
            start = _next_record(file, start + 1)


def _unread(file: BinaryIO, begin: int, start: int, size: int) -> int:
    """Where something stands that was not read, behind the last record, with a content of so many bytes; or -1.

    The reader ends where a head is cut short as it does at the end of a file.
    """
    file.seek(start)
    block = file.read(_LONGEST_HEAD)
    if block.startswith(_WARC):
        end = start + block.find(b"\r\n\r\n") + 4 + size
        file.seek(end)
        return end if file.read(_LONGEST_HEAD).strip() else -1
    if _inflated(block) != _WARC:  # no record of its own, for all are compressed as one
        start = begin
        file.seek(start)
        block = file.read(_LONGEST_HEAD)
    unpacker = zlib.decompressobj(_GZIP)
    try:
        while block and not unpacker.eof:
            unpacker.decompress(block)
            block = unpacker.unused_data or file.read(_LONGEST_HEAD)
    except zlib.error:
        return start
    return start if block or (file.tell() and not unpacker.eof) else -1


def _next_record(file: BinaryIO, start: int) -> int:
    """Where the next record may begin, or -1."""
    while True:
        file.seek(start - 1)  # for the end of the line before
        block = file.read(_BLOCK_BYTES)
        for match in _BEGINS.finditer(block, 1):
            at = match.start()
            if match[0] == _WARC or _inflated(block[at : at + _TELLING]) == _WARC:
                return start - 1 + at
        if len(block) < _BLOCK_BYTES:
            return -1
        start += len(block) - _TELLING


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(_GZIP).decompress(data, len(_WARC))
    except zlib.error:
        return b""


def _page(record: Any) -> tuple[str, str] | None:
    """The text of a record, and what was unusual about it; None if it is no page."""
    if record.content_length > LARGEST:
        _check_size(record)
        return None
    sort, about = str(record.record_type), record.headers.get("Content-Type") or ""
    content: bytes = record.reader.read()
    if sort == "response":
        head, end, content = content.partition(b"\r\n\r\n")
        if not _FOUND.match(head):
            return None
        if not end or len(head) > _LONGEST_HEAD:
            raise ValueError("damaged: the head of the response has no end")
        lines = (line.partition(":") for line in head.decode("latin-1").splitlines())
        fields = {name.strip().lower(): value.strip() for name, _, value in lines}
        content = _decoded(content, fields)
        about = fields.get("content-type", "")
    elif sort not in ("resource", "conversion"):
        return None
    kind = about.partition(";")[0].strip().lower()
    found = _CHARSET.search(about)
    charset = found[1] if found else None
    if kind == _TEXT:
        return decoded(content, charset), ""
    return read_html(content, charset) if kind in _HTML else None


def _check_size(record: Any) -> None:
    """Refuse a page that is too large, or else a record that is cut short, which nobody has seen yet."""
    size, head = record.content_length, record.reader.read(_LONGEST_HEAD)
    if len(head) + record.reader.consume() < size:
        raise ValueError("damaged: cut short")
    kind = record.headers.get("Content-Type") or ""
    if kind.startswith((_TEXT, *_HTML)) or b"text/html" in head.partition(b"\r\n\r\n")[0].lower():
        raise ValueError(TOO_LARGE)


def _decoded(content: bytes, fields: Mapping[str, str]) -> bytes:
    """A content, decoded as its head says; some crawlers keep that head though they decoded the content."""
    from fastwarc.stream_io import BrotliReader, ChunkedReader, GzipReader, ZstdReader

    readers: dict[str, Any] = {
        "chunked": ChunkedReader,
        "gzip": GzipReader,
        "x-gzip": GzipReader,
        "deflate": functools.partial(GzipReader, zlib=True),
        "br": BrotliReader,
        "zstd": ZstdReader,
    }
    for field in ("transfer-encoding", "content-encoding"):
        for coding in reversed(fields.get(field, "").lower().split(",")):
            if not content or (reader := readers.get(coding.strip())) is None:
                continue
            try:
                content = reader(io.BytesIO(content)).read(LARGEST + 1)
            except OSError as error:
                if 0 in content:
                    raise ValueError(f"damaged: {error}") from None
            if len(content) > LARGEST:
                raise ValueError(TOO_LARGE)
    return content
