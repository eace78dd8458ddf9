"""What the tables of docs/defaults.md are computed by, against plain loops."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from simdup import Scheme, distance, fingerprint, fit_idf
from simdup.scheme import Weight
from tests.reproduction import defaults
from tests.reproduction.defaults import WIDTHS, Sample, difference, measure, one_k, recall_of


def sample(seed: int = 0) -> Sample:
    """Ten families of a page and two copies, some words changed; the copies are near, the others different."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(10):
        page = rng.zipf(1.3, 60) % 500
        for changed in (0, 2, 5):
            copy = page.copy()
            copy[rng.integers(0, 60, changed)] = rng.integers(0, 500, changed)
            texts.append(" ".join(map(str, copy.tolist())))
    family = np.repeat(np.arange(10), 3)
    pairs = np.array(list(combinations(range(30), 2)))
    is_near = family[pairs[:, 0]] == family[pairs[:, 1]]
    halves = rng.permuted(np.tile(np.arange(10), (40, 1)), axis=1) < 5
    return Sample(texts, pairs[is_near], pairs[~is_near], family, halves)


@pytest.mark.parametrize("first", [1, 3, 256])
def test_recall_of_all_pages_and_of_halves(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "_FIRST", first)
    pages, rng = sample(), np.random.default_rng(1)
    for _ in range(20):
        near, different = rng.integers(0, 20, len(pages.near)), rng.integers(5, 30, len(pages.different))
        recall, among_halves = recall_of(pages, near, different)
        assert recall == np.mean([apart < min(different) for apart in near])
        for half, found in zip(pages.halves, among_halves, strict=True):
            there = [half[pages.family[pairs]].all(axis=1) for pairs in (pages.near, pages.different)]
            assert found == np.mean(near[there[0]] < different[there[1]].min())


@pytest.mark.parametrize("weight", ["tf", "set", "idf"])
def test_thresholds_are_those_of_the_scheme_itself(weight: Weight) -> None:
    pages = sample()
    found = measure(pages, Scheme("word", 1, weight=weight))
    for bits in WIDTHS:
        scheme = Scheme("word", 1, bits, weight)
        column = fingerprint(pages.texts, fit_idf(pages.texts, scheme) if weight == "idf" else scheme)
        near, different = (distance(column[rows[:, 0]], column[rows[:, 1]]) for rows in (pages.near, pages.different))
        assert found[bits].near.tolist() == near.tolist()
        assert found[bits].k == different.min() - 1
    assert found[256].recall > found[64].recall > 0


def test_one_threshold_and_differences() -> None:
    one, other = (
        {name: measure(sample(seed), Scheme("word", n)) for name, seed in (("a", 0), ("b", 1))} for n in (1, 2)
    )
    k = min(by_width[128].k for by_width in one.values())
    share = np.mean([np.mean(by_width[128].near <= k) for by_width in one.values()])
    assert one_k(one, 128) == f"k = {k}: {100 * share:.1f}"
    assert one_k({"a": {64: replace(one["a"][64], k=-1)}}, 64) == "none"
    assert difference(one, one, 64) == "+0.0 (+0.0 to +0.0)"
    full = 100 * np.mean([one[name][64].recall - other[name][64].recall for name in "ab"])
    shown, low, _, high = difference(one, other, 64).replace("(", "").replace(")", "").split()
    assert shown == f"{full:+.1f}"
    assert float(low) < full < float(high)
