"""The frozen Unicode table: what each code point becomes and which part it plays in a token.

One fingerprint id must mean one value under every Python, and Python's own tables grow with every
release. So what a Scheme depends on is data, made once from Unicode 14.0 (the Unicode of Python 3.11) by
`save` and read from ``unicode14.npz`` ever after.

Characters assigned after Unicode 14 follow one rule, `_kind_unassigned`: on the two ideographic planes they
are a token each, in the pictograph blocks they separate, everywhere else they are letters; and they are never
changed, by any Python, whatever it knows of them.
"""

import functools
import pathlib
import re
import sys
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = "14.0.0"
_FILE = pathlib.Path(__file__).with_name("unicode14.npz")
CODE_POINTS = sys.maxunicode + 1

# What a code point does to the token being read.
SEPARATOR, WORD, MARK, SINGLE, IGNORED = range(5)
# Set beside the kind when the code point cannot be mapped alone: its text goes through `text.normalize`.
HARD = 8

# The layout of a table entry, from the top: rank of the combining class, HARD and kind, code point written.
KIND_SHIFT, ORDER_SHIFT = 21, 25

_IGNORED = (0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF, *range(0xFE00, 0xFE10))
IGNORED_CHARACTERS = dict.fromkeys(_IGNORED)

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


def _second_characters() -> set[str]:
    """Characters that NFC may compose with the one before them (the quick check's "maybe")."""
    seconds = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for code in range(CODE_POINTS):
        parts = unicodedata.decomposition(chr(code))
        if parts and not parts.startswith("<") and " " in parts:
            composed = unicodedata.normalize("NFC", unicodedata.normalize("NFD", chr(code)))
            if composed == chr(code):
                seconds.add(chr(int(parts.split()[1], 16)))
    return seconds


def build() -> dict[str, NDArray[Any]]:
    """Compute the table from this Python's Unicode data, which must be version 14.

    Returns
    -------
    dict
        Arrays with an entry per code point: ``kind`` uint8, the part it plays; ``written`` int32, the code point
        it is normalised to; ``hard`` bool, whether that takes its neighbours or gives several code points;
        ``order`` uint8, the rank of its canonical combining class; ``assigned`` bool.
    """
    from simdup.text import normalize_assigned

    if unicodedata.unidata_version != VERSION:
        raise RuntimeError(f"the table is made from Unicode {VERSION}, this Python has {unicodedata.unidata_version}")
    seconds = _second_characters()
    characters = list(map(chr, range(CODE_POINTS)))
    classes = np.array([unicodedata.combining(character) for character in characters])
    kind = np.array([_kind(character) for character in characters], np.uint8)
    written = np.arange(CODE_POINTS, dtype=np.int32)
    hard = np.zeros(CODE_POINTS, bool)
    for code, character in enumerate(characters):
        normal = normalize_assigned(character)
        if all(_kind(part) == SEPARATOR and part not in seconds for part in normal):
            # Several separators are as good as one. An invisible character has its own kind in the kernel.
            written[code] = ord(" ")
        elif len(normal) == 1 and normal not in seconds and unicodedata.combining(normal) == classes[code]:
            written[code] = ord(normal)
        else:
            hard[code] = True
    return {
        "kind": kind,
        "written": written,
        "hard": hard,
        "order": np.unique(classes, return_inverse=True)[1].astype(np.uint8),
        "assigned": np.array([unicodedata.category(character) != "Cn" for character in characters]),
    }


@functools.cache
def load() -> dict[str, NDArray[Any]]:
    """The committed table, as `build` describes it; ``written`` is stored as the distance to the code point."""
    with np.load(_FILE) as stored:
        table = {name: stored[name] for name in stored.files}
    table["written"] = table["written"] + np.arange(CODE_POINTS, dtype=np.int32)
    return table


def save() -> None:
    """Write the table that `build` computes to the package's data file."""
    table = build()
    table["written"] = table["written"] - np.arange(CODE_POINTS, dtype=np.int32)
    np.savez_compressed(_FILE, allow_pickle=False, **table)


def character_class(members: NDArray[np.bool_]) -> str:
    """Return a regular expression for one character of those that the array, one entry per code point, holds."""
    edges = np.flatnonzero(np.diff(members, prepend=False, append=False))
    return "[" + "".join(f"\\U{first:08x}-\\U{last - 1:08x}" for first, last in edges.reshape(-1, 2)) + "]"


@functools.cache
def unassigned() -> re.Pattern[str]:
    """Match and keep runs of characters that Unicode 14 does not assign."""
    return re.compile(f"({character_class(~load()['assigned'])}+)")
