"""The join: equal to brute force whatever the fingerprints, the threshold, the blocks, the chunks and the threads."""

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simdup import ARTICLE, Fingerprints, Pairs, Scheme, all_pairs, fingerprint, near_pairs, reference
from simdup.blocks import Plan, Table, sort_packed
from simdup.fingerprint import Words
from simdup.hamming import columns_of, in_order
from simdup.join import Join, first_equal
from simdup.study.corpus import article_corpus
from tests.properties import strategies as some

WIDE = {1: Scheme(bits=64), 2: Scheme(bits=128), 4: Scheme(bits=256)}
Triples = list[tuple[int, int, int]]


def column(words: Words, features: Any = None) -> Fingerprints:
    return Fingerprints.from_words(words, WIDE[words.shape[1]], features)


def triples(pairs: Pairs) -> Triples:
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist(), strict=True))


def tables(k: int, blocks: int) -> int:
    """How many tables so many blocks make."""
    return math.comb(blocks, k) if blocks > k else max(blocks, 1)


def flipped(row: NDArray[np.uint64], bits: list[int]) -> NDArray[np.uint64]:
    row = row.copy()
    for bit in bits:
        row[bit >> 6] ^= np.uint64(1) << np.uint64(bit & 63)
    return row


class TestNearPairs:
    @given(words=some.word_arrays(), data=st.data())
    def test_equals_the_reference(self, words: Words, data: st.DataObject) -> None:
        k = data.draw(st.one_of(st.integers(0, 12), st.integers(0, 64 * words.shape[1])))
        expected = list(reference.all_pairs(some.to_ints(words), k))
        assert triples(near_pairs(column(words), k)) == expected

    @given(words=some.word_arrays(), data=st.data())
    def test_any_number_of_blocks_finds_the_same(self, words: Words, data: st.DataObject) -> None:
        bits = 64 * words.shape[1]
        k = data.draw(st.one_of(st.integers(0, 12), st.integers(0, bits)))
        possible = [blocks for blocks in range(bits + 1) if tables(k, blocks) <= 300]
        blocks = data.draw(st.sampled_from(possible))
        join = Join(column(words), k, blocks=blocks)
        assert join.plan.blocks == blocks
        assert len(join.plan.tables) == tables(k, blocks)
        assert triples(in_order(join)) == list(reference.all_pairs(some.to_ints(words), k))

    @pytest.mark.parametrize("columns", [1, 2, 4])
    @pytest.mark.parametrize("kind", ["random", "clustered", "equal", "one bit apart", "few values"])
    @pytest.mark.parametrize("k", [0, 1, 3, 6, 10])
    def test_many_rows(self, kind: str, columns: int, k: int) -> None:
        """Rows enough for a plan, so that what is chosen from the data is what is tried."""
        random = np.random.default_rng(columns)
        n = 12_000
        words = random.integers(0, 2**64, (n, columns), np.uint64)
        if kind == "clustered":  # around ten centres, so that far more than a chance share of pairs is near
            centres = words[random.integers(0, 10, n)]
            for _ in range(3):
                bit = random.integers(0, 64 * columns, n)
                centres[np.arange(n), bit >> 6] ^= np.uint64(1) << (bit & 63).astype(np.uint64)
            words[: n // 6] = centres[: n // 6]
        elif kind == "equal":
            words[: n // 6] = words[0]
        elif kind == "one bit apart":
            bits = np.arange(64 * columns)
            words[: len(bits)] = [flipped(words[0], [bit]) for bit in bits.tolist()]
        elif kind == "few values":
            words = words[random.integers(0, 400, n)]
        expected = all_pairs(words, k)
        assert len(expected) or kind in ("random", "clustered", "one bit apart")
        assert len(expected) or kind == "random" or k < 3
        found = near_pairs(column(words), k)
        assert np.array_equal(found.left, expected.left)
        assert np.array_equal(found.right, expected.right)
        assert np.array_equal(found.distance, expected.distance)

    @pytest.mark.parametrize("bits", [64, 128, 256])
    @pytest.mark.parametrize("k", range(9))
    def test_one_bit_flipped_in_each_of_k_blocks(self, k: int, bits: int) -> None:
        """Blocks as a join might cut them, any k of them: found at k, not at k - 1."""
        random = np.random.default_rng(bits + k)
        for m in range(max(k, 1), 20):
            edges = np.linspace(0, bits, m + 1).astype(int)
            every = list(itertools.combinations(range(m), k))
            base = random.integers(0, 2**64, (1, bits // 64), np.uint64)
            chosen = [every[at] for at in random.permutation(len(every))[:40].tolist()]
            near = [
                flipped(base[0], [int(random.integers(edges[block], edges[block + 1])) for block in blocks])
                for blocks in chosen
            ]
            words = np.concatenate((base, np.array(near)))
            for blocks in (None, *(blocks for blocks in (1, k, k + 1, k + 2, m) if tables(k, blocks) <= 100)):
                at_k, below = (
                    {(left, right) for left, right, _ in triples(in_order(Join(column(words), at, blocks=blocks)))}
                    for at in (k, max(k - 1, 0))
                )
                partners = {(0, row) for row in range(1, len(words))}
                assert partners <= at_k
                assert k == 0 or not partners & below

    @pytest.mark.parametrize("blocks", [2, 3, 4, 5, 6, 8])
    def test_one_bit_flipped_in_each_of_the_blocks_that_were_dealt(self, blocks: int) -> None:
        """The blocks that the join itself makes: all but one of them differ, in turn."""
        words = np.random.default_rng(blocks).integers(0, 2**64, (1, 1), np.uint64)
        k = blocks - 1
        dealt = [table.bits for table in Join(column(words), k, blocks=blocks).plan.tables]
        assert sorted(itertools.chain(*dealt)) == list(range(64))
        near = [
            flipped(words[0], [block[turn % len(block)] for at, block in enumerate(dealt) if at != left_out])
            for left_out in range(blocks)
            for turn in range(11)
        ]
        words = np.concatenate((words, np.array(near)))
        expected = list(reference.all_pairs(some.to_ints(words), k))
        assert {(0, row, k) for row in range(1, len(words))} <= set(expected)
        assert triples(in_order(Join(column(words), k, blocks=blocks))) == expected

    def test_texts_without_features_are_in_no_pair(self) -> None:
        texts = ["", "a page", "!!!", "a page", " \n", "another one"]
        found = near_pairs(fingerprint(texts, Scheme()), 128)
        assert {row for pair in triples(found) for row in pair[:2]} == {1, 3, 5}
        assert triples(near_pairs(fingerprint(texts, Scheme()), 0)) == [(1, 3, 0)]
        assert len(near_pairs(fingerprint(["", "!"], Scheme()), 128)) == 0

    def test_restored_fingerprints_without_a_count_are_texts(self) -> None:
        values = Fingerprints.from_ints([0, 0, 2**64 - 1], Scheme(bits=64))
        assert triples(near_pairs(values, 3)) == [(0, 1, 0)]

    def test_three_equal_texts(self) -> None:
        assert triples(near_pairs(fingerprint(["same"] * 3, ARTICLE), 0)) == [(0, 1, 0), (0, 2, 0), (1, 2, 0)]

    @pytest.mark.parametrize("n", [0, 1])
    def test_too_few_rows_for_a_pair(self, n: int) -> None:
        for blocks in (None, 0, 1, 4, 5):
            join = Join(fingerprint(["a page"] * n, ARTICLE), 3, blocks=blocks)
            assert list(itertools.chain(*map(triples, join))) == []
            assert join.examined == 0

    @pytest.mark.parametrize("condition", ["text", "template"])
    def test_article_corpus(self, condition: str) -> None:
        """With the template unrelated pages stand six bits apart: few values of most blocks, and many pairs."""
        corpus = article_corpus()
        fingerprints = fingerprint(corpus.pages if condition == "text" else corpus.with_template(), ARTICLE)
        for k in (3, 6, 10):
            expected = triples(all_pairs(fingerprints.words, k))
            assert len(expected) > 200
            for blocks in (None, 0, 1, 2, 3, 4, k + 1, k + 2):
                assert triples(in_order(Join(fingerprints, k, blocks=blocks))) == expected

    @pytest.mark.parametrize("k", [-1, 65, 10**30])
    def test_k_out_of_range(self, k: int) -> None:
        with pytest.raises(ValueError, match="give 0 to 64 bits"):
            near_pairs(fingerprint(["a"], ARTICLE), k)

    @pytest.mark.parametrize("k", [1.5, True, "3", None, np.float64(3)], ids=repr)
    def test_k_of_a_wrong_type(self, k: Any) -> None:
        with pytest.raises(TypeError, match="give an int, in bits"):
            near_pairs(fingerprint(["a"], ARTICLE), k)

    def test_k_may_be_a_numpy_int(self) -> None:
        assert len(near_pairs(fingerprint(["a", "a"], ARTICLE), np.int8(3))) == 1  # type: ignore[arg-type]

    @pytest.mark.parametrize("blocks", [-1, 65])
    def test_blocks_out_of_range(self, blocks: int) -> None:
        with pytest.raises(ValueError, match="give 0 to 64"):
            Join(fingerprint(["a"], ARTICLE), 3, blocks=blocks)

    @pytest.mark.parametrize("threads", [0, -1, 1.0, None])
    def test_threads_out_of_range(self, threads: Any) -> None:
        with pytest.raises(ValueError, match="give an int of 1 or more"):
            near_pairs(fingerprint(["a"], ARTICLE), 3, threads=threads)

    def test_words_alone_are_no_fingerprints(self) -> None:
        with pytest.raises(TypeError, match="give Fingerprints"):
            near_pairs(np.zeros((2, 1), np.uint64), 3)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def crowd() -> Fingerprints:
    """Groups of equal rows, among them one of 3,000, with near ones around them: five million pairs."""
    random = np.random.default_rng(5)
    words = random.integers(0, 2**64, (6_000, 1), np.uint64)
    words[:3_000] = words[0]
    for bit in range(30):
        words[3_000 + 10 * bit : 3_010 + 10 * bit] = words[0] ^ np.uint64(1) << np.uint64(bit)
    return column(random.permutation(words))


class TestParts:
    """Some at a time: together the same, whatever the chunks and threads."""

    @pytest.mark.parametrize("chunk", [1, 2_048, 10_007, 1 << 22])
    @pytest.mark.parametrize("blocks", [None, 0, 2, 5])
    def test_chunks(self, crowd: Fingerprints, chunk: int, blocks: int | None) -> None:
        expected = near_pairs(crowd, 2)
        parts = list(Join(crowd, 2, chunk=chunk, blocks=blocks))
        assert max(map(len, parts)) <= max(chunk, 2_048)
        assert len(expected) > 5_000_000
        found = in_order(parts)
        assert np.array_equal(found.left, expected.left)
        assert np.array_equal(found.right, expected.right)
        assert np.array_equal(found.distance, expected.distance)

    @pytest.mark.parametrize("columns", [1, 2, 4])
    @pytest.mark.parametrize("blocks", [0, 1, 2, 3, 5, 6])
    def test_a_chunk_is_full_in_the_midst_of_a_table(self, columns: int, blocks: int) -> None:
        """Different rows near to one: the scan stops and goes on at every depth, and counts each candidate once."""
        random = np.random.default_rng(blocks)
        words = np.tile(random.integers(0, 2**64, (1, columns), np.uint64), (2_500, 1))
        for _ in range(3):
            bit = random.integers(0, 40, len(words))  # so few that every run is long
            words[np.arange(len(words)), 0] ^= np.uint64(1) << bit.astype(np.uint64)
        expected = all_pairs(words, 4)
        whole, parted = (Join(column(words), 4, blocks=blocks, chunk=chunk) for chunk in (1 << 22, 2_048))
        parts = list(itertools.islice(parted, 3_000))  # what begins anew would never end
        assert 50 < len(parts) < 3_000
        for found in (in_order(parts), in_order(whole)):
            assert np.array_equal(found.left, expected.left)
            assert np.array_equal(found.right, expected.right)
            assert np.array_equal(found.distance, expected.distance)
        assert parted.examined == whole.examined > 0

    @pytest.mark.parametrize("threads", [2, 3, 8])
    @pytest.mark.parametrize("blocks", [None, 0, 2, 6])
    def test_threads(self, threads: int, blocks: int | None) -> None:
        random = np.random.default_rng(threads)
        words = random.integers(0, 2**64, (20_000, 2), np.uint64)
        words[10_000:] = words[:10_000] ^ (np.uint64(1) << random.integers(0, 64, (10_000, 2), np.uint64))
        alone, together = Join(column(words), 3, blocks=blocks), Join(column(words), 3, blocks=blocks, threads=threads)
        found = triples(in_order(together))
        assert found == triples(in_order(alone))
        assert len(found) > 9_000
        assert together.examined == alone.examined > 0

    def test_a_join_can_be_read_again(self, crowd: Fingerprints) -> None:
        join = Join(crowd[:500], 2)
        first, examined = triples(in_order(join)), join.examined
        assert triples(in_order(join)) == first
        assert join.examined == examined

    def test_a_join_can_be_left_half_way(self) -> None:
        words = np.random.default_rng(0).integers(0, 2**64, (20_000, 1), np.uint64)
        words[1::2] = words[::2] ^ np.uint64(1)
        for threads in (1, 2):
            parts = iter(Join(column(words), 3, threads=threads, chunk=2_048))
            assert len(next(parts)) > 0
            del parts

    def test_order_of_the_rows_does_not_matter(self, crowd: Fingerprints) -> None:
        some_rows = crowd[:1_500]
        turn = np.random.default_rng(1).permutation(1_500)
        turned = near_pairs(some_rows[turn], 2)
        ends = np.sort(np.column_stack((turn[turned.left], turn[turned.right])), axis=1)
        assert sorted(map(tuple, ends.tolist())) == [pair[:2] for pair in triples(near_pairs(some_rows, 2))]


def candidates(plan: Plan, words: Words) -> int:
    """Count by brute force how many pairs of each table differ in few enough of its bits, summed over the tables."""
    total = 0
    for table in plan.tables:
        mask = table.mask
        for row in range(len(words)):
            apart = np.bitwise_count((words[row + 1 :] ^ words[row]) & mask).sum(axis=1)
            total += int(np.count_nonzero(apart <= table.radius))
    return total


class TestPlan:
    @pytest.mark.parametrize("blocks", [0, 1, 2, 3, 4, 5, 6])
    def test_examined_is_an_exact_count(self, blocks: int) -> None:
        """Of few rows and short keys, so that no two keys have the same hash."""
        random = np.random.default_rng(blocks)
        words = np.unique(random.integers(0, 2**10, (600, 1), np.uint64), axis=0) * np.uint64(0x0040_1004_0100_4010)
        join = Join(column(words), 3, blocks=blocks)
        list(join)
        expected = candidates(join.plan, words)
        n = len(words)
        assert expected <= join.examined <= expected + len(join.plan.tables) * n * n / 2 / 2**9
        if blocks == 0:
            assert join.examined == n * (n - 1) // 2

    def test_equal_rows_are_examined_once(self) -> None:
        words = np.repeat(np.arange(50, dtype=np.uint64), 40)[:, np.newaxis]
        join = Join(column(words), 64, blocks=0)
        assert sum(map(len, join)) == 2_000 * 1_999 // 2
        assert join.examined == 50 * 49 // 2

    @staticmethod
    def _zipf_like(n: int) -> Words:
        """Bits that are set more or less often, as in the fingerprints of real text."""
        random = np.random.default_rng(0)
        ones = random.uniform(0, 1, 64) < 0.5
        share = random.uniform(0, 0.5, 64)
        bits = (random.uniform(0, 1, (n, 64)) < share) ^ ones
        return np.packbits(bits, axis=1).view(np.uint64)

    def test_blocks_are_chosen_from_the_data(self) -> None:
        random = np.random.default_rng(0).integers(0, 2**64, (60_000, 1), np.uint64)
        few_bits = self._zipf_like(60_000) & np.uint64(0x00FF_00FF_0FF0_00FF)
        plans = {
            "random": Join(column(random), 3).plan,
            "few bits": Join(column(few_bits), 3).plan,
            "far": Join(column(random), 40).plan,
            "few rows": Join(column(random[:100]), 3).plan,
        }
        assert [str(plans[name]) for name in ("random", "far", "few rows")] == [
            "4 blocks, 4 tables",
            "all pairs",
            "all pairs",
        ]
        assert plans["few bits"].blocks != 4

    def test_no_plan_examines_more_than_all_pairs(self) -> None:
        """However little the fingerprints have to tell."""
        for words in (self._zipf_like(30_000), self._zipf_like(30_000) & np.uint64(0xFFFF), self._zipf_like(9_000)):
            different = np.unique(words, axis=0)
            for k in (1, 3, 10, 20):
                join = Join(column(different), k)
                list(join)
                assert join.examined <= len(different) * (len(different) - 1) // 2

    def test_bits_that_tell_most_are_dealt_evenly(self) -> None:
        words = self._zipf_like(20_000)
        telling = np.bitwise_count(words[:1_000] ^ words[1_000:2_000]).mean()
        assert 10 < telling < 30
        join = Join(column(words), 3, blocks=4)
        shares = [candidates(Plan(4, (table,)), words[:400]) for table in join.plan.tables]
        assert max(shares) < 3 * min(shares) + 50

    @pytest.mark.parametrize("blocks", [2, 3, 4, 5])
    def test_the_estimate_is_that_of_all_rows(self, blocks: int) -> None:
        """A sample has fewer rows, but not fewer keys: what has the same key by chance would count for the most."""
        n = 400_000
        words = np.random.default_rng(0).integers(0, 2**64, (n, 1), np.uint64)
        join = Join(column(words), 3, blocks=blocks)
        list(join)
        sample = columns_of(words[:8_192])
        share = join.plan._share(sample, 3, n)
        assert join.examined / 4 < share * n * n / 2 < 2 * join.examined + n * n / 2 * 10 / math.comb(8_192, 2)

    @given(
        n=st.integers(0, 300),
        key_bits=st.integers(1, 40),
        seed=st.integers(0, 100),
    )
    def test_radix_sort_is_stable(self, n: int, key_bits: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        keys = random.integers(0, 1 << min(key_bits, 4), n).astype(np.uint64) << np.uint64(max(0, key_bits - 4))
        packed = keys << np.uint64(64 - key_bits) | np.arange(n, dtype=np.uint64)
        assert sort_packed(packed.copy(), key_bits).tolist() == sorted(packed.tolist())

    @given(bits=st.lists(st.integers(0, 127), min_size=1, max_size=12, unique=True), radius=st.integers(0, 4))
    def test_directory(self, bits: list[int], radius: int) -> None:
        """Every row stands under its key, and the keys of its ball are those that differ in few bits."""
        words = np.random.default_rng(len(bits)).integers(0, 2**64, (200, 2), np.uint64)
        table = Table(tuple(bits), radius, 2)
        columns = columns_of(words)
        key_bits = table.key_bits(len(words))
        keys = (table.packed(columns, key_bits) >> np.uint64(64 - key_bits)).tolist()
        rows, begins = table.directory(columns, key_bits)
        assert sorted(rows.tolist()) == list(range(200))
        for row, key in enumerate(keys):
            assert row in rows[begins[key] : begins[key + 1]].tolist()
        mask = table.mask
        assert len(table.flips) == table.ball
        assert table.flips[0] == 0
        if radius:
            own = set(table.flips.tolist())
            for one, other in itertools.pairwise(range(200)):
                apart = int(np.bitwise_count((words[one] ^ words[other]) & mask).sum())
                assert (keys[one] ^ keys[other] in own) == (apart <= radius)


class TestFirstEqual:
    @given(words=some.word_arrays(), data=st.data())
    def test_equals_a_dictionary(self, words: Words, data: st.DataObject) -> None:
        features = data.draw(st.lists(st.sampled_from((0, 1, -1)), min_size=len(words), max_size=len(words)))
        seen: dict[tuple[int, ...], int] = {}
        expected = [
            seen.setdefault(tuple(row), at) if count else -1
            for at, (row, count) in enumerate(zip(words.tolist(), features, strict=True))
        ]
        assert first_equal(column(words, np.array(features, np.int64))).tolist() == expected


class TestSkew:
    """Masses of equal rows and full buckets: bounded time and memory."""

    def test_a_hundred_thousand_equal_fingerprints(self) -> None:
        words = np.random.default_rng(0).integers(0, 2**64, (150_000, 1), np.uint64)
        words[20_000:120_000] = words[0]
        near_pairs(column(words[:20_000]), 3)
        tracemalloc.start()
        join = Join(column(words), 3)
        assert join.examined == 0
        parts = iter(join)
        part = next(parts)
        assert len(part) > 0
        assert set(part.distance.tolist()) == {0}
        first = first_equal(column(words))
        assert np.count_nonzero(first == 0) == 100_001
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 200 << 20

    def test_fifty_thousand_that_share_a_block(self) -> None:
        random = np.random.default_rng(0)
        words = random.integers(0, 2**64, (80_000, 1), np.uint64)
        words[:50_000] &= np.uint64(0xFFFF_FFFF_FFFF_0000)
        words[60_000:61_000] = words[:1_000] ^ np.uint64(0x0100_0000_0010_0000)
        found = near_pairs(column(words), 3)
        sample = random.permutation(
            np.concatenate((np.arange(200), np.arange(60_000, 60_200), np.arange(70_000, 70_100)))
        )
        ends = set(sample.tolist())
        expected = set()
        for row in sample.tolist():
            apart = np.bitwise_count(words[:, 0] ^ words[row, 0])
            expected |= {(min(row, int(at)), max(row, int(at))) for at in np.flatnonzero(apart <= 3) if at != row}
        assert {pair[:2] for pair in triples(found) if ends & set(pair[:2])} == expected
        assert len(expected) >= 200
