"""Pages of real sites in several versions, and which of them say the same, without any SimHash."""

import contextlib
import hashlib
import pathlib
import re
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from resiliparse.parse.html import HTMLTree

from simdup import Scheme
from simdup.html import text_from_html
from simdup.similarity import FeatureSets
from tests.reproduction.fetch import Package, fetched

_DATA = tomllib.loads(pathlib.Path(__file__).with_name("corpora.toml").read_text(encoding="utf-8"))
PACKAGES = {name: Package(name, **table) for name, table in _DATA["package"].items()}

SHINGLES = Scheme("word", 5)  # a character of Chinese or Japanese is a word
NEAR, DIFFERENT = 0.8, 0.2
LEAST_SHINGLES = 50
"""Pages of fewer are in no pair: lists of links, redirections, stubs."""


@dataclass(frozen=True)
class Corpus:
    """Where pages come from, which of them are drawn, and what was measured on them."""

    name: str
    language: str
    licence: str
    packages: Sequence[str]
    paths: str
    """A regular expression."""
    draw: int = 500
    """At most so many paths."""
    articles: bool = False
    """Whether a folder is a site, and another title another article."""
    recall: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """For a text, in per cent, at each threshold."""
    false: Mapping[str, Sequence[int]] = field(default_factory=dict)
    helps: Sequence[int] = ()
    """The thresholds at which main text is better than the whole page."""
    same: Sequence[int] = ()
    """The thresholds at which it is as good."""
    better: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The thresholds at which the whole page is worse than with its template cut out, or by idf."""
    worse: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """And those at which it is better."""
    words: bool = False
    """Whether single words give false pairs within the smallest threshold."""

    @property
    def html(self) -> bool:
        """Whether its pages have markup."""
        return all(PACKAGES[name].main for name in self.packages)


@dataclass(frozen=True)
class Page:
    """A page as it was fetched."""

    path: str
    """What the versions of a page share."""
    archive: str
    """What it came in, with the version in its name."""
    content: bytes
    known: str
    """Its text, or its title, as the site's own markup has it."""


@dataclass(frozen=True)
class Truth:
    """Which pages say the same."""

    near: NDArray[np.int64]
    """Rows of pages, left < right, shape (m, 2)."""
    different: NDArray[np.int64]
    """Rows of pages, left < right, shape (m, 2). Pairs may be neither."""


CORPORA = {name: Corpus(name, **table) for name, table in _DATA["corpus"].items()}


def pages_of(corpus: Corpus, scratch: pathlib.Path) -> list[Page]:
    """The pages that are drawn, of each path all versions: the same ones each time.

    Parameters
    ----------
    corpus
        One of `CORPORA`.
    scratch
        A folder for what is needed while packages are fetched, one for all.

    Raises
    ------
    UnavailableError
        If a package cannot be had.
    """
    packages = [PACKAGES[name] for name in corpus.packages]
    with contextlib.ExitStack() as stack:
        zips = [stack.enter_context(zipfile.ZipFile(fetched(package, scratch))) for package in packages]
        common = set.intersection(*(set(kept.namelist()) for kept in zips))
        paths = [path for path in common if re.fullmatch(corpus.paths, path)]
        # By their digests: when paths come and go with a new version, the others stay drawn.
        drawn = sorted(paths, key=lambda path: hashlib.sha256(path.encode()).digest())[: corpus.draw]
        return [
            Page(path, kept.comment.decode(), content, known_text(content, package))
            for path in sorted(drawn)
            for package, kept in zip(packages, zips, strict=True)
            for content in [kept.read(path)]
        ]


def known_text(content: bytes, package: Package) -> str:
    """The text of a page by what is known of its site."""
    if package.head:
        return re.sub(package.head, "", content.decode(), count=1)
    document = HTMLTree.parse_from_bytes(content)
    if package.main == "title":
        return document.title or ""
    found = document.body and document.body.query_selector(package.main)
    return text_from_html(found.html, main=False) if found else ""


def truth_of(corpus: Corpus, pages: Sequence[Page], near: float = NEAR) -> Truth:
    """Which pages say the same, by the words of their known text.

    Near are pages whose known texts have `near` of their 5-word shingles in common (Jaccard) or more, different are
    pages of different paths with less than 20 %. Of articles only the titles are known: different are those of a site
    with different titles, and none are near.
    """
    left, right = np.triu_indices(len(pages), 1)
    rows = np.stack([left, right], axis=1)
    if corpus.articles:
        site = np.array([page.path.rpartition("/")[0] for page in pages])
        title = np.array([page.known for page in pages])
        return Truth(rows[:0], rows[(site[left] == site[right]) & (title[left] != title[right])])
    sets = FeatureSets([page.known for page in pages], SHINGLES)
    _, path = np.unique([page.path for page in pages], return_inverse=True)
    similarity = sets.similarity(left, right)
    enough = (sets.sizes[rows] >= LEAST_SHINGLES).all(axis=1)
    other = path[left] != path[right]
    return Truth(rows[enough & (similarity >= near)], rows[enough & other & (similarity < DIFFERENT)])
