"""Clusters: every page within k of the one that is kept, the same whatever the order of pairs and rows."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import Clusters, Fingerprints, Pairs, Scheme, cluster, distance, fingerprint, near_pairs
from simdup.cluster import Kind
from tests.properties import strategies as some

WIDE = {1: Scheme(bits=64), 2: Scheme(bits=128), 4: Scheme(bits=256)}
CHAIN = Fingerprints.from_ints([0, 0b111, 0b111111], Scheme(bits=64))

pytestmark = pytest.mark.filterwarnings("ignore:.* components hold rows")


@st.composite
def columns(draw: st.DrawFn) -> tuple[Fingerprints, int]:
    words = draw(some.word_arrays())
    features = draw(st.lists(st.sampled_from((1, 1, 1, 0)), min_size=len(words), max_size=len(words)))
    k = draw(st.integers(0, 16))
    return Fingerprints.from_words(words, WIDE[words.shape[1]], np.array(features, np.int64)), k


def stars(pairs: Pairs, n: int) -> list[int]:
    """Make stars by the definition, row by row."""
    near: list[set[int]] = [set() for _ in range(n)]
    for left, right in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        near[left].add(right)
        near[right].add(left)
    representative: dict[int, int] = {}
    for row in range(n):
        if row not in representative:
            representative[row] = row
            for other in near[row]:
                representative.setdefault(other, row)
    return [representative[row] for row in range(n)]


def components(pairs: Pairs, n: int) -> list[int]:
    """Make components by joining sets, pair by pair."""
    of = list(range(n))
    for left, right in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        one, other = sorted((of[left], of[right]))
        of = [one if which == other else which for which in of]
    return of


def turned(pairs: Pairs, seed: int) -> Pairs:
    """The same pairs in another order, some with their ends the other way round."""
    random = np.random.default_rng(seed)
    at = random.permutation(len(pairs))
    swap = random.integers(0, 2, len(pairs)).astype(bool)
    left, right = pairs.left[at], pairs.right[at]
    return Pairs(np.where(swap, right, left), np.where(swap, left, right), pairs.distance[at])


class TestStar:
    @given(case=columns())
    def test_equals_the_definition(self, case: tuple[Fingerprints, int]) -> None:
        fingerprints, k = case
        pairs = near_pairs(fingerprints, k)
        assert cluster(pairs, len(fingerprints)).representative.tolist() == stars(pairs, len(fingerprints))

    @given(case=columns())
    def test_every_member_is_within_k_of_what_is_kept(self, case: tuple[Fingerprints, int]) -> None:
        fingerprints, k = case
        clusters = cluster(near_pairs(fingerprints, k), len(fingerprints))
        kept = clusters.representative
        assert (distance(fingerprints, fingerprints[kept]) <= k).all()
        assert (kept[kept] == kept).all()
        assert (clusters.diameters(fingerprints) <= 2 * k).all()

    @given(case=columns())
    def test_no_two_that_are_kept_are_near(self, case: tuple[Fingerprints, int]) -> None:
        fingerprints, k = case
        kept = cluster(near_pairs(fingerprints, k), len(fingerprints)).kept
        assert len(near_pairs(fingerprints[kept], k)) == 0

    def test_a_chain_is_cut(self) -> None:
        clusters = cluster(near_pairs(CHAIN, 3), 3)
        assert clusters.representative.tolist() == [0, 0, 2]
        assert clusters.kept.tolist() == [0, 2]
        assert clusters.sizes.tolist() == [2, 1]
        assert clusters.diameters(CHAIN).tolist() == [3, 0]

    def test_the_first_row_of_all_is_kept(self) -> None:
        pairs = Pairs(np.array([0, 1]), np.array([2, 2]), np.array([1, 1]))
        assert cluster(pairs, 4).representative.tolist() == [0, 1, 0, 3]


class TestComponents:
    @given(case=columns())
    def test_equals_the_definition(self, case: tuple[Fingerprints, int]) -> None:
        fingerprints, k = case
        pairs = near_pairs(fingerprints, k)
        found = cluster(pairs, len(fingerprints), "components").representative.tolist()
        assert found == components(pairs, len(fingerprints))

    def test_a_chain_is_one_and_warns(self) -> None:
        with pytest.warns(UserWarning, match="1 of 1 components hold rows that are no pair of each other"):
            clusters = cluster(near_pairs(CHAIN, 3), 3, "components")
        assert clusters.representative.tolist() == [0, 0, 0]
        assert clusters.diameters(CHAIN).tolist() == [6]

    @pytest.mark.filterwarnings("error")
    def test_no_warning_where_all_are_near(self) -> None:
        for fingerprints in (CHAIN[:2], CHAIN, Fingerprints.from_ints([5] * 4, Scheme(bits=64))):
            pairs = near_pairs(fingerprints, 6)
            assert cluster(pairs, len(fingerprints), "components").sizes.tolist() == [len(fingerprints)]
        assert cluster(near_pairs(CHAIN, 0), 3, "components").sizes.tolist() == [1, 1, 1]

    @given(case=columns())
    def test_it_warns_if_and_only_if_a_diameter_is_more_than_k(self, case: tuple[Fingerprints, int]) -> None:
        fingerprints, k = case
        pairs, n = near_pairs(fingerprints, k), len(fingerprints)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clusters = cluster(pairs, n, "components")
        far = int(np.count_nonzero(clusters.diameters(fingerprints) > k))
        assert [str(one.message).partition(" of ")[0] for one in caught] == [f"{far}"] * (far > 0)


@pytest.mark.parametrize("kind", ["star", "components"])
class TestBoth:
    @given(case=columns(), seed=st.integers(0, 1000))
    def test_order_of_the_pairs_does_not_matter(self, kind: Kind, case: tuple[Fingerprints, int], seed: int) -> None:
        fingerprints, k = case
        pairs, n = near_pairs(fingerprints, k), len(fingerprints)
        expected = cluster(pairs, n, kind).representative.tolist()
        assert cluster(turned(pairs, seed), n, kind).representative.tolist() == expected

    def test_order_of_the_pages_does_not_matter_if_they_are_sorted_by_id(self, kind: Kind) -> None:
        random = np.random.default_rng(0)
        words = random.integers(0, 2**64, (40, 1), np.uint64)[random.integers(0, 40, 200)]
        words ^= np.uint64(1) << random.integers(0, 64, (200, 1)).astype(np.uint64)
        by_id = {
            int(id_): Fingerprints.from_words(words[row : row + 1], WIDE[1])
            for row, id_ in enumerate(random.permutation(200))
        }
        found = set()
        for seed in range(20):
            ids = np.random.default_rng(seed).permutation(200)
            ids = np.sort(ids)
            column = Fingerprints.from_words(np.concatenate([by_id[id_].words for id_ in ids.tolist()]), WIDE[1])
            clusters = cluster(near_pairs(column, 2), 200, kind)
            found.add(tuple(ids[clusters.representative].tolist()))
        assert len(found) == 1

    @given(case=columns())
    def test_diameters(self, kind: Kind, case: tuple[Fingerprints, int]) -> None:
        fingerprints, k = case
        clusters = cluster(near_pairs(fingerprints, k), len(fingerprints), kind)
        values = some.to_ints(fingerprints.words)
        of = clusters.representative.tolist()
        expected = [
            max(
                (values[a] ^ values[b]).bit_count()
                for a in range(len(of))
                for b in range(len(of))
                if of[a] == of[b] == kept
            )
            for kept in clusters.kept.tolist()
        ]
        assert clusters.diameters(fingerprints).tolist() == expected

    @given(case=columns())
    def test_one_is_kept_of_each(self, kind: Kind, case: tuple[Fingerprints, int]) -> None:
        fingerprints, k = case
        clusters = cluster(near_pairs(fingerprints, k), len(fingerprints), kind)
        kept = clusters.kept
        assert sorted(set(clusters.representative.tolist())) == kept.tolist()
        assert clusters.sizes.tolist() == [clusters.representative.tolist().count(row) for row in kept.tolist()]
        assert clusters.sizes.sum() == len(fingerprints)

    def test_texts_without_features_are_alone(self, kind: Kind) -> None:
        fingerprints = fingerprint(["", "!", "a page", "?", "a page"], Scheme())
        clusters = cluster(near_pairs(fingerprints, 128), 5, kind)
        assert clusters.representative.tolist() == [0, 1, 2, 3, 2]
        assert clusters.diameters(fingerprints).tolist() == [0, 0, 0, 0]

    def test_nothing(self, kind: Kind) -> None:
        none = near_pairs(fingerprint([], Scheme()), 3)
        clusters = cluster(none, 0, kind)
        assert clusters.kept.tolist() == clusters.sizes.tolist() == clusters.representative.tolist() == []
        assert clusters.diameters(fingerprint([], Scheme())).tolist() == []

    @pytest.mark.parametrize(("left", "right"), [(0, 5), (-1, 4)])
    def test_pairs_of_rows_that_are_not_there(self, kind: Kind, left: int, right: int) -> None:
        pairs = Pairs(np.array([left]), np.array([right]), np.array([1]))
        with pytest.raises(ValueError, match=f"pairs of rows {left} to {right} among 5 rows"):
            cluster(pairs, 5, kind)


def test_other_kinds() -> None:
    with pytest.raises(ValueError, match=re.escape("kind='stars': choose one of 'star', 'components'")):
        cluster(Pairs(*np.empty((3, 0), np.int64)), 0, "stars")  # type: ignore[arg-type]


def test_fingerprints_of_other_rows() -> None:
    with pytest.raises(ValueError, match="2 fingerprints for 3 rows"):
        Clusters(np.arange(3)).diameters(CHAIN[:2])


def test_a_hundred_thousand_equal_ones_have_a_diameter_at_once() -> None:
    """Of equal members one is enough: all pairs of them would take minutes."""
    words = np.full((100_000, 1), 7, np.uint64)
    words[50_000] = 0
    representative = np.zeros(100_000, np.int64)
    assert Clusters(representative).diameters(Fingerprints.from_words(words, WIDE[1])).tolist() == [3]
