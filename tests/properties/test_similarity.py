"""Exact similarity equals Python's sets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import Pairs, Scheme, fingerprint, near_pairs, tokens
from simdup.batches import BATCH_TEXTS
from simdup.similarity import FeatureSets, Measure, digests, verify
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
    found = FeatureSets(texts, scheme).similarity(left, right)
    assert found.dtype == np.float64
    assert found.tolist() == [expected(texts[i], texts[j], scheme) for i, j in zip(left, right, strict=True)]


@given(
    left=st.lists(st.sampled_from("abcdef"), max_size=12).map(" ".join),
    right=st.lists(st.sampled_from("abcdef"), max_size=12).map(" ".join),
    ngram=st.integers(1, 3),
)
def test_equals_python_sets_where_much_is_shared(left: str, right: str, ngram: int) -> None:
    scheme = Scheme(ngram=ngram)
    found = FeatureSets([left, right], scheme).similarity(np.array([0, 1, 0]), np.array([1, 0, 0]))
    assert found.tolist() == [expected(left, right, scheme)] * 2 + [expected(left, left, scheme)]


def test_by_hand() -> None:
    texts = ["a b c d", "b c d e", "A, B; c d d d", "x y", "", "!?"]
    sets = FeatureSets(texts, Scheme(ngram=1))
    pairs = np.array([(0, 1), (0, 2), (0, 3), (0, 4), (4, 4), (4, 5), (3, 3)])
    assert sets.similarity(pairs[:, 0], pairs[:, 1]).tolist() == [3 / 5, 1, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("texts", [[], [""], ["", "", ""]], ids=len)
def test_nothing_to_compare(texts: list[str]) -> None:
    none = np.empty(0, np.int64)
    assert FeatureSets(texts, Scheme()).similarity(none, none).tolist() == []
    if texts:
        assert FeatureSets(texts, Scheme()).similarity(np.array([0]), np.array([len(texts) - 1])).tolist() == [0]


def test_order_of_words_counts_only_in_ngrams() -> None:
    texts = ["a b c d", "d c b a"]
    pair = np.array([0]), np.array([1])
    assert FeatureSets(texts, Scheme(ngram=1)).similarity(*pair).tolist() == [1]
    assert FeatureSets(texts, Scheme(ngram=2)).similarity(*pair).tolist() == [0]


def test_over_the_end_of_a_batch() -> None:
    """Rows keep their place where the texts are read in several batches, texts without features among them."""
    texts = ["" if i % 7 == 0 else f"same {i % 5}" for i in range(BATCH_TEXTS + 50)]
    sets = FeatureSets(iter(texts), Scheme(ngram=1))
    left = np.arange(len(texts) - 1)
    found = sets.similarity(left, left + 1).tolist()
    assert found == [expected(texts[i], texts[i + 1], Scheme(ngram=1)) for i in left]


@given(text=some.texts())
def test_width_and_weight_do_not_matter(text: str) -> None:
    scheme = Scheme(ngram=1)
    other = f"{text} more"
    pair = np.array([0]), np.array([1])
    values = {
        float(FeatureSets([text, other], changed).similarity(*pair)[0])
        for changed in (scheme, replace(scheme, bits=64), replace(scheme, bits=256, weight="set"))
    }
    assert len(values) == 1


def test_containment_by_hand() -> None:
    sets = FeatureSets(["a b c d", "b c", "c d e f g", "", "x"], Scheme(ngram=1))
    pairs = np.array([(0, 1), (1, 0), (0, 2), (0, 3), (3, 3), (0, 4), (1, 2)])
    assert sets.similarity(pairs[:, 0], pairs[:, 1], "containment").tolist() == [1, 1, 0.5, 0, 0, 0, 0.5]


class TestDigests:
    @given(texts=st.lists(some.texts(6), max_size=8), scheme=some.schemes(weights=("tf", "set")))
    def test_equal_if_and_only_if_the_sets_are(self, texts: list[str], scheme: Scheme) -> None:
        found = digests(texts, scheme).tolist()
        sets = [features(text, scheme) for text in texts]
        assert len(found) == len(texts)
        assert all((found[a] == found[b]) == (sets[a] == sets[b]) for a in range(len(sets)) for b in range(len(sets)))

    def test_over_the_end_of_a_batch(self) -> None:
        texts = [f"page {i}" if i % 5 else "" for i in range(BATCH_TEXTS + 50)]
        found = digests(iter(texts), Scheme(ngram=1)).tolist()
        assert found[-50:] == digests(texts[-50:], Scheme(ngram=1)).tolist()
        assert len(set(found)) == len(set(texts))


class TestVerify:
    @given(texts=st.lists(some.texts(6), min_size=2, max_size=8), least=st.sampled_from((0.01, 0.3, 0.5, 1.0)))
    @pytest.mark.parametrize("measure", ["jaccard", "containment"])
    def test_keeps_the_pairs_that_are_similar(self, measure: Measure, texts: list[str], least: float) -> None:
        scheme = Scheme(ngram=1)
        pairs = near_pairs(fingerprint(texts, scheme), 128)
        sets = [features(text, scheme) for text in texts]
        expected = []
        for left, right, apart in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist(), strict=True):
            a, b = sets[left], sets[right]
            share = len(a & b) / (len(a | b) if measure == "jaccard" else min(len(a), len(b)))
            if share >= least:
                expected.append((left, right, apart, share))
        kept, similarity = verify(pairs, iter(texts), scheme, least, measure)
        columns = kept.left.tolist(), kept.right.tolist(), kept.distance.tolist(), similarity.tolist()
        assert list(zip(*columns, strict=True)) == expected

    def test_only_texts_in_pairs_are_looked_at(self) -> None:
        """What follows the last of them is not even read."""
        pairs = Pairs(np.array([1]), np.array([3]), np.array([0]))
        texts = iter(["x", "a b", "y", "a b", "more"])
        assert verify(pairs, texts, Scheme(), 1)[1].tolist() == [1]
        assert next(texts) == "more"

    def test_no_pairs(self) -> None:
        kept, similarity = verify(Pairs(*np.empty((3, 0), np.int64)), ["a"], Scheme(), 0.5)
        assert (len(kept), similarity.tolist()) == (0, [])

    def test_fewer_texts_than_rows(self) -> None:
        with pytest.raises(ValueError, match="pairs of rows up to 3, but fewer texts"):
            verify(Pairs(np.array([1]), np.array([3]), np.array([0])), ["a", "b"], Scheme(), 0.5)

    @pytest.mark.parametrize("least", [0, -1, 1.01, float("nan")])
    def test_no_similarity(self, least: float) -> None:
        with pytest.raises(ValueError, match="give more than 0, up to 1"):
            verify(Pairs(*np.empty((3, 0), np.int64)), [], Scheme(), least)

    def test_no_measure(self) -> None:
        with pytest.raises(ValueError, match="similarity 'cosine': choose one of jaccard, containment"):
            verify(Pairs(*np.empty((3, 0), np.int64)), [], Scheme(), 0.5, "cosine")  # type: ignore[arg-type]
