"""Measure an experiment: distances, recall and false pairs at every threshold, and the threshold to advise."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binomtest

from simdup.fingerprint import Counts, Fingerprints
from simdup.hamming import distance, distance_counts

CONFIDENCE = 0.95
# Pairs enough to know how many there are.
_SEEN = 100


@dataclass(frozen=True)
class Distances:
    """How many pairs stand at each distance."""

    counts: Counts
    """int64, shape (bits + 1,)."""

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return int(self.counts.sum())

    @property
    def min(self) -> int:
        """The smallest distance, in bits."""
        return int(np.flatnonzero(self.counts)[0])

    @property
    def max(self) -> int:
        """The largest distance, in bits."""
        return int(np.flatnonzero(self.counts)[-1])

    @property
    def median(self) -> float:
        """The middle distance, or the mean of the two in the middle."""
        below = np.cumsum(self.counts)
        middle = [(self.pairs - 1) // 2, self.pairs // 2]
        return float(np.searchsorted(below, middle, side="right").mean())

    def within(self, k: int) -> int:
        """How many pairs stand at most k bits apart."""
        return int(self.counts[: k + 1].sum())

    def share(self, k: int) -> float:
        """The share of the pairs that stand at most k bits apart."""
        return self.within(k) / self.pairs


@dataclass(frozen=True)
class Threshold:
    """What a threshold finds: pairs within k bits count as near-duplicates."""

    k: int
    found: int
    """Of the edited pairs."""
    edited: int
    false: int
    """Pairs of unrelated pages that it finds too."""
    unrelated: int
    design_effect: float = 1.0
    """How many times as much the false pairs vary from corpus to corpus as independent pairs would."""

    @property
    def recall(self) -> float:
        """The share of the edited pairs that it finds."""
        return self.found / self.edited

    @property
    def recall_interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval: other pages like these and other edits, the same hash."""
        interval = binomtest(self.found, self.edited).proportion_ci(CONFIDENCE, method="wilson")
        return float(interval.low), float(interval.high)

    @property
    def false_per_million(self) -> float:
        """False pairs per million pairs of unrelated pages."""
        return 1e6 * self.false / self.unrelated

    @property
    def false_per_million_at_most(self) -> float:
        """The upper end of a one-sided 95 % interval of `false_per_million`: other pages like these.

        Clopper and Pearson's, of as many independent pairs as tell as much (see `Measurement.design_effect`).
        """
        if self.false == self.unrelated:
            return 1e6
        false, right = self.false / self.design_effect, (self.unrelated - self.false) / self.design_effect
        return 1e6 * float(beta.ppf(CONFIDENCE, false + 1, right))

    def false_among(self, pages: int, *, at_most: bool = False) -> float:
        """How many false pairs to expect among so many unrelated pages."""
        rate = self.false_per_million_at_most if at_most else self.false_per_million
        return rate / 1e6 * pages * (pages - 1) / 2


@dataclass(frozen=True)
class Measurement:
    """The distances of an experiment."""

    edited: Mapping[str, Distances]
    """For each edit the distances between original and edited page."""
    same: Distances
    """The distances between pages that said the same before any edit."""
    by_family: Counts
    """For each family of pages the pairs with the others at each distance, shape (families, bits + 1)."""
    without_text: int
    """Pages and copies without any feature: they are in no pair."""

    @functools.cached_property
    def unrelated(self) -> Distances:
        """The distances between all pages and copies of different families."""
        return Distances(self.by_family.sum(axis=0) // 2)

    @property
    def bits(self) -> int:
        """The width of the fingerprints."""
        return int(self.by_family.shape[1]) - 1

    @functools.cached_property
    def _within(self) -> Counts:
        return np.cumsum(self.by_family, axis=1)

    def design_effect(self, k: int) -> float:
        """How many times as much the false pairs vary as independent ones would.

        Pairs share pages, copies share most of their words, and one odd page may be in many pairs. The variance is
        the jackknife's over families (Efron and Stein 1981). Where no false pair was seen it tells nothing, and all
        pairs of two families count as one.
        """
        false, pairs = self._within[:, k], self._within[:, -1]
        families, total, share = len(pairs), self.unrelated.pairs, self.unrelated.share(k)
        if not 0 < share < 1:
            return 2 * total / (families * (families - 1))
        if families == 2:
            return float(total)
        others = (self.unrelated.within(k) - false) / (total - pairs)
        return max(1.0, float(others.var() * (families - 1) * total / (share * (1 - share))))

    def at(self, k: int) -> Threshold:
        """What the threshold of k bits finds."""
        found = sum(distances.within(k) for distances in self.edited.values())
        edited = sum(distances.pairs for distances in self.edited.values())
        return Threshold(k, found, edited, self.unrelated.within(k), self.unrelated.pairs, self.design_effect(k))

    def most_false(self, k: int) -> float:
        """At most which share of unrelated pairs stands within k bits, also where hardly any were seen.

        The upper end of the interval; or, if that is less, as many as if they fell from bit to bit no faster than
        between the distances that 100 and 10,000 were seen within. They fall faster the nearer they are.
        """
        within = np.cumsum(self.unrelated.counts)
        some, many = (int(np.searchsorted(within, min(least, within[-1]))) for least in (_SEEN, _SEEN**2))
        most = self.at(k).false_per_million_at_most / 1e6
        if k < some < many:
            fall = math.log(within[many] / within[some]) / (many - some)
            return min(most, float(within[some] * math.exp(-fall * (some - k)) / within[-1]))
        return most

    def advise(self, most_false_per_million: float, *, surely: bool = False) -> Threshold | None:
        """The threshold with the best recall within a budget of false pairs, the smallest of equals.

        Parameters
        ----------
        most_false_per_million
            How many of a million pairs of unrelated pages may be found.
        surely
            Count those that there may be at most (`most_false`), not those that were found.

        Returns
        -------
        Threshold or None
            None if even equal fingerprints are too often unrelated pages.
        """

        def false_per_million(threshold: Threshold) -> float:
            return 1e6 * self.most_false(threshold.k) if surely else threshold.false_per_million

        every = map(self.at, range(self.bits + 1))
        allowed = [threshold for threshold in every if false_per_million(threshold) <= most_false_per_million]
        return max(allowed, key=lambda threshold: (threshold.found, -threshold.k), default=None)


def measure(
    fingerprints: Fingerprints,
    family: NDArray[np.int64],
    edited: Mapping[str, NDArray[np.int64]],
    same: NDArray[np.int64] | None = None,
) -> Measurement:
    """Measure the distances of an experiment.

    Parameters
    ----------
    fingerprints
        Of all n pages, edited copies included.
    family
        Shape (n,). Pages of one family are no unrelated pair; one below 0 is no page: it is in no pair.
    edited
        For each edit the rows (original, copy), shape (m, 2).
    same
        The rows of pages that said the same before any edit, shape (m, 2).

    Raises
    ------
    ValueError
        If there is no pair of unrelated pages with text, or none of some edit.
    """
    has_text = (fingerprints.features != 0) & (family >= 0)

    def between(rows: NDArray[np.int64]) -> Distances:
        rows = rows[has_text[rows].all(axis=1)]
        apart = distance(fingerprints[rows[:, 0]], fingerprints[rows[:, 1]])
        return Distances(np.bincount(apart, minlength=fingerprints.scheme.bits + 1))

    families, group = np.unique(family[has_text], return_inverse=True)
    if len(families) < 2:
        raise ValueError("fewer than two unrelated pages with text: there is nothing to tell apart")
    distances = {name: between(rows) for name, rows in edited.items()}
    for name, found in distances.items():
        if not found.pairs:
            raise ValueError(f"no copy has any text left after the edit {name!r}: there is no recall to measure")
    return Measurement(
        distances,
        between(np.empty((0, 2), np.int64) if same is None else same),
        distance_counts(fingerprints.words[has_text], group),
        int(np.count_nonzero(~has_text)),
    )
