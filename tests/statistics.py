"""The one way in which this suite says that two numbers are the same although both vary."""

from collections.abc import Sequence

import numpy as np
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
