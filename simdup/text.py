"""Unicode text to canonical UTF-8 tokens.

The canonical text of a document is its tokens joined by one space. An n-gram is then a contiguous slice of
bytes, and any language can reproduce its hash. Normalisation (the default) removes invisible characters, applies
NFKC and case folding until nothing changes, and takes as tokens the runs of letters, combining marks and
digits; letters of scripts written without spaces (Han, Kana, Thai, Lao, Khmer, Myanmar) are one token each,
with their marks. Without normalisation a text is split on white space, as the article does. Masks, if the scheme has
any, are laid on the normalised text, before it is cut into tokens.

`normalize` is the definition. The kernel reads UTF-8 once and reaches the same tokens through a table; a
document with a character that the table cannot map alone is normalised by `normalize` first.
"""

import functools
import itertools
import re
import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdup import unicode
from simdup.jit import kernel
from simdup.mask import without_noise
from simdup.scheme import Scheme, as_scheme
from simdup.unicode import CODE_POINTS, EXPANDED, GROWTH, HARD, IGNORED, SEPARATOR, SINGLE, WORD

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

# The kernels read eight bytes at a time, so every buffer they read has this many behind its end.
SLACK = 8

# No language has so many marks on a letter (Unicode's stream-safe text has 30).
_LONG_RUN = 64
_INVISIBLE = re.compile(f"[{''.join(map(chr, unicode.IGNORED_CHARACTERS))}]+")

# An entry of the kernel's table, from the top: kind, whether it may compose with what is before it, whether with
# what is behind it, rank of the combining class, code point written (or place in the expansions).
_KIND_SHIFT, _ORDER_SHIFT = 29, 21
_WRITTEN, _ORDER, _FIRST, _SECOND = (1 << _ORDER_SHIFT) - 1, 0x3F, 0x40, 0x80


class Tokens(NamedTuple):
    """The canonical tokens of a batch of texts, one text after the other, a space behind each token."""

    canonical: Bytes
    """UTF-8, at least `SLACK` bytes longer than the tokens."""
    starts: Offsets
    """Where each token starts, and the end: token i is ``canonical[starts[i] : starts[i + 1] - 1]``. May be longer."""
    offsets: Offsets
    """Text d has the tokens ``offsets[d]`` to ``offsets[d + 1]``."""


def normalize_assigned(text: str) -> str:
    """NFKC and case folding until nothing changes, by Python's own tables."""
    before = None
    while text != before:
        before = text
        text = unicodedata.normalize("NFKC", text).casefold()
    return text


def _in_order(text: str) -> str:
    """Put long runs of marks into canonical order, which Python's own tables take the square of the time for."""
    if len(text) <= _LONG_RUN:
        return text
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").copy()
    ranks = unicode.load()["order"][codes]
    edges = np.flatnonzero(np.diff(ranks > 0, prepend=False, append=False)).reshape(-1, 2)
    long = edges[edges[:, 1] - edges[:, 0] > _LONG_RUN].tolist()
    for start, stop in long:
        codes[start:stop] = codes[start:stop][np.argsort(ranks[start:stop], kind="stable")]
    return codes.tobytes().decode("utf-32-le", "surrogatepass") if long else text


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
        changes nothing, but it need not be NFKC: folding takes apart what NFKC composes (ῢ). Characters assigned
        after Unicode 14 are not touched.

    Raises
    ------
    TypeError
        For what is no string.
    """
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.60} is no str")
    if text.isascii():
        return " ".join(text.lower().split())
    # Invisible characters go first, so that none of them keeps two characters from composing.
    text = _in_order(_INVISIBLE.sub("", text))
    parts = unicode.split_unassigned(text)
    parts[::2] = map(normalize_assigned, parts[::2])
    return " ".join("".join(parts).split())


@functools.cache
def _tables(unit: str, normalized: bool) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The kernel's tables, and the expansions that some of their entries point at.

    The tables have shape (2, 1114112): row 0 for texts as they come, row 1 for texts normalised before. Of the unit
    "text" the tokens are all that stands between white space: together, the text as `normalize` returns it.
    """
    points = np.arange(CODE_POINTS, dtype=np.uint32)
    if normalized:
        stored = {name: values.astype(np.uint32) for name, values in unicode.load().items()}
        kind, written, way, expansions = (stored[name] for name in ("kind", "written", "way", "expansions"))
        alone = np.where(way, 0, written)
        kinds = np.where(way, way, kind[alone])
        kinds[np.array(unicode.IGNORED_CHARACTERS)] = IGNORED
        flags = stored["order"][alone] | stored["first"] * _FIRST | stored["second"] * _SECOND
        first = (kinds << _KIND_SHIFT | flags << _ORDER_SHIFT | written).astype(np.uint32)
    else:
        kind, expansions = np.full(CODE_POINTS, WORD, np.uint32), np.empty(0, np.uint32)
        kind[[code for code in range(CODE_POINTS) if chr(code).isspace()]] = SEPARATOR
    if unit == "text" and normalized:
        kind, first, expansions = _all_but_white_space(first, expansions)
    plain = kind << _KIND_SHIFT | np.where(kind == SEPARATOR, ord(" "), points)
    tables = np.stack((first if normalized else plain, plain)).astype(np.uint32)
    if unit == "char":
        tables[tables >> _KIND_SHIFT == WORD] += np.uint32((SINGLE - WORD) << _KIND_SHIFT)
    return tables, expansions


def _all_but_white_space(
    entries: NDArray[np.uint32], expansions: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Make words of all that stands between white space: kinds of normalised characters, entries, expansions."""
    kinds = entries >> _KIND_SHIFT
    entries[kinds == SINGLE] -= np.uint32((SINGLE - WORD) << _KIND_SHIFT)
    codes = np.flatnonzero(kinds == SEPARATOR)
    forms = np.array([chr(code) for code in codes.tolist()], object)
    assigned = unicode.load()["assigned"][codes]
    # All at once: no separator reacts with a letter that stands before or behind it.
    forms[assigned] = normalize_assigned("x".join(forms[assigned])).split("x")
    more: list[int] = []
    normal = np.full(CODE_POINTS, WORD, np.uint32)
    for code, form in zip(codes.tolist(), forms.tolist(), strict=True):
        if form.isspace():
            normal[code] = SEPARATOR
            continue
        kind, written = WORD, ord(form[0])
        if len(form) > 1:
            fits = len(form.encode()) < GROWTH * len(chr(code).encode())
            kind, written = EXPANDED if fits else HARD, len(expansions) + len(more)
            more += [len(form), *map(ord, form)]
        flags = int(entries[code]) >> _ORDER_SHIFT & 0xFF
        entries[code] = kind << _KIND_SHIFT | flags << _ORDER_SHIFT | written
    return normal, entries, np.append(expansions, np.array(more, np.uint32))


@kernel
def _tokenize(data, offsets, normal, tables, expansions, canonical, starts, token_offsets):  # type: ignore[no-untyped-def]
    """Write the tokens of every text and return how many there are.

    ``normal[d]`` says which table text d is read by. A text that must be normalised first gets no token, and 1 in
    `normal`; the number returned is then negative.
    """
    zero, one = np.uint64(0), np.uint64(1)
    written, tokens = zero, zero
    complete = True
    token_offsets[0] = 0
    for text in range(len(normal)):
        table = tables[normal[text]]
        at, stop = np.uint64(offsets[text]), np.uint64(offsets[text + 1])
        first_written, first_token = written, tokens
        gap = one  # whether a space, or nothing, stands before `written`
        single = False  # whether the open token is a character by itself
        before = np.uint32(0)  # the flags of the character before
        hard = False
        while at < stop:
            # Plain ASCII without a branch per token: words end too irregularly for the processor to guess when.
            ascii_start = at
            while at < stop and not single:
                point = np.uint32(data[at])
                entry = table[point]
                kind = entry >> np.uint32(_KIND_SHIFT)
                if point & np.uint32(0x80) | kind & ~np.uint32(WORD):
                    break
                at += one
                word = np.uint64(kind)
                canonical[written] = entry & np.uint32(0xFF)
                starts[tokens] = written
                tokens += word & gap
                written += word | gap ^ one
                gap = word ^ one
            if at == stop:
                break
            if at != ascii_start:
                before = table[data[at - one]] >> np.uint32(_ORDER_SHIFT)
            # One character of any other sort, or one behind a token that is a character by itself.
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
            place, parts = np.uint64(entry & np.uint32(_WRITTEN)), one
            expanded = entry >> np.uint32(_KIND_SHIFT) == EXPANDED
            if expanded:
                parts = np.uint64(expansions[place])
            for part in range(parts):
                if expanded:
                    entry = table[expansions[place + one + np.uint64(part)]]
                kind = entry >> np.uint32(_KIND_SHIFT)
                flags = entry >> np.uint32(_ORDER_SHIFT)
                order, order_before = flags & np.uint32(_ORDER), before & np.uint32(_ORDER)
                reorders = order != 0 and order < order_before
                # Behind a mark it is only another mark that may compose with the letter before both.
                near = before & np.uint32(_FIRST) or (order != 0 and order_before != 0)
                composes = flags & np.uint32(_SECOND) and near
                # What an expansion consists of is normal in itself.
                if kind == HARD or ((reorders or composes) and part == 0):
                    hard = True
                    break
                if kind == IGNORED:
                    continue
                before = flags
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
                code = entry & np.uint32(_WRITTEN)
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
                break
        if hard:
            written, tokens = first_written, first_token
            normal[text], complete = 1, False
        elif gap == zero:
            canonical[written] = ord(" ")
            written += one
        token_offsets[text + 1] = np.int64(tokens)
    starts[tokens] = written
    return np.int64(tokens) if complete else -1


def tokenize(data: Bytes, offsets: Offsets, scheme: Scheme) -> Tokens:
    """Find the canonical tokens of a batch of texts.

    Parameters
    ----------
    data
        The texts in UTF-8 (lone surrogates in their three-byte form), one after the other.
    offsets
        Text d is ``data[offsets[d] : offsets[d + 1]]``, shape (n + 1,).
    scheme
        Its `unit`, `normalize` and `mask` say what a token is.

    Returns
    -------
    Tokens
        The tokens of all n texts.
    """
    tables = _tables("text" if scheme.mask else scheme.unit, scheme.normalize)
    normal = np.zeros(len(offsets) - 1, np.uint8)
    tokens, count = _tokenize_by(normal, data, offsets, *tables)
    if count < 0:
        texts = [data[start:stop].tobytes() for start, stop in itertools.pairwise(offsets.tolist())]
        for text in np.flatnonzero(normal).tolist():
            texts[text] = encode(normalize(texts[text].decode("utf-8", "surrogatepass")))
        tokens, _ = _tokenize_by(normal, *joined(texts), *tables)
    if scheme.mask:
        ends = tokens.starts[tokens.offsets]
        tokens.canonical[ends[ends > 0] - 1] = ord("\n")
        plain = without_noise(tokens.canonical[: ends[-1]], ends, scheme.mask)
        tokens, _ = _tokenize_by(np.ones_like(normal), *plain, *_tables(scheme.unit, scheme.normalize))
    return tokens


def _tokenize_by(
    normal: Bytes, data: Bytes, offsets: Offsets, tables: NDArray[np.uint32], expansions: NDArray[np.uint32]
) -> tuple[Tokens, int]:
    canonical = np.empty(GROWTH * len(data) + SLACK, np.uint8)
    starts = np.empty(len(data) + 2, np.int64)
    token_offsets = np.empty(len(offsets), np.int64)
    count = _tokenize(data, offsets, normal, tables, expansions, canonical, starts, token_offsets)
    return Tokens(canonical, starts, token_offsets), count


def encode(text: str) -> bytes:
    """UTF-8, with a lone surrogate in its three-byte form."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.60} is no str")
    return text.encode("utf-8", "surrogatepass")


def joined(parts: list[bytes]) -> tuple[Bytes, Offsets]:
    """Parts one after the other in one buffer, and their offsets, shape (n + 1,)."""
    offsets = np.fromiter(itertools.accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)
    return np.frombuffer(b"".join(parts), np.uint8), offsets


def tokens(text: str, scheme: Scheme) -> list[str]:
    """The canonical tokens of one text, as `fingerprint` sees them."""
    found = tokenize(*joined([encode(text)]), as_scheme(scheme))
    starts = found.starts[: found.offsets[-1] + 1].tolist()
    parts = (found.canonical[start : stop - 1] for start, stop in itertools.pairwise(starts))
    return [part.tobytes().decode("utf-8", "surrogatepass") for part in parts]
