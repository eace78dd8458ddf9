"""Speed as a ratio to the article's algorithm in pure Python, same process, one thread, 400-word documents.

What both compute is compared before anything is timed.
"""

import contextlib
import functools
import io
import json
import os
import pathlib
import sqlite3
import sys
from dataclasses import replace

import numpy as np
import pyarrow.json as pj
import pytest

import simdup.cli
from simdup import ARTICLE, Fingerprints, Scheme, all_pairs, fingerprint, fit_idf, near_pairs, reference
from simdup.hamming import distance_counts
from simdup.index import Index
from tests.perf.conftest import FLOORS, Race, documents, planted

YARDSTICK_DOCUMENTS = 20
DOCUMENTS = 1_000
WORDS = Scheme("word", 1, 64, "tf")

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


def textbook_tables(values: list[int], k: int) -> list[dict[int, list[int]]]:
    """A dictionary for each of k + 1 blocks of 64 bits, as packages in pure Python have it."""
    width = 64 // (k + 1)
    tables: list[dict[int, list[int]]] = [{} for _ in range(k + 1)]
    for row, value in enumerate(values):
        for block, table in enumerate(tables):
            table.setdefault(value >> block * width & (1 << width) - 1, []).append(row)
    return tables


def textbook_query(value: int, values: list[int], tables: list[dict[int, list[int]]], k: int) -> set[int]:
    width = 64 // (k + 1)
    keys = [value >> block * width & (1 << width) - 1 for block in range(k + 1)]
    found = {row for key, table in zip(keys, tables, strict=True) for row in table.get(key, ())}
    return {row for row in found if (values[row] ^ value).bit_count() <= k}


@functools.cache
def of_text(n: int) -> Fingerprints:
    """Fingerprints of documents of common words: unrelated ones stand about 18 bits apart, not 32."""
    return fingerprint(documents(n, 400, 1), ARTICLE)


@pytest.mark.parametrize("bits", [64, 128])
def test_near_pairs_of_a_million(bits: int, race: Race) -> None:
    n, few = 1_000_000, 20_000
    fingerprints = planted(n, bits)
    values = planted(few).words[:, 0].tolist()
    found = near_pairs(planted(few), 3)
    tables = textbook_tables(values, 3)
    expected = {
        (row, other) for row in range(few) for other in textbook_query(values[row], values, tables, 3) if other > row
    }
    assert set(zip(found.left.tolist(), found.right.tolist(), strict=True)) == expected

    def textbook() -> None:
        tables = textbook_tables(values, 3)
        for value in values:
            textbook_query(value, values, tables, 3)

    race(f"near_pairs_{bits}_bits", textbook, lambda: near_pairs(fingerprints, 3), (few, n), "document", rounds=7)


@pytest.mark.parametrize("k", [3, 10])
def test_near_pairs_of_text_against_all_pairs(k: int, race: Race) -> None:
    """Where blocks tell least they must not be slower than to compare every pair."""
    fingerprints = of_text(50_000)
    found, expected = near_pairs(fingerprints, k), all_pairs(fingerprints.words[:, 0], k)
    assert np.array_equal(found.left, expected.left)
    assert np.array_equal(found.right, expected.right)
    words = fingerprints.words[:, 0]
    race(
        f"near_pairs_of_text_within_{k}",
        lambda: all_pairs(words, k),
        lambda: near_pairs(fingerprints, k),
        (1, 1),
        "document",
        rounds=5,
    )


@pytest.mark.parametrize("job", ["index_batch", "index_single"])
def test_index(job: str, race: Race) -> None:
    n = 200_000
    column = planted(n)
    values = column.words[:, 0].tolist()
    tables = textbook_tables(values, 3)
    index = Index(3, Scheme(bits=64))
    index.add(range(n), column)
    asked = column[n - 20_000 :]
    for row, answer in enumerate(index.query(asked[:500]), n - 20_000):
        assert {id_ for id_, _ in answer} == textbook_query(values[row], values, tables, 3)
    some, one_by_one = values[n - 2_000 :], list(asked[:500])
    contestants = {
        "index_batch": (lambda: index.query(asked), len(asked)),
        "index_single": (lambda: [index.query(question) for question in one_by_one], len(one_by_one)),
    }
    contestant, asked_at_once = contestants[job]
    race(
        job,
        lambda: [textbook_query(value, values, tables, 3) for value in some],
        contestant,
        (len(some), asked_at_once),
        "document",
    )


def test_durable_adds(race: Race, tmp_path: pathlib.Path) -> None:
    """A thousand at a time, against SQLite alone, which is as durable: what it takes to check and to find them."""
    n, ids = 20_000, iter(range(10**9))
    column, connection = planted(n), sqlite3.connect(tmp_path / "plain", isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE page (id UNIQUE, words)"
    )
    index = Index(3, Scheme(bits=64), tmp_path / "index")
    parts = [column[start : start + 1_000] for start in range(0, n, 1_000)]

    def plain() -> None:
        for part in parts:
            rows = [(next(ids), words.tobytes()) for words in part.words]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO page VALUES (?, ?)", rows)
            connection.execute("COMMIT")

    def durable() -> None:
        for part in parts:
            index.add([next(ids) for _ in range(len(part))], part)

    with contextlib.closing(connection), index:
        race("durable_adds", plain, durable, (n, n), "document", rounds=7)


def test_dedup(race: Race, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command, against reading the same file with PyArrow and fingerprinting its texts."""
    path, n = tmp_path / "pages.jsonl", 300_000
    with path.open("w", encoding="utf-8") as lines:
        for row, text in enumerate(documents(n, 12)):
            lines.write(json.dumps({"id": row, "url": f"https://example.org/{row}", "text": text}) + "\n")
    monkeypatch.setattr(sys, "argv", ["simdup", "dedup", str(path), "-o", str(tmp_path / "kept.jsonl"), "--k", "3"])

    def command() -> None:
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), pytest.raises(SystemExit) as ended:
            simdup.cli.main()
        assert ended.value.code == 0

    alone = pj.ReadOptions(use_threads=False, block_size=1 << 22)
    race("dedup", lambda: fingerprint(pj.read_json(path, alone)["text"]), command, (n, n), "document", rounds=5)


def test_floors_are_all_used_and_never_below_what_was_promised() -> None:
    several = {
        f"{job}_{how}"
        for job in ("words_xxh64", "words_blake2b", "trigrams_xxh64")
        for how in ("single", "two_threads")
    }
    joins = {f"near_pairs_{which}" for which in ("64_bits", "128_bits", "of_text_within_3", "of_text_within_10")}
    jobs = {*SCHEMES, *several, *joins, "words_idf", "fit_idf", "distance_counts"}
    jobs |= {"index_batch", "index_single", "durable_adds", "dedup"}
    assert set(FLOORS) == jobs | {f"all_pairs_{bits}_bits" for bits in (64, 128, 256)}
    for job, row in FLOORS.items():
        assert row.get("target", 0) <= row["floor"] <= row["measured"], job
