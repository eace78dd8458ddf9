"""Eight languages, two pages each: what a page is equal to, what its tokens are, how far a change moves it.

The pages are data (languages.toml), the rules are those of `simdup.text`.
"""

import pathlib
import random
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Literal

import numpy as np
import pytest

from simdup import Scheme, distance, fingerprint, tokens
from simdup.study.edits import Edit, sentences, vocabulary, words
from tests.properties.test_text import FORMS

WORD = Scheme("word", 1, 64, "tf")
LANGUAGES = tomllib.loads(pathlib.Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))
UNSPACED = {"Chinese", "Japanese", "Thai"}
PAGES = {
    (language, name): content["between"].join(content[name])
    for language, content in LANGUAGES.items()
    for name in ("page", "other")
}

each_language = pytest.mark.parametrize("language", LANGUAGES)


def assert_equal(left: str, right: str) -> None:
    """No scheme that normalises tells them apart."""
    assert tokens(left, WORD) == tokens(right, WORD)
    for scheme in (Scheme(), Scheme("word", 1, 64, "set"), Scheme("char", 4, 256)):
        assert distance(fingerprint(left, scheme), fingerprint(right, scheme)) == 0


@each_language
def test_a_page_is_as_long_as_pages_are(language: str) -> None:
    for name in ("page", "other"):
        assert len(tokens(PAGES[language, name], WORD)) >= (250 if language in UNSPACED else 150)


def _spelt_with(first: int, last: int, form: Literal["NFC", "NFD"] = "NFC") -> Callable[[str], str]:
    """Write what a range of compatibility characters stands for with these characters, as PDFs and old pages do."""

    def spell(text: str) -> str:
        text = unicodedata.normalize(form, text)
        for character in map(chr, range(last, first - 1, -1)):
            text = text.replace(unicodedata.normalize("NFKC", character), character)
        return text

    return spell


# Ways to write a page that must not count, and the languages whose pages they change.
EVERY = " ".join(LANGUAGES)
SPELLINGS: dict[str, tuple[Callable[[str], str], str]] = {
    "NFD": (FORMS["NFD"], "Japanese Korean Arabic German Turkish"),
    "NFKD": (FORMS["NFKD"], "Chinese Japanese Korean Thai Arabic German Turkish"),
    "full-width": (FORMS["full-width"], EVERY),
    "invisible": (FORMS["invisible"], EVERY),
    "space": (FORMS["space"], "Korean Thai Hindi Arabic German Turkish"),
    "upper case": (str.upper, "Chinese German"),
    "radicals": (_spelt_with(0x2F00, 0x2FD5), "Chinese Japanese"),
    "compatibility ideographs": (_spelt_with(0xF900, 0xFAD9), "Chinese Japanese"),
    "half-width kana": (_spelt_with(0xFF65, 0xFF9F, "NFD"), "Japanese"),
    "letters with nukta": (_spelt_with(0x0958, 0x095F), "Hindi"),
    "presentation forms": (_spelt_with(0xFE80, 0xFEFC), "Arabic"),
    "right-to-left marks": (lambda text: text.replace(" ", " \u202b\u200f"), "Arabic"),
    "ligatures": (_spelt_with(0xFB00, 0xFB04), "German"),
    "small letters": (lambda text: text.casefold().replace("ss", "ß"), "German"),
}


@pytest.mark.parametrize(
    ("spelling", "language"), [(name, language) for name in SPELLINGS for language in SPELLINGS[name][1].split()]
)
def test_spellings_of_one_page(spelling: str, language: str) -> None:
    text = PAGES[language, "page"] + PAGES[language, "other"]
    spelt = SPELLINGS[spelling][0](text)
    assert spelt != text
    assert_equal(spelt, text)


def _wrapped(text: str, column: int) -> list[str]:
    """Lines of at most so many characters; a longer word has a line of its own."""
    lines = [""]
    for unit in words(text):
        if lines[-1] and len(lines[-1]) + len(unit.rstrip()) > column:
            lines.append("")
        lines[-1] += unit
    return [line.rstrip() for line in lines]


@each_language
def test_where_lines_end_does_not_matter(language: str) -> None:
    """At any column: in scripts without spaces in the middle of a word, else between words."""
    page = PAGES[language, "page"]
    for column in range(1, 81):
        lines = _wrapped(page, column)
        longest = max(map(len, lines))
        assert longest <= max(column, 8 if language in UNSPACED else 24)
        assert len(lines) >= len(page) / (longest + 1)
        assert_equal("\n".join(lines), page)


# What a token is, language by language. Marks belong to their letter; punctuation is no token.
TOKENS = [
    ("Chinese", "我们，他们。「你」、（她）！", "我 们 他 们 你 她"),
    ("Chinese", "用U盘拷贝3.5GB的MP4文件", "用 u 盘 拷 贝 3 5gb 的 mp4 文 件"),
    ("Chinese", "北京\u3000上海 广州", "北 京 上 海 广 州"),
    ("Chinese", "二〇二六年，𠮷野家", "二 〇 二 六 年 𠮷 野 家"),
    ("Japanese", "カー・ドア、人々。ヶ月", "カ ー ド ア 人 々 ヶ 月"),
    ("Japanese", "ｶﾞｰﾄﾞ㌔", "ガ ー ド キ ロ"),
    ("Japanese", "はがき\u3000か\u3099き", "は が き が き"),
    ("Japanese", "JR東日本は１２両", "jr 東 日 本 は 12 両"),
    ("Korean", "나는 학교에 간다.", "나는 학교에 간다"),
    ("Korean", "大韓民國의 K팝", "大 韓 民 國 의 k팝"),
    ("Korean", "'책'과 3월", "책 과 3월"),
    ("Thai", "กินข้าวแล้ว", "กิ น ข้ า ว แ ล้ ว"),
    ("Thai", "น้ำดื่ม ๒๕ บาท", "น้ํ า ดื่ ม ๒๕ บ า ท"),
    ("Thai", "เร็วๆ นี้ กรุงเทพฯ", "เ ร็ ว ๆ นี้ ก รุ ง เ ท พ ฯ"),
    ("Thai", "ใช้USBได้", "ใ ช้ usb ไ ด้"),
    ("Hindi", "यह है। वह॥ क्या?", "यह है वह क्या"),
    ("Hindi", "क्षमा श्री २५ ₹", "क्षमा श्री २५"),
    ("Arabic", "قال: «نعم»، ثم ذهب؛ لماذا؟", "قال نعم ثم ذهب لماذا"),
    ("Arabic", "٣٤٫٥ كم", "٣٤ ٥ كم"),
    ("German", "Donaudampfschifffahrt E-Mail-Adresse", "donaudampfschifffahrt e mail adresse"),
    ("German", "Maß, 3,5 km/h, „ja“", "mass 3 5 km h ja"),
    ("Turkish", "Ankara’nın İzmir’e", "ankara nın i̇zmir e"),
]


@pytest.mark.parametrize(("language", "text", "expected"), TOKENS, ids=ascii)
def test_tokens(language: str, text: str, expected: str) -> None:
    assert language in LANGUAGES
    assert tokens(text, WORD) == expected.split(" ")


# Spellings of one word that count as one.
EQUAL = [
    ("Chinese", "文件 ⽂件 ＡＢＣ１２", "文件文件abc12"),
    ("Japanese", "ﾊﾟﾝ パン ハ\u309aン", "パンパンパン"),
    ("Korean", "한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
    ("Thai", "น้ำ", "น้\u0e4d\u0e32"),
    ("Hindi", "\u0958लम \u095bमीन", "क\u093cलम ज\u093cमीन"),
    ("Hindi", "क्ष", "क्\u200dष"),
    ("Arabic", "كتاب لا", "ﻛﺘﺎﺏ ﻻ"),
    ("Arabic", "آمن", "ا\u0653من"),
    ("Arabic", "می‌روم", "میروم"),
    ("German", "Straße Maß", "STRASSE MASS"),
    ("German", "STRAẞE", "straſſe"),
    ("German", "Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
    ("Turkish", "ÇÖL, GÜN; BAŞ", "çöl gün baş"),
]

# What readers might take for one word, or a careless normaliser does, and what counts as different.
DIFFERENT = [
    ("Chinese", "图书馆 圖書館"),  # simplified and traditional
    ("Chinese", "末 未"),
    ("Japanese", "かき がき ガキ カキ"),  # voiced or not, hiragana or katakana
    ("Japanese", "びよういん びょういん"),
    ("Japanese", "ビル ビール"),
    ("Korean", "눈 눈이 눈은"),  # a particle is part of its word
    ("Korean", "값 갑 갓"),
    ("Thai", "กิน กีน กุน กน"),
    ("Thai", "ไม่ ไม้ ไม"),
    ("Thai", "น้ำ นํ้า"),  # the second is a misspelling that looks the same
    ("Hindi", "काला कीला कूला कला"),
    ("Hindi", "सड़क सडक"),
    ("Hindi", "हंस हँस हस"),
    ("Hindi", "२५ 25"),
    ("Arabic", "كَتَبَ كُتُب كتب"),  # vowel signs
    ("Arabic", "كتاب كـتاب كـــتاب"),  # tatweel is a letter
    ("Arabic", "احمد أحمد"),
    ("Arabic", "٣٤ ۳۴ 34"),  # digits of different scripts
    ("German", "schon schön"),
    ("German", "Größe Groesse Grosse"),
    ("German", "Haus Haustür Tür"),  # a compound is a word
    ("Turkish", "açı acı açi"),
    ("Turkish", "sık sik şık"),
]


@pytest.mark.parametrize(("language", "left", "right"), EQUAL, ids=ascii)
def test_equal_words(language: str, left: str, right: str) -> None:
    assert language in LANGUAGES
    assert left != right
    assert_equal(left, right)


@pytest.mark.parametrize(("language", "different"), DIFFERENT, ids=ascii)
def test_different_words(language: str, different: str) -> None:
    assert language in LANGUAGES
    for scheme in (WORD, Scheme(), Scheme("char", 1, 64, "tf")):
        for left, right in combinations(different.split(" "), 2):
            assert distance(fingerprint(left, scheme), fingerprint(right, scheme)) > 0


def test_turkish_i() -> None:
    """Case folding knows one i: I is i, ı stays, İ is i with a dot above. So capitals equal only words without them."""
    assert [tokens(letter, WORD) for letter in "Iiıİ"] == [["i"], ["i"], ["ı"], ["i\u0307"]]
    turkish = str.maketrans({"i": "İ", "ı": "I"})
    for name in ("page", "other"):
        page = PAGES["Turkish", name]
        one_i = page.replace("ı", "i").replace("İ", "i")
        assert_equal(one_i.upper(), one_i)
        own, upper = tokens(page, WORD), tokens(page.translate(turkish).upper(), WORD)
        same = [not set(word) & set("iı") for word in re.findall(r"\w+", page)]
        assert [a == b for a, b in zip(own, upper, strict=True)] == same
        assert distance(fingerprint(page), fingerprint(page.translate(turkish).upper())) > 30


def test_arabic_with_and_without_vowel_signs_and_tatweel() -> None:
    """Nothing is dropped but what is invisible: a vocalised copy is another text, and so is a stretched one."""
    page = PAGES["Arabic", "page"]
    for copy in (page.replace("ل", "ل\u064e"), page.replace("ل", "ل\u0640")):
        assert distance(fingerprint(page), fingerprint(copy)) > 30


def test_simplified_and_traditional_chinese_stay_different() -> None:
    """Out of scope: one sign may stand for several. A converted copy is not found."""
    signs = "东東旧舊纺紡织織厂廠书書馆館读讀对對开開儿兒区區来來门門们們这這个個时時点點网網费費话話讲講场場"
    page = PAGES["Chinese", "page"]
    copy = page.translate(str.maketrans(signs[::2], signs[1::2]))
    assert distance(fingerprint(page), fingerprint(copy)) > 20
    assert fingerprint(page, Scheme("char", 1)).features == fingerprint(copy, Scheme("char", 1)).features


@each_language
@pytest.mark.parametrize("ngram", [1, 2, 3])
def test_one_change_moves_a_long_text_less(language: str, ngram: int) -> None:
    """The mean over all places for a change, in the first 12 and 60 units and in the whole page."""
    units, strange = words(PAGES[language, "page"]), words(PAGES[language, "other"])
    means = []
    for length in (12, 60, len(units)):
        copies = ([*units[:at], strange[at % len(strange)], *units[at + 1 : length]] for at in range(length))
        column = fingerprint(["".join(copy) for copy in (units[:length], *copies)], Scheme("word", ngram, 256))
        means.append(distance(column[1:], column[0]).mean())
    assert means[0] > 1.5 * means[1]
    assert means[1] > 1.1 * means[2] > 0


# Of 256 bits: at least so far apart are any two of the sixteen pages; at most so far from its page is a copy with one
# sentence replaced by one of the other page in the language; and so much farther from any other page.
FAR = {1: (80, 48, 38), 2: (104, 49, 50), 3: (105, 55, 56)}


@pytest.mark.parametrize("ngram", FAR)
def test_an_edited_copy_is_nearer_than_any_other_page(ngram: int) -> None:
    far, near, between = FAR[ngram]
    texts, page_of = list(PAGES.values()), list(range(len(PAGES)))
    for at, (language, name) in enumerate(PAGES):
        content = LANGUAGES[language]
        own, strange = content[name], content["page" if name == "other" else "other"]
        for place in range(len(own)):
            copy = [*own[:place], strange[place % len(strange)], *own[place + 1 :]]
            texts.append(content["between"].join(copy))
            page_of.append(at)
    column = fingerprint(texts, Scheme("word", ngram, 256))
    apart = np.array([distance(column[: len(PAGES)], one) for one in column])
    is_own = np.arange(len(PAGES)) == np.array(page_of)[:, np.newaxis]
    nearest_other = np.where(is_own, 256, apart).min(axis=1)
    assert nearest_other[: len(PAGES)].min() >= far
    assert apart[is_own].max() <= near
    assert (nearest_other - apart[is_own]).min() >= between


class TestEdits:
    """Copies of `simdup study` are edited where the tokens are, whatever the language."""

    @each_language
    def test_words_hold_whole_tokens(self, language: str) -> None:
        for page in (PAGES[language, "page"], PAGES[language, "other"]):
            found = [tokens(unit, WORD) for unit in words(page)]
            assert [token for unit in found for token in unit] == tokens(page, WORD)
            # Only a sign within a word, or sara am (a mark and a letter), makes several tokens of a unit.
            several = [unit for unit, parts in zip(words(page), found, strict=True) if len(parts) > 1]
            assert all(set(unit) & set("-’,.ำ") for unit in several)

    @pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "Thai"])
    def test_sentences(self, language: str) -> None:
        for name in ("page", "other"):
            content = LANGUAGES[language]
            assert [sentence.rstrip() for sentence in sentences(PAGES[language, name])] == content[name]

    def test_thai_has_no_stop(self) -> None:
        """So a sentence ends with its line."""
        content = LANGUAGES["Thai"]["page"]
        assert sentences(PAGES["Thai", "page"]) == [PAGES["Thai", "page"]]
        assert [sentence.rstrip() for sentence in sentences("\n".join(content))] == content

    @each_language
    @pytest.mark.parametrize("unit", ["", "-sentences"])
    def test_no_edit_makes_a_token_that_neither_page_has(self, language: str, unit: str) -> None:
        page, other = "\n".join(LANGUAGES[language]["page"]), "\n".join(LANGUAGES[language]["other"])
        before = Counter(tokens(page, WORD))
        for seed in range(5):
            edited = {}
            for change in ("replace", "delete", "insert", "swap"):
                edit = Edit(change + unit, 0.3)
                copy = edit.apply(page, vocabulary([other], edit), random.Random(seed))
                edited[change] = Counter(tokens(copy, WORD))
            assert set(edited["replace"]) <= set(before) | set(tokens(other, WORD))
            assert edited["replace"] != before
            assert edited["delete"] < before < edited["insert"]
            assert edited["swap"] == before
