"""What is kept: equal to a decision made page by page, for every option, every kind of input and in several runs."""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import Fingerprints, Scheme, fingerprint, tokens
from simdup.dedup import Check, Decision, Table, advise, chance, decide, read, remember
from simdup.fields import Batch
from simdup.index import Index
from tests.properties import strategies as some

SCHEME = Scheme("word", 1, 64, "tf")

near_texts = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "!"]), max_size=9).map(" ".join), max_size=14
)
"""Few words, so that many texts are equal or near, and some have no token."""


def batched(texts: Sequence[str], orders: Sequence[Any] = (), size: int = 5) -> Iterator[Batch]:
    for start in range(0, len(texts), size):
        stop = start + size
        yield Batch(list(texts[start:stop]), list(orders[start:stop]) if orders else None)


def decided(texts: Sequence[str], k: int, keep: str = "first", orders: Sequence[Any] = (), **options: Any) -> Decision:
    compare = options.get("check") is not None
    pages = read(batched(texts, orders), SCHEME, keep, compare=compare, threads=1)
    return decide(pages, k, texts=lambda: iter(texts), **options)


def words(text: str) -> frozenset[str]:
    return frozenset(tokens(text, SCHEME))


def similarity(left: str, right: str, measure: str) -> float:
    a, b = words(left), words(right)
    return len(a & b) / (len(a | b) if measure == "jaccard" else min(len(a), len(b)))


def page_by_page(
    texts: Sequence[str], k: int, rank: Iterable[int], least: int = 1, check: Check | None = None
) -> list[int]:
    """Who stands for each text: the best that nobody stands for takes what is near to it."""
    prints = list(fingerprint(texts, SCHEME))

    def near(a: int, b: int) -> bool:
        if (int(prints[a]) ^ int(prints[b])).bit_count() > k:
            return False
        return check is None or similarity(texts[a], texts[b], check.measure) >= check.least

    representative = list(range(len(texts)))
    left = [row for row in rank if prints[row].features >= max(least, 1)]
    while left:
        best = left.pop(0)
        for row in left:
            if near(best, row):
                representative[row] = best
        left = [row for row in left if representative[row] == row]
    return representative


class TestDecide:
    @given(texts=near_texts, k=st.integers(0, 40), least=st.integers(1, 4))
    def test_first(self, texts: list[str], k: int, least: int) -> None:
        decision = decided(texts, k, least_features=least)
        expected = page_by_page(texts, k, range(len(texts)), least)
        assert decision.representative.tolist() == expected
        assert decision.keep.tolist() == [row == kept for row, kept in enumerate(expected)]
        prints = list(map(int, fingerprint(texts, SCHEME)))
        assert decision.distance.tolist() == [
            (prints[row] ^ prints[kept]).bit_count() for row, kept in enumerate(expected)
        ]

    @given(texts=near_texts, k=st.integers(0, 40))
    def test_longest(self, texts: list[str], k: int) -> None:
        rank = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        assert decided(texts, k, "longest").representative.tolist() == page_by_page(texts, k, rank)

    def test_longest_in_characters(self) -> None:
        """However many bytes they take in UTF-8."""
        assert decided(["ééé", "abcd", "日本"], 64, "longest").representative.tolist() == [1, 1, 1]

    @given(texts=near_texts, k=st.integers(0, 40), data=st.data())
    def test_largest_of_a_field(self, texts: list[str], k: int, data: st.DataObject) -> None:
        values = data.draw(
            st.sampled_from((st.integers(-3, 3), st.sampled_from(("a", "b", "é")), st.sampled_from((2**60, 2**60 + 1))))
        )
        orders: list[Any] = data.draw(st.lists(values, min_size=len(texts), max_size=len(texts)))
        rank = sorted(range(len(texts)), key=lambda row: orders[row], reverse=True)
        assert decided(texts, k, "date", orders).representative.tolist() == page_by_page(texts, k, rank)

    @given(
        texts=near_texts,
        k=st.integers(0, 64),
        measure=st.sampled_from(("jaccard", "containment")),
        least=st.sampled_from((0.1, 0.5, 2 / 3, 0.75, 1.0)),
        keep=st.sampled_from(("first", "longest")),
    )
    def test_similarity_decides(self, texts: list[str], k: int, measure: Any, least: float, keep: str) -> None:
        check = Check(measure, least)
        decision = decided(texts, k, keep, check=check)
        rank = sorted(range(len(texts)), key=lambda row: -len(texts[row]) if keep == "longest" else row)
        expected = page_by_page(texts, k, rank, check=check)
        assert decision.representative.tolist() == expected
        for row in decision.pairs(lambda row: str(row)):
            left, right = texts[int(row["left"])], texts[int(row["right"])]
            assert row["similarity"] == similarity(left, right, measure) >= least

    def test_similarity_is_that_of_the_pages_whatever_the_rank(self) -> None:
        """The best stand last in the input, so that a row and its rank are never the same."""
        texts = ["x y", "a b", "a b c", "a b c d e f g", "x y z"]
        decision = decided(texts, 64, "longest", check=Check("jaccard", 2 / 3))
        assert decision.representative.tolist() == [4, 2, 2, 3, 4]
        rows = sorted(decision.pairs(str), key=lambda row: int(row["left"]))
        assert [(row["left"], row["right"], row["similarity"]) for row in rows] == [
            ("0", "4", 2 / 3),
            ("1", "2", 2 / 3),
        ]

    def test_equal_fingerprints_of_different_texts_are_told_apart_by_similarity(self) -> None:
        texts = ["a " * 9 + "b", "a " * 9 + "c", "a " * 9 + "b"]
        assert len({int(value) for value in fingerprint(texts, SCHEME)}) == 1
        assert decided(texts, 0).representative.tolist() == [0, 0, 0]
        assert decided(texts, 0, check=Check("jaccard", 0.9)).representative.tolist() == [0, 1, 0]
        texts = [*texts[:2], "x " * 30, "x " * 30]  # the best last
        assert decided(texts, 0, "longest", check=Check("jaccard", 0.9)).representative.tolist() == [0, 1, 2, 2]

    @given(texts=near_texts, k=st.integers(0, 40))
    def test_pairs_are_all_near_pairs(self, texts: list[str], k: int) -> None:
        prints = list(fingerprint(texts, SCHEME))
        expected = [
            {"left": str(a), "right": str(b), "distance": (int(prints[a]) ^ int(prints[b])).bit_count()}
            for a in range(len(texts))
            for b in range(a + 1, len(texts))
            if prints[a].features and prints[b].features
        ]
        expected = [row for row in expected if row["distance"] <= k]  # type: ignore[operator]
        found = list(decided(texts, k, "longest").pairs(lambda row: str(row)))
        assert sorted(found, key=lambda row: (int(row["left"]), int(row["right"]))) == expected

    @given(texts=near_texts, k=st.integers(0, 40), keep=st.sampled_from(("first", "longest")))
    def test_clusters_tell_of_every_page_that_is_not_alone(self, texts: list[str], k: int, keep: str) -> None:
        decision = decided(texts, k, keep)
        prints = list(map(int, fingerprint(texts, SCHEME)))
        of = decision.representative.tolist()
        expected = []
        for row, kept in enumerate(of):
            members = [other for other in range(len(texts)) if of[other] == kept]
            if len(members) > 1:
                apart = [(prints[a] ^ prints[b]).bit_count() for a in members for b in members]
                about = {"distance": (prints[row] ^ prints[kept]).bit_count(), "size": len(members)}
                expected.append({"page": str(row), "representative": str(kept), **about, "diameter": max(apart)})
        assert list(decision.clusters(lambda row: str(row))) == expected

    @given(texts=near_texts, k=st.integers(0, 40), least=st.integers(1, 4))
    def test_counts_add_up(self, texts: list[str], k: int, least: int) -> None:
        counts = decided(texts, k, least_features=least).counts()
        features = fingerprint(texts, SCHEME).features
        assert counts["read"] == len(texts)
        assert counts["no text"] == np.count_nonzero(features == 0)
        assert counts["too few features"] == np.count_nonzero((features > 0) & (features < least))
        dropped = sum(counts[name] for name in ("exact duplicates", "near duplicates", "seen in an earlier run"))
        assert counts["kept"] + dropped == counts["read"]

    def test_texts_may_come_as_columns(self) -> None:
        texts = [f"page {i % 40} of some {'é' * (i % 7)}" for i in range(300)]
        for keep in ("first", "longest"):
            columns = [Batch(pa.array(texts[:100], pa.large_string()), None), Batch(pa.array(texts[100:]), None)]
            found, expected = (
                read(iter(batches), SCHEME, keep, compare=True, threads=1) for batches in (columns, batched(texts))
            )
            assert found.fingerprints == expected.fingerprints
            assert found.rank.tolist() == expected.rank.tolist()
            assert np.array_equal(found.digests, expected.digests)  # type: ignore[arg-type]


class TestSeveralRuns:
    @given(runs=st.lists(near_texts, min_size=1, max_size=4), k=st.integers(0, 30))
    def test_pages_of_earlier_runs_count(self, runs: list[list[str]], k: int) -> None:
        """As if all had been read at once, page after page, of which only those that are kept take others."""
        index = Index(k, SCHEME)
        kept: list[tuple[int, int, int]] = []
        for number, texts in enumerate(runs):
            decision = decided(texts, k, index=index)
            prints = list(map(int, fingerprint(texts, SCHEME)))
            features = fingerprint(texts, SCHEME).features.tolist()
            inside = page_by_page_with(texts, k, [value for *_, value in kept])
            assert decision.representative.tolist() == inside
            for row, representative in enumerate(inside):
                if representative < 0:
                    assert decision.earlier[row].split()[0] in {f"{a}/{b}" for a, b, _ in kept}
            remember(index, decision, lambda row, number=number: f"{number}/{row}")  # type: ignore[misc]
            kept += [(number, row, prints[row]) for row in np.flatnonzero(decision.keep).tolist() if features[row]]
            assert len(index) == len(kept)

    @given(before=near_texts, texts=near_texts, k=st.integers(0, 30), least=st.integers(1, 4))
    def test_the_nearest_earlier_page_is_told(self, before: list[str], texts: list[str], k: int, least: int) -> None:
        """Which it is, how far, for how many pages it stands; pages of too few features are never remembered."""
        index = Index(k, SCHEME)
        first = decided(before, k, least_features=least, index=index)
        remember(index, first, lambda row: f"before/{row}")
        old, new = (fingerprint(some_texts, SCHEME) for some_texts in (before, texts))
        kept = [row for row in np.flatnonzero(first.keep).tolist() if old.features[row] >= least]
        assert len(index) == len(kept)
        decision = decided(texts, k, least_features=least, index=index)
        expected = {}
        for row, one in enumerate(new):
            apart = [(int(one) ^ int(old[other])).bit_count() for other in kept]
            if one.features >= least and apart and min(apart) <= k:
                names = (f"before/{other} #{old[other : other + 1].hex()[0]}" for other in kept)
                expected[row] = min(zip(apart, names, strict=True))
        assert decision.earlier == {row: name for row, (_, name) in expected.items()}
        assert [int(decision.distance[row]) for row in expected] == [bits for bits, _ in expected.values()]
        told = {row["page"]: row for row in decision.clusters(str)}
        for row, (bits, name) in expected.items():
            size = 1 + list(decision.earlier.values()).count(name)
            about = {"page": str(row), "distance": bits, "representative": name, "size": size, "diameter": None}
            assert told[str(row)] == about
        counts = decision.counts()
        assert counts["seen in an earlier run"] == len(expected)
        dropped = sum(counts[name] for name in ("exact duplicates", "near duplicates", "seen in an earlier run"))
        assert counts["kept"] + dropped == counts["read"]

    @given(texts=near_texts, k=st.integers(0, 30))
    def test_a_second_run_keeps_nothing_new(self, texts: list[str], k: int) -> None:
        index = Index(k, SCHEME)
        place = "the same file, line {}".format
        remember(index, decided(texts, k, index=index), place)
        size = len(index)
        again = decided(texts, k, index=index)
        features = fingerprint(texts, SCHEME).features
        assert not again.keep[features > 0].any()
        assert again.keep[features == 0].all()
        remember(index, again, place)
        assert len(index) == size

    def test_the_same_place_with_another_page_forgets_nothing(self) -> None:
        index = Index(3, SCHEME)
        for text in ("one page of these", "and another one entirely"):
            remember(index, decided([text], 3, index=index), lambda _row: "crawl.jsonl, line 1")
        assert len(index) == 2
        assert not decided(["one page of these"], 3, index=index).keep.any()


def page_by_page_with(texts: Sequence[str], k: int, earlier: Sequence[int]) -> list[int]:
    prints = list(fingerprint(texts, SCHEME))
    seen = {
        row
        for row, one in enumerate(prints)
        if one.features and any((int(one) ^ value).bit_count() <= k for value in earlier)
    }
    new = [row for row in range(len(texts)) if row not in seen]
    among = page_by_page([texts[row] for row in new], k, range(len(new)))
    representative = [-1] * len(texts)
    for at, row in enumerate(new):
        representative[row] = new[among[at]]
    return representative


class TestChance:
    @pytest.mark.parametrize("bits", [64, 128])
    def test_uniform_bits(self, bits: int) -> None:
        """Of 2^64 equally probable values 43,745 lie within 3 bits of any."""
        random_ = np.random.default_rng(0)
        words_ = random_.integers(0, 2**64, (20_000, bits // 64), np.uint64)
        pairs = 20_000 * 19_999 / 2
        expected = {64: 43_745 / 2**64, 128: (1 + 128 + 128 * 127 / 2 + 128 * 127 * 126 / 6) / 2**128}[bits]
        assert chance(Fingerprints.from_words(words_, Scheme(bits=bits)), 3) == pytest.approx(
            pairs * expected, rel=0.05
        )

    def test_bits_that_are_mostly_set(self) -> None:
        """Counted among pages made so: every bit by chance, but rarely."""
        random_ = np.random.default_rng(1)
        bits = random_.uniform(0, 1, (3_000, 64)) < np.linspace(0.02, 0.3, 64)
        column = Fingerprints.from_words(np.packbits(bits, axis=1).view(">u8").astype(np.uint64), Scheme(bits=64))
        values = column.words[:, 0]
        near = sum(
            int(np.count_nonzero(np.bitwise_count(values[row + 1 :] ^ values[row]) <= 9)) for row in range(3_000)
        )
        assert near > 1_000
        assert chance(column, 9) == pytest.approx(near, rel=0.1)

    def test_no_pair(self) -> None:
        for count in (0, 1):
            assert chance(fingerprint(["a"] * count, SCHEME), 3) == 0


class TestCheck:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [("0.8", ("jaccard", 0.8)), ("jaccard:1", ("jaccard", 1.0)), ("containment:.5", ("containment", 0.5))],
    )
    def test_parse(self, text: str, expected: tuple[str, float]) -> None:
        assert Check.parse(text) == expected

    @pytest.mark.parametrize("text", ["", "0", "1.1", "-1", "nan", "inf", "cosine:0.5", "jaccard:", "0.5:jaccard", "a"])
    def test_what_is_no_check(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"--verify .*: give a similarity such as 0.8 or containment:0.8"):
            Check.parse(text)


class TestTable:
    @pytest.mark.parametrize("check", [None, Check("jaccard", 0.5)])
    @pytest.mark.parametrize("of", ["pairs", "clusters"])
    def test_jsonl_and_parquet_say_the_same(self, of: str, check: Check | None, tmp_path: Path) -> None:
        rng = random.Random(0)
        texts = [" ".join(rng.choices("abcdefgh", k=5)) for _ in range(200)]
        decision = decided(texts, 8, check=check)
        rows = list(getattr(decision, of)(lambda row: f'"page" {row} ü'))
        assert len(rows) > 100
        Table(str(tmp_path / "t.jsonl"), of).write(iter(rows))
        Table(str(tmp_path / "t.parquet"), of).write(iter(rows))
        assert [json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()] == rows
        table = pq.read_table(tmp_path / "t.parquet")
        assert [{name: row[name] for name in rows[0]} for row in table.to_pylist()] == rows
        assert ("similarity" in table.column_names) == (of == "pairs")

    def test_no_rows(self, tmp_path: Path) -> None:
        for name in ("t.jsonl", "t.parquet"):
            Table(str(tmp_path / name), "pairs").write(iter(()))
        assert (tmp_path / "t.jsonl").read_bytes() == b""
        assert pq.read_table(tmp_path / "t.parquet").schema.field("distance").type == pa.int16()

    def test_other_endings(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"give a name that ends in .jsonl or .parquet"):
            Table(str(tmp_path / "t.csv"), "pairs")

    def test_a_fault_leaves_nothing(self, tmp_path: Path) -> None:
        def rows() -> Any:
            yield {"left": "a", "right": "b", "distance": 1}
            raise KeyboardInterrupt

        for name in ("t.jsonl", "t.parquet"):
            with pytest.raises(KeyboardInterrupt):
                Table(str(tmp_path / name), "pairs").write(rows())
        assert list(tmp_path.iterdir()) == []


def test_a_hundred_thousand_equal_texts_are_one_cluster() -> None:
    decision = decided(["the same short text"] * 100_000, 3)
    assert decision.counts()["kept"] == 1
    assert decision.counts()["exact duplicates"] == 99_999
    first = next(decision.clusters(str))
    assert (first["size"], first["diameter"]) == (100_000, 0)
    assert next(decision.pairs(str)) == {"left": "0", "right": "1", "distance": 0}


@given(texts=st.lists(some.texts(), max_size=8), k=st.integers(0, 64))
def test_texts_of_any_script(texts: list[str], k: int) -> None:
    assert decided(texts, k).representative.tolist() == page_by_page(texts, k, range(len(texts)))


class TestAdvise:
    """The threshold that is measured when none is given."""

    @staticmethod
    def _pages(count: int) -> list[str]:
        rng = random.Random(3)
        words, weights = [f"w{i}" for i in range(3_000)], [1 / (i + 5) for i in range(3_000)]
        return [" ".join(rng.choices(words, weights=weights, k=60)) for _ in range(count)]

    def test_the_more_pages_the_smaller_the_threshold(self) -> None:
        """False pairs grow with the square of the pages: what is right for a thousand is not for a billion."""
        sample = self._pages(600)
        advice = [advise(sample, Scheme(), pages) for pages in (600, 10_000, 1_000_000, 1_000_000_000)]
        found = [one.threshold.k for one in advice]
        assert found == sorted(found, reverse=True)
        assert found[0] > found[2] > found[3]
        for pages, one in zip((10_000, 1_000_000, 1_000_000_000), advice[1:], strict=True):
            assert one.false_share * pages * (pages - 1) / 2 <= pages / 1_000

    def test_a_budget_that_the_sample_can_show_is_kept(self) -> None:
        sample = self._pages(300)
        found = [advise(sample, SCHEME, 300, budget).threshold for budget in (10.0, 1_000.0, 100_000.0)]
        assert [threshold.k for threshold in found] == sorted({threshold.k for threshold in found})
        assert [threshold.false_per_million <= most for threshold, most in zip(found, (10, 1e3, 1e5), strict=True)] == [
            True
        ] * 3

    def test_no_threshold_to_trust(self) -> None:
        """So many pages that a sample of forty can promise nothing."""
        with pytest.raises(ValueError, match="even equal fingerprints may be unrelated"):
            advise(self._pages(40), Scheme(bits=64), 10**12)

    def test_too_few_pages(self) -> None:
        with pytest.raises(ValueError, match=r"no threshold can be measured on these pages \(.*\): give --k"):
            advise(["one page"], SCHEME, 1)
