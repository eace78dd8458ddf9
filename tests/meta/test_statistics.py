"""The suite's statistical verdicts, calibrated by simulation: how often they say yes wrongly, and rightly.

The margins of tests/reproduction rest on the two numbers found here for 30 values: fewer than 5 % wrong yeses, more
than 99 % right ones at a margin of 1.2 standard deviations.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.statistics import ALPHA, equivalent, mean_interval, share_interval

ROUNDS, VALUES = 500, 30
MARGIN = 1.2
# Four standard deviations of a share of 5 % among so many rounds.
SLACK = 4 * math.sqrt(ALPHA * (1 - ALPHA) / ROUNDS)


def share_of_yes(samples: NDArray[np.float64], expected: float, margin: float) -> float:
    return float(np.mean([equivalent(sample, expected, margin) for sample in samples.tolist()]))


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("margin", [0.2, MARGIN])
def test_a_mean_just_a_margin_away_is_seldom_called_equivalent(side: int, margin: float) -> None:
    samples = np.random.default_rng(39).normal(7 + side * margin, 1, (ROUNDS, VALUES))
    assert share_of_yes(samples, 7, margin) <= ALPHA + SLACK


def test_the_level_is_used_up() -> None:
    """At a wide margin only one of the two tests matters, and its level is exact: a test that never says yes fails."""
    samples = np.random.default_rng(40).normal(7 + MARGIN, 1, (ROUNDS, VALUES))
    assert share_of_yes(samples, 7, MARGIN) >= ALPHA - SLACK


def test_a_mean_beyond_the_margin_is_never_called_equivalent() -> None:
    samples = np.random.default_rng(41).normal(7 + 2 * MARGIN, 1, (ROUNDS, VALUES))
    assert share_of_yes(samples, 7, MARGIN) == 0


def test_a_right_mean_is_found_equivalent() -> None:
    samples = np.random.default_rng(42).normal(7, 1, (ROUNDS, VALUES))
    assert share_of_yes(samples, 7, MARGIN) > 0.99


def test_too_few_values_or_too_narrow_a_margin_prove_nothing() -> None:
    rng = np.random.default_rng(43)
    assert share_of_yes(rng.normal(7, 1, (ROUNDS, 3)), 7, MARGIN) < 0.5
    assert share_of_yes(rng.normal(7, 1, (ROUNDS, VALUES)), 7, 0.05) < 0.2


@pytest.mark.parametrize("side", [-1, 1])
def test_a_skewed_distribution_stays_near_the_level(side: int) -> None:
    """Of 30 values a t-test tells less when they are skewed: the level is up to three times as high on one side.

    A chi-squared with 4 degrees of freedom, scaled to one standard deviation, is about as skewed (1.4) as the
    recall figures ever are; the false pairs with the template are far more so, and no mean is claimed of them.
    """
    samples = np.random.default_rng(44).chisquare(4, (ROUNDS, VALUES)) / math.sqrt(8)
    true_mean = 4 / math.sqrt(8)
    assert share_of_yes(samples, true_mean - side * MARGIN, MARGIN) <= 3 * ALPHA
    assert share_of_yes(samples, true_mean, MARGIN) > 0.97


@pytest.mark.parametrize(("value", "verdict"), [(7.0, True), (7.9, True), (6.1, True), (8.0, False), (6.0, False)])
def test_values_that_are_all_the_same(value: float, verdict: bool) -> None:
    """Nothing varies, so nothing is left to test; a distance of exactly the margin is not below it."""
    assert equivalent([value] * VALUES, 7, 1) is verdict


def test_agrees_with_the_confidence_interval() -> None:
    """Two one-sided tests at 5 % say yes where the 90 % interval lies within the margins (Schuirmann 1987)."""
    rng = np.random.default_rng(45)
    verdicts = set()
    for _ in range(300):
        sample = rng.normal(rng.uniform(-1, 1), rng.uniform(0.2, 2), 12)
        low, high = stats.t.interval(0.9, 11, loc=sample.mean(), scale=stats.sem(sample))
        verdict = equivalent(sample.tolist(), 0, 0.8)
        verdicts.add(verdict)
        inside = low > -0.8 and high < 0.8
        assert verdict == inside
    assert verdicts == {True, False}


def test_alpha_is_wired() -> None:
    sample = np.random.default_rng(46).normal(0.5, 1, VALUES).tolist()
    assert equivalent(sample, 0, 1, alpha=0.2)
    assert not equivalent(sample, 0, 1, alpha=1e-6)


def pairs_of_families(rng: np.random.Generator, families: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs as three versions of each page make them, and some between pages; each pair's normal deviate of mean 0.

    Half of its variance belongs to its families.
    """
    within = np.repeat(np.arange(families), 3)
    between = rng.integers(0, families, (families // 4, 2))
    pairs = np.concatenate([np.stack([within, within], axis=1), between])
    own = rng.normal(size=families)[pairs].sum(axis=1) / np.where(pairs[:, 0] == pairs[:, 1], 2, math.sqrt(2))
    return pairs, math.sqrt(0.5) * (own + rng.normal(size=len(pairs)))


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 %, at most as much less as chance and skewness explain; and not 100 %, which any width could."""
    rng = np.random.default_rng(44)
    mean, share, independent = [], [], []
    for _ in range(ROUNDS):
        pairs, values = pairs_of_families(rng, 60)
        low, high = mean_interval(values, pairs)
        mean.append(low <= 0 <= high)
        found = values < stats.norm.ppf(0.8)
        low, high = share_interval(found, pairs)
        share.append(low <= 0.8 <= high)
        low, high = stats.binomtest(int(found.sum()), len(found)).proportion_ci()
        independent.append(low <= 0.8 <= high)
    assert 1 - ALPHA - 1.5 * SLACK <= np.mean(mean) <= 1 - ALPHA / 4
    assert 1 - ALPHA - 1.5 * SLACK <= np.mean(share) <= 1 - ALPHA / 4
    assert np.mean(independent) < 1 - 2 * ALPHA  # what the jackknife is for


def test_the_jackknife_leaves_out_one_family_after_the_other() -> None:
    rng = np.random.default_rng(45)
    pairs, values = pairs_of_families(rng, 20)
    others = [values[(pairs != family).all(axis=1)].mean() for family in range(20)]
    half = stats.t.ppf(0.975, 19) * math.sqrt(19 * np.var(others))
    assert mean_interval(values, pairs) == pytest.approx((values.mean() - half, values.mean() + half))


def test_none_and_all_have_an_interval_too() -> None:
    """Where nothing varies, each family counts as one pair: of 20 families none, the rule of three."""
    pairs = np.repeat(np.arange(20), 5)[:, np.newaxis].repeat(2, axis=1)
    low, high = share_interval(np.zeros(100, np.bool_), pairs)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert share_interval(np.ones(100, np.bool_), pairs) == pytest.approx((1 - high, 1))


def test_what_all_pairs_share_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="family in common"):
        mean_interval([0.0, 1.0], np.array([[0, 1], [0, 2]]))
