"""The article's experiment on anyone's pages: edited copies of each, and how far they move."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from simdup.fingerprint import Fingerprints, fingerprint
from simdup.hamming import all_pairs
from simdup.scheme import Scheme
from simdup.similarity import FeatureSets
from simdup.study.edits import Edit, vocabulary

SAME = 0.8
"""Pages of the corpus that share this part of their word 3-grams say the same before anybody edits them."""

# Proposes pairs for SAME: such pairs are at most 28 degrees, or 39 of 256 bits apart (Charikar 2002), short ones more;
# unrelated ones 128 +- 8.
_PROPOSAL = Scheme("word", 3, 256, "set", "xxh64", normalize=True)
_PROPOSAL_K = 90

_RANDOM_PAIRS = 10_000


class Closest(NamedTuple):
    """Two pages that count as unrelated, although they are near."""

    left: int
    right: int
    """Rows of the pages."""
    distance: int
    """In bits."""
    jaccard: float
    """The share of their word 3-grams that both have."""


@dataclass(frozen=True)
class Experiment:
    """Pages, and a copy of every page for each edit."""

    texts: list[str]
    """The n pages, then n copies for each edit in turn."""
    family: NDArray[np.int64]
    """One number per text. Copies belong to the family of their page, and so do pages that said the same before."""
    edited: Mapping[str, NDArray[np.int64]]
    """For each edit the rows (page, copy), shape (n, 2)."""
    same_before: int
    """How many pairs of pages said the same before: they count as neither near-duplicates nor unrelated."""

    def with_template(self, template: str) -> list[str]:
        """Return all texts, the template before each."""
        return [f"{template}\n{text}" for text in self.texts]

    def jaccard(self) -> dict[str, float]:
        """Mean Jaccard similarity of word sets for each edit, and for random pairs of unrelated pages.

        Texts without words are left out.
        """
        sets = FeatureSets(self.texts, replace(_PROPOSAL, ngram=1))
        has_words = sets.sizes > 0
        pages = self._one_of_each(has_words)
        rng = np.random.default_rng(0)
        left = rng.integers(0, len(pages), _RANDOM_PAIRS)
        right = (left + rng.integers(1, len(pages), _RANDOM_PAIRS)) % len(pages)
        means = {}
        for name, rows in (*self.edited.items(), ("unrelated", np.column_stack((pages[left], pages[right])))):
            rows = rows[has_words[rows].all(axis=1)]
            means[name] = float(sets.jaccard(rows[:, 0], rows[:, 1]).mean())
        return means

    def closest(self, fingerprints: Fingerprints, most: int = 3) -> list[Closest]:
        """Find the nearest pages that count as unrelated, for somebody to judge whether they are.

        Parameters
        ----------
        fingerprints
            Of all texts, edited or not, under any scheme.
        most
            How many pairs to return. Of pages that say the same only one is looked at.
        """
        pages = self._one_of_each(fingerprints.features > 0)
        k, words = 0, fingerprints.words[pages]
        while len(pairs := all_pairs(words, k)) < most and k < fingerprints.scheme.bits:
            k += 1
        nearest = np.argsort(pairs.distance, kind="stable")[:most]
        left, right = pages[pairs.left[nearest]], pages[pairs.right[nearest]]
        sets = FeatureSets([self.texts[row] for row in (*left, *right)], _PROPOSAL)
        shared = sets.jaccard(np.arange(len(left)), len(left) + np.arange(len(left)))
        columns = (left, right, pairs.distance[nearest], shared)
        return list(map(Closest, *(column.tolist() for column in columns)))

    def _one_of_each(self, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The first unedited page of each family that is wanted."""
        pages = np.flatnonzero(wanted[: len(self.texts) // (len(self.edited) + 1)])
        return pages[np.unique(self.family[pages], return_index=True)[1]]


def experiment(pages: Sequence[str], edits: Sequence[Edit], seed: int = 0) -> Experiment:
    """Edit a copy of every page in every way.

    Parameters
    ----------
    pages
        The n texts.
    edits
        What to do to them.
    seed
        Of every random choice.

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
    pairs = same_pages(pages)
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(pages), len(pages)))
    _, family = connected_components(links, directed=False)
    has_text = fingerprint(pages, _PROPOSAL).features > 0
    if len(set(family[has_text].tolist())) < 2:
        many = np.count_nonzero(has_text) > 1
        which = "pages with text that all say the same" if many else "fewer than two pages with text"
        raise ValueError(f"{which}: give at least two that say different things")
    texts, edited = list(pages), {}
    for edit in edits:
        rng = random.Random(f"{seed} {edit.name}")
        units = vocabulary(pages, edit)
        edited[edit.name] = np.column_stack((np.arange(len(pages)), len(texts) + np.arange(len(pages))))
        # A page without text stays one: noise alone would make near-duplicates of all of them.
        texts += (edit.apply(page, units, rng) if text else page for page, text in zip(pages, has_text, strict=True))
    return Experiment(texts, np.tile(family.astype(np.int64), len(edits) + 1), edited, len(pairs))


def same_pages(pages: Sequence[str]) -> NDArray[np.int64]:
    """Find the pairs of pages with a Jaccard similarity of word 3-grams of at least `SAME`, shape (m, 2)."""
    fingerprints = fingerprint(pages, _PROPOSAL)
    rows = np.flatnonzero(fingerprints.features)
    proposed = all_pairs(fingerprints.words[rows], _PROPOSAL_K)
    left, right = rows[proposed.left], rows[proposed.right]
    same = FeatureSets(pages, _PROPOSAL).jaccard(left, right) >= SAME
    return np.column_stack((left[same], right[same]))
