"""Distances and all pairs: equal to brute force for every width, k and number of rows."""

import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import ARTICLE, Fingerprint, Fingerprints, Pairs, Scheme, all_pairs, distance, fingerprint, reference
from simdup.fingerprint import Words
from simdup.hamming import distance_counts, in_order
from tests.properties import strategies as some

WIDE = {1: Scheme(bits=64), 2: Scheme(bits=128), 4: Scheme(bits=256)}
TILE = 2048

ints = st.integers(0, 2**64 - 1)


def triples(pairs: Pairs) -> list[tuple[int, int, int]]:
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist(), strict=True))


def brute_force(words: Words, k: int) -> list[tuple[int, int, int]]:
    """By NumPy, row against rows: for columns too long for the reference."""
    rows = words.reshape(len(words), -1)
    found = []
    for left in range(len(rows)):
        apart = np.bitwise_count(rows[left + 1 :] ^ rows[left]).sum(axis=1, dtype=np.int64)
        found += [(left, left + 1 + int(at), int(apart[at])) for at in np.flatnonzero(apart <= k)]
    return found


class TestDistance:
    @given(a=ints, b=ints, c=ints)
    def test_metric(self, a: int, b: int, c: int) -> None:
        assert distance(a, a) == 0
        assert distance(a, b) == distance(b, a) == bin(a ^ b).count("1") == reference.article_distance(a, b)
        assert (distance(a, b) == 0) == (a == b)
        assert distance(a, c) <= distance(a, b) + distance(b, c)

    @given(words=some.word_arrays())
    def test_columns_and_single_ones_agree(self, words: Words) -> None:
        scheme = WIDE[words.shape[1]]
        column = Fingerprints.from_words(words, scheme)
        values = some.to_ints(words)
        if not values:
            assert distance(column, column).tolist() == []
            return
        turned = column[::-1]
        expected = [(a ^ b).bit_count() for a, b in zip(values, reversed(values), strict=True)]
        assert distance(column, turned).tolist() == expected
        assert [distance(a, b) for a, b in zip(column, turned, strict=True)] == expected
        to_first = [(value ^ values[0]).bit_count() for value in values]
        assert distance(column, column[0]).tolist() == distance(column[0], column).tolist() == to_first
        assert distance(column, turned).dtype == np.int64

    @given(text=some.texts(), scheme=some.schemes())
    def test_identical_texts_are_at_distance_0(self, text: str, scheme: Scheme) -> None:
        assert distance(fingerprint(text, scheme), fingerprint(text, scheme)) == 0

    @pytest.mark.parametrize("bits", [64, 128, 256])
    def test_extremes(self, bits: int) -> None:
        none, every = (Fingerprint(value, 1, Scheme(bits=bits)) for value in (0, (1 << bits) - 1))
        assert distance(none, every) == bits
        assert distance(none, none) == distance(every, every) == 0

    def test_numpy_integers(self) -> None:
        assert distance(np.uint64(2**64 - 1), 0) == 64  # type: ignore[call-overload]
        assert type(distance(np.int32(5), np.uint8(1))) is int  # type: ignore[call-overload]

    @pytest.mark.parametrize("value", ["ff", "0", b"a", 1.0, None, True, [1], np.float64(1), np.True_, 1j], ids=repr)
    def test_what_is_no_int(self, value: Any) -> None:
        for left, right in ((value, 0), (0, value), (value, value)):
            with pytest.raises(TypeError, match=re.escape(f"{value!r} is no fingerprint")):
                distance(left, right)

    @pytest.mark.parametrize("value", [-1, 2**64, -(2**63), 2**200, np.int64(-1)], ids=repr)
    def test_ints_out_of_range(self, value: Any) -> None:
        for left, right in ((value, 0), (0, value)):
            with pytest.raises(ValueError, match=re.escape(f"{value!r} is no fingerprint of 64 bits")):
                distance(left, right)

    @pytest.mark.parametrize("stranger", [0, "ff", None, 1.5, np.zeros(1, np.uint64)], ids=repr)
    def test_fingerprints_with_strangers(self, stranger: Any) -> None:
        for known in (fingerprint("a", ARTICLE), fingerprint(["a"], ARTICLE)):
            for left, right in ((known, stranger), (stranger, known)):
                with pytest.raises(TypeError, match=re.escape(f"{stranger!r} has no scheme")):
                    distance(left, right)

    @pytest.mark.parametrize("other", [Scheme("word", 2, 64, "tf", "blake2b", False), Scheme("word", 1, 128), Scheme()])
    def test_different_schemes_never_meet(self, other: Scheme) -> None:
        message = re.escape(f"{ARTICLE.id} and {other.id}")
        for left, right in itertools.product((fingerprint("a", ARTICLE), fingerprint(["a"], ARTICLE)), ("a", ["a"])):
            with pytest.raises(ValueError, match=message):
                distance(left, fingerprint(right, other))  # type: ignore[call-overload]

    @pytest.mark.parametrize(("one", "two"), [(2, 3), (3, 2), (0, 2), (1, 3), (3, 1), (0, 1)])
    def test_columns_of_different_lengths(self, one: int, two: int) -> None:
        with pytest.raises(ValueError, match=f"columns of {one} and {two} fingerprints"):
            distance(fingerprint(["a"] * one, ARTICLE), fingerprint(["a"] * two, ARTICLE))


class TestAllPairs:
    @given(words=some.word_arrays(), data=st.data())
    def test_equals_the_reference(self, words: Words, data: st.DataObject) -> None:
        k = data.draw(st.one_of(st.integers(0, 12), st.integers(0, 64 * words.shape[1])))
        assert triples(all_pairs(words, k)) == list(reference.all_pairs(some.to_ints(words), k))

    @pytest.mark.parametrize("columns", [1, 2, 4])
    def test_every_k(self, columns: int) -> None:
        """Rows at each distance from each other, up to all bits."""
        bits = 64 * columns
        order = np.random.default_rng(columns).permutation(bits).tolist()
        values = [sum(1 << bit for bit in order[:count]) for count in range(bits + 1)]
        words = np.array([[v >> 64 * w & (2**64 - 1) for w in reversed(range(columns))] for v in values], np.uint64)
        every = list(reference.all_pairs(values, bits))
        assert len(every) == len(values) * (len(values) - 1) // 2
        for k in range(bits + 1):
            assert triples(all_pairs(words, k)) == [pair for pair in every if pair[2] <= k]

    @staticmethod
    def _planted(n: int, columns: int, seed: int) -> Words:
        """Random rows, with near and equal rows on both sides of each border between tiles."""
        random = np.random.default_rng(seed)
        words = random.integers(0, 2**64, (n, columns), np.uint64)
        edges = [row for tile in range(0, n + 1, TILE) for row in (tile - 2, tile - 1, tile, tile + 1) if 0 <= row < n]
        for place, row in enumerate(edges):
            words[row] = words[edges[0]]
            words[row, place % columns] ^= np.uint64((1 << place % 5) - 1) << np.uint64(random.integers(60))
        for row in random.integers(0, n, n // 50):
            words[row] = words[random.integers(n)]
        return words

    @pytest.mark.parametrize("columns", [1, 2, 4])
    @pytest.mark.parametrize("n", [TILE - 1, TILE, TILE + 1, TILE + 2, 2 * TILE, 2 * TILE + 1])
    def test_tile_borders(self, n: int, columns: int) -> None:
        words = self._planted(n, columns, n)
        near = brute_force(words, 8)
        for k in (0, 3, 8):
            expected = [pair for pair in near if pair[2] <= k]
            assert len(expected) > 10
            assert triples(all_pairs(words, k)) == expected

    def test_many_pairs_across_tiles(self) -> None:
        """At k = 28 nearly one pair in five is near: each tile holds many for each row."""
        words = np.random.default_rng(5).integers(0, 2**64, 2 * TILE + 77, np.uint64)
        pairs = all_pairs(words, 28)
        apart = np.bitwise_count(words[pairs.left] ^ words[pairs.right])
        assert np.array_equal(apart, pairs.distance)
        keys = pairs.left * len(words) + pairs.right
        assert np.all(np.diff(keys) > 0)
        assert np.all(pairs.left < pairs.right)
        assert len(pairs) == sum(
            int((np.bitwise_count(words[i + 1 :] ^ words[i]) <= 28).sum()) for i in range(len(words))
        )

    @pytest.mark.parametrize("n", [2, TILE, TILE + 1])
    def test_all_rows_equal(self, n: int) -> None:
        pairs = all_pairs(np.full((n, 2), 7, np.uint64), 0)
        assert len(pairs) == n * (n - 1) // 2
        left, right = np.triu_indices(n, 1)
        assert np.array_equal(pairs.left, left)
        assert np.array_equal(pairs.right, right)
        assert not pairs.distance.any()

    @pytest.mark.parametrize("n", [0, 1])
    @pytest.mark.parametrize("columns", [1, 2, 4])
    def test_nothing_to_pair(self, n: int, columns: int) -> None:
        pairs = all_pairs(np.zeros((n, columns), np.uint64), 64)
        assert triples(pairs) == []
        assert {str(array.dtype) for array in (pairs.left, pairs.right, pairs.distance)} == {"int64"}

    def test_order_of_rows_of_any_number(self) -> None:
        """Up to the 2^31 that a key of both has room for."""
        rows = [0, 1, 2, 2**16 - 1, 2**16, 2**16 + 1, 2**31 - 2, 2**31 - 1]
        expected = [(left, right, 3) for left, right in itertools.combinations(rows, 2)]
        turned = np.array(expected)[np.random.default_rng(0).permutation(len(expected))]
        assert triples(in_order(Pairs(*part.T) for part in np.array_split(turned, 3))) == expected

    @given(words=some.word_arrays(20))
    def test_shapes_and_strides_do_not_matter(self, words: Words) -> None:
        expected = triples(all_pairs(words, 20))
        wider = np.repeat(np.repeat(words, 2, axis=0), 2, axis=1)
        for same in (np.asfortranarray(words), wider[::2, ::2], words.astype(">u8")):
            assert triples(all_pairs(same, 20)) == expected
        if words.shape[1] == 1:
            assert triples(all_pairs(words[:, 0], 20)) == expected

    @given(words=some.word_arrays())
    def test_the_words_stay_as_they_are(self, words: Words) -> None:
        before = words.copy()
        all_pairs(words, 3)
        distance_counts(words, np.arange(len(words)))
        assert np.array_equal(words, before)

    @given(words=some.word_arrays(), data=st.data())
    def test_distance_counts_are_those_of_all_pairs_of_two_groups(self, words: Words, data: st.DataObject) -> None:
        bits = 64 * words.shape[1]
        pairs = all_pairs(words, bits)
        assert len(pairs) == len(words) * (len(words) - 1) // 2
        group = np.array(data.draw(st.lists(st.integers(0, 5), min_size=len(words), max_size=len(words))), np.int64)
        expected = np.zeros((group.max(initial=-1) + 1, bits + 1), np.int64)
        for left, right, apart in triples(pairs):
            if group[left] != group[right]:
                expected[group[left], apart] += 1
                expected[group[right], apart] += 1
        assert distance_counts(words, group).tolist() == expected.tolist()

    @pytest.mark.parametrize("columns", [1, 2, 4])
    @pytest.mark.parametrize("n", [TILE - 1, TILE, TILE + 1, 2 * TILE + 1])
    def test_distance_counts_across_tiles(self, n: int, columns: int) -> None:
        words = self._planted(n, columns, n)
        counts = [np.bincount(np.bitwise_count(words ^ row).sum(axis=1), minlength=64 * columns + 1) for row in words]
        found = distance_counts(words, np.arange(n))
        found[:, 0] += 1  # each row to itself
        assert np.array_equal(found, counts)

    @pytest.mark.parametrize("k", [1.5, 3.0, True, "3", None, [3], np.float64(3), np.True_], ids=repr)
    def test_k_is_an_int(self, k: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"k={k!r}: give an int, in bits")):
            all_pairs(np.zeros(2, np.uint64), k)

    @pytest.mark.parametrize(("k", "columns"), [(-1, 1), (65, 1), (129, 2), (257, 4), (2**70, 1), (np.int64(-1), 1)])
    def test_k_out_of_range(self, k: int, columns: int) -> None:
        with pytest.raises(ValueError, match=f"k={k}: give 0 to {64 * columns} bits"):
            all_pairs(np.zeros((2, columns), np.uint64), k)

    def test_numpy_k(self) -> None:
        words = np.array([0, 1, 7], np.uint64)
        assert triples(all_pairs(words, np.uint8(2))) == triples(all_pairs(words, 2)) == [(0, 1, 1), (1, 2, 2)]  # type: ignore[arg-type]

    @pytest.mark.parametrize("shape", [(2, 3), (2, 0), (2, 5), (2, 1, 1)])
    def test_other_shapes(self, shape: tuple[int, ...]) -> None:
        for job in (lambda words: all_pairs(words, 3), lambda words: distance_counts(words, np.zeros(1, np.int64))):
            with pytest.raises(ValueError, match=re.escape(f"words of shape {shape}: give (n,), (n, 2) or (n, 4)")):
                job(np.zeros(shape, np.uint64))

    @pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "object", "S8"])
    def test_other_types(self, dtype: str) -> None:
        for job in (lambda words: all_pairs(words, 3), lambda words: distance_counts(words, np.zeros(1, np.int64))):
            with pytest.raises(TypeError, match=r"fingerprint words are uint64, not "):
                job(np.zeros(3, dtype))

    def test_fingerprints_are_no_words(self) -> None:
        with pytest.raises(TypeError, match="fingerprint words are uint64"):
            all_pairs(fingerprint(["a", "b"], ARTICLE), 3)  # type: ignore[arg-type]
