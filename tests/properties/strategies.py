"""What the properties are tried on: schemes, texts in many scripts, weights and fingerprint words."""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from simdup import Scheme, fit_idf, idf_table
from simdup.fingerprint import Words
from simdup.mask import Noise
from simdup.unicode import load

NGRAMS = (1, 2, 3, 4, 5)
WIDTHS = (64, 128, 256)

# Words as pages have them, and what has broken a tokeniser somewhere. Each stands for a kind.
LATIN = ("the", "page", "a", "I", "Don't", "x86", "Straße", "STRASSE", "naïve", "ﬁne", "ŉ", "ẞ", "ǅ", "İstanbul", "ĳ")
CAPITALS = ("ΟΔΥΣΣΕΎΣ", "Ὀδυσσεύς", "ὈΔΥΣΣΕῪΣ", "ᾼ", "ᾳ", "Ёлка", "ЖЁЛТЫЙ", "Ǆ", "Ⅷ", "K", "Ω", "Å", "Ꭰꭰ", "𐐀")
MARKS = (
    *("café", "cafe\u0301", "q\u0307\u0323", "q\u0323\u0307", "a\u0316\u0301", "a\u0301\u0316", "\u0301alone"),
    *("α\u0316\u0345", "α\u0345\u0316", "\u0344", "u\u0308\u0304", "ǖ", "Z\u0327\u030c", "\u0f71\u0f72", "\u0f73", "ô̂"),
)
KOREAN = ("한국어", "\u1112\u1161\u11ab", "\u1161", "\u11a8", "가\u11a8", "\uffa1\uffc2", "ㄱㅏ")
WIDE = ("ＦＵＬＬ", "ｗｉｄｔｈ１２", "ｶﾞｷﾞ", "ﾊﾟﾝ", "カ\u3099", "ガ", "㌔", "①②", "½", "℃", "ﷺ")
UNSPACED = (
    "東京都",
    "々〇",
    "ひらがな",
    "カタカナー",
    "中a文1",
    "กินข้าว",
    "กีน",
    "ສະບາຍດີ",
    "ភាសា",
    "မြန်မာ",
    "丽",
    "\U0002f800",
)
SPACED = ("काला", "कीला", "कूला", "क्षि", "العَرَبِيَّة", "שָׁלוֹם", "தமிழ்", "አማርኛ", "٣٤", "ᏣᎳᎩ")
PICTURES = ("😀", "👩\u200d👩\u200d👧", "🇩🇪", "1\ufe0f\u20e3", "❤\ufe0f", "\U0001f3fd")
UNASSIGNED = ("\U0001fae8", "\U00031350", "\u0378", "\ufffe", "\U000e0fff", "a\U0001e030b", "\u0c5d\u0301")
SURROGATES = ("\ud800", "a\udfffb", "\ud83d\ude00", "\udc00\u0301")
INVISIBLE = (
    "so\u00adft",
    "ze\u200bro",
    "\ufeff",
    "\ufe0f",
    "e\u200d\u0301",
    "a\u2060b",
    "nul\x00nul",
    "\x00",
    "\u061c",
    "\u034f",
)
LONG = ("x" * 65, "long" * 17, "y" * 129, "ä" * 65, "z" * 257, "語" * 90, "Q" * 63 + "é", "\U00010400" * 17)
OTHER = ("!?", "_", "-", "...", "3.14", "C++", "#tag", "a@b.c", "€")
PIECES = (
    LATIN + CAPITALS + MARKS + KOREAN + WIDE + UNSPACED + SPACED + PICTURES + UNASSIGNED + SURROGATES + INVISIBLE
) + (*LONG, *OTHER)
SEPARATORS = (" ", " ", " ", " ", "", "  ", "\n", "\t", "\u00a0", "\u3000", ", ", "-", "\x1f", "\u2028", "\u200b")


def _alphabet(*runs: tuple[int, int]) -> st.SearchStrategy[str]:
    return st.one_of([st.characters(min_codepoint=first, max_codepoint=last) for first, last in runs])


# Marks and letters that react with each other meet often only where the alphabet is small.
_ALPHABETS = (
    st.characters(),
    _alphabet((0x20, 0x7F)),
    _alphabet((0x41, 0x7A), (0x300, 0x345)),
    _alphabet((0x370, 0x3FF), (0x1F00, 0x1FFF), (0x316, 0x316), (0x345, 0x345)),
    _alphabet((0x1100, 0x11FF), (0xAC00, 0xAC20)),
    _alphabet((0x3041, 0x30FF), (0xFF66, 0xFF9F)),
    _alphabet((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF)),
    _alphabet((0x590, 0x6FF), (0x900, 0x97F)),
)
_runs = st.one_of([st.text(alphabet, max_size=8) for alphabet in _ALPHABETS])
pieces = st.one_of(st.sampled_from(PIECES), st.sampled_from(LATIN), _runs)


def texts(max_pieces: int = 12) -> st.SearchStrategy[str]:
    """Words of many scripts, welded or apart, some of them again and again."""
    some = st.lists(st.tuples(pieces, st.sampled_from(SEPARATORS)), max_size=max_pieces)
    once = some.map(lambda parts: "".join(map("".join, parts)))
    return st.one_of(once, st.builds(lambda text, times: f"{text} " * times, once, st.integers(2, 4)))


def _plain(text: str) -> str:
    assigned = load()["assigned"]
    return "".join(c for c in text if assigned[ord(c)] and unicodedata.category(c) != "Cs")


assigned_texts = texts().map(_plain)
"""Texts of which every Python since Unicode 14 knows every character."""

words = st.text(st.sampled_from("abcdeäßж中1"), min_size=1, max_size=6)
"""Tokens of one or few letters, which repeat; none of them holds white space."""
word_lists = st.lists(words, max_size=30)


@st.composite
def schemes(
    draw: st.DrawFn,
    *,
    units: Sequence[str] = ("word", "char"),
    ngrams: Sequence[int] = NGRAMS,
    bits: Sequence[int] = WIDTHS,
    weights: Sequence[str] = ("tf", "set", "idf"),
    hashes: Sequence[str] = ("xxh64", "blake2b"),
    normalize: Sequence[bool] = (True, False),
    masks: Sequence[tuple[Noise, ...]] = ((),),
) -> Scheme:
    """Any scheme; of an idf scheme, with a fitted or a given table."""
    weight = draw(st.sampled_from(weights))
    options: dict[str, Any] = {
        "unit": draw(st.sampled_from(units)),
        "ngram": draw(st.sampled_from(ngrams)),
        "bits": draw(st.sampled_from(bits)),
        "hash": draw(st.sampled_from(hashes)),
        "normalize": draw(st.sampled_from(normalize)),
        "mask": draw(st.sampled_from(masks)),
    }
    if weight != "idf":
        return Scheme(weight=weight, **options)  # type: ignore[arg-type]
    if draw(st.booleans()):
        return fit_idf(["a", *draw(st.lists(texts(6), max_size=4))], Scheme(**options))
    some = st.sampled_from((0.0, 2.0**-20, 0.1, 0.5, 1.0, 3.25, 1000.0))
    table = draw(st.dictionaries(st.sampled_from(("the", "page", "a", "i", "the page", "e", "中")), some))
    return idf_table(table, Scheme(**options), draw(some))


weights = st.one_of(
    st.integers(0, 8),
    st.sampled_from((0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1e16, 2**53, 2**53 + 1)),
    st.integers(0, 1 << 80),
    st.floats(0, allow_nan=False, allow_infinity=False),
    st.sampled_from((5e-324, 1e-300, 1.7e308, 10**400)),
)
"""Weights of every magnitude; those that nearly cancel each other are frequent."""
documents = st.dictionaries(st.one_of(st.text("abc", min_size=1, max_size=3), pieces.filter(bool)), weights, max_size=8)
"""Features with their weights. The empty feature has a test of its own."""


@st.composite
def word_arrays(draw: st.DrawFn, max_rows: int = 40) -> Words:
    """Fingerprint words, shape (n, 1, 2 or 4), many of them near others, some equal."""
    columns = draw(st.sampled_from((1, 2, 4)))
    rows: list[list[int]] = []
    for _ in range(draw(st.integers(0, max_rows))):
        is_near = draw(st.integers(0, 3)) > 0
        if rows and is_near:
            near: int = draw(st.integers(0, len(rows) - 1))
            flipped: list[int] = draw(st.lists(st.integers(0, 64 * columns - 1), max_size=9))
            row = list(rows[near])
            for bit in flipped:
                row[bit >> 6] ^= 1 << (bit & 63)
        else:
            row = draw(st.lists(st.integers(0, (1 << 64) - 1), min_size=columns, max_size=columns))
        rows.append(row)
    return np.array(rows, np.uint64).reshape(-1, columns)


def to_ints(array: NDArray[np.uint64]) -> list[int]:
    """Rows of words as the integers that they are."""
    rows = array.reshape(len(array), -1).tolist() if len(array) else []
    return [sum(word << 64 * place for place, word in enumerate(reversed(row))) for row in rows]
