"""Measuring equals brute force over all pairs; intervals equal the textbook; the advice is the best within budget."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from simdup import Fingerprints, Scheme
from simdup.study.measure import Distances, Measurement, Threshold, measure
from tests.properties import strategies as some

counts = st.lists(st.integers(0, 5), min_size=1, max_size=65).filter(any)


def distances(values: Mapping[int, int], bits: int = 64) -> Distances:
    return Distances(np.array([values.get(at, 0) for at in range(bits + 1)], np.int64))


class TestDistances:
    @given(counts=counts)
    def test_statistics_of_the_expanded_list(self, counts: list[int]) -> None:
        found = Distances(np.array(counts, np.int64))
        every = np.repeat(np.arange(len(counts)), counts)
        assert found.pairs == len(every)
        assert (found.min, found.median, found.max) == (every.min(), np.median(every), every.max())
        assert [found.within(k) for k in range(len(counts))] == [(every <= k).sum() for k in range(len(counts))]

    @pytest.mark.parametrize(
        ("values", "median"),
        [({3: 1}, 3), ({3: 1, 4: 1}, 3.5), ({0: 2, 64: 2}, 32), ({0: 2, 64: 3}, 64), ({0: 1, 5: 1, 9: 1, 10: 1}, 7)],
    )
    def test_median(self, values: dict[int, int], median: float) -> None:
        assert distances(values).median == median

    def test_many_pairs_need_no_list(self) -> None:
        """Counts are the only thing kept: 10^15 pairs are as quick as ten."""
        found = distances({1: 10**15, 2: 10**15 + 1})
        assert (found.pairs, found.min, found.median, found.max) == (2 * 10**15 + 1, 1, 2, 2)

    def test_without_any_pair(self) -> None:
        assert distances({}).pairs == 0
        assert distances({}).within(64) == 0


class Experiment:
    """Fingerprints with some near others, some pages without text, families, and edited pairs."""

    def __init__(self, words: NDArray[np.uint64], draw: st.DataObject) -> None:
        n = len(words)
        self.scheme = Scheme(bits=64 * words.shape[1])
        self.features = np.array(draw.draw(st.lists(st.sampled_from([1, 7, -1, 0]), min_size=n, max_size=n)), np.int64)
        self.family = np.array(draw.draw(st.lists(st.integers(-1, 4), min_size=n, max_size=n)), np.int64)
        rows = st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=8)
        self.edited = {name: np.array(draw.draw(rows), np.int64).reshape(-1, 2) for name in ("replace 5 %", "token")}
        self.same = np.array(draw.draw(rows), np.int64).reshape(-1, 2)
        self.fingerprints = Fingerprints.from_words(words, self.scheme, self.features)
        self.values = some.to_ints(words)

    def apart(self, pairs: Iterable[Sequence[int]]) -> list[int]:
        has_text = (self.features != 0) & (self.family >= 0)
        return [(self.values[i] ^ self.values[j]).bit_count() for i, j in pairs if has_text[i] and has_text[j]]


@given(words=some.word_arrays(12).filter(len), draw=st.data())
def test_measure_equals_brute_force(words: NDArray[np.uint64], draw: st.DataObject) -> None:
    tried = Experiment(words, draw)
    unrelated = tried.apart((i, j) for i, j in combinations(range(len(words)), 2) if tried.family[i] != tried.family[j])
    apart = {name: tried.apart((i, j) for i, j in rows.tolist()) for name, rows in tried.edited.items()}
    if not unrelated or not all(apart.values()):
        with pytest.raises(ValueError, match=r"fewer than two unrelated pages|no copy has any text left"):
            measure(tried.fingerprints, tried.family, tried.edited, tried.same)
        return
    found = measure(tried.fingerprints, tried.family, tried.edited, tried.same)
    assert found.bits == tried.scheme.bits
    assert found.without_text == np.count_nonzero((tried.features == 0) | (tried.family < 0))
    assert expanded(found.same) == sorted(tried.apart(tried.same.tolist()))
    assert expanded(found.unrelated) == sorted(unrelated)
    assert {name: expanded(pairs) for name, pairs in found.edited.items()} == {
        name: sorted(values) for name, values in apart.items()
    }
    together = [value for values in apart.values() for value in values]
    for k in (0, 1, 3, tried.scheme.bits // 2, tried.scheme.bits):
        at = found.at(k)
        assert (at.k, at.found, at.edited) == (k, sum(value <= k for value in together), len(together))
        assert (at.false, at.unrelated) == (sum(value <= k for value in unrelated), len(unrelated))


def expanded(found: Distances) -> list[int]:
    return np.repeat(np.arange(len(found.counts)), found.counts).tolist()


def test_pages_without_text_are_in_no_pair() -> None:
    """All four values are equal: only the two pages that have features are ever near one another."""
    fingerprints = Fingerprints.from_ints([0, 0, 0, 0], Scheme(bits=64), [0, 5, 0, 5])
    found = measure(fingerprints, np.arange(4), {"edit": np.array([(0, 1), (1, 3), (2, 2)])})
    assert found.without_text == 2
    assert (found.unrelated.pairs, found.edited["edit"].pairs) == (1, 1)


def test_unknown_feature_counts_are_not_no_text() -> None:
    found = measure(Fingerprints.from_ints([0, 2**64 - 1], Scheme(bits=64)), np.arange(2), {})
    assert (found.without_text, found.unrelated.pairs, found.unrelated.min) == (0, 1, 64)


def test_families_are_no_unrelated_pairs() -> None:
    fingerprints = Fingerprints.from_ints([0, 1, 3, 7, 15], Scheme(bits=64))
    found = measure(fingerprints, np.array([9, 2, 9, 2, 9]), {})
    assert expanded(found.unrelated) == [1, 1, 1, 1, 3, 3]
    assert found.by_family.sum(axis=1).tolist() == [6, 6]


class TestThreshold:
    # Wilson 1927 by its formula; the first two are in many textbooks.
    @pytest.mark.parametrize(
        ("found", "edited", "low", "high"),
        [(8, 10, 0.4902, 0.9433), (0, 10, 0, 0.2775), (10, 10, 0.7225, 1), (15, 50, 0.1910, 0.4375), (0, 1, 0, 0.7935)],
    )
    def test_wilson_known_values(self, found: int, edited: int, low: float, high: float) -> None:
        assert Threshold(3, found, edited, 0, 1).recall_interval == pytest.approx((low, high), abs=5e-5)

    @given(edited=st.integers(1, 5000), share=st.floats(0, 1))
    def test_wilson_by_its_formula(self, edited: int, share: float) -> None:
        found = round(share * edited)
        z, p = stats.norm.ppf(0.975), found / edited
        middle = (p + z * z / (2 * edited)) / (1 + z * z / edited)
        half = z / (1 + z * z / edited) * math.sqrt(p * (1 - p) / edited + z * z / (4 * edited * edited))
        threshold = Threshold(3, found, edited, 0, 1)
        assert threshold.recall == p
        assert threshold.recall_interval == pytest.approx((middle - half, middle + half), abs=1e-9)
        low, high = threshold.recall_interval
        assert 0 <= low <= p <= high <= 1

    @pytest.mark.parametrize("unrelated", [100, 10_000, 279_975])
    def test_none_seen_is_not_none(self, unrelated: int) -> None:
        """The rule of three: 0 of n leaves up to 3 / n possible (exactly 1 - 0.05^(1/n))."""
        at_most = Threshold(3, 0, 1, 0, unrelated).false_per_million_at_most
        assert at_most == pytest.approx(1e6 * (1 - 0.05 ** (1 / unrelated)), rel=1e-6)
        assert at_most == pytest.approx(3e6 / unrelated, rel=0.02)

    @given(unrelated=st.integers(1, 10**6), share=st.floats(0, 1))
    def test_at_most_is_the_exact_interval(self, unrelated: int, share: float) -> None:
        """Clopper and Pearson 1934: with the upper end as the rate, so few would be seen 1 time in 20."""
        false = round(share * unrelated)
        threshold = Threshold(3, 1, 1, false, unrelated)
        at_most = threshold.false_per_million_at_most / 1e6
        assert threshold.false_per_million == pytest.approx(1e6 * false / unrelated)
        assert at_most == pytest.approx(stats.beta.ppf(0.95, false + 1, unrelated - false) if false < unrelated else 1)
        assert at_most >= false / unrelated

    @pytest.mark.parametrize(("pages", "expected"), [(2, 0.25), (3, 0.75), (1001, 0.25 * 1001 * 500)])
    def test_false_among(self, pages: int, expected: float) -> None:
        """The rate times N (N - 1) / 2 pairs."""
        threshold = Threshold(3, 1, 1, 25, 100)
        assert threshold.false_among(pages) == pytest.approx(expected)
        upper = threshold.false_per_million_at_most / 250_000
        assert threshold.false_among(pages, at_most=True) == pytest.approx(expected * upper)
        assert threshold.false_among(pages, at_most=True) > threshold.false_among(pages)


few = st.lists(st.integers(0, 4), min_size=9, max_size=9).filter(any)
budgets = st.one_of(st.just(0.0), st.floats(0, 1e6))


def made(edited: Mapping[str, Distances], unrelated: Distances) -> Measurement:
    """With two families, which both have their part in every pair."""
    none = Distances(np.zeros_like(unrelated.counts))
    return Measurement(edited, none, np.tile(unrelated.counts, (2, 1)), 0)


def small(edited: list[list[int]], unrelated: list[int]) -> Measurement:
    """Of 8 bits, so that every threshold can be tried."""
    return made({str(i): Distances(np.array(row)) for i, row in enumerate(edited)}, Distances(np.array(unrelated)))


def counted(threshold: Threshold | None) -> tuple[int, ...]:
    assert threshold
    return (threshold.k, threshold.found, threshold.edited, threshold.false, threshold.unrelated)


class TestDesignEffect:
    """Pairs share pages: what the jackknife makes of that is calibrated in tests/meta."""

    def test_by_leaving_each_family_out(self) -> None:
        """The textbook's sum, over the pairs themselves."""
        rng = np.random.default_rng(3)
        words = rng.integers(0, 2**64, 40, dtype=np.uint64) & np.uint64(0xFFFF)
        family = np.arange(40) // 2
        found = measure(Fingerprints.from_words(words, Scheme(bits=64)), family, {})
        pairs = [(i, j) for i, j in combinations(range(40), 2) if family[i] != family[j]]
        near = {(i, j): (int(words[i]) ^ int(words[j])).bit_count() <= 5 for i, j in pairs}
        rates = []
        for out in range(20):
            kept = [near[i, j] for i, j in pairs if out not in (family[i], family[j])]
            rates.append(sum(kept) / len(kept))
        share = sum(near.values()) / len(near)
        assert 0 < share < 1
        variance = 19 / 20 * sum((rate - sum(rates) / 20) ** 2 for rate in rates)
        assert found.design_effect(5) == pytest.approx(max(1, variance / (share * (1 - share) / len(near))))
        assert found.design_effect(5) > 1
        assert found.at(5).design_effect == found.design_effect(5)

    def test_where_none_is_seen_all_pairs_of_two_families_are_one(self) -> None:
        values = [0b1111, 0b1111 << 8, 0b1111 << 16]
        found = measure(Fingerprints.from_ints(values * 4, Scheme(bits=64)), np.tile(np.arange(3), 4), {})
        assert found.unrelated.pairs == 3 * 16
        assert found.design_effect(3) == found.design_effect(64) == 16
        assert found.at(3).false_per_million_at_most == pytest.approx(1e6 * (1 - 0.05 ** (1 / 3)))

    def test_two_families_are_one_observation(self) -> None:
        found = measure(Fingerprints.from_ints([0, 1, 3, 255], Scheme(bits=64)), np.array([0, 0, 1, 1]), {})
        assert found.at(2).false == 2
        assert found.design_effect(2) == 4

    def test_one_odd_family_is_many_pairs(self) -> None:
        """A page near all others: 39 false pairs, but one cause."""
        rng = np.random.default_rng(4)
        values = [0, *(1 << int(bit) for bit in rng.permutation(64)[:39])]
        found = measure(Fingerprints.from_ints(values, Scheme(bits=64)), np.arange(40), {})
        assert found.at(1).false == 39
        assert found.design_effect(1) > 10
        assert found.at(1).false_per_million_at_most > 2 * found.at(1).false_per_million


class TestAdvice:
    @given(edited=st.lists(few, min_size=1, max_size=3), unrelated=few, budget=budgets)
    def test_best_recall_within_the_budget(self, edited: list[list[int]], unrelated: list[int], budget: float) -> None:
        """Spelt out: no allowed threshold finds more, and none below the advised one finds as much."""
        best = None
        for k in range(9):
            found = sum(sum(row[: k + 1]) for row in edited)
            if sum(unrelated[: k + 1]) / sum(unrelated) * 1e6 <= budget * (1 + 1e-12) and (not best or found > best[1]):
                best = (k, found)
        advised = small(edited, unrelated).advise(budget)
        assert (advised and (advised.k, advised.found)) == best

    @given(edited=st.lists(few, min_size=1, max_size=3), unrelated=few, budgets=st.tuples(budgets, budgets))
    def test_a_larger_budget_never_finds_less(
        self, edited: list[list[int]], unrelated: list[int], budgets: tuple[float, float]
    ) -> None:
        less, more = (small(edited, unrelated).advise(budget) for budget in sorted(budgets))
        assert more is not None or less is None
        assert less is None or (more and more.found >= less.found and more.k >= less.k)

    @given(edited=st.lists(few, min_size=1, max_size=3), unrelated=few)
    def test_a_larger_threshold_never_finds_less(self, edited: list[list[int]], unrelated: list[int]) -> None:
        at = [small(edited, unrelated).at(k) for k in range(9)]
        assert [t.recall for t in at] == sorted(t.recall for t in at)
        assert [t.false for t in at] == sorted(t.false for t in at)
        assert (at[-1].recall, at[-1].false) == (1, sum(unrelated))

    def test_smallest_of_equals(self) -> None:
        """No edited pair between 2 and 6 bits: 2 finds as many, and what it finds is surer."""
        advised = small([[1, 0, 1, 0, 0, 0, 0, 1, 0]], [0, 0, 0, 0, 0, 0, 1, 0, 9]).advise(0)
        assert counted(advised) == (2, 2, 3, 0, 10)

    def test_no_recall_at_all_is_k_0(self) -> None:
        advised = small([[0] * 8 + [3]], [0] * 8 + [9]).advise(0)
        assert counted(advised) == (0, 0, 3, 0, 9)

    def test_none_where_equal_fingerprints_are_over_the_budget(self) -> None:
        found = small([[5] + [0] * 8], [1] + [0] * 7 + [9])
        assert found.advise(99_999) is None
        assert counted(found.advise(100_000)) == (0, 5, 5, 1, 10)

    def test_the_budget_is_per_million_pairs(self) -> None:
        """2 of 1,000,000 at 1 bit: a budget of 2 allows it, 1.9 does not."""
        found = made({"e": distances({1: 5}, 8)}, distances({1: 2, 8: 999_998}, 8))
        within, without = found.advise(2), found.advise(1.9)
        assert within
        assert without
        assert (within.k, without.k) == (1, 0)


class TestNothingToMeasure:
    """There is no recall and no rate of nothing: that is said, not divided."""

    one = Fingerprints.from_ints([0, 1, 2, 3], Scheme(bits=64), [5, 5, 0, 0])

    @pytest.mark.parametrize("family", [[0, 0, 1, 2], [0, 0, 0, 0]])
    def test_no_unrelated_pair(self, family: list[int]) -> None:
        with pytest.raises(ValueError, match="fewer than two unrelated pages with text"):
            measure(self.one, np.array(family), {"e": np.array([(0, 1)])})

    def test_no_copy_with_text(self) -> None:
        """The other edit has copies with text: the message names the one that has not."""
        with pytest.raises(ValueError, match="after the edit 'delete 100 %'"):
            measure(self.one, np.arange(4), {"e": np.array([(0, 1)]), "delete 100 %": np.array([(0, 2), (3, 1)])})

    def test_no_page(self) -> None:
        with pytest.raises(ValueError, match="fewer than two"):
            measure(self.one[:0], np.arange(0), {})
