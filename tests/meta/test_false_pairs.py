"""The bound on false pairs, calibrated by simulation: how often it lies below the truth.

Pages of the article's kind, each with its copies, are drawn from many; the truth is the rate among all of them.
"""

import functools
import random
from itertools import accumulate

import numpy as np
import pytest
from numpy.typing import NDArray

from simdup import Fingerprints, Scheme, fingerprint
from simdup.hamming import distance_counts
from simdup.study.corpus import PAGE_WORDS, RATES, VOCABULARY
from simdup.study.edits import replaced
from simdup.study.measure import CONFIDENCE, Measurement, measure

ALL, DRAWN, ROUNDS = 3_000, 200, 200
SCHEME = Scheme("word", 1, 64, "tf")


@functools.cache
def population() -> tuple[Fingerprints, NDArray[np.int64], NDArray[np.float64]]:
    """Every page and its copies, their families, and the share of unrelated pairs within each k."""
    rng = random.Random(39)
    vocabulary = [f"w{i}" for i in range(VOCABULARY)]
    weights = list(accumulate(1 / (i + 5) for i in range(VOCABULARY)))
    pages = [rng.choices(vocabulary, cum_weights=weights, k=PAGE_WORDS) for _ in range(ALL)]
    texts = pages + [replaced(page, rate, vocabulary, rng) for rate in RATES for page in pages]
    fingerprints = fingerprint(map(" ".join, texts), SCHEME)
    family = np.tile(np.arange(ALL), 1 + len(RATES))
    counts = distance_counts(fingerprints.words, family).sum(axis=0)
    return fingerprints, family, np.cumsum(counts) / counts.sum()


@functools.cache
def samples() -> list[Measurement]:
    fingerprints, family, _ = population()
    rng = np.random.default_rng(40)
    drawn = (rng.choice(ALL, DRAWN, replace=False) for _ in range(ROUNDS))
    rows = [np.concatenate([pages + copy * ALL for copy in range(1 + len(RATES))]) for pages in drawn]
    return [measure(fingerprints[row], family[row], {}) for row in rows]


def share_below(k: int, *, independent: bool = False) -> float:
    """How often the bound lies below the truth."""
    truth = 1e6 * population()[2][k]
    found = [sample.at(k) for sample in samples()]
    if independent:
        found = [type(at)(at.k, at.found, at.edited, at.false, at.unrelated) for at in found]
    return float(np.mean([at.false_per_million_at_most < truth for at in found]))


@pytest.mark.parametrize("k", [3, 4, 5, 6, 7, 8])
def test_the_bound_holds_as_often_as_it_says(k: int) -> None:
    """From a sample with hardly a false pair to one with thousands; twice the level is the margin for skewness."""
    assert share_below(k) <= 2 * (1 - CONFIDENCE)


@pytest.mark.parametrize("k", [5, 6, 7, 8])
def test_taking_pairs_for_independent_would_break_it(k: int) -> None:
    """What the design effect is for."""
    assert share_below(k, independent=True) > 0.2


def test_it_is_not_wide_without_need() -> None:
    """With hundreds of false pairs it stands within half of the truth."""
    k = 7
    truth = 1e6 * population()[2][k]
    assert np.median([sample.at(k).false_per_million_at_most for sample in samples()]) < 2 * truth
