"""Exact similarity of the features of two texts: what a fingerprint only estimates."""

import tempfile
from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from simdup.hamming import Pairs
from simdup.hashing import hash_sets
from simdup.jit import kernel
from simdup.scheme import Scheme

Measure = Literal["jaccard", "containment"]


@kernel
def _shared(features, starts, stops, left, right, shared):  # type: ignore[no-untyped-def]
    """Count the features that both texts of each pair have: both stand in ascending order."""
    for pair in range(len(left)):
        i, i_stop = starts[left[pair]], stops[left[pair]]
        j, j_stop = starts[right[pair]], stops[right[pair]]
        both = 0
        while i < i_stop and j < j_stop:
            a, b = features[i], features[j]
            both += int(a == b)
            i += int(a <= b)
            j += int(b <= a)
        shared[pair] = both


class FeatureSets:
    """The sets of features of texts, by the first 64 bits of their hashes. They lie in a temporary file.

    Parameters
    ----------
    texts
        As `simdup.fingerprint` takes them.
    scheme
        What a feature is.
    """

    def __init__(self, texts: Iterable[str], scheme: Scheme) -> None:
        sizes = [np.empty(0, np.int64)]
        with tempfile.TemporaryFile() as file:
            for hashes, many in hash_sets(texts, scheme):
                file.write(hashes.tobytes())
                sizes.append(many)
            file.flush()
            self.sizes = np.concatenate(sizes)
            """How many different features each text has, shape (n,)."""
            stops = np.cumsum(self.sizes)
            empty = np.empty(0, np.uint64)
            self._features = np.memmap(file, np.uint64, "r") if len(stops) and stops[-1] else empty
        self._starts, self._stops = stops - self.sizes, stops

    def similarity(
        self, left: NDArray[np.int64], right: NDArray[np.int64], measure: Measure = "jaccard"
    ) -> NDArray[np.float64]:
        """How similar pairs of texts are, given by their rows.

        Parameters
        ----------
        left, right
            Shape (m,).
        measure
            "jaccard": features both have / features either has; "containment": features both have / features of the
            one that has fewer.

        Returns
        -------
        ndarray
            float64, shape (m,), from 0 to 1; 0 where a text has no features.
        """
        shared = np.empty(len(left), np.int64)
        _shared(self._features, self._starts, self._stops, left, right, shared)
        one, other = self.sizes[left], self.sizes[right]
        whole = one + other - shared if measure == "jaccard" else np.minimum(one, other)
        return shared / np.maximum(whole, 1)


def digests(texts: Iterable[str], scheme: Scheme) -> NDArray[np.uint64]:
    """A number for each text that is equal if the sets of features are, and hardly ever otherwise, shape (n,)."""
    found = [np.empty(0, np.uint64)]
    for hashes, sizes in hash_sets(texts, scheme):
        mixed = (hashes ^ hashes >> np.uint64(29)) * np.uint64(0x9E3779B97F4A7C15)
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mixed ^ mixed >> np.uint64(32))))
        stops = np.cumsum(sizes)
        found.append(sums[stops] - sums[stops - sizes])
    return np.concatenate(found)


def verify(
    pairs: Pairs, texts: Iterable[str], scheme: Scheme, least: float, measure: Measure = "jaccard"
) -> tuple[Pairs, NDArray[np.float64]]:
    """Keep the pairs of texts that are as similar as they should be: fingerprints propose, their features decide.

    So k may be generous, for the sake of recall.

    Parameters
    ----------
    pairs
        Such as `simdup.near_pairs` finds.
    texts
        The texts that their rows mean, from the first; read once, and only those in pairs are looked at.
    scheme
        What a feature is; usually of the fingerprints.
    least
        The similarity asked for, above 0 to 1.
    measure
        As `FeatureSets.similarity` has it.

    Returns
    -------
    pairs
        Those that are similar enough, in their order.
    similarity
        float64, shape (len(pairs),).

    Raises
    ------
    ValueError
        For a similarity or a measure that is none, or fewer texts than rows.
    """
    check_similarity(least, measure)
    similarity = similarities(pairs.left, pairs.right, texts, scheme, measure)
    similar = similarity >= least
    return pairs[similar], similarity[similar]


def similarities(
    left: NDArray[np.int64], right: NDArray[np.int64], texts: Iterable[str], scheme: Scheme, measure: Measure
) -> NDArray[np.float64]:
    """How similar pairs of texts are, given by their rows, as `verify` takes them: float64, shape (m,)."""
    ends, where = np.unique(np.concatenate((left, right)), return_inverse=True)
    wanted = np.zeros(int(ends[-1]) + 1 if len(ends) else 0, np.bool_)
    wanted[ends] = True
    sets = FeatureSets((text for is_wanted, text in zip(wanted.tolist(), texts, strict=False) if is_wanted), scheme)
    if len(sets.sizes) < len(ends):
        raise ValueError(f"pairs of rows up to {ends[-1]:,}, but fewer texts: give those of the fingerprints, in order")
    return sets.similarity(where[: len(left)], where[len(left) :], measure)


def check_similarity(least: float, measure: str) -> None:
    """Raise ValueError unless `least` is a similarity, and `measure` one of those there are."""
    if measure not in get_args(Measure):
        raise ValueError(f"similarity {measure!r}: choose one of {', '.join(get_args(Measure))}")
    if not 0 < least <= 1:
        raise ValueError(f"similarity {least!r}: give more than 0, up to 1")
