"""JSONL: an object a line, in files, compressed or not, and on standard input."""

import contextlib
import functools
import gzip
import json
import re
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.json as pj

from simdup.fields import LONGEST_TEXT, Batch, check_names, check_order, decode, wrong

STDIN = "-"
# So many bytes of lines are in memory at a time, or one longer line.
_BLOCK_BYTES = 1 << 21
_BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
# What json.loads calls, without its detours: a third faster.
_raw_decode = json.JSONDecoder().raw_decode
_OBJECT_ENDS = (b"}\n", b"}\r\n", b"}")
# Arrow reads it as a number, which is no JSON, not even Python's.
_ARROWS_INFINITY = re.compile(rb"Inf[\s,\]}]")


def name_of(path: str) -> str:
    """How a path is called in places and in errors."""
    return "standard input" if path == STDIN else path


def read_jsonl(
    file: str, text_field: str, order_field: str | None = None, stdin: BinaryIO | None = None
) -> Iterator[tuple[Sequence[int], Batch]]:
    """Read records as `simdup.pages.read_file` says it."""
    for first, lines, problem in line_blocks(file, stdin):
        plain = order_field is None and lines and len(lines[-1]) <= LONGEST_TEXT
        column = json_column(lines, text_field) if plain else None
        if problem:
            yield (), Batch([], problems={first: problem})
        elif column is None:
            yield json_lines(lines, name_of(file), text_field, order_field, first)
        else:
            yield range(first, first + len(lines)), Batch(column)


def line_blocks(file: str, stdin: BinaryIO | None = None) -> Iterator[tuple[int, list[bytes], str]]:
    """The lines of a file, many at a time, with the number of the first. The same ones whenever it is read.

    At last, if it is compressed and damaged, come no lines, the number of the next, and what is wrong.
    """
    first, lines, size, problem = 1, list[bytes](), 0, ""
    with _opened(file, stdin) as source:
        try:
            for line in iter(functools.partial(source.readline, LONGEST_TEXT + 1), b""):
                more = line
                while len(line) > LONGEST_TEXT and more and not more.endswith(b"\n"):
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
            content = decode(line)
            if not content or content.isspace():
                continue
            fields = _parsed(content)
            check_names(fields, text_field)
            if not isinstance(fields[text_field], str):
                raise ValueError(wrong(text_field, fields[text_field], "a string"))
        except ValueError as error:
            problems[number] = str(error)
            continue
        if order_field is not None:
            try:
                check_names(fields, text_field, order_field)
                orders.append(check_order(order_field, fields[order_field]))
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
