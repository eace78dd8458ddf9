"""Which pages say the same: by counting shingles one by one, and on pages made for it."""

import random
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.reproduction.corpora import CORPORA, DIFFERENT, LEAST_SHINGLES, NEAR, PACKAGES, Page, known_text, truth_of

CORPUS = CORPORA["linux-doc-en"]


def pairs(rows: NDArray[np.int64]) -> set[tuple[int, int]]:
    return {(left, right) for left, right in rows.tolist()}


def page(path: str, known: str) -> Page:
    return Page(path, "", b"", known)


@pytest.mark.parametrize("separator", [" ", ""], ids=["words", "characters"])
def test_truth_is_what_counting_says(separator: str) -> None:
    rng = random.Random(39)
    letters = [f"w{i}" for i in range(400)] if separator else [chr(0x4E00 + i) for i in range(400)]
    pages = []
    for number in range(40):
        text = rng.choices(letters, k=rng.choice([20, 53, 54, 80, 300]))
        for rate in (0, 0.01, 0.02, 0.05, 0.2):
            edited = [rng.choice(letters) if rng.random() < rate else word for word in text]
            pages.append(page(f"{number}.html", separator.join(edited)))

    def shingles(known: str) -> set[tuple[str, ...]]:
        words = known.split() if separator else list(known)
        return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}

    near, different = set(), set()
    sets = [shingles(page.known) for page in pages]
    for j in range(len(pages)):
        for i in range(j):
            similarity = len(sets[i] & sets[j]) / len(sets[i] | sets[j])
            if min(len(sets[i]), len(sets[j])) >= LEAST_SHINGLES:
                near |= {(i, j)} if similarity >= NEAR else set()
                different |= {(i, j)} if similarity < DIFFERENT and pages[i].path != pages[j].path else set()
    truth = truth_of(CORPUS, pages)
    assert pairs(truth.near) == near
    assert pairs(truth.different) == different
    assert len(near) > 50
    assert len(different) > 5_000


def test_equal_and_empty_and_short_pages() -> None:
    """Equal texts are near under whichever path; a text of few words is in no pair, not even with its equal."""
    long, short = (
        " ".join(f"w{i}" for i in range(LEAST_SHINGLES + 4)),
        " ".join(f"v{i}" for i in range(LEAST_SHINGLES + 3)),
    )
    pages = [page("a", long), page("b", long), page("c", short), page("d", short), page("e", ""), page("f", "")]
    truth = truth_of(CORPUS, pages)
    assert pairs(truth.near) == {(0, 1)}
    assert not len(truth.different)


def test_versions_that_have_little_in_common_are_neither() -> None:
    texts = [" ".join(f"{version}{i}" for i in range(90)) for version in "abc"]
    truth = truth_of(CORPUS, [page("same", texts[0]), page("same", texts[1]), page("other", texts[2])])
    assert not len(truth.near)
    assert pairs(truth.different) == {(0, 2), (1, 2)}


def test_articles_of_a_site_are_different_unless_their_title_is_the_same() -> None:
    corpus = replace(CORPUS, articles=True)
    titles = [("x/1", "one"), ("x/2", "two"), ("x/3", "one"), ("y/1", "one"), ("y/2", "three")]
    truth = truth_of(corpus, [page(path, title) for path, title in titles])
    assert not len(truth.near)
    assert pairs(truth.different) == {(0, 1), (1, 2), (3, 4)}


def test_known_text_is_the_sites_own_element() -> None:
    html = (
        b"<html><head><title>The title</title></head><body><nav>menu</nav><div id='DisplayArea'><p>The text</p></div>"
    )
    package = PACKAGES["libreoffice-help-de-trixie"]
    assert known_text(html, package).split() == ["The", "text"]
    assert known_text(html.replace(b"DisplayArea", b"Else"), package) == ""
    assert known_text(html, PACKAGES["gne-0.4.3"]) == "The title"


def test_navigation_above_and_below_is_no_known_text() -> None:
    html = (
        b"<html><body><div class='navheader'>Next</div><div class='sect1'><p>The text</p></div>"
        b"<div class='navfooter'>Previous</div></body></html>"
    )
    assert known_text(html, PACKAGES["installation-guide-amd64"]).split() == ["The", "text"]


def test_plain_text_begins_below_its_head() -> None:
    package = PACKAGES["licensedcode-data-32.1.0"]
    assert (
        known_text(b"---\nkey: mit\n---\n\nPermission\n---\nis hereby", package).strip() == "Permission\n---\nis hereby"
    )
    assert known_text("Ohne Kopf: §".encode(), package) == "Ohne Kopf: §"
