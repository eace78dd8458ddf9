"""The suite's one statistical verdict, calibrated by simulation: how often it says yes wrongly, and rightly.

The margins of tests/reproduction rest on the two numbers found here for 30 values: fewer than 5 % wrong yeses, more
than 99 % right ones at a margin of 1.2 standard deviations.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.statistics import ALPHA, equivalent

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
