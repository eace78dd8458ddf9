"""Noise: what is taken out and what stays, that the fast way finds what the definition says, and how long it takes."""

import itertools
import random
import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SPEEDS, Speed
from simdup import ARTICLE, Scheme, distance, fingerprint, fit_idf, mask, normalize, reference, tokens
from simdup.mask import _CHOICES, _FIRST, NOISE, Noise
from simdup.similarity import FeatureSets, digests
from simdup.study.edits import Edit
from simdup.text import _tables, _tokenize_by, encode, joined, tokenize
from simdup.unicode import load
from tests.perf.conftest import documents
from tests.properties import strategies as some

UUID = "550e8400-e29b-41d4-a716-446655440000"
MD5 = "d41d8cd98f00b204e9800998ecf8427e"
JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

# All of each is noise of the kind.
NOISY: dict[tuple[str, Noise], list[str]] = {
    ("ISO 8601", "date"): [
        *("2026-12-03", "2026-12-03T10:11:12Z", "2026-12-03t10:11:12z", "2026-12-03 10:11:12.345+01:00", "2026/12/3"),
        *("2026-12-03T10:11:12.123456789-0500", "20261203T101112Z", "20261203T1011", "20261203101112",
            "2026-12-03T10:11"),
        *("2026-12-03 14:05:33+01", "2026-12-03_14-05-33", "2026-12-03 - 14:05"),
    ],
    ("HTTP, mail and log", "date"): [
        *("Thu, 03 Dec 2026 09:03:26 GMT", "Thursday, 03-Dec-26 09:03:26 GMT", "Thu Dec  3 09:03:26 2026"),
        *("Thu, 3 Dec 2026 10:03:26 +0100 (CET)", "03/Dec/2026:14:05:33 +0000", "Dec  3 14:05:33"),
        "Thu Dec 03 2026 14:05:33 GMT+0100 (Central European Standard Time)",
    ],
    ("English", "date"): [
        *("3 December 2026", "December 3, 2026", "Dec 3, 2026, 2:05 pm", "3rd of March 2026", "March 1st, 2026",
            "Sept. 3, 2026"),
        *("3/12/2026", "12/03/26", "12/25/2026", "Saturday, December 3, 2026 at 2:05 PM EST",
            "12/3/2026, 2:05:33\u202fPM"),
    ],
    ("German", "date"): [
        *("03.12.2026", "3.12.2026", "3. 12. 2026", "3. Dezember 2026", "Donnerstag, 3. Dezember 2026 um 14:05 Uhr"),
        *("Donnerstag, den 3. März 2026", "Do., 03.12.2026", "03.12.26, 14:05", "9:05 Uhr"),
    ],
    ("French", "date"): ["3 décembre 2026 à 14h05", "jeudi 3 de\u0301cembre 2026", "vendredi 1er mai 2026",
        "3 AOÛT 2026", "14h05"],
    ("Spanish", "date"): ["3 de diciembre de 2026", "miércoles, 3 de diciembre de 2026 a las 14:05",
        "3 de enero del 2026"],
    ("Italian", "date"): ["3 dicembre 2026", "giovedì 3 dicembre 2026 alle ore 14:05", "1º gennaio 2026"],
    ("Portuguese", "date"): ["3 de dezembro de 2026 às 14:05", "1º de março de 2026",
        "quinta-feira, 3 de dezembro de 2026"],
    ("Dutch", "date"): ["3 december 2026 om 14:05", "donderdag 3 maart 2026", "3 mrt. 2026"],
    ("Turkish", "date"): ["3 Aralık 2026", "3 ARALIK 2026", "3 Şubat 2026 saat 14:05", "Çarşamba, 3 Ağustos 2026"],
    ("Russian", "date"): ["3 декабря 2026 г., 14:05", "четверг, 3 ДЕКАБРЯ 2026 г. в 14:05"],
    ("Chinese", "date"): [
        *("2026年12月3日", "2026年12月3日 14时05分", "2026年12月3日14:05", "2026年12月3日 星期四 下午2:05",
            "12月3日 14:05"),
        *("2026 年 12 月 3 日", "14時05分33秒", "上午 9:05"),
    ],
    ("Japanese", "date"): ["２０２６年１２月３日（木）１４：０５", "令和8年12月3日", "2026/12/03(木) 14:05",
        "午後2時5分"],
    ("Korean", "date"): ["2026년 12월 3일", "2026년 12월 3일 오후 2:05", "2026. 12. 3. 오후 2:05",
        "2026년 12월 3일 목요일 14시 5분"],
    ("time", "date"): ["14:05", "14:05:33", "14:05:33,123", "2:05 pm", "2:05 P.M.", "02:05PM", "14:05 UTC",
        "14:05+01:00", "9:05 CET"],
    ("epoch", "epoch"): ["1764752606", "1764752606123", "1000000000"],
    ("UUID", "uuid"): [UUID, UUID.upper()],
    ("hexadecimal", "hex"): [MD5, MD5.upper(), f"0x{MD5}", MD5 * 2, f"{MD5}a", "1" * 40 + "f"],
    ("JWT", "jwt"): [JWT, JWT[: JWT.rindex(".") + 1],
        f"{JWT}.AxY8DCtDaGlsbGljb3RoZQ.KDlTtXchhZTGufMYm"],
}  # fmt: skip

# The number goes and the words stay.
COUNTED = {
    "1,234 views": "views",
    "1.2K likes": "likes",
    "Page views: 1 234": "page views: 234",
    "Comments (12)": "comments ( )",
    '"view_count":12, "likes": 3': '"view_count": , "likes":',
    '"viewCount"=1,"downloads":"15"': '"viewcount"= ,"downloads":" "',
    "views count: 12": "views count:",
    "viewed 1,234 times": "viewed times",
    "12 Kommentare": "kommentare",
    "1.234 Aufrufe und 56 Antworten": "aufrufe und antworten",
    "12 gefällt das": "gefällt das",
    "浏览 1234": "浏览",
    "阅读(1.2万)": "阅读( )",
    "评论数：56 点赞：7": "评论数: 点赞:",
    "1234次浏览 56条评论 3人阅读": "次浏览 条评论 人阅读",
    "いいね！ 12 閲覧数：1,234": "いいね! 閲覧数:",
    "12件のコメント 1.2万回視聴": "件のコメント 回視聴",
}

# Nothing of these goes, whatever is masked.
PLAIN: dict[str, list[str]] = {
    "years and months": ["2026", "in 2026,", "1999-2004", "December 2026", "2026-12", "2026年", "2026年12月",
        "3 May", "may 12"],
    "prices": ["$12.99", "1,299.00", "99.95 EUR", "€1.299,00", "$1764752606", "5 % of 1,000,000"],
    "fractions and verses": ["12/25", "1/2", "3:16", "John 3:16-18", "16:9", "2:1", "24/7/365", "1.5.10"],
    "versions": ["1.2.3", "v1.2.3-rc1", "10.12.4", "24.1.2", "2024.8.30", "3.11.7.final.0", "1.10.12.2026"],
    "addresses": ["192.168.1.10", "10.0.0.1:8080", "00:1a:2b:3c:4d:5e", "10:20:30:40:50:60", "2001:db8::14:05",
        "2001:db8:12:30::1"],
    "phone numbers": ["+1 650 253 0000", "+16502530000", "555-1234", "(030) 1234567", "0-1234567890",
        "+1764752606", "020 7946 0018"],
    "book and other numbers": ["978-3-16-148410-0", "9783161484100", "ISBN 1593279280", "123-12-1999",
        "4111 1111 1111 1111"],
    "numbers": ["12 apples", "1234567", "12345678901", "1234567890.5", "0.1234567890", "2764752606", "100%",
        "likes: 45%"],
    "digits of pi": ["31415926535897932384626433832795028841", "3.14159265358979323846264338327950288"],
    "short or odd hexadecimal": ["deadbeef", MD5[:31], "abcdefabcdefabcdefabcdefabcdefabcdef", f"g{MD5}",
        f"{MD5}g", f"é{MD5}"],
    "what is nearly a UUID": [UUID[:-1], f"{UUID}0", UUID.replace("-", "", 1), "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "what is nearly a JWT": [JWT.split(".")[0], "eyJ", "eyJ.a.b", "eyes.and.ears", JWT[1:].split(".")[0],
        "eyJhbGciOi..."],
    "words that start or end one": ["views", "comments", "march on", "5 min read", "浏览", "2 reviews", "item12 views"],
    "what is no day": ["13/13/2026", "2026-13-01", "2026-12-32", "32. Dezember 2026", "25:05", "14:65",
        "2026年13月3日"],
    "what goes on": ["abc2026-12-03", "2026-12-034", "2026-12-03-4", "2026-12-03b", "1.2.2026.4", "x14:05",
        "14:05x", "é14:05"],
}  # fmt: skip

CASES = [(claim, kind, text) for (claim, kind), texts in NOISY.items() for text in texts]
ALL_NOISE = [text for texts in NOISY.values() for text in texts]


# What stands before and behind noise in the field, in words and in scripts without spaces.
AROUND = [
    ("foo ", " bar"),
    ("", ""),
    ('{"time":"', '"}'),
    ("(", ")"),
    ("发布于", "发布"),
    ("foo=", ",bar"),
    ("<", ">."),
]


@pytest.mark.parametrize(("claim", "kind", "text"), CASES, ids=lambda value: ascii(value)[1:-1])
def test_noise_goes(claim: str, kind: Noise, text: str) -> None:
    for before, behind in AROUND:
        with_noise, without = normalize(before + text + behind), normalize(f"{before} {behind}")
        assert mask(with_noise, [kind]).split() == without.split(), claim
        assert mask(with_noise).split() == without.split()
        assert mask(with_noise, [other for other in ("epoch", "jwt") if other != kind]).split() == with_noise.split()


@pytest.mark.parametrize(("text", "left"), COUNTED.items(), ids=ascii)
def test_of_a_counter_the_number_goes(text: str, left: str) -> None:
    normal = normalize(text)
    assert " ".join(mask(normal, ["counter"]).split()) == left
    assert mask(normal, set(NOISE) - {"counter"}) == normal


@pytest.mark.parametrize(("claim", "text"), [(claim, text) for claim in PLAIN for text in PLAIN[claim]], ids=ascii)
def test_what_stays(claim: str, text: str) -> None:
    normal = normalize(f"foo {text} bar")
    for kinds in (NOISE, *((kind,) for kind in NOISE)):
        assert mask(normal, kinds) == normal, claim


def test_raw_texts_lose_noise_in_upper_case() -> None:
    assert mask("X 03 DEC 2026 09:03:26 GMT Y", ["date"]) == "X   Y"
    assert mask(f"{JWT} {MD5.upper()} {UUID.upper()} 12 VIEWS", NOISE).split() == ["VIEWS"]
    # Of other letters only the lower case is known, and only composed.
    assert mask("3 DÉCEMBRE 2026", ["date"]) == "3 DÉCEMBRE 2026"


# What noise is made of, welded and apart.
_PARTS = """
2026 1999 12 03 3 1 31 0 00 7 1764752606 1764752606123 20261203 T Z z + - / . : , ( ) " ' = % $ h m am pm utc gmt
+01:00 -0500 … ： ／ － ２ 年 月 日 时 時 分 秒 년 월 일 시 분 曜日 星期
の 件 次 条 量 数 万 k 0x ab dead
eyJ eyJhbGci a1b2c3d4 550e8400 e29b at um de den st th º г Uhr é ß ж foo isbn viewed count
\u0301 \u200b \ud800 ½ ㋋ ㏪ İ I \x00
"""
_parts = st.one_of(
    st.sampled_from([*_PARTS.split(), "\u00a0", "\u3000", "\n"]),
    st.sampled_from(sorted({word for words in _FIRST.values() for word in words.split()})),
    st.sampled_from([*ALL_NOISE, *COUNTED, *itertools.chain(*PLAIN.values())]),
    st.builds(lambda text, cut: text[:cut], st.sampled_from(ALL_NOISE), st.integers(1, 20)),
    st.sampled_from((" ", " ", " ", "")),
    some.pieces,
)
noisy_texts = st.lists(st.tuples(_parts, st.sampled_from(("", " "))), max_size=10).map(
    lambda parts: "".join(map("".join, parts))
)
masks = [NOISE, *((kind,) for kind in NOISE), ("date", "counter"), ("epoch", "hex", "uuid")]
masked_schemes = some.schemes(weights=("tf", "set"), masks=masks)


@given(texts=st.lists(noisy_texts, max_size=6), scheme=masked_schemes)
def test_tokens_are_those_of_the_definition(texts: list[str], scheme: Scheme) -> None:
    """Of each text of a batch: no noise reaches from one to the next."""
    found = tokenize(*joined(list(map(encode, texts))), scheme)
    stops = found.starts.tolist()
    for text, (first, last) in zip(texts, itertools.pairwise(found.offsets.tolist()), strict=True):
        read = found.canonical[stops[first] : max(stops[last] - 1, stops[first])]
        assert read.tobytes() == encode(" ".join(reference.tokens(text, scheme)))


@given(texts=st.lists(noisy_texts, max_size=6), scheme=masked_schemes)
def test_fingerprints_are_those_of_the_reference(texts: list[str], scheme: Scheme) -> None:
    column = fingerprint(texts, scheme)
    expected = [reference.fingerprint(text, scheme) for text in texts]
    assert list(zip(some.to_ints(column.words), column.features.tolist(), strict=True)) == expected
    assert [one.value for one in fingerprint(texts[::-1], scheme)] == [value for value, _ in expected[::-1]]


@given(text=noisy_texts, kinds=st.sampled_from(masks))
def test_off_nothing_changes_and_on_only_noise_goes(text: str, kinds: tuple[Noise, ...]) -> None:
    folded = " ".join(text.split())
    assert mask(text, ()) == folded
    left = iter(folded.replace(" ", ""))
    assert all(character in left for character in mask(text, kinds).replace(" ", ""))


@given(text=some.texts(), kinds=st.sampled_from(masks))
def test_a_text_without_digits_is_not_touched(text: str, kinds: tuple[Noise, ...]) -> None:
    without = re.sub("[0-9]", "", text)
    assert mask(without, kinds) == " ".join(without.split())


_PLAIN_WORDS = ("foo", "Don't", "naïve", "page,", "(the", "end)", "x86_64", "中文", "กิน", "2026x")
plain_words = st.lists(st.sampled_from(_PLAIN_WORDS), max_size=6)


@given(before=plain_words, noise=st.sampled_from(ALL_NOISE), behind=plain_words, scheme=masked_schemes)
def test_noise_between_words_is_as_if_it_had_never_been_there(
    before: list[str], noise: str, behind: list[str], scheme: Scheme
) -> None:
    text, without = normalize(" ".join((*before, noise, *behind))), " ".join((*before, *behind))
    once = mask(text, NOISE)
    assert once.split() == normalize(without).split()
    assert mask(once, NOISE).split() == once.split()
    every = Scheme(scheme.unit, scheme.ngram, scheme.bits, scheme.weight, scheme.hash, mask=NOISE)
    assert fingerprint(" ".join((*before, noise, *behind)), every) == fingerprint(without, every)


def test_the_text_that_masks_are_laid_on_is_the_normalised_text() -> None:
    """Every sort of character, alone, in a word, behind and before marks: the kernel writes what `normalize` does."""
    codes = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x20000), *range(0x3400, 0x110000, 97)]
    for context in ("{}", "a{}b", "{}\u0301", "1{}{}2"):
        texts = [context.replace("{}", chr(code)) for code in codes]
        hard = np.zeros(len(texts), np.uint8)
        found, _ = _tokenize_by(hard, *joined(list(map(encode, texts))), *_tables("text", True))
        written, stops = found.canonical.tobytes(), found.starts[found.offsets].tolist()
        wrong = [
            ascii(text)
            for text, is_hard, (start, stop) in zip(texts, hard, itertools.pairwise(stops), strict=True)
            if not is_hard and written[start : max(stop - 1, start)] != encode(normalize(text))
        ]
        assert wrong == []
        assert hard.mean() < 0.1
    assert load()["kind"][ord("…")] == 0
    assert tokens("… 12…34 ⁗⁗⁗ ‼", Scheme(mask=NOISE)) == ["12", "34"]


def test_patterns_take_characters_of_several_bytes_whole() -> None:
    for _, _, choice in _CHOICES:
        assert not re.search(r"[^\x00-\x7f][?*+{]|\[[^]]*[^\x00-\x7f][^]]*\]", choice)


class TestScheme:
    def test_the_id(self) -> None:
        scheme = Scheme(mask=("uuid", "date"))
        assert scheme.id == "word2-128-set-xxh64-nfkc14-mask1.date.uuid"
        assert scheme.mask == ("date", "uuid")
        assert Scheme.from_id(scheme.id) == scheme == Scheme(mask=iter(["date", "uuid", "date"]))  # type: ignore[arg-type]
        assert len({scheme, Scheme(), Scheme(mask=("date",))}) == 3
        assert Scheme().mask == ()
        fitted = fit_idf(["a 2026-12-03", "b 2026-12-03"], Scheme(mask=["date"]))  # type: ignore[arg-type]
        assert fitted.id.endswith("-mask1.date")
        assert fitted.idf is not None
        assert len(fitted.idf.features) == 2

    @pytest.mark.parametrize("kinds", [*masks, ()], ids=str)
    def test_round_trips(self, kinds: Any, tmp_path: Any) -> None:
        scheme = Scheme("char", 3, 64, "set", "blake2b", normalize=False, mask=kinds)
        assert Scheme.from_id(scheme.id) == scheme
        scheme.save(tmp_path / "scheme")
        assert Scheme.load(tmp_path / "scheme") == scheme

    @pytest.mark.parametrize(
        "end",
        ["-mask1", "-mask1.", "-mask2.date", "-mask.date", "-mask1.uuid.date", "-mask1.date.date", "-mask1.date\n",
            "-mask1.Date"],
    )  # fmt: skip
    def test_what_is_no_id(self, end: str) -> None:
        with pytest.raises(ValueError, match=r"is no scheme id of this version|choose among"):
            Scheme.from_id(Scheme().id + end)

    @pytest.mark.parametrize("kinds", [("dates",), ("date", "DATE"), (1,), ("",), (None,), ([],)], ids=str)
    def test_names_there_are_not(self, kinds: Any) -> None:
        with pytest.raises(ValueError, match="choose among counter, date, epoch, hex, jwt, uuid"):
            Scheme(mask=kinds)
        with pytest.raises(ValueError, match="choose among"):
            mask("a", kinds)

    @pytest.mark.parametrize("kinds", ["date", 1, None, True], ids=repr)
    def test_what_are_no_names(self, kinds: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"mask={kinds!r}: give a tuple of names")):
            Scheme(mask=kinds)

    @pytest.mark.parametrize("text", [b"2026-12-03", None, 1])
    def test_what_is_no_text(self, text: Any) -> None:
        with pytest.raises(TypeError, match="is no str"):
            mask(text)

    def test_every_way_to_features_goes_by_the_masks(self) -> None:
        texts = [f"a page of {words} at {noise}" for noise in ("2026-12-03", "14:05:33") for words in ("one", "two")]
        for scheme, same in ((Scheme(mask=("date",)), True), (Scheme(), False)):
            sets = FeatureSets(texts, scheme)
            assert (sets.similarity(np.array([0]), np.array([2]))[0] == 1) == same
            assert (digests(texts, scheme)[1] == digests(texts, scheme)[3]) == same
            assert (distance(*fingerprint([texts[0], texts[2]], scheme)) == 0) == same
        with pytest.raises(ValueError, match="different schemes"):
            distance(fingerprint("a", Scheme()), fingerprint("a", Scheme(mask=("date",))))


class TestNoiseInTheField:
    """chainreactors/spray#61, webmonitoring/pagemon-chrome-ext#44: a clock or a token pushes a short page past k."""

    @pytest.mark.parametrize(
        "scheme", [ARTICLE, Scheme(), Scheme("word", 1, 64), Scheme("char", 3, 64)], ids=lambda s: s.id
    )
    def test_an_error_of_80_bytes(self, scheme: Scheme) -> None:
        pages = [
            f'{{"error": "not found", "code": 404, "time": "2026-12-{day}", "path": "/"}}'
            for day in ("03T09:03:26Z", "14T23:59:59Z")
        ]
        assert {len(page) for page in pages} == {80}
        kinds = (scheme.unit, scheme.ngram, scheme.bits, scheme.weight, scheme.hash, scheme.normalize)
        assert distance(*fingerprint(pages, Scheme(*kinds, mask=("date",)))) == 0
        assert distance(*fingerprint(pages, scheme)) > 0

    @pytest.mark.parametrize("edit", ["timestamp", "token"])
    def test_edits_that_are_noise_move_no_page(self, edit: str) -> None:
        pages, rng = documents(100, 20), random.Random(39)
        pages += ["页面的正文在这里，前后都是同样的导航。" * 3, "กินข้าวแล้วหรือยัง", "um"]
        copies = [Edit(edit).apply(page, (), rng) for page in pages]
        scheme = Scheme("word", 2, 64)
        masked = Scheme("word", 2, 64, mask=("date", "hex"))
        assert all(copy != page for copy, page in zip(copies, pages, strict=True))
        assert fingerprint(copies, masked) == fingerprint(pages, masked)
        moved = fingerprint(copies, scheme).words != fingerprint(pages, scheme).words
        assert moved.mean() > 0.9


HOSTILE = (
    "1", "1:", "12:", "aaaa-", "eyJ.", "eyJ", "eyja1", "eyjaaaaaaaa1.aa.", "2026-", "2026-12-", "1.", "1,", "1'",
        "1,1.1'", "1+",
    "12/", "3. ", "3 de ", "may 1 ", "monday, ", "a1b2c3d4-", "0xa1", "2026年", "浏览1", "1次", "views: (",
        "1 views", "1 mio. ",
    "14:05 gmt (aaa ", "14:05:33.1", "20261203t", "1764752606.", "上午1", "12:ab:", "…", "１",
)  # fmt: skip


def test_no_text_takes_the_square_of_its_length(request: pytest.FixtureRequest) -> None:
    """A hundred thousand characters of each: the square would take a minute and more where the line takes 0.1 s."""
    scheme = Scheme(mask=NOISE)
    tokens("1 views 2026-12-03 …", scheme)
    worst = 0.0
    for part in HOSTILE:
        text = part * (100_000 // len(part))
        start = time.process_time()
        fingerprint(text[:10_000], scheme)
        middle = time.process_time()
        fingerprint(text, scheme)
        growth = (time.process_time() - middle) / max(middle - start, 0.01)
        worst = max(worst, growth)
        assert growth < 50, part  # ten times the text; the square would be a hundred
    request.config.stash[SPEEDS].append(Speed("growth of masks", "", "time for ten times the text", f"{worst:.0f}"))
