"""The article's site template, learned from the pages and cut out of them, or weighed down by idf; harder templates.

Nobody says where the template is. Cut out, what is left is the text, so that every figure of the text is back. Weights
leave the template where it is and move the threshold (zero_false.toml has what they reach).
"""

import functools
import random

import pytest

from simdup import ARTICLE, Scheme, fingerprint, fit_idf
from simdup.study.corpus import Corpus, article_corpus
from simdup.study.measure import Measurement, measure
from simdup.study.reproduce import THRESHOLDS, Figure, counted, figures
from simdup.templates import fit_templates

PUBLISHED = [figure for figure in figures() if figure.id.startswith(("F2.text", "F4.text", "F5.text"))]


def without_template(texts: list[str]) -> list[str]:
    return list(fit_templates(texts).remove(texts))


@functools.cache
def restored() -> dict[str, float]:
    corpus = article_corpus()
    pages = without_template(corpus.with_template())
    return counted(Corpus("", pages, corpus.family, corpus.variants))


@pytest.mark.parametrize("figure", PUBLISHED, ids=lambda figure: figure.id)
def test_removal_restores_every_figure_of_the_text(figure: Figure) -> None:
    assert figure.holds(restored()[figure.id]), f"{figure.id}: {figure.published}, not {restored()[figure.id]}"


def test_those_are_all_figures_of_the_text() -> None:
    assert len(PUBLISHED) > 20


@pytest.mark.parametrize("seed", range(39, 45))
def test_what_is_left_is_the_text(seed: int) -> None:
    corpus = article_corpus(seed)
    assert without_template(corpus.with_template()) == corpus.pages
    assert without_template(corpus.pages) == corpus.pages


@pytest.mark.parametrize("seed", range(39, 42))
def test_idf_on_whole_pages_beats_the_text(seed: int) -> None:
    """With no more false pairs than the text alone has at a threshold, idf finds as many or more, at a larger one."""
    corpus = article_corpus(seed)
    pages = corpus.with_template()

    def measured(texts: list[str], scheme: Scheme) -> Measurement:
        edits = {str(rate): rows for rate, rows in corpus.variants.items()}
        return measure(fingerprint(texts, scheme), corpus.family, edits)

    text, whole = measured(corpus.pages, ARTICLE), measured(pages, fit_idf(pages, ARTICLE))
    for k in THRESHOLDS:
        allowed = text.at(k).false
        assert max(at.recall for at in map(whole.at, range(65)) if at.false <= allowed) >= text.at(k).recall, k


def interleaved(corpus: Corpus) -> list[str]:
    """Header, a breadcrumb with the page's own number, a menu between the paragraphs, footer: a line each."""
    words = corpus.template.split()
    header, footer, menu = " ".join(words[:200]), " ".join(words[400:]), iter(words[200:400])
    items = [[" ".join(next(menu) for _ in range(length)) for length in (1, 2, 3, 4, 9)] for _ in range(4)]
    pages = []
    for row, page in enumerate(corpus.pages):
        text = page.split()
        paragraphs = [" ".join(text[at : at + 100]) for at in range(0, len(text), 100)]
        body = [line for paragraph, between in zip(paragraphs, items, strict=True) for line in (paragraph, *between)]
        pages.append("\n".join((header, f"home > section {row % 7} > page {row}", *body, footer)))
    return pages


def redesigned(corpus: Corpus) -> list[str]:
    """Half of the pages have another template, drawn by lot: a page and its copy may have different ones."""
    other, rng = article_corpus(1_000).template, random.Random(0)
    new = set(rng.sample(range(len(corpus.pages)), len(corpus.pages) // 2))
    return [f"{other if row in new else corpus.template} {page}" for row, page in enumerate(corpus.pages)]


def shuffled(corpus: Corpus) -> list[str]:
    """A menu of many short lines, whose order is another on every page, and a page that links to itself by no line."""
    words, rng = corpus.template.split(), random.Random(0)
    items = [" ".join(words[at : at + 3]) for at in range(0, len(words), 3)]
    return ["\n".join((*rng.sample(items, len(items) - 1), page)) for page in corpus.pages]


@pytest.mark.parametrize(("harder", "own"), [(interleaved, 7), (redesigned, 0), (shuffled, 0)])
def test_harder_templates(harder: "functools.partial[list[str]]", own: int) -> None:
    """All of the text is left, in order, and of the template only the words that are each page's own."""
    corpus = article_corpus()
    for left, page in zip(without_template(harder(corpus)), corpus.pages, strict=True):
        words = left.split()
        assert words[own:] == page.split()
        assert words[:own] == ([] if own == 0 else ["home", ">", "section", words[3], ">", "page", words[6]])
