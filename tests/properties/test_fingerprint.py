"""Fingerprints: the fast path is the reference, whatever the scheme; and what a vote is."""

import copy
import math
import pickle
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import (
    ARTICLE,
    Fingerprint,
    Fingerprints,
    Scheme,
    distance,
    fingerprint,
    fingerprint_features,
    fit_idf,
    idf_table,
    normalize,
    reference,
    tokens,
)
from simdup.fingerprint import _MULTIPLIER, _different
from tests.properties import strategies as some

WORD = Scheme("word", 1, 64, "tf")
ALL = [
    Scheme(unit, ngram, bits, weight, name, form)  # type: ignore[arg-type]
    for unit, ngram, bits, weight, name, form in product(
        ("word", "char"), some.NGRAMS, some.WIDTHS, ("tf", "set", "idf"), ("xxh64", "blake2b"), (True, False)
    )
]
# Every piece, welded and apart, in short and long texts; some words often enough for every plane of the counter.
CORPUS = [
    "",
    " \n",
    "a",
    "the page\nthe\tpage",
    " ".join(some.PIECES[::3]),
    "".join(some.PIECES[1::3]),
    "x y " * 5 + "z",
    "a b a c a " * 30 + "b",
]
TABLE = {"the": 0.0, "page": 2.5, "a": 0.1, "the page": 0.3, "a b": 0.0, "b a c": 7.0, "x": 1.0, "y": 1.0}

values = st.integers(0, 2**64 - 1)


def with_table(scheme: Scheme) -> Scheme:
    return idf_table(TABLE, scheme, 0.7) if scheme.weight == "idf" else scheme


def sums(weighted: Mapping[str, Fraction] | Mapping[str, int], scheme: Scheme) -> list[Fraction]:
    """The votes of each bit, the least significant first."""
    hashed = [(reference.feature_hash(feature, scheme), Fraction(weight)) for feature, weight in weighted.items()]
    nothing = Fraction(0)
    return [sum((w if value >> bit & 1 else -w for value, w in hashed), nothing) for bit in range(scheme.bits)]


def oracle(weighted: Mapping[str, float], scheme: Scheme) -> int:
    """The article's vote in fractions."""
    votes = sums({feature: Fraction(weight) for feature, weight in weighted.items()}, scheme)
    return sum(1 << bit for bit, vote in enumerate(votes) if vote > 0)


class TestReference:
    @pytest.mark.parametrize("scheme", ALL, ids=lambda scheme: scheme.id)
    def test_every_scheme(self, scheme: Scheme) -> None:
        scheme = with_table(scheme)
        found = fingerprint(CORPUS, scheme)
        expected = [reference.fingerprint(text, scheme) for text in CORPUS]
        assert list(map(int, found)) == [value for value, _ in expected]
        assert found.features.tolist() == [count for _, count in expected]

    @given(texts=st.lists(some.texts(), max_size=4), scheme=some.schemes())
    def test_any_texts(self, texts: list[str], scheme: Scheme) -> None:
        found = fingerprint(texts, scheme)
        for text, one in zip(texts, found, strict=True):
            assert (int(one), one.features) == reference.fingerprint(text, scheme), ascii(text)

    @given(words=some.word_lists, scheme=some.schemes())
    def test_repeating_words(self, words: list[str], scheme: Scheme) -> None:
        text = " ".join(words)
        one = fingerprint(text, scheme)
        assert (one.value, one.features) == reference.fingerprint(text, scheme)

    @given(words=some.word_lists, ngram=st.integers(1, 5))
    def test_the_article_in_its_own_words(self, words: list[str], ngram: int) -> None:
        text = " ".join(words)
        assert int(fingerprint(text, replace(ARTICLE, ngram=ngram))) == (reference.article(text, ngram) if words else 0)

    @pytest.mark.parametrize("weight", ["tf", "set"])
    @pytest.mark.parametrize("bits", some.WIDTHS)
    def test_any_number_of_votes(self, bits: int, weight: Any) -> None:
        """Eight votes are counted at once: 0 to 70 of them, some equal, so that every remainder is met."""
        scheme = Scheme("word", 1, bits, weight)
        texts = [" ".join(f"w{number % 50}" for number in range(count)) for count in range(71)]
        texts += [f"{'a ' * times}b c" for times in (*range(10), 255, 256, 257)]
        found = fingerprint(texts, scheme)
        expected = [reference.fingerprint(text, scheme) for text in texts]
        assert list(zip(map(int, found), found.features.tolist(), strict=True)) == expected

    @pytest.mark.parametrize("count", [65_535, 65_536, 1 << 20])
    def test_large_counts_against_each_other(self, count: int) -> None:
        """Both outcomes of a near tie: one vote more for either of two words."""
        for a, b in ((count, count), (count + 1, count), (count, count + 1)):
            expected = oracle({"a": a, "b": b}, ARTICLE)
            assert fingerprint("a " * a + "b " * b, ARTICLE).value == expected

    def test_features_with_one_hash_word_in_common_slots(self) -> None:
        """Many different features of one text: the table that counts them is met at every load."""
        for count in (1, 2, 15, 16, 17, 63, 64, 65, 1000, 5000):
            text = " ".join(f"w{number}" for number in range(count))
            assert fingerprint(f"{text} {text}", WORD).features == count

    @given(keys=st.lists(st.one_of(st.integers(0, 9), st.sampled_from((64, 128, 2**63, 2**64 - 1))), max_size=40))
    def test_counting_hashes_that_no_text_may_ever_have(self, keys: list[int]) -> None:
        """Hashes such as 0, 1 and 2, and many in one slot: the mark of an empty slot is none of them."""
        hashes = np.array(keys, np.uint64).reshape(-1, 1)
        seen, rows = np.empty(256, np.uint64), np.empty(len(keys) + 1, np.int64)
        for multiplier in (1, 2**63 + 1, int(_MULTIPLIER)):
            count = _different(hashes, np.uint64(multiplier), seen, rows)
            assert count == len(set(keys))
            assert [keys[row] for row in rows[:count].tolist()] == list(dict.fromkeys(keys))

    def test_no_text_can_crowd_the_table_that_counts(self) -> None:
        """A page made for it, of hashes that all end alike, takes no longer: 200,000 of them took half a minute."""
        rng = random.Random(39)
        crowd = np.array([rng.getrandbits(40) << 24 | 7 for _ in range(200_000)], np.uint64).reshape(-1, 1)
        seen, rows = np.empty(1 << 20, np.uint64), np.empty(len(crowd) + 1, np.int64)
        for _ in range(5):
            different = _different(crowd, np.uint64(rng.getrandbits(64) | 1), seen, rows)
            assert different == len(np.unique(crowd))
            edges = np.flatnonzero(np.diff(np.concatenate(([False], seen != 0, [False]))))
            assert (edges[1::2] - edges[::2]).max() < 100
        assert int(_MULTIPLIER) % 2 == 1

    @pytest.mark.parametrize("weight", [2.0**10, 2.0**9])
    def test_the_largest_idf_weight_with_many_words(self, weight: float) -> None:
        scheme = idf_table({"a": weight}, WORD, 0.0)
        assert int(fingerprint("a " * (1 << 22), scheme)) == int(fingerprint("a", WORD))


class TestVote:
    @given(document=some.documents, scheme=some.schemes(weights=("tf",)))
    def test_sums_are_exact(self, document: dict[str, float], scheme: Scheme) -> None:
        found = fingerprint_features([document], scheme)[0]
        assert found.value == oracle(document, scheme)
        assert found.features == sum(weight > 0 for weight in document.values())

    @given(
        document=st.dictionaries(st.text("abcd", min_size=1, max_size=2), st.sampled_from((0.1, 0.2, 0.3, 0.4, 0.7, 1)))
    )
    def test_sums_are_exact_next_to_a_tie(self, document: dict[str, float]) -> None:
        assert fingerprint_features([document], WORD)[0].value == oracle(document, WORD)

    @given(documents=st.lists(some.documents, max_size=4), scheme=some.schemes(weights=("tf",)))
    def test_documents_do_not_touch_each_other(self, documents: list[dict[str, float]], scheme: Scheme) -> None:
        together = fingerprint_features(iter(documents), scheme)
        assert list(map(int, together)) == [int(fingerprint_features([one], scheme)[0]) for one in documents]
        assert together.scheme == scheme

    @given(document=some.documents, data=st.data())
    def test_order_is_irrelevant(self, document: dict[str, float], data: st.DataObject) -> None:
        other = dict(data.draw(st.permutations(list(document.items()))))
        assert fingerprint_features([document], WORD) == fingerprint_features([other], WORD)

    @given(document=st.dictionaries(some.words, st.integers(0, 2**60), max_size=8), factor=st.integers(1, 10**30))
    def test_scaling_whole_weights_changes_nothing(self, document: dict[str, int], factor: int) -> None:
        scaled = {feature: weight * factor for feature, weight in document.items()}
        assert fingerprint_features([document], WORD) == fingerprint_features([scaled], WORD)

    @given(document=st.dictionaries(some.words, st.floats(2.0**-60, 2.0**60), max_size=8), power=st.integers(-900, 900))
    def test_scaling_fractional_weights_changes_nothing(self, document: dict[str, float], power: int) -> None:
        scaled = {feature: math.ldexp(weight, power) for feature, weight in document.items()}
        assert fingerprint_features([document], WORD) == fingerprint_features([scaled], WORD)

    @given(document=some.documents, scheme=some.schemes(weights=("tf",)), extra=st.integers(1, 5))
    def test_a_dominating_feature_gives_its_hash(self, document: dict[str, float], scheme: Scheme, extra: int) -> None:
        others = sum(math.ceil(weight) for weight in document.values())
        document = {"dominant feature": others + extra, **document}
        found = fingerprint_features([document], scheme)[0]
        assert found.value == reference.feature_hash("dominant feature", scheme)

    @given(document=some.documents, name=some.words)
    def test_a_weight_of_0_is_absent(self, document: dict[str, float], name: str) -> None:
        without = {feature: weight for feature, weight in document.items() if feature != name}
        for zero in (0, 0.0, -0.0):
            found = fingerprint_features([without | {name: zero}], WORD)
            assert found == fingerprint_features([without], WORD)
            assert found.features.tolist() == [sum(weight > 0 for weight in without.values())]

    @given(words=some.word_lists, scheme=some.schemes(ngrams=(1,), weights=("tf",), units=("word",)))
    def test_texts_and_their_features_agree(self, words: list[str], scheme: Scheme) -> None:
        text = " ".join(words)
        by_hand = fingerprint_features([Counter(tokens(text, scheme))], scheme)[0]
        assert by_hand == fingerprint(text, scheme)
        assert by_hand.features == fingerprint(text, scheme).features

    @given(words=st.lists(some.words, min_size=1, max_size=30), new=some.words, data=st.data(), ngram=st.integers(1, 3))
    def test_a_swap_flips_no_clear_bit(self, words: list[str], new: str, data: st.DataObject, ngram: int) -> None:
        """One word more or less in n features moves each sum by at most two for each: larger sums keep their sign."""
        scheme = Scheme("word", ngram, 64, "tf", "blake2b", normalize=False)
        at = data.draw(st.integers(0, len(words) - 1))
        other = [*words[:at], new, *words[at + 1 :]]
        before = sums(Counter(reference.features(" ".join(words), scheme)), scheme)
        a, b = (int(fingerprint(" ".join(one), scheme)) for one in (words, other))
        changed = min(ngram, len(words))
        assert all(abs(before[bit]) <= 2 * changed for bit in range(64) if (a ^ b) >> bit & 1)

    @given(document=some.documents, new=some.words, weight=some.weights, data=st.data())
    def test_a_weighted_swap_flips_no_clear_bit(
        self, document: dict[str, float], new: str, weight: float, data: st.DataObject
    ) -> None:
        document = {"first": weight, **document}
        gone = data.draw(st.sampled_from(sorted(document)))
        other = {feature: w for feature, w in document.items() if feature != gone} | {new: document[gone]}
        exact = {feature: Fraction(w) for feature, w in document.items()}
        before = sums(exact, WORD)
        # The new feature may have stood there with another weight, which it then loses.
        most = 2 * exact[gone] + exact.get(new, 0)
        a, b = map(int, fingerprint_features([document, other], WORD))
        assert all(abs(before[bit]) <= most for bit in range(64) if (a ^ b) >> bit & 1)

    @given(
        a=some.words,
        b=some.words,
        scheme=some.schemes(ngrams=(1,), weights=("tf", "set"), units=("word",), normalize=(False,)),
    )
    def test_a_tie_gives_0(self, a: str, b: str, scheme: Scheme) -> None:
        both = [int(fingerprint(text, scheme)) for text in (a, b)]
        assert int(fingerprint(f"{a} {b}", scheme)) == both[0] & both[1]
        assert both == [reference.feature_hash(word, scheme) for word in (a, b)]


class TestWords:
    @given(words=some.word_lists, data=st.data(), scheme=some.schemes(ngrams=(1,), units=("word",)))
    def test_word_order_is_irrelevant_to_single_words(
        self, words: list[str], data: st.DataObject, scheme: Scheme
    ) -> None:
        other = data.draw(st.permutations(words))
        assert fingerprint(" ".join(words), scheme) == fingerprint(" ".join(other), scheme)

    @pytest.mark.parametrize("ngram", [2, 3, 5])
    @pytest.mark.parametrize("weight", ["tf", "set"])
    def test_word_order_matters_to_ngrams(self, ngram: int, weight: Any) -> None:
        words = [f"word{number}" for number in range(20)]
        shuffled = list(words)
        scheme = Scheme("word", ngram, 64, weight)
        for seed in range(20):
            np.random.default_rng(seed).shuffle(shuffled)
            assert distance(fingerprint(" ".join(words), scheme), fingerprint(" ".join(shuffled), scheme)) > 0

    @given(text=some.texts(), times=st.integers(2, 9), scheme=some.schemes(ngrams=(1,)))
    def test_repeating_the_whole_text_changes_nothing(self, text: str, times: int, scheme: Scheme) -> None:
        once, often = fingerprint(text, scheme), fingerprint(f"{text}\n" * times, scheme)
        assert often == once
        assert often.features == once.features

    @given(words=some.word_lists, ngram=st.integers(1, 3))
    def test_a_set_counts_once(self, words: list[str], ngram: int) -> None:
        scheme = Scheme("word", ngram, 128, "set", normalize=False)
        kinds = dict.fromkeys(reference.features(" ".join(words), scheme), 1)
        one = fingerprint(" ".join(words), scheme)
        assert one == fingerprint_features([kinds], scheme)[0]
        assert one.features == len(kinds)

    @given(
        words=some.word_lists,
        ngram=st.integers(1, 6),
        white=st.sampled_from(("\n", "\t", "  ", "\u3000", "\r\n", "\x1f")),
    )
    def test_white_space_is_one_space(self, words: list[str], ngram: int, white: str) -> None:
        for form in (True, False):
            scheme = Scheme("word", ngram, 64, normalize=form)
            assert fingerprint(white.join(words) + white, scheme) == fingerprint(" ".join(words), scheme)

    @given(text=some.texts(), scheme=some.schemes(normalize=(True,)))
    def test_normalising_before_changes_nothing(self, text: str, scheme: Scheme) -> None:
        assert fingerprint(normalize(text), scheme) == fingerprint(text, scheme)

    @given(text=some.texts(), scheme=some.schemes(weights=("tf", "set")))
    def test_no_token_no_features(self, text: str, scheme: Scheme) -> None:
        one = fingerprint(text, scheme)
        assert (one.features == 0) == (not tokens(text, scheme))
        if one.features == 0:
            assert one.value == 0

    @given(
        words=st.lists(some.words, min_size=1, max_size=4),
        scheme=some.schemes(ngrams=(5,), units=("word",), weights=("tf",), normalize=(False,)),
    )
    def test_a_short_text_is_one_feature(self, words: list[str], scheme: Scheme) -> None:
        one = fingerprint(" ".join(words), scheme)
        assert one.features == 1
        assert one.value == reference.feature_hash(" ".join(words), scheme)


class TestIdf:
    @given(texts=st.lists(some.texts(6), max_size=8), scheme=some.schemes(weights=("tf",)))
    def test_the_rule(self, texts: list[str], scheme: Scheme) -> None:
        """A feature on df of n texts weighs ln(n / df), an unseen one ln(n); texts without a token do not count."""
        texts = ["a page", *texts]
        pages = [set(reference.features(text, scheme)) for text in texts]
        n = sum(map(bool, pages))
        on = Counter(feature for page in pages for feature in page)
        fitted = fit_idf(iter(texts), scheme)
        assert fitted == replace(scheme, weight="idf", idf=fitted.idf)
        assert fitted.idf is not None
        expected = {
            reference.feature_hash(feature, scheme) >> scheme.bits - 64: round(math.log(n / df) * 2**20)
            for feature, df in on.items()
        }
        assert dict(zip(fitted.idf.features.tolist(), fitted.idf.weights.tolist(), strict=True)) == expected
        assert fitted.idf.unseen == round(math.log(n) * 2**20)

    def test_a_feature_on_every_page_is_absent(self) -> None:
        pages = ["shell one", "shell two two", "three shell", "", "!"]
        fitted = fit_idf(pages, WORD)
        assert fitted.weight == "idf"
        assert fingerprint(pages, fitted).features.tolist() == [1, 1, 1, 0, 0]
        assert fingerprint("shell", fitted) == fingerprint("", fitted)
        assert fingerprint("shell one shell", fitted).value == fingerprint("one", WORD).value
        assert fingerprint("unseen", fitted).value == fingerprint("unseen", WORD).value

    def test_a_single_page_teaches_nothing(self) -> None:
        fitted = fit_idf(["a b"], WORD)
        assert fingerprint(["a b", "c"], fitted).features.tolist() == [0, 0]

    @pytest.mark.parametrize("texts", [[], [""], ["!", " "]])
    def test_nothing_to_fit_on(self, texts: list[str]) -> None:
        with pytest.raises(ValueError, match="no text with a token"):
            fit_idf(texts, WORD)

    def test_fitting_again_replaces_the_table(self) -> None:
        first = fit_idf(["a b", "a c"], WORD)
        again = fit_idf(["x y", "z"], first)
        assert again == fit_idf(["x y", "z"], WORD)
        assert again != first

    @given(
        weights=st.dictionaries(some.words, st.floats(0, 100), max_size=6),
        unseen=st.floats(0, 100),
        text=some.word_lists,
    )
    def test_given_weights(self, weights: dict[str, float], unseen: float, text: list[str]) -> None:
        plain = Scheme("word", 1, 128, normalize=False)
        steps = {word: count * round(weights.get(word, unseen) * 2**20) for word, count in Counter(text).items()}
        found = fingerprint(" ".join(text), idf_table(weights, plain, unseen))
        assert found.value == fingerprint_features([steps], plain)[0].value
        assert found.features == sum(map(bool, steps.values()))

    def test_given_weights_of_ngrams(self) -> None:
        scheme = idf_table({"a b": 9.0, "b c": 1.0}, Scheme("word", 2, 64), 1.0)
        assert fingerprint("A b, c", scheme).value == reference.feature_hash("a b", scheme)

    def test_the_order_of_given_weights_is_irrelevant(self) -> None:
        weights = {f"w{number}": float(number) for number in range(50)}
        turned = dict(reversed(weights.items()))
        assert idf_table(weights, WORD, 1.0).id == idf_table(turned, WORD, 1.0).id

    def test_a_scheme_without_its_table_is_refused(self) -> None:
        for texts in ("a", ["a"], []):
            with pytest.raises(ValueError, match="weight='idf' needs a table"):
                fingerprint(texts, replace(WORD, weight="idf"))


class TestColumns:
    @given(words=some.word_arrays(), data=st.data())
    def test_round_trips(self, words: np.ndarray[Any, np.dtype[np.uint64]], data: st.DataObject) -> None:
        scheme = Scheme(bits=64 * words.shape[1])
        counts = data.draw(st.lists(st.integers(-1, 2**40), min_size=len(words), max_size=len(words)))
        column = Fingerprints(words, np.array(counts, np.int64), scheme)
        numbers = some.to_ints(words)
        assert list(map(int, column)) == numbers
        assert column.hex() == [f"{number:0{scheme.bits // 4}x}" for number in numbers] == [one.hex() for one in column]
        signed = column.to_signed()
        assert signed.dtype == np.int64
        assert signed.shape == ((len(words),) if scheme.words == 1 else words.shape)
        for same in (
            Fingerprints.from_ints(numbers, scheme, counts),
            Fingerprints.from_hex(column.hex(), scheme, counts),
            Fingerprints.from_hex(map(str.upper, column.hex()), scheme, counts),
            Fingerprints.from_signed(signed, scheme, counts),
            Fingerprints.from_words(words, scheme, counts),
            pickle.loads(pickle.dumps(column)),
            copy.deepcopy(column),
            copy.copy(column),
            column[:],
            column[np.arange(len(column))],
        ):
            assert same == column
            assert same.features.tolist() == counts
            assert same.scheme == scheme

    @given(texts=st.lists(some.texts(4), min_size=1, max_size=6), scheme=some.schemes(), data=st.data())
    def test_single_ones(self, texts: list[str], scheme: Scheme, data: st.DataObject) -> None:
        column = fingerprint(texts, scheme)
        at = data.draw(st.integers(-len(texts), len(texts) - 1))
        one = column[at]
        assert one == fingerprint(texts[at], scheme) == pickle.loads(pickle.dumps(one)) == copy.copy(one)
        assert hash(one) == hash(fingerprint(texts[at], scheme))
        assert one.features == fingerprint(texts[at], scheme).features == int(column.features[at])
        assert column[at : at + 1 or None].hex() == [one.hex()]
        assert one == column[np.int64(at)]  # type: ignore[call-overload]

    @given(first=values, second=values)
    def test_the_first_word_is_the_most_significant(self, first: int, second: int) -> None:
        column = Fingerprints.from_words(np.array([[first, second]], np.uint64), Scheme(bits=128))
        assert int(column[0]) == first << 64 | second
        assert column.hex() == [f"{first:016x}{second:016x}"]
        assert column.to_signed().tolist() == [[v - 2**64 if v >> 63 else v for v in (first, second)]]

    @given(value=values)
    def test_signed(self, value: int) -> None:
        one = Fingerprint(value, 1, ARTICLE)
        assert one.to_signed() == (value - 2**64 if value >= 2**63 else value)
        assert type(one.to_signed()) is int
        assert int(Fingerprints.from_signed([one.to_signed()], ARTICLE)[0]) == value

    def test_restored_fingerprints_have_unknown_features(self) -> None:
        restored = Fingerprints.from_ints([0, 0, 2**64 - 1], ARTICLE)
        assert restored.features.tolist() == [-1, -1, -1]
        assert Fingerprints.from_ints([], ARTICLE).words.shape == (0, 1)

    def test_equality(self) -> None:
        column = fingerprint(["a", "b"], ARTICLE)
        assert column == fingerprint(["a", "b"], ARTICLE)
        assert column != fingerprint(["b", "a"], ARTICLE)
        assert column != fingerprint(["a"], ARTICLE)
        assert column != Fingerprints.from_words(column.words, replace(ARTICLE, ngram=2))
        assert column[0] != Fingerprint(column[0].value, 1, replace(ARTICLE, ngram=2))
        assert column[0] == Fingerprint(column[0].value, 99, ARTICLE)
        strangers: list[Any] = [None, 0, "a", [column], ARTICLE]
        for stranger in strangers:
            assert (column == stranger) is False
            assert (column[0] == stranger) is False

    def test_a_column_does_not_change(self) -> None:
        column = fingerprint(["a", "b"], ARTICLE)
        with pytest.raises(ValueError, match="read-only"):
            column.words[0] = 0
        with pytest.raises(ValueError, match="read-only"):
            column.features[0] = 0
        with pytest.raises(FrozenInstanceError):
            column.scheme = WORD  # type: ignore[misc]
        with pytest.raises(TypeError):
            hash(column)

    def test_a_column_leaves_its_arrays_to_their_owner(self) -> None:
        words, features = np.zeros((2, 1), np.uint64), np.zeros(2, np.int64)
        Fingerprints(words, features, ARTICLE)
        assert words.flags.writeable
        assert features.flags.writeable

    def test_parts(self) -> None:
        column = fingerprint([f"w{number}" for number in range(10)], WORD)
        assert column[2:5].hex() == column.hex()[2:5]
        assert column[::-1].hex() == column.hex()[::-1]
        assert column[[1, 1, -1]].hex() == [column.hex()[at] for at in (1, 1, 9)]
        assert column[column.words[:, 0] % np.uint64(2) == 0].hex() == [
            one.hex() for one in column if one.value % 2 == 0
        ]
        with pytest.raises(IndexError):
            column[10]

    def test_repr_shows_values(self) -> None:
        column = fingerprint(["a", "b", "c", "d", "e"], ARTICLE)
        assert repr(column) == f"<5 Fingerprints {ARTICLE.id}: {', '.join(column.hex()[:3])}, …>"
        assert repr(column[:4]) == f"<4 Fingerprints {ARTICLE.id}: {', '.join(column.hex()[:4])}>"


class TestRefused:
    @pytest.mark.parametrize("value", ["ff", 1.0, None, True, b"a", np.float64(1)], ids=repr)
    def test_from_ints_what_is_no_int(self, value: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"{value!r} is no fingerprint: give an int in [0, 2^64)")):
            Fingerprints.from_ints([0, value], ARTICLE)

    @pytest.mark.parametrize(("value", "bits"), [(-1, 64), (2**64, 64), (2**128, 128), (-1, 128), (2**256, 256)])
    def test_from_ints_out_of_range(self, value: int, bits: int) -> None:
        with pytest.raises(ValueError, match=re.escape(f"{value!r} is no fingerprint of {bits} bits")):
            Fingerprints.from_ints([0, value], Scheme(bits=bits))

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "ff",
            "0" * 15,
            "0" * 17,
            "0x" + "0" * 14,
            " " + "0" * 15,
            "0" * 15 + "g",
            "+" + "0" * 15,
            "0_" + "0" * 14,
            "０" * 16,
            "-" + "0" * 15,
        ],
    )
    def test_from_hex(self, text: str) -> None:
        with pytest.raises(
            ValueError, match=re.escape(f"{text!r} is no fingerprint of 64 bits: give 16 hexadecimal digits")
        ):
            Fingerprints.from_hex(["0" * 16, text], ARTICLE)

    @pytest.mark.parametrize("value", [0, None, b"0" * 16], ids=repr)
    def test_from_hex_what_is_no_string(self, value: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"{value!r} is no string of hexadecimal digits")):
            Fingerprints.from_hex([value], ARTICLE)

    @pytest.mark.parametrize(
        "signed", [[1.0], [True], ["1"], [2**63], [-(2**63) - 1], np.array([1], np.uint64)], ids=repr
    )
    def test_from_signed(self, signed: Any) -> None:
        with pytest.raises(TypeError, match=r"signed fingerprints are integers in \[-2\^63, 2\^63\), not "):
            Fingerprints.from_signed(signed, ARTICLE)

    @pytest.mark.parametrize("words", [[1.0], np.array([-1]), np.array(["1"]), [None], [True]], ids=repr)
    def test_from_words(self, words: Any) -> None:
        with pytest.raises(TypeError, match="fingerprint words are uint64, not "):
            Fingerprints.from_words(words, ARTICLE)

    @pytest.mark.parametrize(
        ("shape", "bits"), [((2, 4), 128), ((2, 2), 64), ((2, 1), 128), ((4, 1), 256), ((2, 2), 256)]
    )
    def test_words_of_another_width(self, shape: tuple[int, int], bits: int) -> None:
        """Words of 256 bits are not twice as many fingerprints of 128 bits."""
        scheme = Scheme(bits=bits)
        makers: list[Callable[[], Fingerprints]] = [
            lambda: Fingerprints(np.zeros(shape, np.uint64), np.zeros(shape[0], np.int64), scheme),
            lambda: Fingerprints.from_words(np.zeros(shape, np.uint64), scheme),
            lambda: Fingerprints.from_signed(np.zeros(shape, np.int64), scheme),
        ]
        for make in makers:
            with pytest.raises(ValueError, match=re.escape(f"(n, {scheme.words})")):
                make()

    @pytest.mark.parametrize("counts", [[1], [1, 2, 3], [[1, 2], [3, 4]]], ids=repr)
    def test_feature_counts_of_another_length(self, counts: Any) -> None:
        for make in (Fingerprints.from_ints, lambda v, s, c: Fingerprints.from_signed(np.array(v), s, c)):
            with pytest.raises(ValueError, match="do not make fingerprints of 64 bits"):
                make([1, 2], ARTICLE, counts)

    @pytest.mark.parametrize(("value", "bits"), [(-1, 64), (2**64, 64), (2**70, 64), (2**128, 128), (-(2**300), 256)])
    def test_single_ones_out_of_range(self, value: int, bits: int) -> None:
        with pytest.raises(
            ValueError, match=rf"{value} is no fingerprint of {bits} bits: give an int in \[0, 2\^{bits}\)"
        ):
            Fingerprint(value, 1, Scheme(bits=bits))

    @pytest.mark.parametrize("value", ["ff", 1.0, None, True], ids=repr)
    def test_single_ones_that_are_no_int(self, value: Any) -> None:
        with pytest.raises(TypeError, match=r"is no fingerprint: give an int in .*from_hex and from_signed make one"):
            Fingerprint(value, 1, WORD)

    @pytest.mark.parametrize("counts", [[0.5, 1.9], [True, False], ["1", "2"], [None, 1]], ids=repr)
    def test_feature_counts_that_are_no_integers(self, counts: Any) -> None:
        """A half would become 0, which says that there is no text."""
        with pytest.raises(TypeError, match="feature counts are integers, not "):
            Fingerprints.from_ints([1, 2], WORD, counts)

    @pytest.mark.parametrize("counts", [[-2, 1], np.array([1, 2**64 - 1], np.uint64), [1, -(2**40)]], ids=repr)
    def test_feature_counts_out_of_range(self, counts: Any) -> None:
        with pytest.raises(ValueError, match="feature counts are 0 or more, and -1 if unknown"):
            Fingerprints.from_ints([1, 2], WORD, counts)

    @pytest.mark.parametrize("scheme", [None, "word1-64-tf-xxh64-nfkc14", 64], ids=repr)
    def test_what_is_no_scheme(self, scheme: Any) -> None:
        jobs: list[Callable[[], Any]] = [
            lambda: Fingerprint(1, 1, scheme),
            lambda: Fingerprints(np.zeros((1, 1), np.uint64), np.zeros(1, np.int64), scheme),
            lambda: idf_table({"a": 1}, scheme, 0),
        ]
        for job in jobs:
            with pytest.raises(TypeError, match=r"give a simdup\.Scheme"):
                job()

    def test_long_values_are_not_printed_whole(self) -> None:
        jobs: list[Callable[[], Any]] = [
            lambda: fingerprint_features(["x" * 10**6]),  # type: ignore[list-item]
            lambda: Fingerprints.from_hex(["f" * 10**6], WORD),
        ]
        for job in jobs:
            with pytest.raises((TypeError, ValueError)) as raised:
                job()
            assert len(str(raised.value)) < 300

    def test_idf_weights_that_are_no_mapping(self) -> None:
        with pytest.raises(TypeError, match="idf weights come as a mapping"):
            idf_table(["a"], WORD, 1)  # type: ignore[arg-type]

    def test_signed_is_for_64_bits(self) -> None:
        with pytest.raises((ValueError, TypeError)):
            fingerprint("a", Scheme(bits=128)).to_signed()

    @pytest.mark.parametrize("threads", [0, -1, 1.0, True, "2", None], ids=repr)
    def test_threads(self, threads: Any) -> None:
        for texts in (["a"], [], "a"):
            with pytest.raises(
                (ValueError, TypeError), match=re.escape(f"threads={threads!r}: give an int of 1 or more")
            ):
                fingerprint(texts, threads=threads)

    @pytest.mark.parametrize("scheme", ["word1-64-tf-blake2b-raw", None, 64], ids=repr)
    def test_scheme(self, scheme: Any) -> None:
        for job in (
            lambda: fingerprint("a", scheme),
            lambda: fingerprint(["a"], scheme),
            lambda: fingerprint_features([{"a": 1}], scheme),
            lambda: fit_idf(["a"], scheme),
            lambda: idf_table({"a": 1.0}, scheme, 1.0),
            lambda: tokens("a", scheme),
        ):
            with pytest.raises(TypeError):
                job()

    @pytest.mark.parametrize("document", ["ab", ["a"], None, 1, [("a", 1)]], ids=repr)
    def test_documents(self, document: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"document 1 is {document!r}: give a mapping")):
            fingerprint_features([{"a": 1}, document])

    @pytest.mark.parametrize("feature", [b"a", 1, None, ("a", "b")], ids=repr)
    def test_features(self, feature: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"document 2: feature {feature!r} is no str")):
            fingerprint_features([{}, {"a": 1}, {"a": 1, feature: 1}])

    @pytest.mark.parametrize("weight", ["1", None, True, False, 1j, [1]], ids=repr)
    def test_weights_that_are_no_numbers(self, weight: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"document 1: weight {weight!r} of 'b' is no int or float")):
            fingerprint_features([{}, {"a": 1, "b": weight}])

    @pytest.mark.parametrize("weight", [-1, -0.5, -5e-324, math.nan, math.inf, -math.inf, np.float32("nan")], ids=repr)
    def test_weights_out_of_range(self, weight: Any) -> None:
        with pytest.raises(
            ValueError, match=re.escape(f"document 1: weight {weight!r} of 'b' is negative or not finite")
        ):
            fingerprint_features([{}, {"a": 1, "b": weight}])

    @pytest.mark.parametrize(
        "weight", [Fraction(1, 3), Fraction(1, 10**400), Fraction(10**400)], ids=["1/3", "tiny", "huge"]
    )
    def test_fractions_are_exact_or_refused(self, weight: Fraction) -> None:
        """A weight is never rounded in silence: three thirds are a tie with one."""
        document: Any = {"a": weight, "b": 2 * weight, "c": 3 * weight}
        try:
            found = fingerprint_features([document], WORD)[0].value
        except TypeError as error:
            assert "is no int or float" in str(error)  # noqa: PT017
        else:
            assert found == oracle(document, WORD)

    @pytest.mark.parametrize("weight", [np.int8(3), np.float32(0.5), np.uint64(2**63), np.float64(0.1)], ids=repr)
    def test_numpy_weights_are_exact(self, weight: Any) -> None:
        document = {"a": weight, "b": 1}
        assert fingerprint_features([document], WORD)[0].value == oracle({"a": weight.item(), "b": 1}, WORD)
