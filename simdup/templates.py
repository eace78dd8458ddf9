"""Site templates: what stands on many pages of a site, learned from texts alone, and cut out of them.

A template is made of passages: runs of n words within a line, and lines of fewer. A passage is common if it stands on
more than a share of the site's pages, and on more than some copies of one page would; what common passages cover goes,
and the rest stays as it was written. Words are what stands between white space; in scripts without spaces, single
characters.
"""

import functools
import hashlib
import random
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

# Menus differ from section to section: a large share would leave them in.
SHARE, NGRAM = 0.05, 10

LEAST_PAGES = 5
"""A template stands on so many different pages: a page and its usual copies are fewer."""
# And on more than so many, or on more than half of a site that is smaller than twice that.
_COPIES = 10

# So many pages of a site, drawn at random, are learned from: the standard error of a share is at most 2.2 %.
_SAMPLE = 500
# Thai, Lao, Myanmar, Khmer, Kana, Han.
_SINGLE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PIECE = re.compile(rf"\n|[{_SINGLE}]|[^\s{_SINGLE}]+")
# An odd number, so that it has an inverse modulo 2^64.
_FACTOR = 0x9E3779B97F4A7C15
_INVERSE = pow(_FACTOR, -1, 1 << 64)
_NO_SITE = object()


class _Passages(NamedTuple):
    """The passages of a text, in order of their first words."""

    hashes: Hashes
    first: NDArray[np.int64]
    """The number of the first word."""
    length: NDArray[np.int64]
    """How many words there are."""
    starts: NDArray[np.int64]
    """Where in the text each word starts, and where the text ends."""


@dataclass(frozen=True, eq=False)
class Templates:
    """The templates of sites, as `fit_templates` learned them.

    Attributes
    ----------
    common
        The hashes of the common passages of each site, ascending; none if it has fewer than 5 different pages.
    ngram
        How many words a passage has.
    """

    common: Mapping[Hashable, Hashes]
    ngram: int

    def remove(self, texts: Iterable[str], sites: Iterable[Hashable] | None = None) -> Iterator[str]:
        """Cut the templates out of texts.

        Parameters
        ----------
        texts
            Those that were learned from, or others.
        sites
            The site of each text, if templates were learned for sites. Texts of a site that is not known stay whole.

        Yields
        ------
        str
            Each text without its template. A text without one is the same. Words never weld: where a cut leaves no
            white space between two there is a space. A text of which fewer words would be left than a passage has
            stays whole: it says nothing of its own, or what it says is copied on many pages.

        Raises
        ------
        TypeError, ValueError
            As `fit_templates` says.
        """
        if sites is None and self.common and None not in self.common:
            raise ValueError("these templates were learned for sites: say of which site each text is")
        for text, site in _with_sites(texts, sites):
            common = self.common.get(site)
            yield text if common is None or not len(common) else self._without(text, common)

    def _without(self, text: str, common: Hashes) -> str:
        passages = _passages(text, self.ngram)
        found = np.flatnonzero(common[np.searchsorted(common, passages.hashes) % len(common)] == passages.hashes)
        if not len(found):
            return text
        words = len(passages.starts) - 1
        edges = np.zeros(words + 1, np.int64)
        np.add.at(edges, passages.first[found], 1)
        np.add.at(edges, passages.first[found] + passages.length[found], -1)
        covered = np.cumsum(edges[:-1]) > 0
        if words - np.count_nonzero(covered) < self.ngram:
            return text
        parts: list[str] = []
        for first, stop in np.flatnonzero(np.diff(~covered, prepend=False, append=False)).reshape(-1, 2).tolist():
            welds = parts and not parts[-1][-1].isspace()
            begin = passages.starts[first] if first else 0
            parts.append(f"{' ' if welds else ''}{text[begin : passages.starts[stop]]}")
        return "".join(parts)


def fit_templates(
    texts: Iterable[str], sites: Iterable[Hashable] | None = None, *, share: float = SHARE, ngram: int = NGRAM
) -> Templates:
    """Learn what stands on many pages of a site.

    Parameters
    ----------
    texts
        The pages; read once. Equal ones count once. Of each site 500 are drawn at random, always the same; their
        passages are in memory, 8 bytes each.
    sites
        A value for each text that is the same for all texts of a site, such as its host. Without it all texts are of
        one site.
    share
        A passage is common if it stands on more than this share of a site's pages, from 0 to below 1; and on more than
        10 of them, or, of a site of fewer than 20, on more than half and at least 5.
    ngram
        How many words a passage has, 1 or more. A line of fewer is a passage too.

    Raises
    ------
    TypeError, ValueError
        For what is no text, for values outside the above, and unless there is one site for each text.
    """
    if not 0 <= share < 1:
        raise ValueError(f"share={share!r}: give a number from 0 to below 1")
    if ngram < 1:
        raise ValueError(f"ngram={ngram!r}: give 1 or more")
    rng = random.Random(0)
    samples: dict[Hashable, list[Hashes]] = {}
    seen: dict[Hashable, set[bytes]] = {}
    for text, site in _with_sites(texts, sites):
        sample, known = samples.setdefault(site, []), seen.setdefault(site, set())
        digest = hashlib.blake2b(_encoded(text), digest_size=8).digest()
        if digest in known:
            continue
        known.add(digest)
        place = len(sample) if len(sample) < _SAMPLE else rng.randrange(len(known))
        if place < _SAMPLE:
            sample[place : place + 1] = [_different(_passages(text, ngram).hashes)[0]]
    return Templates({site: _common(sample, share) for site, sample in samples.items()}, ngram)


def _common(pages: list[Hashes], share: float) -> Hashes:
    """The passages that stand on more than a share of pages, ascending."""
    hashes, counts = _different(np.concatenate(pages))
    most = max(share * len(pages), min(_COPIES, len(pages) / 2))
    return hashes[(counts > most) & (counts >= LEAST_PAGES)]


def _different(hashes: Hashes) -> tuple[Hashes, NDArray[np.int64]]:
    """Each different hash, ascending, and how often it occurs."""
    ordered = np.sort(hashes)
    firsts = np.flatnonzero(np.diff(ordered, prepend=~ordered[:1]))
    return ordered[firsts], np.diff(np.append(firsts, len(ordered)))


def _passages(text: str, ngram: int) -> _Passages:
    """Every passage of a text: the hash of words w0, w1, ... is the sum of hash(wi) * factor^i, modulo 2^64."""
    pieces = list(_PIECE.finditer(text))
    words = [piece for piece in pieces if piece[0] != "\n"]
    is_line = np.array([piece[0] == "\n" for piece in pieces], np.bool_)
    many = len(words)
    first = np.arange(many)
    # Where in the words each line ends.
    edges = np.append(np.flatnonzero(is_line) - np.arange(np.count_nonzero(is_line)), many)
    line_stop = edges[np.searchsorted(edges, first, "right")]
    line_start = np.append(0, edges)[np.searchsorted(edges, first, "right")]
    stop = np.minimum(first + ngram, line_stop)
    passage = (stop - first == ngram) | (first == line_start)
    first, stop = first[passage], stop[passage]
    hashes = np.fromiter((_hashed(word[0]) for word in words), np.uint64, many)
    sums = np.append(np.uint64(0), np.cumsum(hashes * _powers(_FACTOR, many), dtype=np.uint64))
    starts = np.array([*(word.start() for word in words), len(text)])
    return _Passages((sums[stop] - sums[first]) * _powers(_INVERSE, many)[first], first, stop - first, starts)


def _powers(factor: int, many: int) -> Hashes:
    """The first powers of a factor, modulo 2^64."""
    return np.multiply.accumulate(np.append(np.uint64(1), np.full(max(many - 1, 0), factor, np.uint64)))[:many]


@functools.lru_cache(1 << 18)
def _hashed(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(_encoded(word), digest_size=8).digest(), "little")


def _encoded(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.60} is no str")
    return text.encode("utf-8", "surrogatepass")


def _with_sites(texts: Iterable[str], sites: Iterable[Hashable] | None) -> Iterator[tuple[str, Hashable]]:
    """Each text with its site."""
    for what, given in (("texts", texts), ("sites", sites)):
        if isinstance(given, str):
            raise TypeError(f"{what} come as an iterable of one for each page, not as one string")
    of = repeat(None) if sites is None else iter(sites)
    for text in texts:
        site = next(of, _NO_SITE)
        if site is _NO_SITE:
            raise ValueError("fewer sites than texts: give one for each text")
        yield text, site
    if sites is not None and next(of, _NO_SITE) is not _NO_SITE:
        raise ValueError("more sites than texts: give one for each text")
