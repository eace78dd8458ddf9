"""A race: the yardstick and the contestant take turns, and the median ratio must not fall below a floor."""

import functools
import pathlib
import random
import statistics
import time
import tomllib
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from conftest import SPEEDS, Speed
from simdup import Fingerprints, Scheme

FLOORS = tomllib.loads(pathlib.Path(__file__).with_name("floors.toml").read_text(encoding="utf-8"))
ROUNDS = 21

Race = Callable[..., float]


@pytest.fixture
def race(benchmark: BenchmarkFixture, request: pytest.FixtureRequest) -> Race:
    """Run yardstick and contestant in turn; print and judge the median ratio of their times per unit of work."""

    def run(
        job: str,
        yardstick: Callable[[], Any],
        contestant: Callable[[], Any],
        work: tuple[float, float],
        unit: str,
        rounds: int = ROUNDS,
    ) -> float:
        seconds: dict[str, list[float]] = {"yardstick": [], "contestant": []}

        def timed(name: str, what: Callable[[], Any]) -> None:
            start = time.perf_counter()
            what()
            seconds[name].append(time.perf_counter() - start)

        yardstick()
        contestant()
        benchmark.group = "simdup"
        benchmark.pedantic(  # type: ignore[no-untyped-call]
            lambda: timed("contestant", contestant), setup=lambda: timed("yardstick", yardstick), rounds=rounds
        )
        yardstick_work, contestant_work = work
        # Each round is a ratio of neighbours in time, since a shared machine has fast and slow spells.
        rounds_ = zip(seconds["yardstick"], seconds["contestant"], strict=True)
        ratio = statistics.median(slow / quick for slow, quick in rounds_) * contestant_work / yardstick_work
        floor = FLOORS[job]["floor"]
        slow, fast = (
            _shown(statistics.median(seconds[name]) / done, unit)
            for name, done in (("yardstick", yardstick_work), ("contestant", contestant_work))
        )
        request.config.stash[SPEEDS].append(Speed(job, slow, fast, f"{ratio:,.1f} x", f"{floor:,g} x"))
        benchmark.extra_info.update(ratio=ratio, floor=floor)
        assert ratio >= floor, f"{job}: {ratio:.1f} times the yardstick's speed, the floor is {floor}"
        return ratio

    return run


def _shown(seconds: float, unit: str) -> str:
    if unit == "pair":
        return f"{1e-6 / seconds:,.2f} M pairs/s"
    return f"{1e3 * seconds:,.4f} ms"


@functools.cache
def documents(count: int, words: int = 400, seed: int = 39) -> list[str]:
    """Return documents of the article's vocabulary: 6,000 words drawn with weight 1 / (i + 5)."""
    rng = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(6_000)]
    weights = list(accumulate(1 / (i + 5) for i in range(6_000)))
    return [" ".join(rng.choices(vocabulary, cum_weights=weights, k=words)) for _ in range(count)]


@functools.cache
def planted(n: int, bits: int = 64, seed: int = 0) -> Fingerprints:
    """Random fingerprints, of which a tenth are within 3 bits of another."""
    random = np.random.default_rng(seed)
    words = random.integers(0, 2**64, (n, bits // 64), np.uint64)
    near = n // 10
    copies = words[random.integers(0, n - near, near)]
    for _ in range(3):
        bit = random.integers(0, bits, near)
        copies[np.arange(near), bit >> 6] ^= np.uint64(1) << (bit & 63).astype(np.uint64)
    words[n - near :] = copies
    return Fingerprints.from_words(words, Scheme(bits=bits))
