"""Pairs to clusters: stars around a representative, or connected components."""

import warnings
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from simdup.fingerprint import Counts, Fingerprints
from simdup.hamming import Pairs, diameters
from simdup.jit import kernel
from simdup.join import first_equal

Kind = Literal["star", "components"]


@kernel
def _stars(begins, others, representative):  # type: ignore[no-untyped-def]
    """Make each row that nobody stands for a representative of itself and of its neighbours that nobody stands for."""
    for row in range(len(representative)):
        if representative[row] < 0:
            representative[row] = row
            for at in range(begins[row], begins[row + 1]):
                if representative[others[at]] < 0:
                    representative[others[at]] = row


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows and who stands for them."""

    representative: Counts
    """int64, shape (n,): the row that stands for each row. It stands for itself, as does a row without a pair."""

    @property
    def kept(self) -> NDArray[np.int64]:
        """The representatives, ascending: one for each cluster, shape (clusters,)."""
        return np.flatnonzero(self.representative == np.arange(len(self.representative)))

    @property
    def sizes(self) -> Counts:
        """How many rows each cluster has, in the order of `kept`."""
        return np.bincount(self.representative, minlength=len(self.representative))[self.kept]

    def diameters(self, fingerprints: Fingerprints) -> Counts:
        """The largest distance between two members of each cluster, in bits, in the order of `kept`.

        Parameters
        ----------
        fingerprints
            Those that the pairs were found among. Compares all different members of a cluster with each other.
        """
        n = len(self.representative)
        if len(fingerprints) != n:
            raise ValueError(f"{len(fingerprints)} fingerprints for {n} rows in clusters")
        # Of equal members one is enough: thousands of them are no rarity.
        first = first_equal(fingerprints)
        members = np.unique(self.representative * n + np.where(first < 0, np.arange(n), first))
        of, members = np.divmod(members, max(n, 1))
        edges = np.append(np.flatnonzero(np.diff(of, prepend=-1)), len(of))
        return diameters(fingerprints.words[members], edges[:-1], edges[1:])


def cluster(pairs: Pairs, n: int, kind: Kind = "star") -> Clusters:
    """Make clusters of rows that are pairs.

    Parameters
    ----------
    pairs
        Of near-duplicates, in any order.
    n
        How many rows there are.
    kind
        "star": a representative and rows that are pairs with it: the first row stands for those it is a pair with,
        then the first that is left, and so on. "components": all that are connected by pairs, however long the chain;
        the first row stands for them.

    Returns
    -------
    Clusters
        The same whatever the order of the pairs. Which row is the first decides, so sort rows by id, or best first.

    Warns
    -----
    UserWarning
        If rows of a component are not pairs of one another: they may say different things.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind={kind!r}: choose one of {', '.join(map(repr, get_args(Kind)))}")
    ends = np.concatenate((pairs.left, pairs.right))
    if len(ends) and not 0 <= ends.min() <= ends.max() < n:
        raise ValueError(f"pairs of rows {ends.min()} to {ends.max()} among {n} rows")
    if kind == "star":
        others = np.concatenate((pairs.right, pairs.left))[np.argsort(ends, kind="stable")]
        begins = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=n))))
        representative = np.full(n, -1, np.int64)
        _stars(begins, others, representative)
        return Clusters(representative)
    # Imported here, since it takes longer than all the rest of simdup.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs), np.int8), (pairs.left, pairs.right)), shape=(n, n))
    component = connected_components(links, directed=False)[1]
    _, first, which = np.unique(component, return_index=True, return_inverse=True)
    clusters = Clusters(first[which].astype(np.int64))
    sizes = np.bincount(which)
    within = np.bincount(which[pairs.left], minlength=len(sizes))
    if chained := int(np.count_nonzero(within < sizes * (sizes - 1) // 2)):
        warnings.warn(
            f"{chained:,} of {np.count_nonzero(sizes > 1):,} components hold rows that are no pair of each other, so "
            "that their diameter is more than k: Clusters.diameters measures it, kind='star' avoids it",
            stacklevel=2,
        )
    return clusters
