"""HTML pages to text: decoded, and either all of it or its main part."""

import codecs
import html
import re

_PAGES = "HTML needs resiliparse: pip install 'simdup[pages]'"
# Main text of fewer words than this share of all is a failure: the least share of 5,557 good extractions from twelve
# real collections was 3.5 %, and a higher limit brought back pages that are mostly template.
_LEAST_MAIN = 0.02
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# The extractor welds the words on both sides of these, or of what it leaves out with them.
_WELDED = (
    "dialog|dir|details|summary|figcaption|figure|hr|legend|fieldset|listing|marquee|menu|noscript|optgroup|option|"
    "search|select|table|caption|xmp|button|label|textarea|output|iframe|object|audio|video|canvas|svg|aside|nav|"
    "footer|header|ul|ol|time"
)
_APART = re.compile(rf"<(?=/?(?:{_WELDED})\b)", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
# Formatting elements are opened anew in every block, so that a parser makes the product of both of elements; the time
# of the extraction grows with the depth times the tags.
_FORMATTING = re.compile("a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u")
_NEVER_CLOSED = re.compile(
    "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|dt|dd|td|th|tr|tbody|thead|tfoot|option|"
    "optgroup"
)
_FEW_TAGS, _DEEPEST, _MOST_ELEMENTS = 2_000, 512, 2_000_000
_DROPPED = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|template)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_INLINE = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|code|em|font|i|ins|del|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u|"
    r"var|wbr)\b[^<>]*>",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(r"</?[a-zA-Z!][^<>]*>?")


def text_from_html(page: bytes | str, main: bool = True) -> str:
    """Take the text out of an HTML page.

    Parameters
    ----------
    page
        Bytes are decoded by `decoded`.
    main
        Only the main part, without navigation and the like, found by heuristics that see one page at a time. Where
        these find next to nothing (less than 2 % of the words), all of it.

    Returns
    -------
    str
        Without markup, scripts, styles and comments; entities decoded; elements that stand apart on the page separate
        words, others do not. An empty page gives "". Tags that are nested more than 512 deep, or so badly that a
        parser would make millions of elements of them, are cut out without looking for a main part.

    Raises
    ------
    TypeError
        If the page is neither bytes nor a string.
    ImportError
        Without resiliparse, which ``simdup[pages]`` brings.
    """
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
    except ImportError as error:
        raise ImportError(_PAGES) from error
    if not isinstance(page, bytes | str):
        raise TypeError(f"a page is bytes or a string, not {type(page).__name__}")
    content = (page if isinstance(page, str) else decoded(page)).replace("\0", "")
    content = content.encode("utf-8", "replace").decode()  # a lone surrogate is no character of a page
    if _unbounded(content):
        return _without_tags(content)
    tree = HTMLTree.parse(_APART.sub(" <", content))

    def extracted(main_part: bool) -> str:
        text: str = extract_plain_text(
            tree, main_content=main_part, preserve_formatting=True, alt_texts=False, list_bullets=False
        )
        return text

    whole = extracted(False)
    if not main:
        return whole
    part = extracted(True)
    return part if len(part.split()) >= _LEAST_MAIN * len(whole.split()) else whole


def decoded(page: bytes) -> str:
    """Decode a page: by its byte-order mark; as UTF-8 if it is that; as it declares; as its bytes look.

    A page that is UTF-8 is read so whatever it declares: other encodings are hardly ever valid UTF-8 by chance, and
    pages are saved anew more often than their declarations.
    """
    for mark, encoding in _BOMS:
        if page.startswith(mark):
            return page[len(mark) :].decode(encoding, "replace")
    zeros = page[:4096].count(0)
    if zeros > len(page[:4096]) // 4:
        little = page[1:4096:2].count(0) > page[:4096:2].count(0)
        return page.decode("utf-16-le" if little else "utf-16-be", "replace")
    try:
        return page.decode()
    except UnicodeDecodeError:
        from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5

        declared = detect_encoding(page, from_html_meta=True) or "utf-8"
        looks = detect_encoding(page, html5_compatible=False) or "cp1252"
        seen = map_encoding_to_html5(looks, fallback_utf8=False) or looks  # the map does not know cp949
        for encoding in (declared, seen):
            try:
                return page.decode(encoding)
            except (UnicodeDecodeError, LookupError):
                continue
        text: str = bytes_to_str(page, seen if declared == "utf-8" else declared, "replace", ())
        return text


def _unbounded(content: str) -> bool:
    """Whether a parser might take the square of the page's size."""
    if content.count("<") <= _FEW_TAGS:
        return False
    tags = _TAG.findall(content)
    depth = formatting = deepest = most = 0
    for closing, name in tags:
        name = name.lower()
        if _NEVER_CLOSED.fullmatch(name):
            continue
        step = -1 if closing else 1
        depth = max(depth + step, 0)
        deepest = max(deepest, depth)
        if _FORMATTING.fullmatch(name):
            formatting = max(formatting + step, 0)
            most = max(most, formatting)
    return deepest > _DEEPEST or most * len(tags) > _MOST_ELEMENTS


def _without_tags(content: str) -> str:
    content = _INLINE.sub("", _DROPPED.sub(" ", content))
    return html.unescape(_ANY_TAG.sub(" ", content)).strip()
