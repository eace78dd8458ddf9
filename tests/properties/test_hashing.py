"""Feature hashes: XXH64 and BLAKE2b as others compute them, with a fresh and with a full memory of words."""

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from simdup import Scheme, reference
from simdup.hashing import hash_ngrams, hash_strings
from simdup.text import encode, joined, tokenize
from tests.properties import strategies as some

WIDTHS = (64, 128, 256)


def xxh64(data: bytes, bits: int) -> int:
    """XXH64 by the xxhash package: one seed for each 64 bits."""
    value = 0
    for seed in range(bits // 64):
        value = value << 64 | xxhash.xxh64_intdigest(data, seed)
    return value


def blake2b(data: bytes, bits: int) -> int:
    """BLAKE2b by hashlib, as one digest of the whole width."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=bits // 8).digest(), "big")


ORACLES: dict[str, Callable[[bytes, int], int]] = {"xxh64": xxh64, "blake2b": blake2b}
each_hash = pytest.mark.parametrize("name", ORACLES)
each_width = pytest.mark.parametrize("bits", WIDTHS)


def scheme_of(name: str, bits: int) -> Scheme:
    return Scheme("word", 1, bits, hash=name)  # type: ignore[arg-type]


def assert_hashed(strings: list[str], name: str, bits: int) -> None:
    found = some.to_ints(hash_strings(strings, scheme_of(name, bits)))
    expected = [ORACLES[name](encode(string), bits) for string in strings]
    wrong = [string[:40] for string, one, two in zip(strings, found, expected, strict=True) if one != two]
    assert wrong == [], f"{len(wrong)} of {len(strings)} hashes are wrong"


def of_length(length: int, salt: int) -> str:
    """A string of so many bytes in UTF-8, with bytes of every sort where it is long enough."""
    sizes = ("a", "é", "語", "\U00010400")
    text, rest = "", length
    for turn in range(length):
        if rest == 0:
            break
        step = sizes[(turn * 7 + salt) % 4] if rest >= 4 else "z"
        shifted = chr(ord(step) + (turn * 13 + salt) % 40) if step != "z" else chr(ord("A") + (turn + salt) % 26)
        text += shifted
        rest -= len(shifted.encode())
    return text


@each_hash
@each_width
@pytest.mark.parametrize("salt", [0, 1])
def test_every_length(name: str, bits: int, salt: int) -> None:
    strings = [of_length(length, salt) for length in range(1, 401)]
    assert [len(encode(string)) for string in strings] == list(range(1, 401))
    assert_hashed(strings, name, bits)


@each_hash
@each_width
def test_the_empty_feature(name: str, bits: int) -> None:
    assert_hashed(["", "a", ""], name, bits)


@each_hash
def test_every_byte(name: str) -> None:
    strings = [chr(code) * times for code in range(1, 0x800) for times in (1, 3)]
    assert_hashed([*strings, "\ud800", "\udfff", "\U0010ffff", "\x00", "\x00\x00"], name, 128)


@given(strings=st.lists(some.texts(4).filter(bool), max_size=30), name=st.sampled_from(("xxh64", "blake2b")))
def test_any_strings(strings: list[str], name: str) -> None:
    assert_hashed(strings + strings, name, 256)


@given(text=some.texts(3), scheme=some.schemes(weights=("tf",)))
def test_the_reference_hashes_as_the_packages_do(text: str, scheme: Scheme) -> None:
    assert reference.feature_hash(text, scheme) == ORACLES[scheme.hash](encode(text), scheme.bits)


# BLAKE2b remembers 16,384 features of up to 64 bytes: what is remembered, displaced or too long must not show.
@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize("different", [60, 16_000, 40_000])
def test_a_full_memory(different: int, bits: int) -> None:
    once = [f"a common start {number:05d}" for number in range(different)]
    order = np.random.default_rng(different).permutation(2 * different) % different
    assert_hashed([*once, *reversed(once), *(once[number] for number in order.tolist())], "blake2b", bits)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 15, 16, 31, 63, 64, 65, 128, 129])
def test_remembered_features_that_differ_in_one_byte(length: int) -> None:
    """Equal lengths and all bytes but one equal, at each place: no two are taken for each other."""
    base = "m" * length
    strings = [base[:at] + other + base[at + 1 :] for at in range(length) for other in "0123456789nopqrstuvwxyz"]
    assert_hashed([base, *strings, *strings, base], "blake2b", 64)
    assert len(np.unique(hash_strings(strings, scheme_of("blake2b", 64)))) == len(strings)


def test_a_word_is_not_taken_for_the_start_of_a_remembered_one() -> None:
    assert_hashed([str(number) for number in range(60_000, 0, -1)], "blake2b", 64)
    for start in range(300):
        assert_hashed([f"{start}{'x' * length}" for length in range(55, -1, -1)], "blake2b", 64)
    # Displaced again and again by longer and by shorter ones.
    order = np.random.default_rng(0).permutation(3 * 50_000) % 50_000
    assert_hashed([str(number) for number in order.tolist()], "blake2b", 64)


@pytest.mark.parametrize("length", [63, 64, 65, 66, 72])
def test_long_features_do_not_spill_into_remembered_ones(length: int) -> None:
    """A word, then features whose last bytes are another letter, then that letter before the rest of the word."""
    for trial in range(400):
        spills = [f"{number:02d}{trial:03d}".ljust(length, "z") for number in range(30)]
        assert_hashed([f"a{trial}", *spills, f"z{trial}"], "blake2b", 64)


@given(parts=st.lists(some.texts(6), max_size=5), scheme=some.schemes(weights=("tf",)))
def test_ngrams_are_hashed_where_they_stand(parts: list[str], scheme: Scheme) -> None:
    hashes, offsets = hash_ngrams(tokenize(*joined(list(map(encode, parts))), scheme), scheme)
    expected = [reference.features(text, scheme) for text in parts]
    assert np.diff(offsets).tolist() == list(map(len, expected))
    flat = [ORACLES[scheme.hash](encode(feature), scheme.bits) for features in expected for feature in features]
    assert some.to_ints(hashes) == flat


@pytest.mark.parametrize("ngram", [1, 2, 3, 20, 21, 22, 1000])
@each_hash
def test_ngrams_around_the_length_of_the_text(ngram: int, name: str) -> None:
    text = " ".join(f"w{number}" for number in range(21))
    scheme = Scheme("word", ngram, 64, hash=name)  # type: ignore[arg-type]
    hashes, offsets = hash_ngrams(tokenize(*joined([b"", encode(text), b"one"]), scheme), scheme)
    assert offsets.tolist() == [0, 0, max(1, 22 - ngram), max(1, 22 - ngram) + 1]
    expected = [ORACLES[name](encode(feature), 64) for feature in [*reference.features(text, scheme), "one"]]
    assert some.to_ints(hashes) == expected


@each_hash
@each_width
def test_every_bit_takes_both_values(name: str, bits: int) -> None:
    values = some.to_ints(hash_strings([f"word{number}" for number in range(1000)], scheme_of(name, bits)))
    every, none = 0, (1 << bits) - 1
    for value in values:
        every |= value
        none &= value
    assert every == (1 << bits) - 1
    assert none == 0


@each_hash
def test_words_of_a_wide_hash_are_not_copies_of_each_other(name: str) -> None:
    words = hash_strings([f"word{number}" for number in range(200)], scheme_of(name, 256))
    assert all(len(np.unique(row)) == 4 for row in words)


def test_no_strings() -> None:
    assert hash_strings([], Scheme()).shape == (0, 2)
