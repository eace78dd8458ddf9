"""Measure which features, weight and width tell near-duplicates from other pages: what the default `Scheme` rests on.

``python -m tests.reproduction.defaults`` fetches the corpora and prints the tables of docs/defaults.md and the second
of docs/templates.md. It takes some minutes. With jieba installed it measures Chinese words too.
"""

import importlib
import itertools
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from simdup import Scheme, fingerprint, fit_idf, normalize
from simdup.html import text_from_html
from simdup.scheme import Hash, Weight
from simdup.templates import fit_templates
from tests.reproduction.corpora import CORPORA, DIFFERENT, NEAR, Page, pages_of, truth_of

Rows = NDArray[np.int64]

PAGES = 1000
NGRAMS = (1, 2, 3, 4)
WEIGHTS: tuple[Weight, ...] = ("tf", "set", "idf")
WIDTHS = (64, 128, 256)
HASHES: tuple[Hash, ...] = ("xxh64", "blake2b")
HALVES = 1000
# The nearest false pair decides; in a half of the pages it is one of these.
_NEAREST = 20_000
_FIRST = 256

Features = tuple[int, Weight]
"""The n of word n-grams, and their weight."""
COMPARISONS: tuple[tuple[Features, Features], ...] = (
    ((1, "set"), (1, "tf")),
    ((2, "set"), (2, "tf")),
    ((3, "set"), (3, "tf")),
    ((2, "set"), (2, "idf")),
    ((3, "set"), (3, "idf")),
    ((2, "set"), (1, "set")),
    ((3, "set"), (2, "set")),
    ((4, "set"), (3, "set")),
    ((3, "tf"), (2, "tf")),
)


CONDITIONS = {
    "Main text, near from 80 %": (NEAR, "main"),
    "Main text, near from 50 %": (0.5, "main"),
    "Main text, versions of a page": (DIFFERENT, "main"),
    "Whole page, near from 80 %": (NEAR, "whole"),
}
"""From which similarity on pages are near, and what is fingerprinted of them."""
CUT = {
    "Whole page without template, near from 80 %": (NEAR, "whole, cut"),
    "Main text without template, near from 80 %": (NEAR, "main, cut"),
}
CUT_FEATURES: tuple[Features, ...] = ((2, "tf"), (2, "set"), (2, "idf"), (3, "tf"), (3, "set"), (3, "idf"))


@dataclass(frozen=True)
class Sample:
    """Pages of a corpus, and which of them say the same."""

    texts: list[str]
    """What is fingerprinted."""
    near: Rows
    """Pairs of pages that say the same, shape (m, 2)."""
    different: Rows
    """Pairs that say something else, shape (k, 2)."""
    family: Rows
    """Versions of a page and what is near them are one family, shape (n,)."""
    halves: NDArray[np.bool_]
    """Random halves of the families, shape (1000, families)."""


def sample_of(name: str, pages: Sequence[Page], least: float, text: str) -> Sample:
    """Pages with the pairs that share `least` of their shingles; below 0.5 only those of versions of a page."""
    corpus = CORPORA[name]
    main = text.startswith("main")
    texts = [text_from_html(page.content, main=main) if corpus.html else page.known for page in pages]
    if text.endswith("cut"):
        texts = list(fit_templates(texts).remove(texts))
    truth = truth_of(corpus, pages, least)
    has_text = fingerprint(texts, Scheme()).features > 0
    near, different = (pairs[has_text[pairs].all(axis=1)] for pairs in (truth.near, truth.different))
    _, first, path = np.unique([page.path for page in pages], return_index=True, return_inverse=True)
    if least < 0.5:
        near = near[path[near[:, 0]] == path[near[:, 1]]]
    linked = np.concatenate((near, np.column_stack((np.arange(len(path)), first[path]))))
    graph = coo_array((np.ones(len(linked)), linked.T), (len(path), len(path)))
    count, family = connected_components(graph)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(count), (HALVES, 1)), axis=1)
    return Sample(texts, near, different, family.astype(np.int64), order < count // 2)


@dataclass(frozen=True)
class Recall:
    """What a scheme finds without a false pair, the mean over hash functions."""

    recall: float
    among_halves: NDArray[np.float64]
    """The same among the pages of each half, shape (1000,)."""
    k: int
    """The threshold that does it under the scheme's own hash."""
    near: Rows
    """The distances of the near pairs under the scheme's own hash."""


def recall_of(pages: Sample, near: Rows, different: Rows) -> tuple[float, NDArray[np.float64]]:
    """Recall without a false pair, of all pages and of each half, from the distances of the pairs."""
    nearest = np.argpartition(different, min(_NEAREST, len(different)) - 1)[:_NEAREST]
    nearest = nearest[np.argsort(different[nearest], kind="stable")]
    left, right = pages.family[pages.different[nearest]].T

    def first_of(halves: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
        return halves[:, left[:most]] & halves[:, right[:most]]

    there = first_of(pages.halves, _FIRST)
    at = there.argmax(axis=1)
    for half in np.flatnonzero(~there.any(axis=1)):
        at[half] = first_of(pages.halves[half : half + 1], len(left)).argmax()
    left, right = pages.family[pages.near].T
    there = pages.halves[:, left] & pages.halves[:, right]
    found = there & (near < different[nearest][at][:, np.newaxis])
    return float((near < different.min()).mean()), found.sum(axis=1) / there.sum(axis=1)


def measure(pages: Sample, scheme: Scheme) -> dict[int, Recall]:
    """Measure a scheme at every width.

    Each 64-bit word of a 256-bit fingerprint under XXH64 is one with another seed, so it is four fingerprints of 64
    bits and two of 128; BLAKE2b gives as many again.
    """
    apart = []
    for name in HASHES:
        hashed = replace(scheme, bits=256, hash=name)
        words = fingerprint(pages.texts, fit_idf(pages.texts, hashed) if scheme.weight == "idf" else hashed).words
        apart.append(tuple(_apart(words, pairs) for pairs in (pages.near, pages.different)))
    found = {}
    for bits in WIDTHS:
        width = bits // 64
        draws = [
            [part[:, at : at + width].sum(axis=1, dtype=np.int64) for part in parts]
            for parts in apart
            for at in range(0, 4, width)
        ]
        recalls, halves = zip(*(recall_of(pages, *draw) for draw in draws), strict=True)
        near, different = draws[0]
        found[bits] = Recall(float(np.mean(recalls)), np.mean(halves, axis=0), int(different.min()) - 1, near)
    return found


def _apart(words: NDArray[np.uint64], pairs: Rows) -> NDArray[np.uint8]:
    """The bits in which each pair differs, word by word, shape (m, 4)."""
    parts = np.array_split(pairs, len(pairs) // 100_000 + 1)
    return np.concatenate([np.bitwise_count(words[part[:, 0]] ^ words[part[:, 1]]) for part in parts])


Measured = Mapping[str, Mapping[int, Recall]]
"""For each corpus and width."""


def difference(one: Measured, other: Measured, bits: int) -> str:
    """How much more one scheme finds than another in the mean over the corpora, and a 95 % interval, in points.

    The interval is as wide as the difference varies among random halves of the pages, the same ones for both schemes
    (a delete-half jackknife, which also serves where the nearest pair decides; Shao and Wu 1989).
    """
    full = np.mean([one[name][bits].recall - other[name][bits].recall for name in one])
    halves = np.mean([one[name][bits].among_halves - other[name][bits].among_halves for name in one], axis=0)
    low, high = full + np.quantile(halves - halves.mean(), [0.025, 0.975])
    return f"{100 * full:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def one_k(measured: Measured, bits: int) -> str:
    """The largest threshold without a false pair in any corpus, and the mean recall of that."""
    k = min(by_width[bits].k for by_width in measured.values())
    recall = np.mean([(by_width[bits].near <= k).mean() for by_width in measured.values()])
    return f"k = {k}: {100 * recall:.1f}" if k >= 0 else "none"


def of_html(measured: Measured, bits: int = 128) -> str:
    """The mean recall of the corpora that are HTML, and that under one threshold."""
    html = {name: by_width for name, by_width in measured.items() if CORPORA[name].html}
    mean = np.mean([by_width[bits].recall for by_width in html.values()])
    return f"{100 * mean:.1f}; {one_k(html, bits)}"


def _row(cells: Iterable[object]) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _table(title: str, head: Sequence[object], rows: Iterable[Iterable[object]]) -> None:
    """Print a table in Markdown, row by row as it comes."""
    print(f"\n{title}\n")
    _row(head)
    _row("---" for _ in head)
    for row in rows:
        _row(row)


def _percent(shares: Iterable[float]) -> str:
    return " / ".join(f"{100 * share:.1f}".removesuffix(".0") for share in shares)


def measure_all(title: str, samples: Mapping[str, Sample], schemes: Sequence[Scheme]) -> dict[Features, Measured]:
    """Measure schemes on corpora, and print what they find."""
    found: dict[Features, Measured] = {}

    def rows() -> Iterator[Iterable[object]]:
        yield "pages", *(len(sample.texts) for sample in samples.values()), ""
        yield "near pairs", *(f"{len(sample.near):,}" for sample in samples.values()), ""
        yield "different pairs", *(f"{len(sample.different):,}" for sample in samples.values()), ""
        for scheme in schemes:
            measured = {name: measure(sample, scheme) for name, sample in samples.items()}
            found[scheme.ngram, scheme.weight] = measured
            shares = np.array([[by_width[bits].recall for bits in WIDTHS] for by_width in measured.values()])
            yield f"{scheme.ngram}, {scheme.weight}", *map(_percent, shares), _percent(shares.mean(axis=0))

    _table(f"{title}: recall in % that no false pair spoils, at 64 / 128 / 256 bits", ["", *samples, "mean"], rows())
    return found


def cut_by_jieba(samples: Mapping[str, Sample]) -> dict[str, Sample]:
    """The Chinese corpora in words; none if jieba is not installed."""
    try:
        jieba = importlib.import_module("jieba")
    except ImportError:
        return {}
    jieba.setLogLevel("ERROR")

    def cut(text: str) -> str:
        return " ".join(word for word in jieba.cut(normalize(text)) if any(map(str.isalnum, word)))

    chinese = {name: sample for name, sample in samples.items() if CORPORA[name].language == "zh"}
    return {name: replace(sample, texts=list(map(cut, sample.texts))) for name, sample in chinese.items()}


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as scratch:
        pages = {
            name: pages_of(replace(corpus, draw=PAGES // len(corpus.packages)), pathlib.Path(scratch))
            for name, corpus in CORPORA.items()
            if not corpus.articles
        }
    schemes = [Scheme("word", ngram, weight=weight) for ngram, weight in itertools.product(NGRAMS, WEIGHTS)]
    found = {}
    for condition, (least, text) in (CONDITIONS | CUT).items():
        samples = {name: sample_of(name, some, least, text) for name, some in pages.items()}
        samples = {name: sample for name, sample in samples.items() if len(sample.near)}
        some = [
            scheme for scheme in schemes if condition in CONDITIONS or (scheme.ngram, scheme.weight) in CUT_FEATURES
        ]
        found[condition] = measure_all(condition, samples, some)
        words = cut_by_jieba(samples) if condition == next(iter(CONDITIONS)) else {}
        if words:
            measure_all("Words by jieba", words, [replace(scheme, normalize=False) for scheme in schemes[:6]])

    readings = ["Whole page, near from 80 %", "Main text, near from 80 %", *CUT]
    _table(
        "HTML pages, 128 bits: the mean recall in %; with one threshold for all corpora",
        ["", *readings],
        (
            ["{}, {}".format(*features), *(of_html(found[condition][features]) for condition in readings)]
            for features in CUT_FEATURES
        ),
    )
    for condition in CUT:
        del found[condition]
    columns = list(itertools.product(found, WIDTHS))
    _table(
        "One threshold for all corpora: the largest without a false pair in any, and the mean recall in %",
        ["", *(f"{condition}, {bits} bits" for condition, bits in columns)],
        (
            ["{}, {}".format(*features), *(one_k(found[condition][features], bits) for condition, bits in columns)]
            for features in itertools.product(NGRAMS, WEIGHTS)
        ),
    )
    _table(
        "Differences of the means, in points, with 95 % intervals",
        ["", *(f"{condition}, {bits} bits" for condition, bits in columns)],
        (
            [
                "{}, {} less {}, {}".format(*one, *other),
                *(difference(found[condition][one], found[condition][other], bits) for condition, bits in columns),
            ]
            for one, other in COMPARISONS
        ),
    )


if __name__ == "__main__":
    main()
