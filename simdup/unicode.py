"""The frozen Unicode table: what each code point becomes and which part it plays in a token.

One fingerprint id must mean one value under every Python, and Python's own tables grow with every
release. So what a Scheme depends on is data, made once from Unicode 14.0 (the Unicode of Python 3.11) and read
from ``unicode14.npz`` ever after.

Characters assigned after Unicode 14 follow one rule: on the two ideographic planes they are a token each, in the
pictograph blocks they separate, everywhere else they are letters; and they are never changed, by any Python,
whatever it knows of them.
"""

import functools
import pathlib
import re
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = "14.0.0"
FILE = pathlib.Path(__file__).with_name("unicode14.npz")
CODE_POINTS = sys.maxunicode + 1

# So many bytes may become of one, tokens and the spaces behind them.
GROWTH = 4

# What a code point does to the token being read.
SEPARATOR, WORD, MARK, SINGLE, IGNORED = range(5)
# Two more for the kernel: it becomes several code points; or what it becomes takes a look at the whole text.
EXPANDED, HARD = 5, 6

IGNORED_CHARACTERS = (0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF, *range(0xFE00, 0xFE10))


@functools.cache
def load() -> dict[str, NDArray[Any]]:
    """The table: arrays with an entry per code point.

    Returns
    -------
    dict
        ``kind`` uint8, the part it plays; ``written`` int32, the code point it is normalised to; ``way`` uint8, 0 if
        that is all, `EXPANDED` if ``written`` is the place in ``expansions`` of how many code points it becomes, and
        which, or `HARD`; ``first`` and ``second`` bool, whether it may compose with the code point behind and before
        it; ``order`` uint8, the rank of its canonical combining class; ``assigned`` bool. And ``expansions`` int32.
    """
    with np.load(FILE) as stored:
        table = {name: stored[name] for name in stored.files}
    table["written"] = table["written"] + np.arange(CODE_POINTS, dtype=np.int32)
    return table


def character_class(members: NDArray[np.bool_]) -> str:
    """Return a regular expression for one character of those that the array, one entry per code point, holds."""
    edges = np.flatnonzero(np.diff(members, prepend=False, append=False))
    return "[" + "".join(f"\\U{first:08x}-\\U{last - 1:08x}" for first, last in edges.reshape(-1, 2)) + "]"


def split_unassigned(text: str) -> list[str]:
    """Cut a text at the runs of characters that Unicode 14 does not assign; every other part is such a run."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    if load()["assigned"][codes].all():
        return [text]
    return _unassigned().split(text)


@functools.cache
def _unassigned() -> re.Pattern[str]:
    return re.compile(f"({character_class(~load()['assigned'])}+)")
