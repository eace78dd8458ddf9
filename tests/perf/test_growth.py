"""How time grows with the length and the number of documents, and how much memory a stream takes."""

import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress

from conftest import SPEEDS, Speed
from simdup import Scheme, all_pairs, batches, fingerprint, fit_idf, near_pairs
from tests.perf.conftest import documents, planted

WORDS = Scheme("word", 1, 64, "tf")


def slope(jobs: dict[int, Callable[[], Any]], rounds: int = 7) -> float:
    """Fit log time to log size: 1 is linear, 2 quadratic. The median over rounds in which every size has its turn."""

    def seconds(job: Callable[[], Any]) -> float:
        # Time on the processor: waiting for one would only make the longer jobs longer.
        start = time.process_time()
        job()
        return time.process_time() - start

    sizes = np.log(list(jobs))
    for job in jobs.values():
        job()
    return median(
        float(linregress(sizes, np.log([seconds(job) for job in jobs.values()])).slope) for _ in range(rounds)
    )


# Bounds are wide: they are there for an accidental square, not for noise.
def test_time_grows_linearly_with_length(request: pytest.FixtureRequest) -> None:
    texts = {words: documents(1, words)[0] for words in (1_000, 10_000, 100_000, 1_000_000)}
    found = slope({words: lambda text=text: fingerprint(text, WORDS) for words, text in texts.items()})  # type: ignore[misc]
    request.config.stash[SPEEDS].append(Speed("growth with length", "", "log-log slope", f"{found:.2f}"))
    assert 0.7 < found < 1.4


def test_time_grows_linearly_with_number(request: pytest.FixtureRequest) -> None:
    texts = documents(1_000)
    found = slope({n: lambda n=n: fingerprint(texts[:n], WORDS) for n in (50, 200, 1_000)})  # type: ignore[misc]
    request.config.stash[SPEEDS].append(Speed("growth with number", "", "log-log slope", f"{found:.2f}"))
    assert 0.7 < found < 1.4


def test_time_to_fit_grows_linearly_with_number(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_TEXTS", 16)  # many batches, so many times a chance to go through all again
    texts, scheme = documents(4_000, 100), Scheme("word", 3)
    found = slope({n: lambda n=n: fit_idf(texts[:n], scheme) for n in (250, 1_000, 4_000)}, 5)  # type: ignore[misc]
    request.config.stash[SPEEDS].append(Speed("growth of fitting idf", "", "log-log slope", f"{found:.2f}"))
    assert 0.7 < found < 1.4


def test_all_pairs_grow_with_the_square(request: pytest.FixtureRequest) -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 20_000, dtype=np.uint64)
    found = slope({n: lambda n=n: all_pairs(words[:n], 3) for n in (5_000, 10_000, 20_000)})  # type: ignore[misc]
    request.config.stash[SPEEDS].append(Speed("growth of all pairs", "", "log-log slope", f"{found:.2f}"))
    assert 1.4 < found < 2.6


def test_near_pairs_grow_no_faster_than_n_log_n(request: pytest.FixtureRequest) -> None:
    """The log-log slope of n log n is 1.07 here; random rows, as many near ones for each."""
    sizes = (125_000, 500_000, 2_000_000)
    found = slope({n: lambda n=n: near_pairs(planted(n), 3) for n in sizes}, 5)  # type: ignore[misc]
    request.config.stash[SPEEDS].append(Speed("growth of near pairs", "", "log-log slope", f"{found:.2f}"))
    assert 0.7 < found < 1.4


MEMORY = """
import sys
import numpy as np
import simdup
from simdup import Fingerprints, Scheme, near_pairs
def peak():
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    return int(status["VmHWM"].split()[0]) / 1024
n = int(sys.argv[1])
random = np.random.default_rng(0)
near_pairs(Fingerprints.from_words(random.integers(0, 2**64, 20_000, np.uint64), Scheme(bits=64)), 3)
words = random.integers(0, 2**64, n, np.uint64)
words[n - n // 10 :] = words[: n // 10] ^ np.uint64(0x0100_0000_0010_0001)
column = Fingerprints.from_words(words, Scheme(bits=64))
before = peak()
assert len(near_pairs(column, 3)) >= n // 10
print(peak() - before)
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize(("n", "megabytes"), [(1_000_000, 200), (10_000_000, 2_500)])
def test_near_pairs_take_little_memory(n: int, megabytes: int, request: pytest.FixtureRequest) -> None:
    run = subprocess.run([sys.executable, "-c", MEMORY, str(n)], capture_output=True, text=True, check=True)
    request.config.stash[SPEEDS].append(
        Speed(f"memory of near pairs, {n:,}", "", "MB beyond input", f"{float(run.stdout):.0f}")
    )
    assert float(run.stdout) < megabytes


STREAM = """
import simdup
texts = (f"page {i} of a stream of short texts, number {i * 7919}" for i in range(1_000_000))
assert len(simdup.fingerprint(texts)) == 1_000_000
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(int(status["VmHWM"].split()[0]) / 1024)
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_million_texts_from_a_generator_take_less_than_500_mb() -> None:
    run = subprocess.run([sys.executable, "-c", STREAM], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 500
