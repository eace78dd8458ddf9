"""Golden vectors: what an id has meant, it means for ever, and so does the frozen Unicode table."""

import copy
import json
import unicodedata
from typing import Any

import numpy as np
import pytest

from simdup import Scheme, fingerprint, idf_table, normalize, reference, unicode
from simdup.mask import NOISE
from tests.properties import make_golden, make_unicode

GOLDEN: dict[str, Any] = json.loads(make_golden.FILE.read_text("ascii"))
MADE = make_golden.make()
each_scheme = pytest.mark.parametrize("name", GOLDEN["vectors"])


def scheme_of(name: str) -> Scheme:
    scheme = Scheme(**GOLDEN["vectors"][name]["options"])
    return idf_table(GOLDEN["idf"]["weights"], scheme, GOLDEN["idf"]["unseen"]) if scheme.weight == "idf" else scheme


@each_scheme
def test_the_id(name: str) -> None:
    assert scheme_of(name).id == name


@each_scheme
def test_the_fast_path(name: str) -> None:
    vector = GOLDEN["vectors"][name]
    found = fingerprint(GOLDEN["texts"], scheme_of(name))
    assert found.hex() == vector["hex"]
    assert found.features.tolist() == vector["features"]


@each_scheme
def test_the_reference(name: str) -> None:
    vector, scheme = GOLDEN["vectors"][name], scheme_of(name)
    found = [reference.fingerprint(text, scheme) for text in GOLDEN["texts"]]
    assert [f"{value:0{scheme.bits // 4}x}" for value, _ in found] == vector["hex"]
    assert [count for _, count in found] == vector["features"]


def test_the_vectors_meet_every_option() -> None:
    options = [vector["options"] for vector in GOLDEN["vectors"].values()]
    for name, expected in {
        "unit": {"word", "char"},
        "ngram": {1, 2, 3, 5},
        "bits": {64, 128, 256},
        "weight": {"tf", "set", "idf"},
        "hash": {"xxh64", "blake2b"},
        "normalize": {True, False},
    }.items():
        assert {kind[name] for kind in options} == expected
    assert {noise for kind in options for noise in kind.get("mask", ())} == set(NOISE)
    assert len(options) >= 24


def test_the_article_in_its_own_words() -> None:
    scheme = "word1-64-tf-blake2b-raw"
    found = [f"{reference.article(text):016x}" for text in GOLDEN["texts"] if text.isprintable()]
    assert found == [
        value
        for text, value in zip(GOLDEN["texts"], GOLDEN["vectors"][scheme]["hex"], strict=True)
        if text.isprintable()
    ]


def test_the_unicode_table_is_frozen() -> None:
    """Under every Python: the table's arrays, and what each character it knows is normalised to."""
    assert MADE["unicode"] == GOLDEN["unicode"]


@pytest.mark.skipif(unicodedata.unidata_version != unicode.VERSION, reason="only Unicode 14 can make the table again")
def test_the_unicode_table_is_what_is_built() -> None:
    built, stored = make_unicode.build(), unicode.load()
    assert built.keys() == stored.keys()
    for name, values in built.items():
        wrong = np.flatnonzero(values != stored[name])
        assert wrong.tolist() == [], f"{name} differs"


def test_every_mark_that_composes_or_folds_away_is_left_to_normalize() -> None:
    """The kernel may map a mark alone only if it stays the mark that it is to its neighbours."""
    table = unicode.load()
    for code in (0x300, 0x301, 0x308, 0x323, 0x344, 0x345, 0x1161, 0x11A8, 0x3099, 0x309A, 0xFF9E, 0xFF9F):
        assert table["second"][code] or table["way"][code] == unicode.HARD, f"U+{code:04X}"


def test_what_a_character_expands_to_stays_as_it_is() -> None:
    table = unicode.load()
    codes = np.flatnonzero(table["way"] == unicode.EXPANDED)
    assert len(codes) > 1_000
    for code, place in zip(codes.tolist(), table["written"][codes].tolist(), strict=True):
        count = table["expansions"][place]
        parts = table["expansions"][place + 1 : place + 1 + count]
        assert count > 1
        assert "".join(map(chr, parts)).split() == normalize(chr(code)).split()
        assert not table["way"][parts].any()
        assert np.all((table["written"][parts] == parts) | (table["kind"][parts] == unicode.SEPARATOR))


def test_the_generator_finds_each_change() -> None:
    assert make_golden.changed(GOLDEN, MADE) == []
    name = next(iter(GOLDEN["vectors"]))
    for kind, value in (("hex", "0" * 16), ("features", 99)):
        other = copy.deepcopy(GOLDEN)
        other["vectors"][name][kind][4] = value
        assert [line.split(":")[0] for line in make_golden.changed(GOLDEN, other)] == [f"{name}, text 4"]
    other = copy.deepcopy(GOLDEN)
    other["texts"].append("one more")
    for vector in other["vectors"].values():
        vector["hex"].append("00")
        vector["features"].append(1)
    assert make_golden.changed(GOLDEN, other) == []
    assert make_golden.changed(other, GOLDEN) != []
    del other["vectors"][name]
    assert len(make_golden.changed(GOLDEN, other)) == len(GOLDEN["texts"])


def test_the_generator_refuses_to_overwrite(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    stale = copy.deepcopy(GOLDEN)
    name = next(iter(GOLDEN["vectors"]))
    stale["vectors"][name]["hex"][4] = "0" * 16
    path = tmp_path / "golden.json"
    path.write_text(json.dumps(stale), "ascii")
    monkeypatch.setattr(make_golden, "FILE", path)
    monkeypatch.setattr(make_golden, "make", lambda: MADE)
    monkeypatch.setattr("sys.argv", ["make_golden"])
    with pytest.raises(SystemExit, match="1 vectors have changed; say --replace"):
        make_golden.main()
    assert json.loads(path.read_text("ascii")) == stale
    monkeypatch.setattr("sys.argv", ["make_golden", "--replace"])
    make_golden.main()
    assert json.loads(path.read_text("ascii")) == GOLDEN
