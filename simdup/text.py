"""Unicode text to canonical UTF-8 tokens.

The canonical text of a document is its tokens joined by one space. An n-gram is then a contiguous slice of
bytes, and any language can reproduce its hash. Normalisation (the default) removes invisible characters, applies
NFKC and case folding until nothing changes, and takes as tokens the runs of letters, combining marks and
digits; letters of scripts written without spaces (Han, Kana, Thai, Lao, Khmer, Myanmar) are one token each,
with their marks. Without normalisation a text is split on white space, as the article does.

`normalize` is the definition. The kernel reads UTF-8 once and reaches the same tokens through a table; a
document with a character that the table cannot map alone is normalised by `normalize` first.
"""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simdup import unicode
from simdup.scheme import Scheme
from simdup.unicode import CODE_POINTS, HARD, IGNORED, KIND_SHIFT, MARK, ORDER_SHIFT, SEPARATOR, SINGLE, WORD

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

# The kernels read eight bytes at a time, so every buffer they read has this many behind its end.
SLACK = 8


class Tokens(NamedTuple):
    """The canonical tokens of a batch of texts, one text after the other, a space behind each token."""

    canonical: Bytes
    """UTF-8, at least `SLACK` bytes longer than the tokens."""
    starts: Offsets
    """Where each token starts, and the end: token i is ``canonical[starts[i] : starts[i + 1] - 1]``."""
    offsets: Offsets
    """Text d has the tokens ``offsets[d]`` to ``offsets[d + 1]``."""


def normalize_assigned(text: str) -> str:
    """NFKC and case folding until nothing changes, without the invisible characters, by Python's own tables."""
    before = None
    while text != before:
        before = text
        text = unicodedata.normalize("NFKC", text.translate(unicode.IGNORED_CHARACTERS)).casefold()
    return text


def normalize(text: str) -> str:
    """Normalise a text as the default `Scheme` does, the same under every Python.

    Parameters
    ----------
    text
        Any string; lone surrogates pass through.

    Returns
    -------
    str
        The text without soft hyphens, zero-width characters and variation selectors, NFKC-normalised and
        case-folded until stable, runs of white space as one space, none at the ends. Normalising it again
        changes nothing. Characters assigned after Unicode 14 are not touched.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    # Invisible characters go first, so that none of them keeps two characters from composing.
    text = text.translate(unicode.IGNORED_CHARACTERS)
    parts = unicode.unassigned().split(text)
    parts[::2] = map(normalize_assigned, parts[::2])
    return " ".join("".join(parts).split())


@functools.cache
def _tables(unit: str, normalized: bool) -> NDArray[np.uint32]:
    """The kernel's tables, shape (2, 1114112): row 0 for texts as they come, row 1 for texts normalised before."""
    points = np.arange(CODE_POINTS, dtype=np.uint32)
    if normalized:
        stored = {name: values.astype(np.uint32) for name, values in unicode.load().items()}
        kind, written = stored["kind"], stored["written"]
        flags = kind[written] + stored["hard"] * np.uint32(HARD)
        flags[list(unicode.IGNORED_CHARACTERS)] = IGNORED
        first = stored["order"][written] << ORDER_SHIFT | flags << KIND_SHIFT | written
    else:
        kind = np.full(CODE_POINTS, WORD, np.uint32)
        kind[[code for code in range(CODE_POINTS) if chr(code).isspace()]] = SEPARATOR
        first = kind << KIND_SHIFT | points
    tables = np.stack((first, kind << KIND_SHIFT | np.where(kind == SEPARATOR, ord(" "), points)))
    if unit == "char":
        tables[(tables >> KIND_SHIFT & 7) == WORD] += np.uint32(SINGLE - WORD) << KIND_SHIFT
    return tables.astype(np.uint32)


@njit(nogil=True, cache=True)
def _tokenize(data, offsets, normal, tables, canonical, starts, counts):  # type: ignore[no-untyped-def]
    """Write the tokens of every text; ``counts[d]`` is their number, or -1 for a text that must be normalised first."""
    zero, one = np.uint64(0), np.uint64(1)
    written, tokens = zero, zero
    for text in range(len(counts)):
        table = tables[normal[text]]
        at, stop = np.uint64(offsets[text]), np.uint64(offsets[text + 1])
        first_written, first_token = written, tokens
        gap = one  # whether a space, or nothing, stands before `written`
        single = False  # whether the open token is a character by itself
        order = np.uint32(0)
        hard = False
        while at < stop:
            point = np.uint32(data[at])
            at += one
            if point >= np.uint32(0x80):
                if point < np.uint32(0xE0):
                    more, point = one, point & np.uint32(0x1F)
                elif point < np.uint32(0xF0):
                    more, point = np.uint64(2), point & np.uint32(0x0F)
                else:
                    more, point = np.uint64(3), point & np.uint32(0x07)
                for _ in range(more):
                    point = point << np.uint32(6) | np.uint32(data[at]) & np.uint32(0x3F)
                    at += one
            entry = table[point]
            kind = entry >> np.uint32(KIND_SHIFT) & np.uint32(15)
            if kind <= WORD and point < np.uint32(0x80) and not single:
                # Plain ASCII without a branch: words end too irregularly for the processor to guess when.
                word = np.uint64(kind)
                canonical[written] = entry & np.uint32(0xFF)
                starts[tokens] = written
                tokens += word & gap
                written += word | gap ^ one
                gap = word ^ one
                order = np.uint32(0)
                continue
            before, order = order, entry >> np.uint32(ORDER_SHIFT)
            if kind >= HARD or (order != 0 and order < before):
                hard = True
                break
            if kind == IGNORED:
                order = before
                continue
            opens = kind != SEPARATOR and (gap == one or kind == SINGLE or (kind == WORD and single))
            if gap == zero and (opens or kind == SEPARATOR):
                canonical[written] = ord(" ")
                written += one
            if opens:
                starts[tokens] = written
                tokens += one
                single = kind == SINGLE
            if kind == SEPARATOR:
                gap, single = one, False
                continue
            gap = zero
            code = entry & np.uint32(0x1FFFFF)
            if code < np.uint32(0x80):
                canonical[written] = code
                written += one
            elif code < np.uint32(0x800):
                canonical[written] = np.uint32(0xC0) | code >> np.uint32(6)
                canonical[written + one] = np.uint32(0x80) | code & np.uint32(0x3F)
                written += np.uint64(2)
            elif code < np.uint32(0x10000):
                canonical[written] = np.uint32(0xE0) | code >> np.uint32(12)
                canonical[written + one] = np.uint32(0x80) | code >> np.uint32(6) & np.uint32(0x3F)
                canonical[written + np.uint64(2)] = np.uint32(0x80) | code & np.uint32(0x3F)
                written += np.uint64(3)
            else:
                canonical[written] = np.uint32(0xF0) | code >> np.uint32(18)
                canonical[written + one] = np.uint32(0x80) | code >> np.uint32(12) & np.uint32(0x3F)
                canonical[written + np.uint64(2)] = np.uint32(0x80) | code >> np.uint32(6) & np.uint32(0x3F)
                canonical[written + np.uint64(3)] = np.uint32(0x80) | code & np.uint32(0x3F)
                written += np.uint64(4)
        if hard:
            written, tokens = first_written, first_token
            counts[text] = -1
            continue
        if gap == zero:
            canonical[written] = ord(" ")
            written += one
        counts[text] = np.int64(tokens - first_token)
    starts[tokens] = written


def tokenize(data: Bytes, offsets: Offsets, scheme: Scheme) -> Tokens:
    """Find the canonical tokens of a batch of texts.

    Parameters
    ----------
    data
        The texts in UTF-8 (lone surrogates in their three-byte form), one after the other.
    offsets
        Text d is ``data[offsets[d] : offsets[d + 1]]``, shape (n + 1,).
    scheme
        Its `unit` and `normalize` say what a token is.

    Returns
    -------
    Tokens
        The tokens of all n texts.
    """
    size = int(offsets[-1] - offsets[0])
    # A code point of b bytes becomes at most one of 2 b - 1 bytes and a space.
    canonical = np.empty(2 * size + SLACK, np.uint8)
    starts = np.empty(size + 2, np.int64)
    counts = np.empty(len(offsets) - 1, np.int64)
    normal = np.zeros(len(counts), np.uint8)
    tables = _tables(scheme.unit, scheme.normalize)
    _tokenize(data, offsets, normal, tables, canonical, starts, counts)
    if counts.size and counts.min() < 0:
        normal[counts < 0] = 1
        texts = [data[start:stop].tobytes() for start, stop in zip(offsets[:-1], offsets[1:], strict=True)]
        for text in np.flatnonzero(normal):
            texts[text] = encode(normalize(texts[text].decode("utf-8", "surrogatepass")))
        data = np.frombuffer(b"".join(texts), np.uint8)
        offsets = running_total(list(map(len, texts)))
        canonical = np.empty(2 * len(data) + SLACK, np.uint8)
        starts = np.empty(len(data) + 2, np.int64)
        _tokenize(data, offsets, normal, tables, canonical, starts, counts)
    return Tokens(canonical, starts[: int(counts.sum()) + 1], running_total(counts))


def encode(text: str) -> bytes:
    """UTF-8, with a lone surrogate in its three-byte form."""
    return text.encode("utf-8", "surrogatepass")


def running_total(lengths: list[int] | Offsets) -> Offsets:
    """Offsets of parts that stand one after the other, from their lengths: shape (n + 1,), starting at 0."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def tokens(text: str, scheme: Scheme) -> list[str]:
    """The canonical tokens of one text, as `fingerprint` sees them."""
    data = np.frombuffer(encode(text), np.uint8)
    found = tokenize(data, np.array([0, len(data)]), scheme)
    starts = found.starts.tolist()
    return [
        found.canonical[start : stop - 1].tobytes().decode("utf-8", "surrogatepass")
        for start, stop in zip(starts[:-1], starts[1:], strict=True)
    ]
