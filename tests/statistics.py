"""How this suite says that two numbers are the same although both vary, and how sure a mean is of pairs of pages."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

ALPHA = 0.05


def equivalent(values: Sequence[float], expected: float, margin: float, alpha: float = ALPHA) -> bool:
    """Test by two one-sided t-tests whether the mean of independent values is within `margin` of `expected`.

    Parameters
    ----------
    values
        One per seed: pairs or pages that share a seed are not independent.
    expected, margin
        The mean is claimed to be nearer than `margin` to `expected`.
    alpha
        The chance of a yes when the mean is just `margin` away, or further.

    Returns
    -------
    bool
        True if both tests reject; False means different or too few values to tell.
    """
    sample = np.asarray(values, np.float64) - expected
    if np.ptp(sample) == 0:
        return bool(abs(sample[0]) < margin)
    above = stats.ttest_1samp(sample, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(sample, margin, alternative="less").pvalue
    return bool(max(above, below) < alpha)


def mean_interval(values: ArrayLike, families: NDArray[np.int64]) -> tuple[float, float]:
    """The 95 % interval of the mean of values of pairs: other pages like these.

    Parameters
    ----------
    values
        One per pair, shape (m,).
    families
        Of both pages of each pair, shape (m, 2). Pairs that have one in common are not independent.

    Returns
    -------
    tuple of float
        Student's, with the standard error of the jackknife over families (Efron and Stein 1981).
    """
    values = np.asarray(values, np.float64)
    error, count = _jackknife(values, families)
    half = stats.t.ppf(1 - ALPHA / 2, count - 1) * error
    return float(values.mean() - half), float(values.mean() + half)


def share_interval(found: ArrayLike, families: NDArray[np.int64]) -> tuple[float, float]:
    """The 95 % interval of a share of pairs, also of none or all: as `mean_interval`, of True and False.

    Clopper and Pearson's, of as many independent pairs as tell as much.
    """
    found = np.asarray(found, np.bool_)
    pairs, share = len(found), found.mean()
    error, count = _jackknife(found.astype(np.float64), families)
    # Where all pairs are found or none, the jackknife tells nothing, and the pairs of a family count as one.
    effect = error**2 * pairs / (share * (1 - share)) if 0 < share < 1 else pairs / count
    yes, no = found.sum() / max(effect, 1.0), (~found).sum() / max(effect, 1.0)
    low = stats.beta.ppf(ALPHA / 2, yes, no + 1) if yes else 0.0
    high = stats.beta.ppf(1 - ALPHA / 2, yes + 1, no) if no else 1.0
    return float(low), float(high)


def _jackknife(values: NDArray[np.float64], families: NDArray[np.int64]) -> tuple[float, int]:
    """The standard error of the mean, and how many families there are."""
    named, family = np.unique(families, return_inverse=True)
    one, other = family.reshape(families.shape).T
    twice = one != other  # a pair within a family counts once
    sums = np.bincount(one, values, len(named)) + np.bincount(other, values * twice, len(named))
    pairs = np.bincount(one, minlength=len(named)) + np.bincount(other, twice, len(named))
    if len(named) < 2 or (pairs == len(values)).any():
        raise ValueError("all pairs have a family in common: there is nothing to compare it with")
    others = (values.sum() - sums) / (len(values) - pairs)
    return math.sqrt((len(named) - 1) * others.var()), len(named)
