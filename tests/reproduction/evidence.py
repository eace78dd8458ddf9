"""What a corpus of real pages shows: recall and false pairs of pages as they are, and without their templates."""

import pathlib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simdup import Scheme, distance, fingerprint, fit_idf
from simdup.html import text_from_html
from simdup.templates import fit_templates
from tests.reproduction.corpora import Corpus, Page, pages_of, truth_of
from tests.statistics import mean_interval, share_interval

THRESHOLDS = (3, 6, 10)
GRAMS, WORDS = Scheme("word", 3, 64, "tf"), Scheme("word", 1, 64, "tf")
IDF = Scheme("word", 3, 64, "idf")
SCHEMES = {GRAMS: "3-grams", WORDS: "words", IDF: "by idf"}
_WIDTH = 80


Reading = tuple[str, Scheme]
"""What is taken of a page, and how it is fingerprinted."""
WHOLE, MAIN, CUT, WHOLE_BY_IDF = ("whole", GRAMS), ("main", GRAMS), ("cut", GRAMS), ("whole", IDF)


@dataclass(frozen=True)
class Share:
    """A share of pairs, or a difference of two, in per cent."""

    value: float
    low: float
    """The ends of its 95 % interval: other pages like these."""
    high: float

    def __str__(self) -> str:
        return f"{round(self.value)} ({round(self.low)}, {round(self.high)})"


@dataclass(frozen=True)
class Evidence:
    """The distances of a corpus. A family is all versions of a path."""

    corpus: Corpus
    archives: Sequence[str]
    near_families: NDArray[np.int64]
    """Of both pages of each near pair, shape (m, 2)."""
    different_families: NDArray[np.int64]
    """Of both pages of each different pair, shape (m, 2)."""
    near: dict[Reading, NDArray[np.int64]]
    """For each text and scheme the distances of the near pairs, shape (m,)."""
    different: dict[Reading, NDArray[np.int64]]
    """And of the different ones."""

    def recall(self, text: str, k: int, scheme: Scheme = GRAMS) -> Share:
        """How many near pairs stand within k bits."""
        found = self.near[text, scheme] <= k
        return _percent(float(found.mean()), share_interval(found, self.near_families))

    def false(self, text: str, k: int, scheme: Scheme = GRAMS) -> int:
        """How many different pairs stand within k bits."""
        return int(np.count_nonzero(self.different[text, scheme] <= k))

    def false_interval(self, text: str, k: int) -> tuple[float, float]:
        """From how few to how many different pairs within k bits there may be among as many of other pages."""
        low, high = share_interval(self.different[text, GRAMS] <= k, self.different_families)
        return low * len(self.different_families), high * len(self.different_families)

    def gain(self, k: int, better_by: Reading = MAIN) -> Share:
        """By how much a reading is better than the whole page: by recall, or by fewer false pairs if none are near."""
        if len(self.near_families):
            better, worse, families = self.near[better_by], self.near[WHOLE], self.near_families
        else:
            better, worse, families = self.different[WHOLE], self.different[better_by], self.different_families
        gain = (better <= k).astype(np.float64) - (worse <= k)
        return _percent(float(gain.mean()), mean_interval(gain, families))

    def lines(self) -> Iterator[str]:
        """The corpus in the closing table."""
        near, different = len(self.near_families), len(self.different_families)
        yield f"{self.corpus.name}: {near:,} near pairs, {different:,} different"
        yield from _wrapped(", ".join(self.archives), "  ")
        header = (f"recall, k={k}" if near else "" for k in THRESHOLDS)
        yield _row("", header, "false pairs")
        for text, scheme in self.near:
            shares = (str(self.recall(text, k, scheme)) if near else "" for k in THRESHOLDS)
            false = ", ".join(f"{self.false(text, k, scheme):,}" for k in THRESHOLDS)
            yield _row(f"{text:6} {SCHEMES[scheme]}", shares, false)
        if self.corpus.html:
            for reading in (MAIN, CUT):
                yield _row(f"{reading[0]} - whole", (str(self.gain(k, reading)) for k in THRESHOLDS), "of 3-grams")
        yield ""


def where_it_helps(measured: Sequence[Evidence], k: int = THRESHOLDS[0]) -> Iterator[str]:
    """Say for which corpora a text without template is better than the whole page, and for which that was not shown."""
    pages = [evidence for evidence in measured if evidence.corpus.html]
    for reading, what in ((MAIN, "Main text"), (CUT, "The page with its template cut out")):
        for helps, sentence in ((True, "is better than the whole page"), (False, "was not shown to be better")):
            names = ", ".join(found.corpus.name for found in pages if (found.gain(k, reading).low > 0) == helps)
            yield from _wrapped(f"{what} {sentence} at k = {k}: {names or 'nowhere'}.")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _row(name: str, cells: Iterator[str], last: str) -> str:
    return f"  {name:15}" + "".join(f"{cell:>14}" for cell in cells) + f"  {last}"


def _percent(value: float, interval: tuple[float, float]) -> Share:
    return Share(100 * value, *(100 * end for end in interval))


def evidence_of(corpus: Corpus, scratch: pathlib.Path) -> Evidence:
    """Fetch, read and measure a corpus. Raises UnavailableError."""
    pages = pages_of(corpus, scratch)
    truth = truth_of(corpus, pages)
    _, family = np.unique([page.path for page in pages], return_inverse=True)
    near, different = {}, {}
    for text, texts in readings(corpus, pages).items():
        for scheme in (GRAMS, WORDS, IDF) if text == "whole" else (GRAMS, WORDS):
            fitted = fit_idf(texts, scheme) if scheme == IDF else scheme
            near[text, scheme] = _distances(texts, fitted, truth.near)
            different[text, scheme] = _distances(texts, fitted, truth.different)
    archives = sorted({page.archive for page in pages})
    return Evidence(corpus, archives, family[truth.near], family[truth.different], near, different)


def readings(corpus: Corpus, pages: Sequence[Page]) -> dict[str, list[str]]:
    """The texts of the pages, read in each way that there is."""
    texts = {}
    if corpus.html:
        sites = [page.path.rpartition("/")[0] if corpus.articles else "" for page in pages]
        whole = texts["whole"] = [text_from_html(page.content, main=False) for page in pages]
        texts["cut"] = list(fit_templates(whole, sites).remove(whole, sites))
        texts["main"] = [text_from_html(page.content) for page in pages]
    if not corpus.articles:
        texts["known"] = [page.known for page in pages]
    return texts


def _distances(texts: Sequence[str], scheme: Scheme, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distances of pairs; all bits where a text is empty, since that is in no pair."""
    fingerprints = fingerprint(texts, scheme)
    empty = (fingerprints.features == 0)[rows].any(axis=1)
    return np.where(empty, scheme.bits, distance(fingerprints[rows[:, 0]], fingerprints[rows[:, 1]]))
