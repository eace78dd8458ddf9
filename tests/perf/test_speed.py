"""Speed as a ratio to the article's algorithm in pure Python, same process, one thread, 400-word documents.

What both compute is compared before anything is timed.
"""

import os
from dataclasses import replace

import numpy as np
import pytest

from simdup import ARTICLE, Scheme, all_pairs, fingerprint, fit_idf, reference
from simdup.hamming import distance_counts
from tests.perf.conftest import FLOORS, Race, documents

YARDSTICK_DOCUMENTS = 20
DOCUMENTS = 1_000
WORDS = Scheme("word", 1, 64)

SCHEMES = {
    "words_xxh64": WORDS,
    "words_blake2b": ARTICLE,
    "trigrams_xxh64": replace(WORDS, ngram=3),
    "trigrams_blake2b": replace(ARTICLE, ngram=3),
    "default_scheme": Scheme(),
    "trigrams_256_bits": replace(WORDS, ngram=3, bits=256),
}


def check(scheme: Scheme) -> None:
    few = documents(DOCUMENTS)[:5]
    assert [(int(one), one.features) for one in fingerprint(few, scheme)] == [
        reference.fingerprint(text, scheme) for text in few
    ]


@pytest.mark.parametrize("job", SCHEMES)
def test_fingerprint(job: str, race: Race) -> None:
    scheme, texts = SCHEMES[job], documents(DOCUMENTS)
    check(scheme)
    race(
        job,
        lambda: [reference.article(text, scheme.ngram) for text in texts[:YARDSTICK_DOCUMENTS]],
        lambda: fingerprint(texts, scheme),
        (YARDSTICK_DOCUMENTS, DOCUMENTS),
        "document",
    )


def test_fingerprint_with_idf(race: Race) -> None:
    texts = documents(DOCUMENTS)
    scheme = fit_idf(texts, WORDS)
    check(scheme)
    race(
        "words_idf",
        lambda: [reference.article(text) for text in texts[:YARDSTICK_DOCUMENTS]],
        lambda: fingerprint(texts, scheme),
        (YARDSTICK_DOCUMENTS, DOCUMENTS),
        "document",
    )


def test_fit_idf(race: Race) -> None:
    texts = documents(DOCUMENTS)
    race(
        "fit_idf",
        lambda: [reference.article(text) for text in texts[:YARDSTICK_DOCUMENTS]],
        lambda: fit_idf(texts, WORDS),
        (YARDSTICK_DOCUMENTS, DOCUMENTS),
        "document",
    )


@pytest.mark.parametrize("job", ["words_xxh64", "words_blake2b", "trigrams_xxh64"])
def test_single_text(job: str, race: Race) -> None:
    scheme, texts = SCHEMES[job], documents(DOCUMENTS)[:200]
    race(
        f"{job}_single",
        lambda: [reference.article(text, scheme.ngram) for text in texts[:YARDSTICK_DOCUMENTS]],
        lambda: [fingerprint(text, scheme) for text in texts],
        (YARDSTICK_DOCUMENTS, len(texts)),
        "document",
    )


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two threads need two cores")
@pytest.mark.parametrize("job", ["words_xxh64", "words_blake2b", "trigrams_xxh64"])
def test_two_threads_against_one(job: str, race: Race) -> None:
    """Of the time on a clock: what the neighbours leave of the second core decides, so the floor is low.

    That threads do run at once is tested without a clock, in tests/properties/test_threads.py.
    """
    scheme, texts = SCHEMES[job], documents(DOCUMENTS) * 4
    assert fingerprint(texts, scheme, threads=2) == fingerprint(texts, scheme)
    race(
        f"{job}_two_threads",
        lambda: fingerprint(texts, scheme),
        lambda: fingerprint(texts, scheme, threads=2),
        (len(texts), len(texts)),
        "document",
    )


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_all_pairs(bits: int, race: Race) -> None:
    words = np.random.default_rng(0).integers(0, 2**64, (20_000, bits // 64), dtype=np.uint64)
    values = [int.from_bytes(row.astype(">u8").tobytes(), "big") for row in words[:300]]
    k = bits // 2 - 12  # near enough to the mean of unrelated ones for some to be found
    found = all_pairs(words[:300], k)
    rows = zip(found.left.tolist(), found.right.tolist(), found.distance.tolist(), strict=True)
    assert len(found) > 0
    assert list(rows) == list(reference.all_pairs(values, k))
    race(
        f"all_pairs_{bits}_bits",
        lambda: list(reference.all_pairs(values, 3)),
        lambda: all_pairs(words, 3),
        (300 * 299 / 2, 20_000 * 19_999 / 2),
        "pair",
    )


def test_distance_counts(race: Race) -> None:
    words, group = np.random.default_rng(0).integers(0, 2**64, 5_000, dtype=np.uint64), np.arange(5_000)
    values = words[:300].tolist()
    race(
        "distance_counts",
        lambda: list(reference.all_pairs(values, 64)),
        lambda: distance_counts(words, group),
        (300 * 299 / 2, 5_000 * 4_999 / 2),
        "pair",
    )


def test_floors_are_all_used_and_never_below_what_was_promised() -> None:
    several = {
        f"{job}_{how}"
        for job in ("words_xxh64", "words_blake2b", "trigrams_xxh64")
        for how in ("single", "two_threads")
    }
    jobs = {*SCHEMES, *several, "words_idf", "fit_idf", "distance_counts"}
    assert set(FLOORS) == jobs | {f"all_pairs_{bits}_bits" for bits in (64, 128, 256)}
    for job, row in FLOORS.items():
        assert row.get("target", 0) <= row["floor"] <= row["measured"], job
