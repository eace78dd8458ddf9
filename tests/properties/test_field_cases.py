"""What has gone wrong with SimHash packages in the field, by kind; each class names the public threads."""

import copy
import json
import math
import pickle
import unicodedata
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import (
    ARTICLE,
    Fingerprint,
    Fingerprints,
    Scheme,
    all_pairs,
    distance,
    fingerprint,
    fingerprint_features,
    fit_idf,
    idf_table,
    reference,
    tokens,
)
from simdup.hamming import distance_counts
from tests.properties import strategies as some

DEFAULT = Scheme("word", 1, 64, "tf", "blake2b")
BOTH = [Scheme("word", 1, bits, "tf", name) for bits in some.WIDTHS for name in ("xxh64", "blake2b")]


def each(schemes: list[Scheme]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scheme", schemes, ids=[scheme.id for scheme in schemes])


def words(count: int, start: str = "w") -> list[str]:
    return [f"{start}{number}" for number in range(count)]


def zipf(count: int, seed: int) -> str:
    """An unrelated text of common and rare words."""
    drawn = np.random.default_rng(seed).zipf(1.2, count) % 50_000
    return " ".join(f"w{number}" for number in drawn.tolist())


class TestEmptyOrFeatureless:
    """1e0ng/simhash#41, mfonda/simhash#1, ChenghaoMou/text-dedup#77, bigcode-project/bigcode-dataset#35."""

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " \n",
            "!!! ???",
            "😀🚀",
            "\u200b\ufeff",
            "\u00ad",
            "\u3000\u00a0",
            "—…•",
            "\x00",
            "👩\u200d👧",
            "€ $ +",
            "\U0001fae8",
        ],
        ids=ascii,
    )
    @pytest.mark.parametrize("ngram", [1, 5])
    def test_no_token_no_features(self, text: str, ngram: int) -> None:
        for bits, weight in product(some.WIDTHS, ("tf", "set")):
            one = fingerprint(text, Scheme("word", ngram, bits, weight))  # type: ignore[arg-type]
            assert (one.features, one.value) == (0, 0)

    @pytest.mark.parametrize("text", ["a", "\u0301", "\ud800", "中", "1", "٣", "\U00031350", "½"], ids=ascii)
    def test_a_token_is_a_feature(self, text: str) -> None:
        assert fingerprint(text, DEFAULT).features >= 1

    def test_short_texts_are_not_empty(self) -> None:
        column = fingerprint(["cat", "dog", "cat"], Scheme("word", 5, 64))
        assert column.features.tolist() == [1, 1, 1]
        pairs = all_pairs(column.words, 0)
        assert (pairs.left.tolist(), pairs.right.tolist()) == ([0], [2])

    def test_extreme_values_are_legal(self) -> None:
        restored = Fingerprints.from_ints([0, 0, 2**64 - 1], ARTICLE)
        assert restored.features.tolist() == [-1] * 3
        pairs = all_pairs(restored.words, 0)
        assert (pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist()) == ([0], [1], [0])

    def test_a_document_of_absent_features(self) -> None:
        assert fingerprint_features([{}, {"a": 0}, {"a": 1}]).features.tolist() == [0, 0, 1]


class TestShortText:
    """yanyiwu/simhash#10, AllenDang/simhash#2, 1e0ng/simhash#56, qinwf/jiebaR#66."""

    def test_fewer_tokens_than_n_are_one_feature(self) -> None:
        column = fingerprint(["ab", "ab cd", "ef gh", "ab cd ef"], Scheme("word", 3, 64, "tf", "blake2b", False))
        assert column.features.tolist() == [1, 1, 1, 1]
        assert len(set(column.hex())) == 4

    @pytest.mark.parametrize("unit", ["word", "char"])
    @pytest.mark.parametrize("ngram", [2, 3, 4, 5, 9])
    def test_different_short_texts_differ(self, unit: Any, ngram: int) -> None:
        texts = [" ".join(part) for size in range(1, ngram) for part in combinations("abcdefghi", size)]
        column = fingerprint(texts, Scheme(unit, ngram, 64))
        assert set(column.features.tolist()) == {1}
        assert len(set(column.hex())) == len(texts)

    def test_shuffled_words(self) -> None:
        text = words(20)
        shuffled = list(text)
        for seed in range(30):
            np.random.default_rng(seed).shuffle(shuffled)
            pairs = [fingerprint([" ".join(text), " ".join(shuffled)], Scheme("word", n, 64)) for n in (1, 3)]
            assert distance(pairs[0][0], pairs[0][1]) == 0
            assert distance(pairs[1][0], pairs[1][1]) > 0

    @each(BOTH)
    def test_one_word_weighs_less_in_a_longer_text(self, scheme: Scheme) -> None:
        means = []
        for length in (10, 100, 1000):
            apart = []
            for draw in range(50):
                text = words(length, f"d{draw}x")
                changed = [*text[:-1], "changed"]
                a, b = fingerprint([" ".join(text), " ".join(changed)], scheme)
                apart.append(distance(a, b))
            means.append(np.mean(apart))
        assert means[0] > means[1] > means[2]


class TestTieRule:
    """1e0ng/simhash#26: ``>=`` against ``>`` changed in mid-life."""

    @each([ARTICLE, *BOTH])
    @pytest.mark.parametrize(("x", "y"), [("x", "y"), ("apple", "banana"), ("中", "文"), ("a" * 70, "b" * 130)])
    def test_a_tie_is_0(self, scheme: Scheme, x: str, y: str) -> None:
        one, two, both, turned = map(int, fingerprint([x, y, f"{x} {y}", f"{y} {x}"], scheme))
        assert both == turned == one & two
        assert one == reference.feature_hash(x, scheme)

    @each(BOTH)
    def test_the_same_rule_for_every_weighting(self, scheme: Scheme) -> None:
        expected = int(fingerprint("x", scheme)) & int(fingerprint("y", scheme))
        weighted = idf_table({"x": 0.1, "y": 0.1}, scheme, 0.0)
        assert int(fingerprint("x y", weighted)) == expected
        for weight in (1, 0.1, 1e300, 5e-324, 10**40):
            assert int(fingerprint_features([{"x": weight, "y": weight}], scheme)[0]) == expected
        assert int(fingerprint_features([{"x": 0.1, "y": 0.1 + 2.0**-56}], scheme)[0]) == int(fingerprint("y", scheme))

    def test_four_against_four(self) -> None:
        """More votes than two, and the counts that fill a plane exactly."""
        for count in (2, 4, 8, 16, 64):
            text = f"{'x ' * count}{'y ' * count}"
            assert int(fingerprint(text, ARTICLE)) == int(fingerprint("x", ARTICLE)) & int(fingerprint("y", ARTICLE))


class TestWeights:
    """1e0ng/simhash#74, #55, #14 and PR#11; mattlorimor/ProbabilisticDataStructures PR#73."""

    @each([ARTICLE, DEFAULT, *BOTH])
    @pytest.mark.parametrize("count", [3, 127, 128, 255, 256, 257, 32_768, 65_535, 65_536])
    def test_a_feature_seen_often(self, scheme: Scheme, count: int) -> None:
        one = fingerprint("a " * count + "b c", scheme)
        assert one.value == int(fingerprint("a", scheme))
        assert one.features == 3

    def test_tf_is_no_set(self) -> None:
        texts = ["apple " * 40 + "banana " * 2, "apple " * 2 + "banana " * 40]
        for bits, expected in product(some.WIDTHS, ("tf", "set")):
            a, b = fingerprint(texts, Scheme("word", 1, bits, expected))  # type: ignore[arg-type]
            assert (distance(a, b) > 0) == (expected == "tf")
            assert (a.features, b.features) == (2, 2)

    @pytest.mark.parametrize("value", [-1, -1e-9, math.nan, math.inf, -math.inf])
    def test_impossible_idf_values(self, value: float) -> None:
        for weights, unseen in (({"a": value}, 1.0), ({}, value), ({"a": 1.0, "b": value}, 1.0)):
            with pytest.raises(ValueError, match="is no idf weight"):
                idf_table(weights, DEFAULT, unseen)
        with pytest.raises(ValueError, match="negative or not finite"):
            fingerprint_features([{"a": value}])

    @pytest.mark.parametrize("count", [2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**64, 10**30])
    def test_counts_beyond_any_word(self, count: int) -> None:
        """One more than the others together decides, one less does not."""
        for extra in (-1, 0, 1):
            document = {"a": count + extra, "b": count}
            a, b = (reference.feature_hash(name, ARTICLE) for name in "ab")
            expected = {-1: b, 0: a & b, 1: a}[extra]
            assert int(fingerprint_features([document], ARTICLE)[0]) == expected

    def test_nothing_leaks_from_text_to_text(self) -> None:
        texts = ["a " * 100_000, "b", "", "c d", "a " * 300, "b"]
        for scheme in BOTH:
            assert list(fingerprint(texts, scheme)) == [fingerprint(text, scheme) for text in texts]

    def test_unseen_terms_follow_one_rule(self) -> None:
        fitted = fit_idf(words(10), DEFAULT)
        document = dict.fromkeys(words(10), 1) | {"new": 1}
        assert int(fingerprint(" ".join(document), fitted)) == int(fingerprint_features([document], DEFAULT)[0])


class TestHashStability:
    """seomoz/simhash-py#28 and PR#37; hajimes/mmh3#47; 1e0ng/simhash PR#44; ekzhu/datasketch PR#326."""

    def test_published_vectors(self) -> None:
        """From XXH64's and BLAKE2's own documents: the empty input and "abc"."""
        assert reference.xxh64(b"", 0) == 0xEF46DB3751D8E999
        assert int(fingerprint("abc", Scheme("word", 1, 64))) == 0x44BC2CF5AD770999
        assert int(fingerprint("abc", Scheme("word", 1, 64, hash="blake2b"))) == 0xD8BB14D833D59559

    @pytest.mark.parametrize("name", ["md5", "hash", "sha1", "murmur3", "xxh3", "", None])
    def test_other_hashes_are_refused(self, name: Any) -> None:
        with pytest.raises(ValueError, match=f"hash={name!r}"):
            Scheme(hash=name)

    @pytest.mark.parametrize(
        "other",
        [
            {"ngram": 2},
            {"unit": "char"},
            {"weight": "set"},
            {"hash": "xxh64"},
            {"normalize": True},
        ],
        ids=str,
    )
    def test_unequal_ids_never_meet(self, other: dict[str, Any]) -> None:
        options: dict[str, Any] = {
            "unit": "word",
            "ngram": 1,
            "bits": 64,
            "weight": "tf",
            "hash": "blake2b",
            "normalize": False,
        }
        stranger = Scheme(**options | other)
        assert stranger.id != ARTICLE.id
        with pytest.raises(ValueError, match="different schemes"):
            distance(fingerprint("a", ARTICLE), fingerprint("a", stranger))
        with pytest.raises(ValueError, match="different schemes"):
            distance(fingerprint(["a"], ARTICLE), fingerprint(["a"], stranger))

    def test_idf_tables_never_meet_each_other(self) -> None:
        one, two = fit_idf(["a b", "c"], DEFAULT), fit_idf(["a b", "d"], DEFAULT)
        with pytest.raises(ValueError, match="different schemes"):
            distance(fingerprint("a", one), fingerprint("a", two))


class TestDeadBits:
    """internetarchive/wayback-discover-diff PR#28; ClickHouse/ClickHouse#102699, #47580; bookmate/simhash#4."""

    @each([ARTICLE, *BOTH])
    def test_every_bit_lives(self, scheme: Scheme) -> None:
        values = list(map(int, fingerprint(words(1000), scheme)))
        every, none = 0, (1 << scheme.bits) - 1
        for value in values:
            every |= value
            none &= value
        assert every == (1 << scheme.bits) - 1
        assert none == 0

    @each(BOTH)
    def test_each_bit_is_even(self, scheme: Scheme) -> None:
        count = 4000
        rows = fingerprint(words(count, "token"), scheme).words
        bits = np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1)
        assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / math.sqrt(count)

    @each(BOTH)
    def test_unrelated_texts_are_half_apart(self, scheme: Scheme) -> None:
        """Odd numbers of words, so that no bit ties; 500 pairs that share no word."""
        texts = [" ".join(words(41, f"t{number}x")) for number in range(1000)]
        column = fingerprint(texts, scheme)
        apart = distance(column[::2], column[1::2])
        sigma = math.sqrt(scheme.bits / 4 / len(apart))
        assert abs(apart.mean() - scheme.bits / 2) < 5 * sigma

    @each([scheme for scheme in BOTH if scheme.bits > 64])
    def test_no_two_bits_are_one(self, scheme: Scheme) -> None:
        rows = fingerprint(words(400), scheme).words
        bits = np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1)
        assert len(np.unique(bits, axis=1).T) == scheme.bits
        assert len(np.unique(np.hstack([bits, 1 - bits]), axis=1).T) == 2 * scheme.bits

    @pytest.mark.parametrize("bits", [192, 96, 0, -64, 32, 100, 512, 65])
    def test_other_widths_are_refused(self, bits: int) -> None:
        with pytest.raises(ValueError, match=f"bits={bits}"):
            Scheme(bits=bits)


class TestSignWidthHex:
    """seomoz/simhash-db-py#1; scrapinghub/python-simhash#5; rust-lang/cargo#13081; 1e0ng/simhash#17, #38."""

    @pytest.mark.parametrize("bits", some.WIDTHS)
    @pytest.mark.parametrize("shift", [0, 1, 62, 63, 64, 127, 128, 191, 255])
    def test_every_border_bit(self, bits: int, shift: int) -> None:
        value = 1 << shift % bits
        column = Fingerprints.from_ints([value, value - 1, (1 << bits) - value], Scheme(bits=bits))
        for copied in (
            Fingerprints.from_hex(column.hex(), column.scheme),
            Fingerprints.from_signed(column.to_signed(), column.scheme),
            Fingerprints.from_hex(json.loads(json.dumps(column.hex())), column.scheme),
        ):
            assert list(map(int, copied)) == [value, value - 1, (1 << bits) - value]
        assert {len(digits) for digits in column.hex()} == {bits // 4}

    def test_samples(self) -> None:
        column = Fingerprints.from_ints([1, 1 << 63, 0, 2**64 - 1], ARTICLE)
        assert column.hex() == ["0000000000000001", "8000000000000000", "0" * 16, "f" * 16]
        assert column.to_signed().tolist() == [1, -(2**63), 0, -1]
        assert column[1].to_signed() == -(2**63)
        assert Fingerprint(255, 1, Scheme(bits=256)).hex() == f"{255:064x}"

    def test_distance_of_ints(self) -> None:
        assert distance(0, 2**64 - 1) == 64
        assert distance(1 << 63, 0) == 1
        assert distance(2**64 - 1, 2**63 - 1) == 1

    @pytest.mark.parametrize("value", [-1, 2**64, "ff", 1.0, None, -(2**63), True, b"\xff", "0xff", 2.0**63])
    def test_what_is_no_fingerprint(self, value: Any) -> None:
        for left, right in ((value, 0), (0, value)):
            with pytest.raises((ValueError, TypeError), match="is no fingerprint"):
                distance(left, right)


class TestPairSearch:
    """seomoz/simhash-py#44, #53, #22; seomoz/simhash-cpp PR#40; ekzhu/datasketch#105, #243."""

    def test_identical_texts(self) -> None:
        pairs = all_pairs(fingerprint(["same text"] * 3, ARTICLE).words, 0)
        assert list(zip(pairs.left, pairs.right, strict=True)) == [(0, 1), (0, 2), (1, 2)]
        assert pairs.distance.tolist() == [0, 0, 0]

    @pytest.mark.parametrize("bits", some.WIDTHS)
    @pytest.mark.parametrize("blocks", [1, 2, 3, 4, 7, 8, 11, 16, 19])
    def test_one_bit_flipped_in_each_of_k_blocks(self, bits: int, blocks: int) -> None:
        random = np.random.default_rng([bits, blocks])
        edges = np.linspace(0, bits, blocks + 1).astype(int).tolist()
        for k in range(min(8, blocks) + 1):
            for chosen in list(combinations(range(blocks), k))[:: max(1, math.comb(blocks, k) // 12)]:
                value = int.from_bytes(random.bytes(bits // 8), "big")
                other = value
                for block in chosen:
                    other ^= 1 << int(random.integers(edges[block], edges[block + 1]))
                rows = Fingerprints.from_ints([value, other], Scheme(bits=bits)).words
                assert all_pairs(rows, k).distance.tolist() == [k]
                if k:
                    assert len(all_pairs(rows, k - 1)) == 0

    @pytest.mark.parametrize("k", [-1, 65, 1.5, True, "3", None, math.nan])
    def test_what_is_no_k(self, k: Any) -> None:
        with pytest.raises((ValueError, TypeError), match=f"k={k!r}"):
            all_pairs(fingerprint(["a", "b"], ARTICLE).words, k)

    def test_no_pair_twice_or_mirrored(self) -> None:
        texts = [f"{'common ' * 9}w{number % 40}" for number in range(400)]
        pairs = all_pairs(fingerprint(texts, ARTICLE).words, 64)
        found = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
        assert found == list(combinations(range(400), 2))


class TestProcessesAndThreads:
    """1e0ng/simhash PR#20, #32, #64; ekzhu/datasketch PR#139: unpicklable objects, hidden state."""

    @pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    def test_everything_pickles(self, protocol: int) -> None:
        fitted = fit_idf(["a b", "b c"], DEFAULT)
        for one in (ARTICLE, fitted, fingerprint(["a", "", "b c"], fitted), fingerprint("b", ARTICLE)):
            again = pickle.loads(pickle.dumps(one, protocol))
            assert again == one
            assert type(again) is type(one)
            assert copy.deepcopy(one) == one

    def test_pickled_columns_keep_their_counts_and_stay_read_only(self) -> None:
        ways: list[Callable[[Any], Any]] = [lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy]
        for again in ways:
            column = again(fingerprint(["a", "", "b c"], DEFAULT))
            assert column.features.tolist() == [1, 0, 2]
            assert column.scheme.id == DEFAULT.id
            table = again(fit_idf(["a b", "b c"], DEFAULT).idf)
            for array in (column.words, column.features, table.features, table.weights):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 7

    def test_pairs_pickle(self) -> None:
        pairs = all_pairs(np.array([1, 1, 3], np.uint64), 1)
        again = pickle.loads(pickle.dumps(pairs))
        for name in ("left", "right", "distance"):
            assert getattr(again, name).tolist() == getattr(pairs, name).tolist()

    def test_order_of_calls_does_not_matter(self) -> None:
        jobs = [(text, scheme) for text in ("a b c", "中文", "é" * 90, "") for scheme in (ARTICLE, *BOTH)]
        forward = [fingerprint(*job) for job in jobs]
        assert [fingerprint(*job) for job in reversed(jobs)] == forward[::-1]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda job: fingerprint(*job), jobs)) == forward


class TestEncodings:
    """1e0ng/simhash#60; seomoz/simhash-py#47: bytes are decoded by their reader, never here."""

    @pytest.mark.parametrize(
        "value", [b"text", bytearray(b"text"), memoryview(b"text"), "é".encode("latin-1")], ids=repr
    )
    def test_bytes_are_refused(self, value: Any) -> None:
        with pytest.raises(TypeError):
            fingerprint(value)
        with pytest.raises(TypeError):
            fingerprint(["a", value])
        with pytest.raises(TypeError):
            fit_idf([value], DEFAULT)

    @pytest.mark.parametrize("text", ["a\x00b", "\x00", "a\ufffdb", "\ufeffa", "a\x1ab", "\x7f", "a\x85b"], ids=ascii)
    def test_control_characters_do_not_truncate(self, text: str) -> None:
        for scheme in (ARTICLE, DEFAULT):
            for rest in ("", " and more"):
                one = fingerprint(text + rest, scheme)
                assert (one.value, one.features) == reference.fingerprint(text + rest, scheme)
            assert fingerprint(f"{text} and more", scheme) != fingerprint(f"{text} or less", scheme)


class TestUnicode:
    """Tatoeba/tatoeba2#2151; vshulcz/deja-vu#1098; mfonda/simhash#1; ChenghaoMou/text-dedup#90."""

    @pytest.mark.parametrize(
        "sentence",
        [
            "Café, naïve Straße über Åland",
            "Ὀδυσσεὺς ἦλθεν",
            "Ёжик в тумане",
            "Tiếng Việt rất hay",
            "한국어 문장",
            "ガギグゲゴ です",
        ],
    )
    @pytest.mark.parametrize("ngram", [1, 3])
    def test_forms_of_one_sentence(self, sentence: str, ngram: int) -> None:
        forms = [unicodedata.normalize(form, sentence) for form in ("NFC", "NFD", "NFKC", "NFKD")]
        forms += [
            sentence.upper(),
            sentence.lower(),
            sentence.replace(" ", "\u00a0"),
            sentence.replace(" ", "\u3000\n"),
        ]
        forms += [sentence[:2] + mark + sentence[2:] for mark in "\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0f"]
        forms += ["".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in sentence)]
        for unit in ("word", "char"):
            column = fingerprint(forms, Scheme(unit, ngram, 64))
            assert len(set(column.hex())) == 1, [form for form in forms if fingerprint(form) != fingerprint(forms[0])]

    @pytest.mark.parametrize(
        "different",
        [
            ("काला", "कीला", "कूला"),
            ("กิน", "กีน", "กุน"),
            ("résumé", "resume"),
            ("שָׁלוֹם", "שלום"),
            ("كَتَبَ", "كُتُب"),
            ("がく", "かく"),
            ("ສະ", "ສະ້"),
            ("a\ud800", "a\udfff", "a"),
            ("ไม่", "ไม้", "ไม"),
            ("\U00031350", "\U00031351"),
        ],
        ids=ascii,
    )
    def test_marks_and_rare_signs_count(self, different: tuple[str, ...]) -> None:
        for scheme in (DEFAULT, Scheme("char", 1, 64), Scheme("word", 3, 64)):
            assert len(set(fingerprint(different, scheme).hex())) == len(different)

    @pytest.mark.parametrize(
        ("text", "features"),
        [
            ("中文", 2),
            ("中文 中文", 2),
            ("ひらがな", 4),
            ("กิน", 2),
            ("ສະ", 2),
            ("မြန်", 2),
            ("한국어", 1),
            ("हिन्दी", 1),
            ("தமிழ்", 1),
        ],
    )
    def test_scripts_with_and_without_spaces(self, text: str, features: int) -> None:
        assert fingerprint(text, DEFAULT).features == features

    @pytest.mark.parametrize("code", [0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF, *range(0xFE00, 0xFE10)], ids=hex)
    def test_what_is_removed(self, code: int) -> None:
        assert tokens(f"in{chr(code)}side {chr(code)} {chr(code)}out", DEFAULT) == ["inside", "out"]
        assert tokens(f"e{chr(code)}\u0301", DEFAULT) == ["é"]

    @pytest.mark.parametrize(
        "text", ["\ud800", "a\udc00b", "\udfff\ud800", "中\ud800文", "\ud800\u0301 x", "ok \udcff"], ids=ascii
    )
    def test_lone_surrogates_are_part_of_their_token(self, text: str) -> None:
        for scheme in (DEFAULT, ARTICLE, Scheme("char", 2, 256, "set")):
            one = fingerprint(text, scheme)
            assert (one.value, one.features) == reference.fingerprint(text, scheme)
            assert one == fingerprint(["other", text], scheme)[1]


class TestThreshold:
    """mtrnix/metronix-memory#496; ChenghaoMou/text-dedup#107: k is in bits, and it works."""

    def test_a_smaller_k_finds_a_part(self) -> None:
        random = np.random.default_rng(7)
        pages = [words(200, f"p{number}x") for number in range(20)]
        texts = [" ".join(page) for page in pages]
        for page in pages:
            for edits in (1, 4, 12, 30):
                for at in random.integers(0, 200, edits).tolist():
                    page[at] = f"edit{random.integers(10**9)}"
                texts.append(" ".join(page))
        rows = fingerprint(texts, Scheme("word", 1, 64)).words
        sizes = []
        before: set[tuple[int, int]] = set()
        for k in (0, 3, 6, 10, 20, 64):
            pairs = all_pairs(rows, k)
            now = set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
            assert before <= now
            assert all(pairs.distance <= k)
            before = now
            sizes.append(len(now))
        assert sizes == sorted(set(sizes))
        counts = distance_counts(rows, np.arange(len(rows))).sum(axis=0)
        assert sizes[1:] == [int(counts[: k + 1].sum()) // 2 for k in (3, 6, 10, 20, 64)]


class TestTokeniserCliff:
    """Seen in trafilatura's source: one more word switches the token filter."""

    @pytest.mark.parametrize("count", [1, 2, 3, 10, 50, 100, 230, 231, 500])
    def test_one_word_more_is_one_feature_more(self, count: int) -> None:
        for text in (words(count, "long"), [chr(0x4E00 + number) for number in range(count)], words(count, "")):
            for ngram in (1, 2):
                one, two = fingerprint([" ".join(text), " ".join([*text, "more"])], Scheme("word", ngram, 64))
                assert two.features - one.features == (1 if count >= ngram else 0)

    def test_one_word_more_moves_few_bits(self) -> None:
        text = words(230)
        a, b = fingerprint([" ".join(text), " ".join([*text, "more"])], DEFAULT)
        assert distance(a, b) <= 8

    @given(count=st.integers(1, 300), more=some.words)
    def test_one_word_more_flips_no_clear_bit(self, count: int, more: str) -> None:
        """A bit whose votes stand 2 or more apart cannot be turned by a single vote."""
        text = words(count)
        hashes = [reference.feature_hash(word, ARTICLE) for word in text]
        a, b = (int(fingerprint(" ".join(one), ARTICLE)) for one in (text, [*text, more]))
        changed = a ^ b
        for bit in range(64):
            if changed >> bit & 1:
                assert abs(2 * sum(value >> bit & 1 for value in hashes) - count) <= 1


class TestEveryTokenCounts:
    """Solr's TextProfileSignature drops single words: unequal texts become equal."""

    @pytest.mark.parametrize(
        "pair", [("a mat", "the mat"), ("a", "b"), ("x 1", "x 2"), ("of the", "of a"), ("I am", "am"), ("1", "2")]
    )
    @pytest.mark.parametrize("ngram", [1, 2])
    def test_short_and_common_words(self, pair: tuple[str, str], ngram: int) -> None:
        for unit, bits in product(("word", "char"), some.WIDTHS):
            one, two = fingerprint(pair, Scheme(unit, ngram, bits))  # type: ignore[arg-type]
            assert one != two

    @given(counts=st.dictionaries(st.text("abcd12é中", min_size=1, max_size=2), st.integers(1, 4), max_size=6))
    def test_features_are_all_counted(self, counts: dict[str, int]) -> None:
        text = " ".join(word for word, count in counts.items() for _ in range(count))
        raw = Scheme("word", 1, 128, normalize=False)
        assert fingerprint(text, raw).features == len(counts)
        assert Counter(tokens(text, raw)) == counts


class TestLongDocuments:
    """The BigScience report: bags of common words look alike, n-grams tell them apart."""

    def test_ngrams_are_farther_apart(self) -> None:
        texts = [zipf(20_000, seed) for seed in range(12)]
        means = []
        for ngram in (1, 3):
            column = fingerprint(texts, Scheme("word", ngram, 64, "tf"))
            means.append(all_pairs(column.words, 64).distance.mean())
        assert means[1] > means[0] + 5


class TestStreams:
    """1e0ng/simhash PR#22: chunk borders split shingles."""

    @pytest.mark.parametrize("threads", [1, 2])
    def test_a_generator_is_its_list(self, threads: int) -> None:
        texts = [" ".join(words(number % 40, f"t{number}x")) for number in range(1000)]
        for scheme in (ARTICLE, Scheme("word", 3, 128), fit_idf(iter(texts), DEFAULT)):
            column = fingerprint((text for text in texts), scheme, threads=threads)
            assert column == fingerprint(texts, scheme)
            assert column.features.tolist() == fingerprint(texts, scheme).features.tolist()

    def test_a_text_longer_than_a_batch_is_whole(self) -> None:
        text = " ".join(words(200_000))
        scheme = Scheme("word", 3, 64)
        assert fingerprint(text, scheme).features == 199_998
        assert fingerprint(["a", text, "b"], scheme)[1] == fingerprint(text, scheme)


class TestNames:
    """Eventual-Inc/Daft PR#6821: the distance of strings is another one."""

    @pytest.mark.parametrize(
        ("left", "right"), [("ff", "fe"), ("0" * 16, "f" * 16), ("abc", "abd"), ("", ""), (0, "0")]
    )
    def test_strings_are_refused(self, left: Any, right: Any) -> None:
        with pytest.raises(TypeError, match="is no fingerprint: give an int"):
            distance(left, right)

    def test_strings_are_refused_beside_fingerprints(self) -> None:
        one = fingerprint("a", ARTICLE)
        with pytest.raises(TypeError, match="has no scheme"):
            distance(one, one.hex())  # type: ignore[call-overload]
