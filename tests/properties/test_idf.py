"""Tables of inverse document frequencies: what they hold, what they answer, and what they refuse."""

import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import IdfTable, Scheme, idf_table
from simdup.idf import weight_steps


def table(features: Any, weights: Any, unseen: Any = 0) -> IdfTable:
    return IdfTable(np.array(features, np.uint64), np.array(weights, np.int64), unseen)


@pytest.mark.parametrize(
    ("features", "weights", "unseen"),
    [([2, 1], [1, 1], 0), ([1, 1], [1, 1], 0), ([1, 2], [1], 0), ([1], [1, 2], 0), ([[1]], [[1]], 0), ([], [1], 0)],
)
def test_features_ascend_with_a_weight_each(features: Any, weights: Any, unseen: int) -> None:
    with pytest.raises(ValueError, match="one weight per feature and its features in ascending order"):
        table(features, weights, unseen)


@pytest.mark.parametrize(("weights", "unseen"), [([-1], 0), ([0], -1), ([-(2**63)], 0)])
def test_no_negative_weight(weights: Any, unseen: int) -> None:
    with pytest.raises(ValueError, match="no negative weight"):
        table([1], weights, unseen)


@pytest.mark.parametrize("weights", [[0.5], [float("nan")], [float("inf")], [1e30]], ids=repr)
def test_weights_are_whole_steps(weights: list[float]) -> None:
    with pytest.raises((ValueError, TypeError)):
        IdfTable(np.array([1], np.uint64), np.array(weights), 0)


@pytest.mark.parametrize("features", [[-1], [0.5]], ids=repr)
def test_features_are_unsigned(features: list[float]) -> None:
    with pytest.raises((ValueError, TypeError)):
        IdfTable(np.array(features), np.array([1]), 0)


@pytest.mark.parametrize("unseen", [1.5, "1", None, 2**70, True], ids=repr)
def test_unseen_is_a_whole_step(unseen: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        table([1], [1], unseen)


@pytest.mark.parametrize("weight", [2**30 + 1, 2**62, 2**63 - 1])
def test_weights_are_bounded_as_where_they_come_from(weight: int) -> None:
    """Two features of weight 2^62 are more than a sum in 64 bits holds."""
    with pytest.raises(ValueError, match=str(weight)):
        table([1], [weight])
    with pytest.raises(ValueError, match=str(weight)):
        table([1], [1], weight)


def test_a_table_leaves_its_arrays_to_their_owner() -> None:
    features, weights = np.array([1], np.uint64), np.array([1], np.int64)
    IdfTable(features, weights, 0)
    assert features.flags.writeable
    assert weights.flags.writeable


@given(
    entries=st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, 2**30), max_size=20),
    asked=st.lists(st.integers(0, 2**64 - 1), max_size=20),
    unseen=st.integers(0, 2**30),
)
def test_looking_up(entries: dict[int, int], asked: list[int], unseen: int) -> None:
    known = sorted(entries)
    queries = [*asked, *known, *(feature ^ 1 for feature in known)]
    found = table(known, [entries[feature] for feature in known], unseen).lookup(np.array(queries, np.uint64))
    assert found.tolist() == [entries.get(feature, unseen) for feature in queries]


@given(value=st.floats(0, 2.0**10))
def test_steps_are_the_nearest(value: float) -> None:
    assert abs(weight_steps(value) * 2.0**-20 - value) <= 2.0**-21


@pytest.mark.parametrize(
    "value", [-1, -0.1, float("nan"), float("inf"), -float("inf"), 2.0**10 + 0.001, 2.0**20, 10**400]
)
def test_what_is_no_weight(value: float) -> None:
    message = re.escape(f"{value!r} is no idf weight")
    with pytest.raises(ValueError, match=message):
        idf_table({"b": 1.0, "a": value}, Scheme(), 1.0)
    with pytest.raises(ValueError, match=message):
        idf_table({"a": 1.0}, Scheme(), value)


@pytest.mark.parametrize("value", ["1", None, [1]], ids=repr)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(TypeError):
        idf_table({"a": value}, Scheme(), 1.0)


def test_tables_are_equal_if_their_contents_are() -> None:
    assert table([1, 2], [3, 4], 5) == table([1, 2], [3, 4], 5)
    assert hash(table([1, 2], [3, 4], 5)) == hash(table([1, 2], [3, 4], 5))
    assert table([1, 2], [3, 4], 5) != table([1, 2], [3, 4], 6)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 31, 32, 33, 1000, 20_000])
def test_tables_of_every_size(size: int) -> None:
    """Features at both ends, and many that share their top bits, are found; their neighbours are not."""
    random = np.random.default_rng(size)
    features = random.integers(0, 2**64, size, np.uint64)
    features[: size // 3] >>= np.uint64(40)
    features[-2:] = np.array([0, 2**64 - 1], np.uint64)[: len(features[-2:])]
    features = np.unique(features)
    held = dict(zip(features.tolist(), range(1, len(features) + 1), strict=True))
    queries = np.concatenate([features, features ^ np.uint64(1), np.array([0, 2**63, 2**64 - 1], np.uint64)])
    random.shuffle(queries)
    found = table(features, list(held.values()), 999_999).lookup(queries)
    assert found.tolist() == [held.get(feature, 999_999) for feature in queries.tolist()]


def test_tables_pickle() -> None:
    one = table([1, 2], [3, 4], 5)
    one.lookup(one.features)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.lookup(np.array([2, 7], np.uint64)).tolist() == [4, 5]
