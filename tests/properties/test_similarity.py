"""Exact Jaccard similarity equals Python's sets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import Scheme, tokens
from simdup.batches import BATCH_TEXTS
from simdup.similarity import FeatureSets
from tests.properties import strategies as some


def features(text: str, scheme: Scheme) -> frozenset[str]:
    words = tokens(text, scheme)
    n = min(scheme.ngram, len(words))
    return frozenset(" ".join(words[at : at + n]) for at in range(len(words) - n + 1)) if words else frozenset()


def expected(left: str, right: str, scheme: Scheme) -> float:
    a, b = features(left, scheme), features(right, scheme)
    return len(a & b) / len(a | b) if a or b else 0.0


@given(texts=st.lists(some.texts(), min_size=1, max_size=6), scheme=some.schemes(weights=("tf", "set")))
def test_equals_python_sets(texts: list[str], scheme: Scheme) -> None:
    left, right = np.divmod(np.arange(len(texts) ** 2), len(texts))
    found = FeatureSets(texts, scheme).jaccard(left, right)
    assert found.dtype == np.float64
    assert found.tolist() == [expected(texts[i], texts[j], scheme) for i, j in zip(left, right, strict=True)]


@given(
    left=st.lists(st.sampled_from("abcdef"), max_size=12).map(" ".join),
    right=st.lists(st.sampled_from("abcdef"), max_size=12).map(" ".join),
    ngram=st.integers(1, 3),
)
def test_equals_python_sets_where_much_is_shared(left: str, right: str, ngram: int) -> None:
    scheme = Scheme(ngram=ngram)
    found = FeatureSets([left, right], scheme).jaccard(np.array([0, 1, 0]), np.array([1, 0, 0]))
    assert found.tolist() == [expected(left, right, scheme)] * 2 + [expected(left, left, scheme)]


def test_by_hand() -> None:
    texts = ["a b c d", "b c d e", "A, B; c d d d", "x y", "", "!?"]
    sets = FeatureSets(texts, Scheme(ngram=1))
    pairs = np.array([(0, 1), (0, 2), (0, 3), (0, 4), (4, 4), (4, 5), (3, 3)])
    assert sets.jaccard(pairs[:, 0], pairs[:, 1]).tolist() == [3 / 5, 1, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("texts", [[], [""], ["", "", ""]], ids=len)
def test_nothing_to_compare(texts: list[str]) -> None:
    none = np.empty(0, np.int64)
    assert FeatureSets(texts, Scheme()).jaccard(none, none).tolist() == []
    if texts:
        assert FeatureSets(texts, Scheme()).jaccard(np.array([0]), np.array([len(texts) - 1])).tolist() == [0]


def test_order_of_words_counts_only_in_ngrams() -> None:
    texts = ["a b c d", "d c b a"]
    pair = np.array([0]), np.array([1])
    assert FeatureSets(texts, Scheme(ngram=1)).jaccard(*pair).tolist() == [1]
    assert FeatureSets(texts, Scheme(ngram=2)).jaccard(*pair).tolist() == [0]


def test_over_the_end_of_a_batch() -> None:
    """Rows keep their place where the texts are read in several batches, texts without features among them."""
    texts = ["" if i % 7 == 0 else f"same {i % 5}" for i in range(BATCH_TEXTS + 50)]
    sets = FeatureSets(iter(texts), Scheme(ngram=1))
    left = np.arange(len(texts) - 1)
    found = sets.jaccard(left, left + 1).tolist()
    assert found == [expected(texts[i], texts[i + 1], Scheme(ngram=1)) for i in left]


@given(text=some.texts())
def test_width_and_weight_do_not_matter(text: str) -> None:
    scheme = Scheme(ngram=1)
    other = f"{text} more"
    pair = np.array([0]), np.array([1])
    values = {
        float(FeatureSets([text, other], changed).jaccard(*pair)[0])
        for changed in (scheme, replace(scheme, bits=64), replace(scheme, bits=256, weight="set"))
    }
    assert len(values) == 1
