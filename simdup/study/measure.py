"""Measure an experiment: distances, recall and false pairs at every threshold, and the threshold to advise."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from simdup.fingerprint import Counts, Fingerprints
from simdup.hamming import distance, distance_counts

CONFIDENCE = 0.95


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
        """The upper end of the exact one-sided 95 % interval of `false_per_million`."""
        test = binomtest(self.false, self.unrelated, alternative="less")
        return 1e6 * float(test.proportion_ci(CONFIDENCE, method="exact").high)

    def false_among(self, pages: int, *, at_most: bool = False) -> float:
        """How many false pairs to expect among so many unrelated pages."""
        rate = self.false_per_million_at_most if at_most else self.false_per_million
        return rate / 1e6 * pages * (pages - 1) / 2


@dataclass(frozen=True)
class Measurement:
    """The distances of an experiment."""

    bits: int
    edited: Mapping[str, Distances]
    """For each edit the distances between original and edited page."""
    unrelated: Distances
    """The distances between all pages of different families."""
    without_text: int
    """Pages without any feature: they are in no pair."""

    def at(self, k: int) -> Threshold:
        """What the threshold of k bits finds."""
        found = sum(distances.within(k) for distances in self.edited.values())
        edited = sum(distances.pairs for distances in self.edited.values())
        return Threshold(k, found, edited, self.unrelated.within(k), self.unrelated.pairs)

    def advise(self, most_false_per_million: float) -> Threshold | None:
        """The threshold with the best recall within a budget of false pairs, the smallest of equals.

        Parameters
        ----------
        most_false_per_million
            How many of a million pairs of unrelated pages may be found.

        Returns
        -------
        Threshold or None
            None if even equal fingerprints are too often unrelated pages.
        """
        allowed = [self.at(k) for k in range(self.bits + 1)]
        allowed = [threshold for threshold in allowed if threshold.false_per_million <= most_false_per_million]
        return max(allowed, key=lambda threshold: (threshold.found, -threshold.k), default=None)


def measure(
    fingerprints: Fingerprints, family: NDArray[np.int64], edited: Mapping[str, NDArray[np.int64]]
) -> Measurement:
    """Measure the distances of an experiment.

    Parameters
    ----------
    fingerprints
        Of all n pages, edited copies included.
    family
        Shape (n,). Pages of one family are no unrelated pair.
    edited
        For each edit the rows (original, copy), shape (m, 2).

    Raises
    ------
    ValueError
        If there is no pair of unrelated pages with text, or none of some edit.
    """
    bits = fingerprints.scheme.bits
    has_text = fingerprints.features != 0

    def between(rows: NDArray[np.int64]) -> Distances:
        rows = rows[has_text[rows].all(axis=1)]
        apart = distance(fingerprints[rows[:, 0]], fingerprints[rows[:, 1]])
        return Distances(np.bincount(apart, minlength=bits + 1))

    words, family = fingerprints.words[has_text], family[has_text]
    counts = distance_counts(words)
    order = np.argsort(family, kind="stable")
    _, starts = np.unique(family[order], return_index=True)
    for members in np.split(order, starts[1:]):
        if len(members) > 1:
            counts -= distance_counts(words[members])
    if not counts.any():
        raise ValueError("fewer than two unrelated pages with text: there is nothing to tell apart")
    distances = {name: between(rows) for name, rows in edited.items()}
    for name, found in distances.items():
        if not found.pairs:
            raise ValueError(f"no copy has any text left after the edit {name!r}: there is no recall to measure")
    return Measurement(bits, distances, Distances(counts), int(np.count_nonzero(~has_text)))
