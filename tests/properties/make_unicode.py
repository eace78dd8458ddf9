"""The frozen Unicode table, made once and for all by ``python3.11 -m tests.properties.make_unicode``.

Characters assigned after Unicode 14 follow one rule, `_kind_unassigned`: on the two ideographic planes they are a token
each, in the pictograph blocks they separate, everywhere else they are letters.
"""

import re
import unicodedata
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdup.text import normalize_assigned
from simdup.unicode import CODE_POINTS, EXPANDED, FILE, GROWTH, HARD, MARK, SEPARATOR, SINGLE, VERSION, WORD

# The scripts written without spaces, by the names of their letters.
_UNSPACED = re.compile(
    "CJK UNIFIED|CJK COMPATIBILITY IDEOGRAPH|IDEOGRAPHIC (ITERATION|NUMBER|CLOSING)|HANGZHOU NUMERAL|"
    "HIRAGANA|KATAKANA|HENTAIGANA|VERTICAL KANA|MASU|THAI|LAO|KHMER|MYANMAR"
)


def _kind_unassigned(code: int) -> int:
    """The one rule for code points without a meaning in Unicode 14."""
    if 0x20000 <= code <= 0x3FFFD:
        return SINGLE
    return SEPARATOR if 0x1F000 <= code <= 0x1FAFF else WORD


def _kind(character: str) -> int:
    """The part a character plays that stands for itself."""
    category = unicodedata.category(character)
    if category == "Cn":
        return _kind_unassigned(ord(character))
    if category in ("Mn", "Mc"):
        return MARK
    if category[0] == "L" or category == "Nl":
        return SINGLE if _UNSPACED.match(unicodedata.name(character, "")) else WORD
    # A lone surrogate is kept: dropping it would make different texts equal.
    return WORD if category[0] == "N" or category == "Cs" else SEPARATOR


def _composing() -> tuple[set[str], set[str]]:
    """Characters that NFC may compose with the one behind them, and with the one before them."""
    firsts = {chr(code) for code in (*range(0x1100, 0x1113), *range(0xAC00, 0xD7A4, 28))}
    seconds = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for character in map(chr, range(CODE_POINTS)):
        parts = unicodedata.decomposition(character)
        if parts and not parts.startswith("<") and " " in parts:
            composed = unicodedata.normalize("NFC", unicodedata.normalize("NFD", character))
            if composed == character:
                first, second = (chr(int(part, 16)) for part in parts.split())
                firsts.add(first)
                seconds.add(second)
    return firsts, seconds


def _outer_marks(text: str) -> tuple[list[str], list[str]]:
    """The marks at the start and at the end of a decomposed text, which may change places with their neighbours."""
    parts = unicodedata.normalize("NFKD", text)
    starts, ends = (list(takewhile(unicodedata.combining, side)) for side in (parts, reversed(parts)))
    return starts, ends


def build() -> dict[str, NDArray[Any]]:
    """Compute what `simdup.unicode.load` returns from this Python's Unicode data, which must be version 14."""
    if unicodedata.unidata_version != VERSION:
        raise RuntimeError(f"the table is made from Unicode {VERSION}, this Python has {unicodedata.unidata_version}")
    firsts, seconds = _composing()
    characters = list(map(chr, range(CODE_POINTS)))
    classes = np.array([unicodedata.combining(character) for character in characters])
    written = np.arange(CODE_POINTS, dtype=np.int32)
    way = np.zeros(CODE_POINTS, np.uint8)
    # A letter with marks may be taken apart, for a mark that stands nearer to the letter.
    first = np.array([not firsts.isdisjoint(unicodedata.normalize("NFKD", character)) for character in characters])
    second = np.array([character in seconds for character in characters])
    expansions: list[int] = []
    for code, character in enumerate(characters):
        normal = normalize_assigned(character)
        codes = list(map(ord, normal))
        if all(_kind(part) == SEPARATOR and part not in seconds for part in normal):
            # Several separators are as good as one. An invisible character has its own kind in the kernel.
            written[code] = ord(" ")
        elif _outer_marks(character) != _outer_marks(normal):
            way[code] = HARD
        elif len(normal) == 1:
            written[code] = codes[0]
            second[code] |= normal in seconds
        elif second[code] or classes[codes[0]] or not _fits(character, normal):
            way[code] = HARD
        else:
            way[code], written[code] = EXPANDED, len(expansions)
            expansions += [len(codes), *codes]
    return {
        "kind": np.array([_kind(character) for character in characters], np.uint8),
        "written": written,
        "way": way,
        "first": first,
        "second": second,
        "order": np.unique(classes, return_inverse=True)[1].astype(np.uint8),
        "assigned": np.array([unicodedata.category(character) != "Cn" for character in characters]),
        "expansions": np.array(expansions, np.int32),
    }


def _fits(character: str, normal: str) -> bool:
    """Whether the kernel's buffers have room: `GROWTH` bytes, and one token, for each byte that was read."""
    size = len(character.encode("utf-8", "surrogatepass"))
    kept = "".join(part for part in normal if _kind(part) != SEPARATOR)
    tokens = sum(_kind(part) != MARK for part in kept) or 1
    return tokens <= size and len(kept.encode("utf-8", "surrogatepass")) + tokens <= GROWTH * size


def main() -> None:
    """Write the table to the package's data file; ``written`` is stored as the distance to the code point."""
    table = build()
    table["written"] = table["written"] - np.arange(CODE_POINTS, dtype=np.int32)
    np.savez_compressed(FILE, allow_pickle=False, **table)


if __name__ == "__main__":
    main()
