"""Inverse document frequencies: how much a feature weighs that stands on many pages, or on few."""

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdup.jit import kernel

# Weights are kept in steps of this size, as integers: sums are then exact, in whatever order they are taken.
WEIGHT_STEP = 2.0**-20
LARGEST_WEIGHT = 2.0**10


@kernel
def _lookup(features, weights, unseen, buckets, wanted, found):  # type: ignore[no-untyped-def]
    """Find each hash among those that share its top bits: about one, if nobody chose them."""
    shift = np.uint64(64)
    size = len(buckets) - 1
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    for i in range(len(wanted)):
        bucket = wanted[i] >> shift
        low, high = buckets[bucket], buckets[bucket + np.uint64(1)]
        while low < high:
            middle = (low + high) >> 1
            if features[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        known = low < len(features) and features[low] == wanted[i]
        found[i] = weights[low] if known else unseen


@dataclass(frozen=True, eq=False)
class IdfTable:
    """Inverse document frequencies of features, fitted by `simdup.fit_idf` or given to `simdup.idf_table`.

    Weights are multiples of `WEIGHT_STEP` (2^-20), stored as integers. A feature that the table does not hold
    weighs `unseen` steps: for a fitted table that is ln(n), as if it stood on one of the n pages.
    """

    features: NDArray[np.uint64]
    """The first 64 bits of each feature's hash, ascending, shape (n,)."""
    weights: NDArray[np.int64]
    """The weight of each feature in steps, shape (n,)."""
    unseen: int
    """The weight of every other feature in steps."""

    def __post_init__(self) -> None:
        features, weights = np.asarray(self.features), np.asarray(self.weights)
        whole = type(self.unseen) is int and weights.dtype.kind in "iu"
        if not whole or features.dtype.kind != "u":
            raise TypeError("an idf table takes uint64 features, and int64 weights and an int in whole steps")
        if features.shape != weights.shape or features.ndim != 1 or np.any(features[1:] <= features[:-1]):
            raise ValueError("an idf table takes one weight per feature and its features in ascending order")
        for weight in (self.unseen, int(weights.min(initial=0)), int(weights.max(initial=0))):
            if not 0 <= weight <= LARGEST_WEIGHT / WEIGHT_STEP:
                raise ValueError(f"an idf table takes no negative weight and none above 2^30 steps, not {weight}")
        features, weights = np.array(features, np.uint64), np.array(weights, np.int64)
        features.flags.writeable = weights.flags.writeable = False
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "weights", weights)

    @functools.cached_property
    def digest(self) -> str:
        """16 hex digits that name the table's contents."""
        state = hashlib.blake2b(self.unseen.to_bytes(8, "little"), digest_size=8)
        state.update(self.features.astype("<u8").tobytes())
        state.update(self.weights.astype("<i8").tobytes())
        return state.hexdigest()

    @functools.cached_property
    def _buckets(self) -> NDArray[np.int64]:
        """Where the features begin that share their top bits: about one feature to a bucket."""
        bits = max(len(self.features) - 1, 1).bit_length()
        firsts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        return np.append(np.searchsorted(self.features, firsts), len(self.features)).astype(np.int64)

    def lookup(self, features: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the weights in steps of features given by the first 64 bits of their hashes, shape (m,)."""
        found = np.empty(len(features), np.int64)
        _lookup(self.features, self.weights, self.unseen, self._buckets, features, found)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.features, self.weights, self.unseen)  # read-only again

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdfTable) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def weight_steps(value: float) -> int:
    """A weight as a whole number of `WEIGHT_STEP`, or ValueError for one that is no weight."""
    if not 0 <= value <= LARGEST_WEIGHT:
        raise ValueError(f"{value!r} is no idf weight: give a finite number from 0 to 2^10")
    return round(value / WEIGHT_STEP)
