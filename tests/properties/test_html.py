"""Text from HTML: every kind of page that a crawler meets, and bytes that nobody would call a page."""

import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup import Scheme, tokens
from simdup.html import decoded, text_from_html
from simdup.pages import read_pages

WORDS = Scheme(ngram=1)
BLOCKS = (
    "address article aside blockquote dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hr legend li listing main menu nav ol p pre search section summary table ul noscript select option"
)
INLINE = "a abbr b bdi big cite code em font i kbd mark q s small span strong sub sup tt u var wbr"
LETTERS = {
    "gbk": "中文网页说明这里有很多字",
    "big5": "中文網頁說明這裡有很多字",
    "shift_jis": "日本語のページです。本文がここにあります",
}
LETTERS |= {
    "euc-kr": "이 글은 한국어로 쓴 본문이며 여러 문장이 있습니다",
    "windows-1251": "Русская страница, много слов",
}
LETTERS |= {"iso-8859-1": "Größe und café naïve façade", "utf-8": "Größe 中文 страница"}


@pytest.mark.parametrize("tag", BLOCKS.split())
@pytest.mark.parametrize("main", [False, True])
def test_block_elements_never_weld_words(tag: str, main: bool) -> None:
    found = tokens(text_from_html(f"<div>one<{tag}>two</{tag}>three</div>", main), WORDS)
    assert found in (["one", "two", "three"], ["one", "three"]), found


@pytest.mark.parametrize("tag", INLINE.split())
def test_inline_elements_never_split_words(tag: str) -> None:
    assert tokens(text_from_html(f"<p>un<{tag}>der</{tag}>way</p>", main=False), WORDS) == ["underway"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>caf&eacute; &amp; bar</p>", ["café", "bar"]),
        ("<p>a</p><script>var x</script><style>p{}</style><!-- no --><p>b</p>", ["a", "b"]),
        ("<table><tr><td>a<td><table><tr><td>b<td>c</table><td>d</table>", ["a", "b", "c", "d"]),
        ("<ol><li>a<li>b</ol><img src=c alt=d>", ["a", "b"]),
        ("<frameset><frame src=a></frameset>", []),
        ("", []),
        ("<html><body></body></html>", []),
        ("<p>one\0 two</p>", ["one", "two"]),
        ("\ufeff<p>one</p>", ["one"]),
        ("<p>\ud800one</p>", ["one"]),
    ],
)
def test_golden_pages(page: str, expected: list[str]) -> None:
    assert tokens(text_from_html(page, main=False), WORDS) == expected


# A handful of accents does not tell Latin-1 from its relatives.
WRONGLY = [(encoding, "utf-8") for encoding in LETTERS if encoding not in ("utf-8", "iso-8859-1")]


@pytest.mark.parametrize(("encoding", "declares"), [*((encoding, encoding) for encoding in LETTERS), *WRONGLY])
def test_pages_are_decoded_as_they_declare_and_if_that_is_wrong_as_they_look(encoding: str, declares: str) -> None:
    text = (LETTERS[encoding] + " ") * 20
    page = f"<meta charset={declares}><p>{text}</p>".encode(encoding)
    assert tokens(text_from_html(page, main=False), WORDS) == tokens(text, WORDS)


@pytest.mark.parametrize("encoding", ["gbk", "big5", "shift_jis", "euc-kr", "utf-8"])
def test_a_broken_byte_costs_a_few_characters(encoding: str) -> None:
    text = LETTERS[encoding] * 20 + {"shift_jis": "①㈱", "euc-kr": "똠", "gbk": "€"}.get(encoding, "")
    codec = {"shift_jis": "cp932", "euc-kr": "cp949", "gbk": "gb18030"}.get(encoding, encoding)
    found = decoded(b"\xff ".join(part.encode(codec) for part in (f"<meta charset={encoding}>", text, text)))
    assert text[1:] in found[: len(found) // 2 + 20]
    assert found.endswith(text[1:])


def test_an_encoding_that_python_does_not_know_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resiliparse.parse.encoding.detect_encoding", lambda *_, **__: "EUC-TW")
    assert decoded(b"one \xff two") == "one \ufffd two"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_byte_order_marks_and_utf_16_without_one(encoding: str) -> None:
    page = "<meta charset=gbk><p>one two, Größe</p>" * 20
    assert decoded(page.encode(encoding)) == page


def test_utf_8_is_read_as_such_whatever_the_page_declares() -> None:
    assert "Größe" in text_from_html("<meta charset=gbk><p>Größe</p>".encode())


def test_a_page_without_a_main_part_gives_all_of_it() -> None:
    menu = "<nav><ul>" + "<li>item here</li>" * 50 + "</ul></nav>"
    assert tokens(text_from_html(menu), WORDS) == ["item", "here"] * 50
    article = "<p>The main part of this page is a paragraph of many words, and it goes on.</p>" * 5
    assert "item" not in text_from_html(menu + article)


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 50_000 + "hello" + "</div>" * 50_000,
        "<div>" * 5_000 + "hello" + "</div>" * 5_000,
        "<div></i><!--</div>-->" * 50_000 + "hello",
        "<div>" * 250 + "<p>hello" * 20_000,
        "".join(f"<b id={i}><p>" for i in range(8_000)) + "hello",
        "".join(f"<a id={i}><p>" for i in range(8_000)) + "hello",
        "<p>" + "hello " * 900_000,
        "hello" + "<" * 500_000,
        "hello" + "<!--" * 200_000,
        "hello" + "&" * 500_000,
        "hello<a " + " a=b" * 200_000 + ">",
        "hello<p" + "".join(f" a{i}='>'/b{i}" for i in range(50_000)) + ">",
        "hello" + "<a" * 200_000,
        "hello" + "<a/b=" * 200_000,
        """hello<p a='""" + """<a b=" """ * 100_000,
    ],
    ids=[
        "deep",
        "deep and balanced",
        "deep behind ends of nothing",
        "many blocks not so deep",
        "formatting",
        "links",
        "one line",
        "brackets",
        "comments",
        "ampersands",
        "equal attributes",
        "attributes",
        "tags in names of tags",
        "tags in values",
        "tags in quotes",
    ],
)
def test_hostile_pages_end_within_ten_seconds(page: str) -> None:
    before = time.process_time()
    assert "hello" in text_from_html(page)
    assert time.process_time() - before < 10


def test_of_pages_nested_too_deep_it_is_all_text() -> None:
    article = "<p>The main part of this page is a paragraph of many words, and it goes on.</p>" * 5
    page = "<nav>menu</nav>" + article
    assert "menu" not in text_from_html(page)
    assert "menu" not in text_from_html("<div>" * 200 + page)
    assert "menu" in text_from_html("<div>" * 300 + page)


def test_of_many_attributes_only_the_tag_is_read() -> None:
    for many in (10, 499, 500, 5_000):
        attributes = "".join(f" data-{i}='a > b < c'" for i in range(many))
        assert text_from_html(f"<p>one<b{attributes}>two</b> <i{attributes}/>three") == "onetwo three"


def test_without_resiliparse_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "resiliparse.extract.html2text", None)
    with pytest.raises(ImportError, match=r"simdup\[pages\]"):
        text_from_html("<p>one")
    (tmp_path / "a.html").write_text("<p>one")
    with pytest.raises(ValueError, match=r"a\.html: .*simdup\[pages\]"):
        list(read_pages([tmp_path]))


@given(
    st.lists(
        st.sampled_from(
            ["<p>", "</p>", "<b>", "</b>", "<table>", "<td>", "<", ">", "&", "&#x", "<!--", "-->", "\0", "x"]
        )
        | st.text(max_size=5)
    ),
    st.booleans(),
)
def test_whatever_looks_like_html_gives_a_text(parts: list[str], main: bool) -> None:
    page = "".join(parts)
    assert isinstance(text_from_html(page, main), str)
    text_from_html(page.encode("utf-8", "surrogatepass"), main).encode()


@given(st.binary(max_size=200))
def test_any_bytes_give_a_text(page: bytes) -> None:
    text_from_html(page).encode()


def test_what_is_no_page_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes or a string"):
        text_from_html(None)  # type: ignore[arg-type]
