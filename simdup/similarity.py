"""Exact similarity of the features of two texts: what a fingerprint only estimates."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from simdup.hashing import hash_sets
from simdup.jit import kernel
from simdup.scheme import Scheme


@kernel
def _jaccard(features, starts, stops, left, right, similarity):  # type: ignore[no-untyped-def]
    """Merge the ascending features of both texts of each pair."""
    for pair in range(len(left)):
        i, i_stop = starts[left[pair]], stops[left[pair]]
        j, j_stop = starts[right[pair]], stops[right[pair]]
        together, shared = (i_stop - i) + (j_stop - j), 0
        while i < i_stop and j < j_stop:
            a, b = features[i], features[j]
            shared += int(a == b)
            i += int(a <= b)
            j += int(b <= a)
        together -= shared
        similarity[pair] = shared / together if together else 0.0


class FeatureSets:
    """The sets of features of texts, by the first 64 bits of their hashes.

    Parameters
    ----------
    texts
        As `simdup.fingerprint` takes them.
    scheme
        What a feature is.
    """

    def __init__(self, texts: Iterable[str], scheme: Scheme) -> None:
        sets, sizes = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for hashes, many in hash_sets(texts, scheme):
            sets.append(hashes)
            sizes.append(many)
        self.sizes = np.concatenate(sizes)
        """How many different features each text has, shape (n,)."""
        self._stops = np.cumsum(self.sizes)
        self._starts = self._stops - self.sizes
        self._features = np.concatenate(sets)

    def jaccard(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
        """Jaccard similarity of pairs of texts, given by their rows: features both have / features either has.

        Returns
        -------
        ndarray
            float64, shape (m,), from 0 to 1; 0 for two texts without features.
        """
        similarity = np.empty(len(left), np.float64)
        _jaccard(self._features, self._starts, self._stops, left, right, similarity)
        return similarity
