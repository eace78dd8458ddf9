"""The article's figures, exactly; and how typical its corpus is, over other seeds.

At seed 39 there is nothing to tolerate: each figure must come out to the last printed digit, through the pure
Python reference and through the fast path, which must agree bit for bit on every page. Tolerance belongs to the
sweep, where the seed is the unit.
"""

import functools
import math
import pathlib
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from simdup import ARTICLE, Fingerprints, Scheme, distance, fingerprint, fit_idf, reference
from simdup.study.corpus import Corpus, article_corpus
from simdup.study.measure import measure
from simdup.study.reproduce import Figure, counted, figures
from tests.statistics import equivalent

FIGURES = [figure for figure in figures() if figure.kind != "timing"]
TIMINGS = [figure for figure in figures() if figure.kind == "timing"]


@functools.cache
def corpus() -> Corpus:
    return article_corpus()


@functools.cache
def _slow(text: str, ngram: int) -> int:
    return reference.article(text, ngram)


def slow_fingerprint(texts: Sequence[str], scheme: Scheme) -> Fingerprints:
    """The article's own algorithm, a page at a time."""
    assert replace(scheme, ngram=1) == ARTICLE
    return Fingerprints.from_ints([_slow(text, scheme.ngram) for text in texts], scheme)


@functools.cache
def measured(fingerprinter: Callable[[Sequence[str], Scheme], Fingerprints]) -> dict[str, float]:
    return counted(corpus(), fingerprinter)


@pytest.mark.parametrize("fingerprinter", [slow_fingerprint, fingerprint], ids=["reference", "fast"])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_figure_is_reproduced(figure: Figure, fingerprinter: Callable[[Sequence[str], Scheme], Fingerprints]) -> None:
    value = measured(fingerprinter)[figure.id]
    assert figure.holds(value), f"{figure.id}: published {figure.published}, measured {value}; {figure.quote}"


@pytest.mark.parametrize("ngram", [1, 3])
@pytest.mark.parametrize("condition", ["text", "template"])
def test_fast_and_reference_agree_bit_for_bit(ngram: int, condition: str) -> None:
    pages = corpus().pages if condition == "text" else corpus().with_template()
    scheme = replace(ARTICLE, ngram=ngram)
    assert fingerprint(pages, scheme) == slow_fingerprint(pages, scheme)


def test_every_figure_is_measured_once() -> None:
    assert len(FIGURES) == 85
    # The article does not print the 3-gram distances of the 1 % variants; they are measured all the same.
    unprinted = {name for name in measured(fingerprint) if name.startswith("F5.") and ".1pct." in name}
    assert {figure.id for figure in FIGURES} == set(measured(fingerprint)) - unprinted
    assert len({figure.id for figure in figures()}) == len(FIGURES) + len(TIMINGS)


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.id)
def test_figure_is_quoted(figure: Figure) -> None:
    """The published string stands in the quotation of the article beside it."""
    number = figure.published.replace(",", "")
    quoted = figure.quote.replace(",", "")
    assert number in quoted, f"{figure.id}: {figure.published} does not stand in: {figure.quote}"


@pytest.mark.parametrize(
    ("published", "kind", "good", "bad"),
    [
        ("37005", "exact", [37005], [37004, 37006, 37005.4]),
        ("279,975", "exact", [279975], [279]),
        ("47.6%", "rounded", [47.55, 47.6, 47.65], [47.54, 47.66, 0.476]),
        ("0.150", "rounded", [0.1495, 0.15, 0.1505], [0.1494, 0.1506]),
        ("18", "rounded", [17.5, 18, 18.5], [17.4, 18.6]),
    ],
)
def test_a_verdict_is_as_strict_as_the_printed_digits(
    published: str, kind: str, good: list[float], bad: list[float]
) -> None:
    figure = Figure("F0.x", "", "", published, kind)  # type: ignore[arg-type]
    assert all(map(figure.holds, good))
    assert not any(map(figure.holds, bad))


# How typical is seed 39? Over 60 other seeds the figures had these means. The seed is the unit: 30 fresh ones must
# be equivalent by two one-sided t-tests. A margin is about 1.2 standard deviations of one seed (beside it), so
# that with 30 seeds the test finds equivalence in more than 99 % of the runs if the mean is right, and in fewer
# than 5 % if it is off by the margin (tests/meta/test_statistics.py simulates both).
SEEDS = range(100, 130)
TYPICAL = [
    # figure, mean over seeds, margin, standard deviation of one seed
    ("F4.text.k3.recall", 46.2, 2.3, 1.9),
    ("F4.text.k10.recall", 95.9, 1.3, 1.1),
    ("F4.text.k10.false_pairs", 2407, 500, 416),
    ("F2.text.unrelated.median", 18.8, 0.6, 0.5),
    ("F3.variants", 0.8682, 0.0011, 0.0009),
    ("F4.template.k3.recall", 83.6, 5.9, 4.9),
    ("F2.template.unrelated.median", 7.8, 1.3, 1.1),
]


@functools.cache
def over_seeds() -> list[dict[str, float]]:
    return [counted(article_corpus(seed)) for seed in SEEDS]


@pytest.mark.parametrize(("figure", "expected", "margin", "deviation"), TYPICAL, ids=[row[0] for row in TYPICAL])
def test_other_seeds_are_equivalent(figure: str, expected: float, margin: float, deviation: float) -> None:
    values = [seed[figure] for seed in over_seeds()]
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert equivalent(values, expected, margin), (
        f"{figure}: {mean(values):.4g} +- {error:.2g}, not {expected} +- {margin}"
    )
    # The margin was chosen for this spread; a chi-squared bound at 5 sigma for 30 seeds.
    assert np.std(values, ddof=1) < 1.7 * deviation


@pytest.mark.parametrize("table", ["F2.text", "F2.template", "F5.text", "F5.template"])
def test_distance_grows_with_edits(table: str) -> None:
    """In the mean over seeds each rate moves pages further than the one before, and none as far as to another page."""
    medians = [
        mean(seed[f"{table}.{pairs}.median"] for seed in over_seeds())
        for pairs in ("1pct", "5pct", "15pct", "unrelated")
    ]
    assert medians == sorted(medians)
    assert np.diff(medians).min() > 0.5


def test_the_headline_is_true_in_kind_but_not_in_size() -> None:
    """37,005 false pairs at k = 3 with the template belong to one template: on other seeds there are far fewer.

    The distribution is very skewed (60 seeds: 334 to 59,750), so nothing is said of its mean: the median of the
    seeds is below half of the published number, while text only gives next to none.
    """
    with_template = [seed["F4.template.k3.false_pairs"] for seed in over_seeds()]
    text_only = [seed["F4.text.k3.false_pairs"] for seed in over_seeds()]
    assert min(with_template) > 100
    assert np.median(with_template) < 37_005 / 2
    assert max(text_only) < 10


BEYOND = tomllib.loads(pathlib.Path(__file__).with_name("zero_false.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("condition", ["text", "template"])
@pytest.mark.parametrize("row", BEYOND["recall"], ids=lambda row: f"{row['ngram']}-{row['weight']}")
def test_recall_without_any_false_pair(row: dict[str, Any], condition: str) -> None:
    pages = corpus().pages if condition == "text" else corpus().with_template()
    edited = {str(rate): rows for rate, rows in corpus().variants.items()}
    for bits, published in zip((64, 128, 256), row[condition], strict=True):
        scheme = Scheme("word", row["ngram"], bits, "tf", "blake2b", normalize=False)
        scheme = fit_idf(pages, scheme) if row["weight"] == "idf" else replace(scheme, weight=row["weight"])
        best = measure(fingerprint(pages, scheme), corpus().family, edited).advise(0)
        recall = 100 * best.recall if best else 0.0
        assert Figure("", "", "", published, "rounded").holds(recall), f"{bits} bits: {recall}"


@pytest.mark.parametrize("condition", ["text", "template"])
def test_unprinted_distances_of_trigrams(condition: str) -> None:
    found = [measured(fingerprint)[f"F5.{condition}.1pct.{name}"] for name in ("min", "median", "max")]
    assert found == BEYOND["trigrams_1pct"][condition]


def test_the_angle_law_holds_on_average() -> None:
    """A bit differs with probability angle / pi (Charikar 2002): on average over hash families, not in each one.

    Each of the four words of a 256-bit fingerprint, under each of eight salts, is a family. Single families deviate
    by some per cent where a few words dominate, hence 5 % for the mean over all 32.
    """
    pages = corpus().pages[600:]
    vectors = [Counter(page.split()) for page in pages]

    def angle(left: Counter[str], right: Counter[str]) -> float:
        dot = sum(count * right[word] for word, count in left.items())
        norms = math.sqrt(sum(n * n for n in left.values()) * sum(n * n for n in right.values()))
        return math.acos(min(1.0, dot / norms))

    pairs = list(zip(range(0, 150, 2), range(1, 150, 2), strict=True))
    expected = mean(64 * angle(vectors[a], vectors[b]) / math.pi for a, b in pairs)
    found = []
    for salt in range(8):
        salted = [" ".join(f"{salt}:{word}" for word in page.split()) for page in pages]
        fingerprints = fingerprint(salted, Scheme("word", 1, 256, "tf", "blake2b", normalize=False))
        apart = np.bitwise_count(fingerprints.words[::2] ^ fingerprints.words[1::2])
        found += apart.mean(axis=0).tolist()
    assert len(found) == 32
    assert mean(found) == pytest.approx(expected, rel=0.05)


def expected_distance(changed: int, features: int) -> float:
    """Of 64 bits: how often the signs of two sums of n equal votes differ that have n - m votes in common."""

    def votes(count: int) -> NDArray[np.float64]:
        return stats.binom.pmf(np.arange(count + 1), count, 0.5)

    positive = 2 * np.arange(changed + 1)[:, np.newaxis] + 2 * np.arange(features - changed + 1) > features
    one = votes(changed) @ positive  # the chance of a 1, for each sum of the common votes
    return float(64 * (2 * one * (1 - one)) @ votes(features - changed))


@pytest.mark.parametrize(
    ("changed", "features", "expected"), [(1, 10, 7.9), (1, 100, 2.5), (1, 1000, 0.8), (10, 100, 9.0), (50, 100, 21.2)]
)
def test_expected_distance_of_m_of_n_features_changed(changed: int, features: int, expected: float) -> None:
    """The README's table, and simulated with 400 texts of different words."""
    exact = expected_distance(changed, features)
    assert round(exact, 1) == expected
    rng = random.Random(7)
    apart = []
    for _ in range(400):
        words = [f"{rng.getrandbits(64):x}" for _ in range(features + changed)]
        apart.append(distance(*(fingerprint(" ".join(part), ARTICLE) for part in (words[changed:], words[:features]))))
    assert abs(mean(apart) - exact) < 5 * np.std(apart, ddof=1) / math.sqrt(len(apart))
