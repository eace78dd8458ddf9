"""Which pages to keep: of those that say the same, one."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simdup.cluster import Clusters, cluster
from simdup.fields import Batch
from simdup.files import replaceable, whole
from simdup.fingerprint import Counts, Fingerprints, Words, fingerprint
from simdup.hamming import Pairs, distance, in_order
from simdup.index import Index
from simdup.join import Groups, Join, first_equal
from simdup.scheme import Scheme
from simdup.similarity import Measure, check_similarity, digests, similarities
from simdup.study.edits import USUAL, Edit
from simdup.study.experiment import experiment
from simdup.study.measure import Threshold

FIRST, LONGEST = "first", "longest"
_NOBODY = -1
# Fingerprints enough to know how often each bit is set.
_SHARES = 1 << 16
_PAGES_FOR_A_FALSE_PAIR = 1_000

Rows = Iterator[dict[str, Any]]


class Check(NamedTuple):
    """How similar the features of two pages must be, however near their fingerprints are."""

    measure: Measure
    least: float

    @classmethod
    def parse(cls, text: str) -> "Check":
        """Read "0.8" for a Jaccard similarity, or "containment:0.8"."""
        measure, _, least = text.rpartition(":")
        try:
            check = cls(measure or "jaccard", float(least))  # type: ignore[arg-type]
            check_similarity(check.least, check.measure)
        except ValueError as error:
            raise ValueError(f"--verify {text}: give a similarity such as 0.8 or containment:0.8 ({error})") from None
        return check


class Advice(NamedTuple):
    """A threshold, and how many false pairs to expect of it."""

    threshold: Threshold
    false_share: float
    """At most this share of all pairs of unrelated pages, as `Measurement.most_false` has it."""

    def false_among(self, pages: int) -> float:
        """How many false pairs there are at most among so many pages."""
        return self.false_share * math.comb(pages, 2)


def advise(texts: Sequence[str], scheme: Scheme, pages: int, false_per_million: float | None = None) -> Advice:
    """Measure on a sample of the pages which threshold finds the most edited copies within a budget of false pairs.

    Parameters
    ----------
    texts
        The sample.
    pages
        How many pages there are in all: as their pairs grow with the square, so do false ones.
    false_per_million
        How many of a million pairs of unrelated pages may be found. By default one in a million, and in all not more
        than one for a thousand pages.

    Raises
    ------
    ValueError
        If there is none, or nothing to measure it on.
    """
    try:
        trial = experiment(texts, [Edit.parse(text) for text in USUAL.split(",")])
    except ValueError as error:
        raise ValueError(f"no threshold can be measured on these pages ({error}): give --k") from error
    measurement = trial.under(scheme).measurement
    if false_per_million is None:
        false_per_million = min(1.0, 1e6 * pages / _PAGES_FOR_A_FALSE_PAIR / max(math.comb(pages, 2), 1))
    # That a sample has no false pair may say too little of all pages.
    too_few = len(texts) < pages and false_per_million * measurement.unrelated.pairs < 1e6
    advised = measurement.advise(false_per_million, surely=too_few)
    if advised is None:
        raise ValueError(
            "even equal fingerprints may be unrelated pages more often than allowed: choose more bits, longer n-grams, "
            "or give --k"
        )
    return Advice(advised, measurement.most_false(advised.k))


class Pages(NamedTuple):
    """What stays in memory of pages: all but their texts."""

    fingerprints: Fingerprints
    rank: Counts
    """The rows, the one to keep first, shape (n,)."""
    digests: Words | None
    """Of the sets of features, shape (n,), if they will be compared."""


def read(batches: Iterable[Batch], scheme: Scheme, keep: str, *, compare: bool, threads: int) -> Pages:
    """Read all records once.

    Parameters
    ----------
    keep
        Which of several to keep: the "first" of the input, the "longest" text, or that with the largest of what the
        records are ordered by; the first of those for which it is equal.
    compare
        Whether sets of features will be compared.
    """
    words = [np.empty((0, scheme.words), np.uint64)]
    features, sums = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    orders: list[Any] = []
    for batch in batches:
        column = fingerprint(batch.texts, scheme, threads=threads)
        words.append(column.words)
        features.append(column.features)
        if compare:
            sums.append(digests(batch.texts, scheme))
        if keep == LONGEST:
            orders += map(len, batch.as_list())
        elif keep != FIRST:
            orders += batch.orders or []
    fingerprints = Fingerprints(np.concatenate(words), np.concatenate(features), scheme)
    rank = np.arange(len(fingerprints))
    if keep != FIRST:
        rank = np.array(sorted(rank.tolist(), key=orders.__getitem__, reverse=True), np.int64)
    return Pages(fingerprints, rank, np.concatenate(sums) if compare else None)


@dataclass(frozen=True, eq=False)
class Decision:
    """Who stands for each page. Rows are those of the input."""

    fingerprints: Fingerprints
    passed_over: NDArray[np.bool_]
    """Pages with text, but too few features to be judged, shape (n,). They are kept."""
    representative: Counts
    """int64, shape (n,): the row that is kept for each page, often itself; -1 if one of an earlier run is."""
    distance: Counts
    """int64, shape (n,): how many bits it stands apart."""
    earlier: dict[int, str]
    """Which page of an earlier run stands for a row."""
    units: Fingerprints
    """The different ones, the best first."""
    _rank: Counts
    _groups: Groups
    _pairs: Pairs
    _similarity: NDArray[np.float64] | None
    _clusters: Clusters

    @property
    def keep(self) -> NDArray[np.bool_]:
        """Which pages are kept, shape (n,)."""
        kept: NDArray[np.bool_] = self.representative == np.arange(len(self.representative))
        return kept

    def counts(self) -> dict[str, int]:
        """How many pages there are of each sort. Exact duplicates have the fingerprint of the page that is kept."""
        dropped = ~self.keep
        seen = self.representative == _NOBODY
        return {
            "read": len(self.keep),
            "no text": int(np.count_nonzero(self.fingerprints.features == 0)),
            "too few features": int(np.count_nonzero(self.passed_over)),
            "seen in an earlier run": int(np.count_nonzero(seen)),
            "exact duplicates": int(np.count_nonzero(dropped & ~seen & (self.distance == 0))),
            "near duplicates": int(np.count_nonzero(dropped & ~seen & (self.distance > 0))),
            "kept": int(np.count_nonzero(self.keep)),
        }

    def pairs(self, place: Callable[[int], str]) -> Rows:
        """Every pair of near pages, as a row of a table: both places, the distance, the similarity if it was asked."""
        within = self._groups.within
        for pairs, similarity in ((within, np.ones(len(within))), (self._pairs, self._similarity)):
            for some, which in self._groups.expanded(pairs):
                shared = np.ones(len(some)) if similarity is None else similarity[which]
                ends = np.sort(np.column_stack((self._rank[some.left], self._rank[some.right])), axis=1)
                for (left, right), bits, share in zip(
                    ends.tolist(), some.distance.tolist(), shared.tolist(), strict=True
                ):
                    row = {"left": place(left), "right": place(right), "distance": bits}
                    yield row if self._similarity is None else row | {"similarity": share}

    def clusters(self, place: Callable[[int], str]) -> Rows:
        """Every page that is not alone, in order, as a row of a table.

        Its place, that of the page kept for it, how far it is from that, how many pages that is kept for, and the
        largest distance between two of these.
        """
        pages = self.representative >= 0
        sizes = np.bincount(self.representative[pages], minlength=len(pages))
        widest = np.zeros(len(pages), np.int64)
        widest[self._rank[self._groups.firsts[self._clusters.kept]]] = self._clusters.diameters(self.units)
        seen = Counter(self.earlier.values())
        for row, representative in enumerate(self.representative.tolist()):
            about = {"page": place(row), "distance": int(self.distance[row])}
            if representative == _NOBODY:
                yield about | {
                    "representative": self.earlier[row],
                    "size": 1 + seen[self.earlier[row]],
                    "diameter": None,
                }
            elif sizes[representative] > 1:
                yield about | {
                    "representative": place(representative),
                    "size": int(sizes[representative]),
                    "diameter": int(widest[representative]),
                }


def decide(
    pages: Pages,
    k: int,
    *,
    least_features: int = 1,
    check: Check | None = None,
    texts: Callable[[], Iterable[str]] = tuple,
    index: Index | None = None,
    threads: int = 1,
) -> Decision:
    """Decide which pages to keep.

    Parameters
    ----------
    pages
        The n pages.
    k
        Bits: how near the fingerprints of pages are that say the same.
    least_features
        Pages of fewer features are kept, and stand for no other.
    check
        How similar their features must be besides.
    texts
        Reads the texts once more, for the check.
    index
        The pages kept in earlier runs: what is near to one of them is not kept.
    threads
        How many work at once.
    """
    fingerprints, rank = pages.fingerprints, pages.rank
    passed_over = (fingerprints.features > 0) & (fingerprints.features < least_features)
    judged = np.where(passed_over, 0, fingerprints.features)
    ranked = Fingerprints(fingerprints.words[rank], judged[rank], fingerprints.scheme)
    groups = Groups(first_equal(ranked, *([] if pages.digests is None else [pages.digests[rank]])))
    units = ranked[groups.firsts]
    rows = rank[groups.firsts]
    pairs, similarity = in_order(Join(units, k, threads=threads)), None
    if check:
        ends = rows[pairs.left], rows[pairs.right]
        similarity = similarities(*ends, texts(), fingerprints.scheme, check.measure)
        similar = similarity >= check.least
        pairs, similarity = pairs[similar], similarity[similar]
    hits = index.query(units) if index is not None else []
    nearest = {number: found[0] for number, found in enumerate(hits) if found}
    new = np.ones(len(units), np.bool_)
    new[list(nearest)] = False
    clusters = cluster(pairs[new[pairs.left] & new[pairs.right]], len(units))
    bits = distance(units, units[clusters.representative])
    bits[list(nearest)] = [near for _, near in nearest.values()]

    # From the different ones to all rows.
    unit = np.repeat(np.arange(len(groups)), groups.sizes)
    members = rank[groups.members]
    representative, apart = np.arange(len(rank)), np.zeros(len(rank), np.int64)
    representative[members] = np.where(new, rows[clusters.representative], _NOBODY)[unit]
    apart[members] = bits[unit]
    old = ~new[unit]
    earlier = {row: nearest[at][0] for row, at in zip(members[old].tolist(), unit[old].tolist(), strict=True)}
    return Decision(
        fingerprints, passed_over, representative, apart, earlier, units, rank, groups, pairs, similarity, clusters
    )


def remember(index: Index, decision: Decision, place: Callable[[int], str]) -> None:
    """Add the pages that were kept to an index, by where they stood."""
    judged = (decision.fingerprints.features > 0) & ~decision.passed_over
    rows = np.flatnonzero(decision.keep & judged)
    kept = decision.fingerprints[rows]
    # The same place may hold another page in the next run; its fingerprint tells the two apart.
    index.add([f"{place(row)} #{value}" for row, value in zip(rows.tolist(), kept.hex(), strict=True)], kept)


def chance(fingerprints: Fingerprints, k: int) -> float:
    """How many pairs would be within k bits if every bit were set by chance, as often as it is.

    Less than there are pairs of unrelated pages within k: these share common words and a site's template.
    """
    if len(fingerprints) < 2:
        return 0.0
    some = fingerprints.words[:: 1 + len(fingerprints) // _SHARES]
    ones = np.unpackbits(np.ascontiguousarray(some).view(np.uint8), axis=1).mean(axis=0)
    within = np.ones(1)
    for share in ones.tolist():
        differs = 2 * share * (1 - share)
        within = np.convolve(within, (1 - differs, differs))
    return float(within[: k + 1].sum()) * math.comb(len(fingerprints), 2)


_COLUMNS = {
    "pairs": {"left": pa.string(), "right": pa.string(), "distance": pa.int16(), "similarity": pa.float64()},
    "clusters": {
        "page": pa.string(),
        "representative": pa.string(),
        "distance": pa.int16(),
        "size": pa.int64(),
        "diameter": pa.int16(),
    },
}
_SAVED_ROWS = 1 << 16


class Table:
    """A table of "pairs" or "clusters" in a .jsonl or .parquet file, which appears whole or not at all.

    Raises
    ------
    ValueError, OSError
        If it could not be written.
    """

    def __init__(self, path: str, of: str) -> None:
        self._path = path
        self._schema = pa.schema(_COLUMNS[of].items())
        if not path.endswith((".jsonl", ".parquet")):
            raise ValueError(f"{path}: give a name that ends in .jsonl or .parquet")
        replaceable(path)

    def write(self, rows: Rows) -> None:
        """Write all rows."""
        with whole(self._path) as temporary:
            if self._path.endswith(".jsonl"):
                with temporary.open("w", encoding="utf-8") as lines:
                    lines.writelines(json.dumps(row) + "\n" for row in rows)
                return
            with pq.ParquetWriter(temporary, self._schema) as writer:
                while some := list(itertools.islice(rows, _SAVED_ROWS)):
                    writer.write_table(pa.Table.from_pylist(some, self._schema))
