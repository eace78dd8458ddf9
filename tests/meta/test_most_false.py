"""The bound on false pairs by which `simdup dedup` chooses k for many pages, against counts among many pages.

A sample of 2,000 pages cannot show one false pair in a billion. The bound goes on as the sample falls off, which the
truth does faster: so it lies above the truth, and not so far that nothing could be found.
"""

import functools

import numpy as np
import pytest

from simdup import ARTICLE, Fingerprints, Scheme, fingerprint, near_pairs
from simdup.fingerprint import Counts
from simdup.hamming import distance_counts
from simdup.study.measure import Distances, Measurement
from tests.perf.conftest import documents

PAGES, SAMPLE = 60_000, 2_000


@functools.cache
def column(scheme: Scheme) -> Fingerprints:
    return fingerprint(documents(PAGES, 100, 5), scheme)


def within(scheme: Scheme, k: int) -> Counts:
    """How many of all pairs are within 0 to k bits."""
    return np.bincount(near_pairs(column(scheme), k).distance, minlength=k + 1).cumsum()


def measurement(fingerprints: Fingerprints) -> Measurement:
    counts = distance_counts(fingerprints.words, np.arange(len(fingerprints)))
    return Measurement({}, Distances(np.zeros(fingerprints.scheme.bits + 1, np.int64)), counts, 0)


@pytest.mark.parametrize(
    ("scheme", "k"), [(ARTICLE, 7), (Scheme("word", 1, 64, "tf"), 7), (Scheme("word", 2, 64, "tf"), 12)], ids=str
)
def test_it_lies_above_the_truth_but_not_far(scheme: Scheme, k: int) -> None:
    pairs = PAGES * (PAGES - 1) / 2
    seen = within(scheme, k)
    assert seen[-1] > 100  # there is a truth to compare with, beyond what a sample could show
    assert seen[-1] / pairs * SAMPLE**2 / 2 < 200
    for seed in range(5):
        rows = np.random.default_rng(seed).choice(PAGES, SAMPLE, replace=False)
        sample = measurement(column(scheme)[rows])
        for bits in range(k + 1):
            bound = sample.most_false(bits) * pairs
            assert bound > 0.7 * seen[bits], (seed, bits)
            if seen[bits] >= 20:
                assert bound < 60 * seen[bits], (seed, bits)


def test_it_never_grows_as_k_falls() -> None:
    sample = measurement(column(ARTICLE)[:SAMPLE])
    bounds = [sample.most_false(k) for k in range(65)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == 1


def test_few_pages_say_little() -> None:
    """Where 10,000 pairs were not seen to fall, the bound is the upper end of the interval."""
    few = measurement(column(ARTICLE)[:30])
    assert few.most_false(0) == few.at(0).false_per_million_at_most / 1e6 > 0.001
