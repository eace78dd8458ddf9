"""Pages of real sites in several versions, and which of them say the same, without any SimHash."""

import contextlib
import pathlib
import random
import re
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from simdup import Scheme
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
    """Where pages come from, and which of them are drawn."""

    name: str
    language: str
    licence: str
    packages: Sequence[str]
    paths: str
    """A regular expression."""
    draw: int = 250
    """At most so many paths."""
    articles: bool = False
    """Whether each file is another article, and a folder is a site."""


@dataclass(frozen=True)
class Page:
    """A page as it was fetched."""

    path: str
    """What the versions of a page share."""
    version: str
    """The package."""
    content: bytes
    known: str
    """Its text, as the site's own markup has it; empty where that is not known."""


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
        paths = sorted(path for path in common if re.fullmatch(corpus.paths, path))
        drawn = sorted(random.Random(corpus.name).sample(paths, min(corpus.draw, len(paths))))
        return [
            Page(path, package.name, content, known_text(content, package))
            for path in drawn
            for package, kept in zip(packages, zips, strict=True)
            for content in [kept.read(path)]
        ]


def known_text(content: bytes, package: Package) -> str:
    """The text of a page by what is known of its site."""
    if package.head:
        return re.sub(package.head, "", content.decode(), count=1)
    body = HTMLTree.parse_from_bytes(content).body
    found = body.query_selector(package.main) if package.main else None
    return extract_plain_text(found.html, preserve_formatting=True, list_bullets=False) if found else ""


def truth_of(corpus: Corpus, pages: Sequence[Page], near: float = NEAR) -> Truth:
    """Which pages say the same, by the words of their known text.

    Near are pages whose known texts have `near` of their 5-word shingles in common (Jaccard) or more, different are
    pages of different paths with less than 20 %. Where each file is another article, those of a site are different.
    """
    left, right = np.triu_indices(len(pages), 1)
    rows = np.stack([left, right], axis=1)
    if corpus.articles:
        _, site = np.unique([page.path.rpartition("/")[0] for page in pages], return_inverse=True)
        return Truth(rows[:0], rows[site[left] == site[right]])
    sets = FeatureSets([page.known for page in pages], SHINGLES)
    _, path = np.unique([page.path for page in pages], return_inverse=True)
    similarity = sets.similarity(left, right)
    enough = (sets.sizes[rows] >= LEAST_SHINGLES).all(axis=1)
    other = path[left] != path[right]
    return Truth(rows[enough & (similarity >= near)], rows[enough & other & (similarity < DIFFERENT)])
