"""HTML pages to text: decoded, and either all of it or its main part."""

import codecs
import contextlib
import re
from collections.abc import Iterator

LARGEST = 1 << 24
"""So many bytes the readers take of a page; 16 MiB take resiliparse up to 25 seconds and 1.3 GB."""
TOO_LARGE = "larger than 16 MiB"
ALL_TEXT = "no main part found: all text was taken"

_NEEDED = "HTML needs resiliparse: pip install 'simdup[pages]'"
# Main text of fewer words than this share of all is a failure: the least share of 5,557 good extractions from twelve
# real collections was 3.5 %, and a higher limit brought back pages that are mostly template.
_LEAST_MAIN = 0.02
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Of the characters that are not ASCII so many may be broken; in a wrong encoding it is most of them, or none.
_MOST_BROKEN = 0.1
# Pages in these use characters that only their successors have.
_WIDER = {"shift_jis": "cp932", "euc_kr": "cp949", "gbk": "gb18030"}
# The extractor welds the words on both sides of these, or of what it leaves out with them.
_WELDED = (
    "dialog|dir|details|summary|figcaption|figure|hr|legend|fieldset|listing|marquee|menu|noscript|optgroup|option|"
    "search|select|table|caption|xmp|button|label|textarea|output|iframe|object|audio|video|canvas|svg|aside|nav|"
    "footer|header|ul|ol|time"
)
_APART = re.compile(rf"<(?=/?(?:{_WELDED})\b)", re.IGNORECASE | re.ASCII)
# Three things take a parser or the extractor the square of the page's size. Unclosed formatting elements are opened
# anew in every block (8,000 of them before 8,000 blocks became 32 million elements and 15 GB): under another name they
# are opened once. Each attribute of a tag is compared with all before it: of 500 and more none is read. And a main part
# is looked for from every element up to the root: not among elements nested deeper than this.
_FORMATTING = re.compile(
    r"<(/?)(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])", re.IGNORECASE | re.ASCII
)
_VALUE = r"""\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'<>]++)"""
_CROWDED = re.compile(rf"""(<[a-zA-Z][^\s/<>]*+)(?:[\s/]++[^\s"'=/>]++(?:{_VALUE})?+){{500,}}+""", re.ASCII)
_TOO_DEEP = " > ".join("*" * 257)


def text_from_html(page: bytes | str, main: bool = True, charset: str | None = None) -> str:
    """Take the text out of an HTML page.

    Parameters
    ----------
    page, charset
        Bytes are decoded by `decoded`.
    main
        Only the main part, without navigation and the like, found by heuristics that see one page at a time. Where
        these find next to nothing (less than 2 % of the words), all of it.

    Returns
    -------
    str
        Without markup, scripts, styles and comments; entities decoded; elements that stand apart on the page separate
        words, others do not. An empty page gives "". Of pages with elements nested more than 256 deep it is all text.

    Raises
    ------
    TypeError
        If the page is neither bytes nor a string.
    ImportError
        Without resiliparse, which ``simdup[pages]`` brings.
    """
    return _extracted(page, main, charset)[0]


def read_html(page: bytes, charset: str | None = None) -> tuple[str, str]:
    """The text of the main part of a page, as `text_from_html` takes it, and what was unusual about it, if anything.

    Raises
    ------
    ValueError
        If the page is larger than 16 MiB.
    ImportError
        As `text_from_html` says it.
    """
    if len(page) > LARGEST:
        raise ValueError(TOO_LARGE)
    text, is_main = _extracted(page, True, charset)
    return text, "" if is_main else ALL_TEXT


def _extracted(page: bytes | str, main: bool, charset: str | None) -> tuple[str, bool]:
    """The text, and whether it is only the main part or nobody wanted that."""
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    if not isinstance(page, bytes | str):
        raise TypeError(f"a page is bytes or a string, not {type(page).__name__}")
    content = page if isinstance(page, str) else decoded(page, charset)
    content = content.encode("utf-8", "replace").decode()  # a lone surrogate is no character of a page
    for pattern, tag in ((_CROWDED, r"\1"), (_FORMATTING, r"<\1span"), (_APART, " <")):
        content = pattern.sub(tag, content)
    tree = HTMLTree.parse(content)

    def extracted(main_part: bool) -> str:
        text: str = extract_plain_text(
            tree, main_content=main_part, preserve_formatting=True, alt_texts=False, list_bullets=False
        )
        return text

    whole = extracted(False)
    if not main or (tree.body and tree.body.query_selector(_TOO_DEEP)):
        return whole, not main
    part = extracted(True)
    return (part, True) if len(part.split()) >= _LEAST_MAIN * len(whole.split()) else (whole, False)


def decoded(page: bytes, charset: str | None = None) -> str:
    """Decode a page: by its byte-order mark; as UTF-8 if it is that; as a server or the page declares; as it looks.

    A page that is UTF-8 is read so whatever it declares: other encodings are hardly ever valid UTF-8 by chance, and
    pages are saved anew more often than their declarations. Some bytes may be broken; each becomes U+FFFD.
    """
    for mark, encoding in _BOMS:
        if page.startswith(mark):
            return page[len(mark) :].decode(encoding, "replace")
    zeros = page[:4096].count(0)
    if zeros > len(page[:4096]) // 4:
        little = page[1:4096:2].count(0) > page[:4096:2].count(0)
        return page.decode("utf-16-le" if little else "utf-16-be", "replace")
    for encoding in _encodings(page, charset):
        text = page.decode(encoding, "replace")
        if text.count("\ufffd") <= _MOST_BROKEN * (len(text) - len(text.encode("ascii", "ignore"))):
            break
    return text


def _encodings(page: bytes, charset: str | None) -> Iterator[str]:
    """What a page may be encoded in, the likeliest first."""
    yield "utf-8"
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

    looks = detect_encoding(page, html5_compatible=False) or "cp1252"
    for name in (
        map_encoding_to_html5(charset or "utf-8", fallback_utf8=False) or "utf-8",
        detect_encoding(page, from_html_meta=True),
        map_encoding_to_html5(looks, fallback_utf8=False) or looks,
    ):
        with contextlib.suppress(LookupError):  # it knows encodings that Python does not
            encoding = codecs.lookup(name or "cp1252").name
            yield _WIDER.get(encoding, encoding)
