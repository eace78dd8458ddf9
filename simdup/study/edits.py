"""Controlled edits: copies of a text that differ from it in a known share of words or sentences, or in noise.

An `Edit` is named as on the command line: ``0.05`` and ``replace:0.05`` replace 5 % of the words, ``delete``,
``insert`` and ``swap`` do what they say, ``replace-sentences:0.1`` and the like work on sentences, and
``timestamp``, ``token`` and ``advertisement`` add what crawlers meet on otherwise equal pages.
"""

import functools
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from simdup import unicode

# A run of full stops is tried once, at its start: from each of its dots a long one would take the square of the time.
_SENTENCE = re.compile(r"(?!\Z).*?(?:(?<![.!?।॥؟۔])[.!?।॥؟۔]++(?=\s)|[。！？]+|\n+|\Z)\s*", re.DOTALL)
_ADVERTISEMENTS = (
    "Subscribe now and save 30 % on your first year. Cancel any time.",
    "Sponsored: twelve kitchen tools that chefs no longer want to be without.",
    "Download our free app for breaking news, wherever you are.",
    "We use cookies to improve your experience. By continuing you accept our policy.",
)


@functools.cache
def _words() -> re.Pattern[str]:
    """Match one word with the white space behind it; in scripts without spaces one character with its marks."""
    kinds = np.frombuffer(_kinds(), np.uint8)
    alone, mark = (unicode.character_class(kinds == kind) for kind in (unicode.SINGLE, unicode.MARK))
    return re.compile(rf"(?:{alone}{mark}*|(?:(?!{alone})\S)+)\s*")


@functools.cache
def _kinds() -> bytes:
    """The part that each character plays in a token once it is normalised; of several that it becomes, the first."""
    table = unicode.load()
    first = np.where(table["way"] == 0, table["written"], np.arange(unicode.CODE_POINTS))
    expanded = table["way"] == unicode.EXPANDED
    first[expanded] = table["expansions"][table["written"][expanded] + 1]
    return table["kind"][first].tobytes()


def _join(units: Iterable[str]) -> str:
    """Put units together, with a space where two words would become one that were none before."""
    kinds = _kinds()
    joined: list[str] = []
    end = " "  # the last character that is no mark
    for unit in units:
        apart = end.isspace() or end in "。！？" or unicode.SINGLE in (kinds[ord(end)], kinds[ord(unit[0])])
        joined.append(unit if apart else f" {unit}")
        end = next((character for character in reversed(unit) if kinds[ord(character)] != unicode.MARK), " ")
    return "".join(joined)


def words(text: str) -> list[str]:
    """Cut a text into words, each with the white space behind it; together they are the text, but for its start."""
    return _words().findall(text)


def sentences(text: str) -> list[str]:
    """Cut a text into sentences, each with the white space behind it; their concatenation is the text."""
    return _SENTENCE.findall(text)


def replaced(units: Sequence[str], rate: float, vocabulary: Sequence[str], rng: random.Random) -> list[str]:
    """Replace each unit with probability `rate` by one of the vocabulary, each equally likely."""
    return [rng.choice(vocabulary) if rng.random() < rate else unit for unit in units]


def deleted(units: Sequence[str], rate: float, _vocabulary: Sequence[str], rng: random.Random) -> list[str]:
    """Delete each unit with probability `rate`."""
    return [unit for unit in units if rng.random() >= rate]


def inserted(units: Sequence[str], rate: float, vocabulary: Sequence[str], rng: random.Random) -> list[str]:
    """Insert before each unit, with probability `rate`, one of the vocabulary."""
    result = []
    for unit in units:
        if rng.random() < rate:
            result.append(rng.choice(vocabulary))
        result.append(unit)
    return result


def swapped(units: Sequence[str], rate: float, _vocabulary: Sequence[str], rng: random.Random) -> list[str]:
    """Exchange each unit, with probability `rate`, with the next one."""
    result = list(units)
    for i in range(len(result) - 1):
        if rng.random() < rate:
            result[i], result[i + 1] = result[i + 1], result[i]
    return result


def _timestamp(rng: random.Random) -> str:
    day, second = rng.randrange(1, 29), rng.randrange(86_400)
    hour, minute = divmod(second // 60, 60)
    return f"2026-{rng.randrange(1, 13):02}-{day:02}T{hour:02}:{minute:02}:{second % 60:02}Z"


_CHANGES: dict[str, Callable[[Sequence[str], float, Sequence[str], random.Random], list[str]]] = {
    "replace": replaced,
    "delete": deleted,
    "insert": inserted,
    "swap": swapped,
}
_NOISE: dict[str, Callable[[random.Random], str]] = {
    "timestamp": _timestamp,
    "token": lambda rng: f"{rng.getrandbits(128):032x}",
    "advertisement": lambda rng: rng.choice(_ADVERTISEMENTS),
}
_UNITS = {"": words, "-sentences": sentences}
KINDS = ", ".join([f"{change}[-sentences]:RATE" for change in _CHANGES] + list(_NOISE))
"""How edits are named."""


USUAL = "0.01,0.05,0.15"
"""What is done to pages if nothing else is asked, as `Edit.parse` reads it, separated by commas."""


@dataclass(frozen=True)
class Edit:
    """One kind of edit at one rate."""

    change: str
    """A change of words, such as "replace"; of sentences, such as "replace-sentences"; or noise, such as "token"."""
    rate: float = 0.0
    """The probability that a unit is changed, 0 to 1; noise has none."""

    def __post_init__(self) -> None:
        known = self.change in _NOISE or self.change.removesuffix("-sentences") in _CHANGES
        if not known or not 0 <= self.rate <= 1 or (self.change in _NOISE and self.rate):
            raise ValueError(f"{self.change}:{self.rate:g} is no edit: give a rate from 0 to 1, or one of {KINDS}")

    @classmethod
    def parse(cls, text: str) -> "Edit":
        """Read an edit as it is named on the command line."""
        change, colon, rate = text.strip().rpartition(":")
        try:
            return cls(rate) if rate in _NOISE and not colon else cls(change if colon else "replace", float(rate))
        except ValueError:
            raise ValueError(f"{text.strip()!r} is no edit: give a rate from 0 to 1, or one of {KINDS}") from None

    @property
    def name(self) -> str:
        """What was done, such as "replace 5 %"."""
        return self.change if self.change in _NOISE else f"{self.change.replace('-', ' ')} {100 * self.rate:g} %"

    def apply(self, text: str, vocabulary: Sequence[str], rng: random.Random) -> str:
        """Return an edited copy.

        Parameters
        ----------
        text
            What to edit.
        vocabulary
            Units to replace by and to insert: words or sentences with the white space behind them.
        rng
            The source of every choice.
        """
        if self.change in _NOISE:
            units = words(text)
            units.insert(rng.randint(0, len(units)), f"{_NOISE[self.change](rng)} ")
            return _join(units)
        base = self.change.removesuffix("-sentences")
        units = _UNITS[self.change.removeprefix(base)](text)
        return _join(_CHANGES[base](units, self.rate, vocabulary, rng))


def vocabulary(texts: Iterable[str], edit: Edit, size: int = 100_000) -> list[str]:
    """Return the first `size` running units of a corpus as an edit needs them, so as frequent as they are there."""
    cut = sentences if edit.change.endswith("-sentences") else words
    return list(islice(chain.from_iterable(map(cut, texts)), size))
