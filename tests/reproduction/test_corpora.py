"""Real pages: what main text, cut templates and idf are good for, and where they change nothing.

The pages are fetched, so these tests are asked for: ``pytest tests/reproduction -m corpora``. What was measured stands
in corpora.toml. The pages of Debian move with its point releases, and of the larger corpora a part is drawn; hence a
margin.
"""

from collections.abc import Callable

import pytest

from tests.reproduction.corpora import CORPORA
from tests.reproduction.evidence import CUT, GRAMS, THRESHOLDS, WHOLE_BY_IDF, WORDS, Evidence

pytestmark = pytest.mark.corpora

# In points. An interval reaches 4 to 10 to either side.
MARGIN = 12
SAME = 8


@pytest.mark.parametrize("name", [name for name, corpus in CORPORA.items() if corpus.recall])
def test_recall_is_as_stated(name: str, evidence: Callable[[str], Evidence]) -> None:
    """The whole interval lies within the margin."""
    for text, stated in CORPORA[name].recall.items():
        for k, percent in zip(THRESHOLDS, stated, strict=True):
            found = evidence(name).recall(text, k)
            assert percent - MARGIN <= found.low <= found.high <= percent + MARGIN, f"{text}, k = {k}: {percent} stated"


@pytest.mark.parametrize("name", CORPORA)
def test_false_pairs_are_as_stated(name: str, evidence: Callable[[str], Evidence]) -> None:
    """The interval of how many there may be holds the number stated, give or take one pair."""
    for text, stated in CORPORA[name].false.items():
        for k, pairs in zip(THRESHOLDS, stated, strict=True):
            low, high = evidence(name).false_interval(text, k)
            assert low - 1 <= pairs <= high + 1, f"{text}, k = {k}: {pairs} stated, {low:.1f} to {high:.1f}"


@pytest.mark.parametrize(("name", "k"), [(name, k) for name, corpus in CORPORA.items() for k in corpus.helps])
def test_main_text_helps(name: str, k: int, evidence: Callable[[str], Evidence]) -> None:
    """Where the template changed and the text did not: the difference on the same pairs is surely above zero."""
    gain = evidence(name).gain(k)
    assert gain.low > 0, f"{gain} points"


@pytest.mark.parametrize(("name", "k"), [(name, k) for name, corpus in CORPORA.items() for k in corpus.same])
def test_main_text_changes_nothing(name: str, k: int, evidence: Callable[[str], Evidence]) -> None:
    """Where the template is tiny, or k generous: the difference on the same pairs is surely small."""
    gain = evidence(name).gain(k)
    assert -SAME < gain.low <= gain.high < SAME, f"{gain} points"


READINGS = {"cut": CUT, "idf": WHOLE_BY_IDF}


@pytest.mark.parametrize(
    ("name", "reading", "k"),
    [(name, way, k) for name, corpus in CORPORA.items() for way, ks in corpus.better.items() for k in ks],
)
def test_without_template_is_better(name: str, reading: str, k: int, evidence: Callable[[str], Evidence]) -> None:
    """Cut out, or weighed down by idf: the difference to the whole page, on the same pairs, is surely above zero."""
    gain = evidence(name).gain(k, READINGS[reading])
    assert gain.low > 0, f"{gain} points"


@pytest.mark.parametrize(
    ("name", "reading", "k"),
    [(name, way, k) for name, corpus in CORPORA.items() for way, ks in corpus.worse.items() for k in ks],
)
def test_idf_is_worse_where_the_template_is_tiny(
    name: str, reading: str, k: int, evidence: Callable[[str], Evidence]
) -> None:
    """Under one threshold: what changed is rare, and weighs more."""
    gain = evidence(name).gain(k, READINGS[reading])
    assert gain.high < 0, f"{gain} points"


@pytest.mark.parametrize("name", [name for name, corpus in CORPORA.items() if corpus.words])
def test_single_words_are_not_enough(name: str, evidence: Callable[[str], Evidence]) -> None:
    """Long texts of one language use the same words: they stand within k = 3, unless the words' order counts."""
    found = evidence(name)
    text = "whole" if found.corpus.html else "known"
    assert found.false(text, THRESHOLDS[0], WORDS) > 0
    assert found.false(text, THRESHOLDS[0], GRAMS) == 0
