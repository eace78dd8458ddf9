"""Controlled edits: what always holds under hypothesis, what holds on average with pinned seeds."""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import Scheme, tokens
from simdup.study.edits import Edit, deleted, inserted, replaced, sentences, swapped, vocabulary, words
from tests.properties import strategies as some

CHANGES = ("replace", "delete", "insert", "swap")
UNITS = ("", "-sentences")
NOISE = ("timestamp", "token", "advertisement")
VOCABULARY = ["new. ", "other! "]
FUNCTIONS = {"replace": replaced, "delete": deleted, "insert": inserted, "swap": swapped}

rates = st.floats(0, 1)
prose = st.one_of(
    some.texts(),
    st.lists(st.sampled_from(["a", "b. ", "c", " ", "! ", "?", "。", "3.5", "\n", "\n\n", "...", "！？"])).map("".join),
)


def rng(seed: int = 39) -> random.Random:
    return random.Random(seed)


class TestCutting:
    @given(text=prose)
    def test_words_give_the_text_back_but_for_its_start(self, text: str) -> None:
        assert "".join(words(text)) == text.lstrip()

    @given(text=prose)
    def test_sentences_give_the_text_back(self, text: str) -> None:
        assert "".join(sentences(text)) == text

    def test_long_runs_take_linear_time(self) -> None:
        """Half a million dots took hours when each of them was tried as the end of a sentence."""
        for text in ("." * 500_000, "a" + "!?." * 200_000 + "b", "。" * 300_000, "\n" * 300_000, "a. " * 100_000):
            assert "".join(sentences(text)) == text

    @given(text=prose)
    def test_a_unit_is_never_empty_and_its_white_space_stands_behind(self, text: str) -> None:
        assert all(word.strip() and not word[0].isspace() for word in words(text))
        assert all(sentences(text))
        assert not any(left[-1] in ".!?" and right[0].isspace() for left, right in pairwise(sentences(text)))

    @given(text=prose)
    def test_a_word_holds_no_white_space_inside(self, text: str) -> None:
        assert all(len(word.split()) == 1 for word in words(text))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", []),
            (" \n", []),
            ("a", ["a"]),
            ("  two  words\n", ["two  ", "words\n"]),
            ("no\u00a0break e-mail a.b", ["no\u00a0", "break ", "e-mail ", "a.b"]),
            ("中文 字", ["中", "文 ", "字"]),
            ("東京へbc行く", ["東", "京", "へ", "bc", "行", "く"]),
            ("ກາ ok", ["ກ", "າ ", "ok"]),
            ("한국어 말", ["한국어 ", "말"]),
            ("काला कीला", ["काला ", "कीला"]),
            # What a character becomes counts: these hold marks of the letter before, or are ideographs.
            ("น้ำดื่ม", ["น้ำ", "ดื่", "ม"]),
            ("ນ້ຳດີ", ["ນ້ຳ", "ດີ"]),
            ("ｶﾞｰﾄﾞ", ["ｶﾞ", "ｰ", "ﾄﾞ"]),
            ("⽂⼈", ["⽂", "⼈"]),
        ],
        ids=repr,
    )
    def test_words(self, text: str, expected: list[str]) -> None:
        assert words(text) == expected

    @pytest.mark.parametrize("text", ["กินข้าว", "ဘာသာ", "ភាសា", "か\u3099き"])
    def test_a_character_keeps_its_marks(self, text: str) -> None:
        """As in a token: a mark cut from its letter would be a feature that no page has."""
        assert len(words(text)) > 1
        assert not any(unicodedata.category(word[0]).startswith("M") for word in words(text))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", []),
            ("no end", ["no end"]),
            ("One. Two!  Three?", ["One. ", "Two!  ", "Three?"]),
            ("It is 3.5 m. Really...", ["It is 3.5 m. ", "Really..."]),
            ("先说。再说！好吗？", ["先说。", "再说！", "好吗？"]),
            ("यह है। वह॥ क्या? हाँ।", ["यह है। ", "वह॥ ", "क्या? ", "हाँ।"]),
            ("لماذا؟ لأن. کیوں۔ ہاں", ["لماذا؟ ", "لأن. ", "کیوں۔ ", "ہاں"]),
            ("Title\n\nText here.\nMore", ["Title\n\n", "Text here.\n", "More"]),
        ],
        ids=repr,
    )
    def test_sentences(self, text: str, expected: list[str]) -> None:
        assert sentences(text) == expected


class TestParse:
    @pytest.mark.parametrize(
        ("text", "edit", "name"),
        [
            ("0.05", Edit("replace", 0.05), "replace 5 %"),
            ("replace:0.05", Edit("replace", 0.05), "replace 5 %"),
            (" delete:0.1 ", Edit("delete", 0.1), "delete 10 %"),
            ("insert:0", Edit("insert", 0), "insert 0 %"),
            ("swap:1", Edit("swap", 1), "swap 100 %"),
            ("swap-sentences:0.2", Edit("swap-sentences", 0.2), "swap sentences 20 %"),
            ("replace-sentences:0.025", Edit("replace-sentences", 0.025), "replace sentences 2.5 %"),
            ("timestamp", Edit("timestamp"), "timestamp"),
            ("token", Edit("token"), "token"),
            ("advertisement", Edit("advertisement"), "advertisement"),
        ],
    )
    def test_names(self, text: str, edit: Edit, name: str) -> None:
        assert Edit.parse(text) == edit
        assert edit.name == name

    @given(change=st.sampled_from(CHANGES), unit=st.sampled_from(UNITS), rate=rates)
    def test_round_trip(self, change: str, unit: str, rate: float) -> None:
        assert Edit.parse(f"{change}{unit}:{rate!r}") == Edit(change + unit, rate)

    @pytest.mark.parametrize(
        "text",
        [
            *("", " ", "foo", "foo:0.1", "replace", "1.5", "-0.1", "nan", "inf", "delete:2", "delete:", "delete:nan"),
            *("swap-words:0.1", "delete-sentences", "token:0.5", "-sentences:0.1", "0.05:0.1", "replace:0.1:0.2", "5%"),
        ],
    )
    def test_what_is_no_edit(self, text: str) -> None:
        with pytest.raises(ValueError, match=re.escape(f"{text.strip()!r} is no edit")) as raised:
            Edit.parse(text)
        assert "replace[-sentences]:RATE" in str(raised.value)
        assert "timestamp, token, advertisement" in str(raised.value)

    @pytest.mark.parametrize(
        ("change", "rate"), [("foo", 0.1), ("replace-words", 0.1), ("replace", 1.5), ("delete", -1)]
    )
    def test_what_is_no_edit_is_refused_however_it_is_made(self, change: str, rate: float) -> None:
        with pytest.raises(ValueError, match=re.escape(str(rate) if change in CHANGES else change)):
            Edit(change, rate).apply("a b c", VOCABULARY, rng())


class TestAlways:
    @given(text=prose, change=st.sampled_from(CHANGES), unit=st.sampled_from(UNITS), seed=st.integers())
    def test_rate_0_changes_nothing(self, text: str, change: str, unit: str, seed: int) -> None:
        expected = text if unit else text.lstrip()
        assert Edit(change + unit, 0).apply(text, VOCABULARY, rng(seed)) == expected

    @given(text=prose, unit=st.sampled_from(UNITS), seed=st.integers())
    def test_rate_1(self, text: str, unit: str, seed: int) -> None:
        units = (sentences if unit else words)(text)
        assert Edit("delete" + unit, 1).apply(text, VOCABULARY, rng(seed)) == ""
        if units:
            assert set(Edit("replace" + unit, 1).apply(text, VOCABULARY, rng(seed)).split()) <= {"new.", "other!"}
        assert len(inserted(units, 1, VOCABULARY, rng(seed))) == 2 * len(units)

    @given(
        text=prose,
        edit=st.one_of(
            st.builds(Edit, st.sampled_from([change + unit for change in CHANGES for unit in UNITS]), rates),
            st.sampled_from(NOISE).map(Edit),
        ),
        seed=st.integers(),
    )
    def test_same_seed_same_copy(self, text: str, edit: Edit, seed: int) -> None:
        assert edit.apply(text, VOCABULARY, rng(seed)) == edit.apply(text, VOCABULARY, rng(seed))

    @given(units=st.lists(st.text("abc", min_size=1)), rate=rates, seed=st.integers())
    def test_what_each_change_keeps(self, units: list[str], rate: float, seed: int) -> None:
        assert Counter(swapped(units, rate, VOCABULARY, rng(seed))) == Counter(units)
        copy = replaced(units, rate, ["NEW"], rng(seed))
        assert len(copy) == len(units)
        assert all(new in (old, "NEW") for old, new in zip(units, copy, strict=True))
        assert [unit for unit in inserted(units, rate, ["NEW"], rng(seed)) if unit != "NEW"] == units
        rest = iter(units)
        assert all(unit in rest for unit in deleted(units, rate, VOCABULARY, rng(seed)))

    @given(units=st.lists(st.text("abc", min_size=1)), rate=rates, seed=st.integers())
    def test_the_original_is_left_alone(self, units: list[str], rate: float, seed: int) -> None:
        before = list(units)
        for change in (replaced, deleted, inserted, swapped):
            change(units, rate, VOCABULARY, rng(seed))
        assert units == before

    @given(text=prose, change=st.sampled_from(CHANGES), rate=rates, seed=st.integers())
    def test_sentences_are_never_cut(self, text: str, change: str, rate: float, seed: int) -> None:
        """What an edit of sentences gives is sentences of the text and of the vocabulary, put together."""
        copy = Edit(f"{change}-sentences", rate).apply(text, VOCABULARY, rng(seed))
        whole = FUNCTIONS[change](sentences(text), rate, VOCABULARY, rng(seed))
        assert copy.split() == "".join(whole).split() or change == "swap"
        assert sorted("".join(copy.split())) == sorted("".join("".join(whole).split()))

    @given(text=some.texts(), noise=st.sampled_from(NOISE), seed=st.integers())
    def test_noise_adds_one_thing_and_keeps_all_words(self, text: str, noise: str, seed: int) -> None:
        copy = Edit(noise).apply(text, VOCABULARY, rng(seed))
        before, after = words(text), words(copy)
        (start,) = [at for at in range(len(before) + 1) if same_words(before[:at], after[:at])][-1:]
        assert same_words(before[start:], after[len(after) - len(before) + start :])
        added = "".join(after[start : len(after) - len(before) + start]).strip()
        assert NOISES[noise](added), added


def same_words(left: list[str], right: list[str]) -> bool:
    return [word.strip() for word in left] == [word.strip() for word in right]


NOISES: dict[str, Callable[[str], object]] = {
    "timestamp": re.compile(r"2026-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3])(:[0-5]\d){2}Z").fullmatch,
    "token": re.compile(r"[0-9a-f]{32}").fullmatch,
    "advertisement": re.compile(r"[A-Z][^\n]{30,100}\.").fullmatch,
}


class TestText:
    @pytest.mark.parametrize("rate", [0.3, 1])
    def test_swapping_words_keeps_them_all(self, rate: float) -> None:
        """Also the last one, which has no white space behind it."""
        text = " ".join(f"w{i}" for i in range(40))
        for seed in range(20):
            copy = Edit("swap", rate).apply(text, VOCABULARY, rng(seed))
            assert copy != text
            assert Counter(copy.split()) == Counter(text.split())

    def test_swapping_sentences_keeps_their_words(self) -> None:
        text = "One came. Two went! Three stayed?"
        for seed in range(20):
            copy = Edit("swap-sentences", 1).apply(text, VOCABULARY, rng(seed))
            assert Counter(copy.split()) == Counter(text.split())

    @pytest.mark.parametrize("last", ["end", "café", "конец", "끝"])
    @pytest.mark.parametrize("change", ["replace", "insert"])
    def test_a_word_from_the_vocabulary_is_not_welded_to_the_next(self, change: str, last: str) -> None:
        units = vocabulary([last], Edit(change, 0.5))
        copy = Edit(change, 0.5).apply("a b c d e f", units, rng())
        assert set(copy.split()) <= {*"abcdef", last}
        assert last in copy.split()

    def test_sentences_of_two_scripts_are_not_welded(self) -> None:
        """What a sentence ends with counts, not what it starts with."""
        text = "Hello there. 中文 is nice"
        copy = Edit("swap-sentences", 1).apply(text, [], random.Random(1))
        assert copy == "中文 is nice Hello there. "
        assert sorted(tokens(copy, Scheme())) == sorted(tokens(text, Scheme()))
        assert Edit("swap-sentences", 1).apply("See. 中\u0301", [], random.Random(1)) == "中\u0301See. "

    def test_chinese_gets_no_spaces(self) -> None:
        units = vocabulary(["天地玄黄宇宙"], Edit("replace", 0.5))
        copy = Edit("replace", 0.5).apply("日月盈昃辰宿列张" * 4, units, rng())
        assert len(copy) == 32
        assert " " not in copy
        assert set(copy) & set("天地玄黄宇宙")


class TestVocabulary:
    def test_running_words_in_order(self) -> None:
        found = vocabulary(["a b\nc", "a d."], Edit("replace", 0.1))
        assert [unit.strip() for unit in found] == ["a", "b", "c", "a", "d."]

    def test_sentences_for_edits_of_sentences(self) -> None:
        found = vocabulary(["One. Two!", "三。四"], Edit("insert-sentences", 0.1))
        assert [unit.strip() for unit in found] == ["One.", "Two!", "三。", "四"]

    @pytest.mark.parametrize("size", [0, 1, 3, 4, 100])
    def test_size(self, size: int) -> None:
        found = vocabulary(["a b", "c d", "e f"], Edit("replace", 0.1), size)
        assert [unit.strip() for unit in found] == list("abcdef")[:size]

    def test_reads_no_more_texts_than_it_needs(self) -> None:
        texts = iter(["a b", "c d", "e f"])
        vocabulary(texts, Edit("replace", 0.1), 2)
        assert list(texts) == ["c d", "e f"]


LONG = [f"x{i}" for i in range(40_000)]


@pytest.mark.parametrize("rate", [0.01, 0.15, 0.5])
@pytest.mark.parametrize("seed", [1, 2])
def test_realised_rates(rate: float, seed: int) -> None:
    sigma = (len(LONG) * rate * (1 - rate)) ** 0.5
    known = set(LONG)
    changed = {
        "replace": sum(unit == "NEW" for unit in replaced(LONG, rate, ["NEW"], rng(seed))),
        "delete": len(LONG) - len(deleted(LONG, rate, [], rng(seed))),
        "insert": sum(unit not in known for unit in inserted(LONG, rate, ["NEW"], rng(seed))),
    }
    for change, count in changed.items():
        assert abs(count - len(LONG) * rate) < 5 * sigma, change


def test_realised_rate_of_swaps() -> None:
    """At a low rate each swap moves one unit up and one down: two in a row are rare, and moved further."""
    rate = 0.01
    copy = swapped(LONG, rate, [], rng())
    up = sum(copy[at] == LONG[at + 1] for at in range(len(LONG) - 1))
    assert abs(up - len(LONG) * rate) < 5 * (len(LONG) * rate) ** 0.5


def test_replacements_are_as_frequent_as_in_the_vocabulary() -> None:
    copy = Counter(replaced(LONG, 1, ["often"] * 3 + ["seldom"], rng()))
    assert set(copy) == {"often", "seldom"}
    assert abs(copy["seldom"] - len(LONG) / 4) < 5 * (len(LONG) * 3 / 16) ** 0.5
