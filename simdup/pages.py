"""Pages from files: JSONL, Parquet, WARC, text and HTML files and folders of them, JSONL on standard input."""

import contextlib
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast

from simdup.fields import LONGEST_TEXT, Batch, decode
from simdup.html import LARGEST, read_html
from simdup.jsonl import STDIN, name_of, read_jsonl
from simdup.parquet import read_parquet
from simdup.warc import read_warc

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
_SOME_PAGES = 256
_HOST = re.compile(r"[a-zA-Z][\w+.-]*://([^/?#]*)", re.ASCII)
_EXAMPLES = 20


class Page(NamedTuple):
    """A page: where it was read, its text, and what is wrong with it."""

    id: str
    text: str | None
    """None if it cannot be read."""
    problems: tuple[str, ...] = ()
    site: str | None = None
    """The host that a WARC file says it is from."""


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
                    texts = dict(zip(numbers, batch.with_sites(), strict=True))
                    for number in sorted({**texts, **batch.problems}):
                        text, site = texts.get(number, (None, None))
                        what = batch.problems.get(number)
                        page = Page(
                            place(file, kind, number, batch.names.get(number)), text, (what,) if what else (), site
                        )
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
        yield from read_jsonl(file, text_field, order_field, stdin)
    elif kind == "Parquet":
        yield from read_parquet(file, text_field, order_field)
    else:
        try:
            yield from _warc_pages(file) if kind == "WARC" else [_text(file)]
        except ImportError as error:
            raise ValueError(f"{file}: {error}") from None


def _text(file: str) -> tuple[Sequence[int], Batch]:
    try:
        is_html = file.lower().endswith(_HTML)
        with Path(file).open("rb") as source:
            data = source.read((LARGEST if is_html else LONGEST_TEXT) + 1)
        text, problem = read_html(data) if is_html else (decode(data), "")
        return (1,), Batch([text], problems={1: problem} if problem else {})
    except (ValueError, OSError) as error:
        return (), Batch([], problems={1: getattr(error, "strerror", None) or str(error)})


def _warc_pages(file: str) -> Iterator[tuple[Sequence[int], Batch]]:
    found = read_warc(file)
    while some := list(itertools.islice(found, _SOME_PAGES)):
        pages = [page for page in some if page.text is not None]
        problems = {page.number: page.problem for page in some if page.problem}
        texts = [cast("str", page.text) for page in pages]
        names = {page.number: page.url for page in some}
        hosts = [_HOST.match(page.url) for page in pages]
        sites = [host and host[1].lower() for host in hosts]
        yield [page.number for page in pages], Batch(texts, None, problems, names, sites)
