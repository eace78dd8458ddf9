"""The article's experiment on anyone's pages: edited copies of each, and how far they move."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from simdup.fingerprint import Fingerprints, fingerprint, fit_idf
from simdup.hamming import all_pairs, distance_counts
from simdup.join import first_equal, near_pairs
from simdup.scheme import Scheme
from simdup.similarity import FeatureSets
from simdup.study.edits import Edit, vocabulary
from simdup.study.measure import Measurement, measure

SAME = 0.8
"""Pages of the corpus that share this part of their word 3-grams say the same before anybody edits them."""
LEAST_SAME = 0.5

# Proposes pairs of the same: those are at most 48 degrees, or 68 of 256 bits apart (Charikar 2002), short ones more;
# unrelated ones 128 +- 8.
_PROPOSAL = Scheme("word", 3, 256, "set", "xxh64", normalize=True)
_PROPOSAL_K = 100

_RANDOM_PAIRS = 10_000
_NO_PAGE = -1


class Closest(NamedTuple):
    """Two pages that count as unrelated, although they are near."""

    left: int
    right: int
    """Rows of the pages."""
    distance: int
    """In bits."""
    jaccard: float
    """The share of their word 3-grams that both have."""


class Condition(NamedTuple):
    """An experiment under a scheme."""

    scheme: Scheme
    """With its idf table, if it has one."""
    measurement: Measurement
    closest: list[Closest]
    """The nearest unedited pages that count as unrelated."""


@dataclass(frozen=True)
class Experiment:
    """Pages, and a copy of every page for each edit."""

    texts: list[str]
    """The n pages, then n copies for each edit in turn."""
    family: NDArray[np.int64]
    """One number per text, -1 for a text without a word.

    Copies belong to the family of their page. So do pages that said the same before, and pages of which an edit
    made equal texts.
    """
    edited: Mapping[str, NDArray[np.int64]]
    """For each edit the rows (page, copy), shape (n, 2)."""
    same: NDArray[np.int64]
    """The rows of pages that said the same before any edit, shape (m, 2)."""

    def under(self, scheme: Scheme, template: str | None = None, *, threads: int = 1) -> Condition:
        """Measure the experiment under a scheme.

        Parameters
        ----------
        scheme
            With ``weight="idf"`` and without a table, it is fitted on the unedited pages.
        template
            A text to put before each of the others.
        threads
            As `simdup.fingerprint` takes it.
        """
        texts = self.texts if template is None else [f"{template}\n{text}" for text in self.texts]
        if scheme.weight == "idf" and scheme.idf is None:
            scheme = fit_idf(texts[: self._pages], scheme)
        fingerprints = fingerprint(texts, scheme, threads=threads)
        measurement = measure(fingerprints, self.family, self.edited, self.same)
        return Condition(scheme, measurement, self._closest(fingerprints))

    def jaccard(self) -> dict[str, float]:
        """Mean Jaccard similarity of word sets for each edit, pages that said the same, and random unrelated pages.

        Texts without words are left out; a mean of none is missing.
        """
        sets = FeatureSets(self.texts, replace(_PROPOSAL, ngram=1))
        pages = self._one_of_each(self.family >= 0)
        rng = np.random.default_rng(0)
        left = rng.integers(0, len(pages), _RANDOM_PAIRS)
        right = (left + rng.integers(1, len(pages), _RANDOM_PAIRS)) % len(pages)
        unrelated = np.column_stack((pages[left], pages[right]))
        means = {}
        for name, rows in (*self.edited.items(), ("the same before", self.same), ("unrelated", unrelated)):
            rows = rows[(self.family[rows] >= 0).all(axis=1)]
            if len(rows):
                means[name] = float(sets.similarity(rows[:, 0], rows[:, 1]).mean())
        return means

    def _closest(self, fingerprints: Fingerprints, most: int = 3) -> list[Closest]:
        """Of pages that say the same only one is looked at."""
        pages = self._one_of_each((self.family >= 0) & (fingerprints.features > 0))
        words = fingerprints.words[pages]
        near = distance_counts(words, np.arange(len(words))).sum(axis=0).cumsum() // 2
        pairs = all_pairs(words, min(int(np.searchsorted(near, most)), fingerprints.scheme.bits))
        nearest = np.argsort(pairs.distance, kind="stable")[:most]
        left, right = pages[pairs.left[nearest]], pages[pairs.right[nearest]]
        sets = FeatureSets([self.texts[row] for row in (*left, *right)], _PROPOSAL)
        shared = sets.similarity(np.arange(len(left)), len(left) + np.arange(len(left)))
        columns = (left, right, pairs.distance[nearest], shared)
        return list(map(Closest, *(column.tolist() for column in columns)))

    @property
    def _pages(self) -> int:
        return len(self.texts) // (len(self.edited) + 1)

    def _one_of_each(self, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The first unedited page of each family that is wanted."""
        pages = np.flatnonzero(wanted[: self._pages])
        return pages[np.unique(self.family[pages], return_index=True)[1]]


def experiment(
    pages: Sequence[str],
    edits: Sequence[Edit],
    seed: int = 0,
    same: float = SAME,
    progress: Callable[[str], None] = lambda _step: None,
) -> Experiment:
    """Edit a copy of every page in every way.

    Parameters
    ----------
    pages
        The n texts.
    edits
        What to do to them.
    seed
        Of every random choice.
    same
        Pages that share this part of their word 3-grams, 0.5 to 1, said the same before.
    progress
        Called with the name of each step before it, of which there are one more than edits.

    Raises
    ------
    ValueError
        For fewer than two families of pages: there is nothing unrelated to compare.
    """
    pages = list(pages)
    names = [edit.name for edit in edits]
    if not names:
        raise ValueError("no edit: give at least one")
    if len(set(names)) < len(names):
        raise ValueError(f"the same edit twice: {', '.join(names)}")
    has_text = fingerprint(pages, _PROPOSAL).features > 0
    texts, edited = list(pages), {}
    for edit in edits:
        progress(edit.name)
        rng = random.Random(f"{seed} {edit.name}")
        units = vocabulary(pages, edit)
        edited[edit.name] = np.column_stack((np.arange(len(pages)), len(texts) + np.arange(len(pages))))
        # A page without text stays one: noise alone would make near-duplicates of all of them.
        texts += (edit.apply(page, units, rng) if text else page for page, text in zip(pages, has_text, strict=True))
    progress("which pages say the same")
    pairs = same_pages(pages, same)
    return Experiment(texts, _families(texts, pairs, list(edited.values())), edited, pairs)


def _families(texts: list[str], same: NDArray[np.int64], edited: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    fingerprints = fingerprint(texts, _PROPOSAL)
    left, right = np.concatenate([same, _equal(fingerprints), *edited]).T
    links = coo_array((np.ones(len(left)), (left, right)), shape=(len(texts), len(texts)))
    family = connected_components(links, directed=False)[1].astype(np.int64)
    has_text = fingerprints.features > 0
    family[~has_text] = _NO_PAGE
    if len(set(family[has_text].tolist())) < 2:
        many = np.count_nonzero(has_text[: len(texts) // (len(edited) + 1)]) > 1
        which = "pages with text that all say the same" if many else "fewer than two pages with text"
        raise ValueError(f"{which}: give at least two that say different things")
    return family


def _equal(fingerprints: Fingerprints) -> NDArray[np.int64]:
    """The rows (first, other) of texts with the same set of features, shape (m, 2): one for each text but the first."""
    first = first_equal(fingerprints)
    others = np.flatnonzero((first >= 0) & (first != np.arange(len(first))))
    return np.column_stack((first[others], others))


def same_pages(pages: Sequence[str], same: float = SAME) -> NDArray[np.int64]:
    """Find the pairs of pages with a Jaccard similarity of word 3-grams of at least `same`, shape (m, 2).

    Of equal pages only the first is in other pairs, so that many of them do not make the square of their number.
    """
    if not LEAST_SAME <= same <= 1:
        raise ValueError(f"same={same:g}: give a share from {LEAST_SAME:g} to 1")
    fingerprints = fingerprint(pages, _PROPOSAL)
    equal = _equal(fingerprints)
    rows = np.setdiff1d(np.arange(len(fingerprints)), equal[:, 1])
    proposed = near_pairs(fingerprints[rows], _PROPOSAL_K)
    left, right = rows[proposed.left], rows[proposed.right]
    alike = FeatureSets(pages, _PROPOSAL).similarity(left, right) >= same
    return np.concatenate([equal, np.column_stack((left[alike], right[alike]))])
