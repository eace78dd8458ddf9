"""Normalisation and tokens: the kernel reaches what the definition says, whatever the script."""

import itertools
import random
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import Scheme, fingerprint, normalize, reference, tokens
from simdup.text import _in_order, encode, joined, normalize_assigned, tokenize
from simdup.unicode import IGNORED_CHARACTERS, load
from tests.properties import strategies as some

WORD = Scheme("word", 1, 64)
CHAR = Scheme("char", 1, 64)
READINGS = [Scheme(unit, 1, 64, normalize=form) for unit in ("word", "char") for form in (True, False)]


@given(text=some.texts(), scheme=some.schemes(weights=("tf",)))
def test_tokens_are_those_of_the_reference(text: str, scheme: Scheme) -> None:
    assert tokens(text, scheme) == reference.tokens(text, scheme)


@given(parts=st.lists(some.texts(5), max_size=8), scheme=some.schemes(weights=("tf",)))
def test_texts_of_a_batch_do_not_touch_each_other(parts: list[str], scheme: Scheme) -> None:
    found = tokenize(*joined(list(map(encode, parts))), scheme)
    stops = found.starts.tolist()
    for text, (first, last) in zip(parts, itertools.pairwise(found.offsets.tolist()), strict=True):
        expected = " ".join(reference.tokens(text, scheme))
        read = found.canonical[stops[first] : stops[last] - 1] if last > first else found.canonical[:0]
        assert read.tobytes() == encode(expected)


# How one character stands among others: alone, in a word, behind and before marks that reorder or compose.
CONTEXTS = (
    "{}",
    "ab{}cd",
    "e{}\u0316",
    "α\u0316{}",
    "α{}\u0345",
    "中{}文",
    "{}{}",
    "{}\u0301",
    "ก{}ข",
    "\u1100{}\u11a8",
)


@pytest.mark.parametrize("context", CONTEXTS, ids=ascii)
def test_every_sort_of_character_in_context(context: str) -> None:
    """The first planes' scripts one by one, the rest in steps: the same tokens as by the definition."""
    kinds = load()["kind"]
    marks = [code for code in range(0x3000, 0x110000) if kinds[code] == 2]
    codes = [
        *range(0x3000),
        *range(0x3000, 0x3400),
        *range(0xF900, 0x10000, 3),
        *range(0x3400, 0x32000, 197),
        *marks[::5],
    ]
    wrong = []
    for code in codes:
        text = context.replace("{}", chr(code))
        if tokens(text, WORD) != reference.tokens(text, WORD):
            wrong.append(f"U+{code:04X} in {context!a}")
    assert wrong == []


def test_marks_in_every_order() -> None:
    """One mark of each combining class with one of each other class, in both orders, on three letters."""
    by_class: dict[int, list[str]] = {}
    for code in range(0x20000):
        rank = unicodedata.combining(chr(code))
        if rank and load()["assigned"][code]:
            by_class.setdefault(rank, []).append(chr(code))
    marks = [mark for members in by_class.values() for mark in (members[0], members[-1])]
    wrong = []
    for base in ("a", "α", "ก"):
        for one, two in itertools.product(marks, marks):
            text = base + one + two
            if tokens(text, WORD) != reference.tokens(text, WORD):
                wrong.append(ascii(text))
    assert wrong == []


def test_every_letter_with_marks_before_every_mark_that_composes() -> None:
    """The mark may belong nearer to the letter than those the letter has (ẫ and a ring below), so all is done anew."""
    table = load()
    assert table["first"].sum() > 10_000
    assert table["second"].sum() > 150
    letters = [code for code in np.flatnonzero(table["first"]).tolist() if not 0xAC00 <= code < 0xD7A4]
    seconds = np.flatnonzero(table["second"]).tolist()
    pairs = itertools.islice(itertools.product([*letters, 0xAC00, 0xAC01], seconds), 0, None, 7)
    texts = [f"a{chr(letter)}{chr(second)}" for letter, second in pairs]
    found = tokenize(*joined(list(map(encode, texts))), WORD)
    starts, offsets = found.starts.tolist(), found.offsets.tolist()
    wrong = []
    for text, (first, last) in zip(texts, itertools.pairwise(offsets), strict=True):
        read = found.canonical[starts[first] : starts[last] - 1].tobytes()
        if read != encode(" ".join(reference.tokens(text, WORD))):
            wrong.append(ascii(text))
    assert wrong == []


EVERYDAY = {
    "French": "L’été dernier, on a mangé des œufs à 1 ½ € et ça coûtait très cher… « déjà » !",
    "German": "Straßmann springt über den faulen Hund, außerdem müssen größere Maßnahmen geprüft werden.",
    "Turkish": "İstanbul’da yaşayanların çoğu işe giderken vapura biner ve ılık çay içer.",
    "Greek": "Τον Μάιο η γρήγορη αλεπού προΐσταται και πηδάει πάνω από το σκυλί™.",
    "Russian": "Съешь же ещё этих мягких французских булок № 5, да выпей чаю.",
    "Vietnamese": "Trăm năm trong cõi người ta, chữ tài chữ mệnh khéo là ghét nhau.",
    "Chinese": "我们抓取页面时，经常会遇到内容几乎相同的页面（约５０％）。",
    "Japanese": "ウェブページをクロールすると、ほとんど同じ内容のページがよく見つかります。",
    "Korean": "웹 페이지를 수집하다 보면 거의 같은 내용의 페이지를 자주 만나게 됩니다.",
    "Thai": "ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอนและทำให้คนจำนวนมากต้องทำความเข้าใจ",
    "Hindi": "हिन्दी विश्व की एक प्रमुख भाषा है। सड़क पर बड़ी गाड़ियाँ खड़ी हैं।",
    "Bengali": "বাংলা ভাষা দক্ষিণ এশিয়ার বাঙালি জাতির প্রধান কথ্য ও লেখ্য ভাষা।",
    "Tamil": "தமிழ் மொழி தமிழர்களினதும் தமிழ் பேசும் பலரினதும் தாய்மொழி ஆகும்.",
    "Arabic": "اللغة العربية هي أكثر اللغات السامية تحدثًا، وإحدى أكثر اللغات انتشارًا.",
    "Hebrew": "עברית היא שפה שמית, ממשפחת השפות האפרו־אסיאתיות.",
    "Burmese": "မြန်မာဘာသာစကားသည် မြန်မာနိုင်ငံ၏ ရုံးသုံး ဘာသာစကားဖြစ်သည်။ ကြီးမားသော",
}


@pytest.mark.parametrize("language", EVERYDAY)
def test_everyday_text_is_read_in_one_pass(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that goes through `normalize` first takes ten times as long: no language may be such a text."""
    plain = unicodedata.normalize("NFC", EVERYDAY[language])
    expected = reference.tokens(plain, WORD)

    def slow(_: str) -> str:
        raise AssertionError("normalised before it was read")

    monkeypatch.setattr("simdup.text.normalize", slow)
    assert tokens(plain, WORD) == expected
    with pytest.raises(AssertionError, match="normalised before"):
        tokens("e\u0301", WORD)


def test_order_is_checked_across_invisible_characters() -> None:
    for between in map(chr, IGNORED_CHARACTERS):
        assert tokens(f"x\u05b5{between}\u05b0", WORD) == tokens("x\u05b0\u05b5", WORD) == ["x\u05b0\u05b5"]


def test_any_number_of_marks() -> None:
    """Put into order before Python sees them: the same, and not in the square of the time (a million took minutes)."""
    rng = random.Random(39)
    marks = "\u0301\u0316\u0323\u0345\u0308\u05b0\u0e38\u3099\u0344\u0334\U0001d165"
    for length in (1, 30, 63, 64, 65, 66, 200, 500):
        text = "".join(f"{base}{''.join(rng.choices(marks, k=length))}" for base in "aαはx中") + "e\u0301 end"
        assert normalize(text) == normalize_assigned(text)
        assert tokens(text, WORD) == reference.tokens(text, WORD)
        for mark in map(chr, IGNORED_CHARACTERS):
            assert normalize(text.replace("\u0308", f"\u0308{mark}")) == normalize(text)
    assert _in_order("a" + "\u0301\u0316" * 100) == "a" + "\u0316" * 100 + "\u0301" * 100
    assert len(normalize("a" + "\u0316\u0301" * 200_000)) == 400_000


@given(text=some.texts())
def test_normalising_again_changes_nothing(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    for scheme in (WORD, CHAR):
        assert tokens(once, scheme) == tokens(text, scheme)


def test_normalising_every_character_again_changes_nothing() -> None:
    letters = map(chr, (*range(0x3400), *range(0x9FF0, 0xAC00), *range(0xD7A0, 0x20000)))
    assert [c for c in letters if normalize(normalize(c)) != normalize(c)] == []


def test_folding_to_several_letters_before_a_mark_is_stable() -> None:
    """What case folding makes of one letter may compose with the mark behind it, which may fold again."""
    unfolding = [c for c in map(chr, range(0x20000)) if len(c.casefold()) > 1]
    assert len(unfolding) > 100
    marks = ("\u0301", "\u0308", "\u0316", "\u0323", "\u0342", "\u0345", "\u0307\u0316", "\u0316\u0345")
    texts = [letter + mark for letter in unfolding for mark in marks]
    assert [ascii(text) for text in texts if normalize(normalize(text)) != normalize(text)] == []
    assert [ascii(text) for text in texts if tokens(text, WORD) != reference.tokens(text, WORD)] == []


@given(text=some.texts())
def test_a_normalised_text_holds_nothing_invisible_and_no_odd_space(text: str) -> None:
    normal = normalize(text)
    assert not set(map(ord, normal)) & set(IGNORED_CHARACTERS)
    assert normal == " ".join(normal.split())


@given(text=some.assigned_texts)
def test_a_normalised_text_is_folded(text: str) -> None:
    # Not always NFKC: case folding takes apart some letters that NFKC composes (ῢ).
    normal = normalize(text)
    assert normal == normal.casefold() == unicodedata.normalize("NFKC", normal).casefold()


def _invisible(text: str) -> str:
    return "".join(
        c + mark for c, mark in zip(text, itertools.cycle("\u200b\u00ad\u2060\ufeff\ufe0f\u200d"), strict=False)
    )


def _spaced(text: str) -> str:
    return "".join(
        next(odd) if c == " " else c
        for odd in [itertools.cycle("\u00a0\u3000\u2003\u202f\u1680\t\u2028")]
        for c in text
    )


def _wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


FORMS = {
    "NFC": lambda text: unicodedata.normalize("NFC", text),
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "NFKC": lambda text: unicodedata.normalize("NFKC", text),
    "NFKD": lambda text: unicodedata.normalize("NFKD", text),
    # U+0345 is a mark that folds to a letter, so whether it is folded before or after the marks are ordered matters.
    "casefold": lambda text: text if "\u0345" in text else text.casefold(),
    "full-width": _wide,
    "invisible": _invisible,
    "space": _spaced,
}


@pytest.mark.parametrize("form", FORMS)
@given(text=some.assigned_texts, unit=st.sampled_from(("word", "char")), ngram=st.integers(1, 3))
def test_forms_of_one_text_are_equal(form: str, text: str, unit: str, ngram: int) -> None:
    # Invisible characters are no part of Unicode's forms: with one between, a letter and its mark do not meet.
    plain = text.translate(dict.fromkeys(IGNORED_CHARACTERS)) if form != "invisible" else text
    scheme = Scheme(unit, ngram)  # type: ignore[arg-type]
    changed = FORMS[form](plain)
    assert normalize(changed) == normalize(text)
    assert fingerprint(changed, scheme) == fingerprint(text, scheme)


# Upper case is not undone by case folding for every character (dotless i), so it is tried on words where it is.
SENTENCES = (
    "straße und fluß",
    "ὀδυσσεύς ἦλθεν οἴκαδε",
    "съешь ещё этих булок",
    "příliš žluťoučký kůň",
    "the quick brown fox, 42 times",
    "ﬁne ﬂow",
    "օրինակ բառեր",
    "ǆ ǉ ǌ",
)


@pytest.mark.parametrize("text", SENTENCES)
def test_upper_and_title_case_are_equal(text: str) -> None:
    for scheme in (WORD, CHAR, Scheme("word", 3)):
        assert len({fingerprint(form, scheme) for form in (text, text.upper(), text.title(), text.swapcase())}) == 1


@given(text=some.texts())
def test_raw_texts_are_split_on_white_space_and_else_unchanged(text: str) -> None:
    assert tokens(text, Scheme("word", 1, normalize=False)) == text.split()
    assert tokens(text, Scheme("char", 1, normalize=False)) == list("".join(text.split()))


@given(text=some.texts(), scheme=some.schemes(weights=("tf",)))
def test_tokens_hold_no_white_space_and_are_not_empty(text: str, scheme: Scheme) -> None:
    assert all(token and token.split() == [token] for token in tokens(text, scheme))


@given(text=some.texts())
def test_characters_are_the_words_in_pieces(text: str) -> None:
    assert "".join(tokens(text, CHAR)) == "".join(tokens(text, WORD))


@pytest.mark.parametrize(
    ("text", "words", "characters"),
    [
        ("Don't stop_me", ["don", "t", "stop", "me"], list("dontstopme")),
        ("x86 3.14 ½", ["x86", "3", "14", "1", "2"], [*"x86314", "1", "2"]),
        ("中文abc中", ["中", "文", "abc", "中"], [*"中文abc中"]),
        ("กินข้าว", ["กิ", "น", "ข้", "า", "ว"], ["กิ", "น", "ข้", "า", "ว"]),
        ("काला", ["काला"], ["का", "ला"]),
        ("ｶﾞｷﾞ", ["ガ", "ギ"], ["ガ", "ギ"]),
        ("カ\u3099", ["ガ"], ["ガ"]),
        ("\u0301a b\u0323\u0307", ["\u0301a", "ḅ\u0307"], ["\u0301", "a", "ḅ\u0307"]),
        ("各\u0301国a\u0301", ["各\u0301", "国", "á"], ["各\u0301", "国", "á"]),
        ("ᾳ ᾼ α\u0345", ["αι", "αι", "αι"], list("αιαιαι")),
        ("a\ud800b \ud83d\ude00", ["a\ud800b", "\ud83d\ude00"], ["a", "\ud800", "b", "\ud83d", "\ude00"]),
        ("a\x00b", ["a", "b"], ["a", "b"]),
        # Folding ß leaves an s before the mark, and these two compose: one round is not enough.
        ("ß\u0301 ẞ\u0301", ["sś", "sś"], ["s", "ś", "s", "ś"]),
        ("\U00031350\U0003134a", ["\U00031350", "\U0003134a"], ["\U00031350", "\U0003134a"]),
        ("a\U0001fae8b", ["a", "b"], ["a", "b"]),
        ("a\u0378b", ["a\u0378b"], ["a", "\u0378", "b"]),
        ("k\U0001e030b", ["k\U0001e030b"], ["k", "\U0001e030", "b"]),
    ],
    ids=ascii,
)
def test_tokens_by_hand(text: str, words: list[str], characters: list[str]) -> None:
    assert tokens(text, WORD) == words
    assert tokens(text, CHAR) == characters


@pytest.mark.parametrize("scheme", READINGS, ids=lambda scheme: scheme.id)
def test_no_tokens(scheme: Scheme) -> None:
    assert tokens("", scheme) == tokens(" \n\t\u3000\x1f", scheme) == []


@pytest.mark.parametrize("value", [b"", b"x", b" ", None, 1, ["a"]], ids=repr)
def test_normalize_refuses_what_is_no_text(value: object) -> None:
    with pytest.raises(TypeError):
        normalize(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [b"", b"x", None, 1, ["a"]], ids=repr)
def test_tokens_refuses_what_is_no_text(value: object) -> None:
    with pytest.raises(TypeError):
        tokens(value, WORD)  # type: ignore[arg-type]
