"""Site templates: what a slow definition finds common goes, and nothing else; the rest stays as it was written."""

import random
from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simdup.templates import LEAST_PAGES, fit_templates
from tests.properties.test_languages import PAGES, UNSPACED

Passage = tuple[str, ...]


def words_of(line: str) -> list[str]:
    """What stands between white space, and each Chinese character."""
    return "".join(f" {one} " if "一" <= one <= "龥" else one for one in line).split()


def passages_of(text: str, ngram: int) -> list[tuple[Passage, int]]:
    """The passages of a text, and the number of the first word of each."""
    found, before = [], 0
    for line in text.split("\n"):
        words = words_of(line)
        many = max(len(words) - ngram + 1, min(len(words), 1))
        found += [(tuple(words[at : at + ngram]), before + at) for at in range(many)]
        before += len(words)
    return found


def words_left(texts: list[str], sites: list[Any], share: float, ngram: int) -> list[list[str]]:
    """What is left of each text, by counting."""
    left = []
    for text, site in zip(texts, sites, strict=True):
        pages = {other for other, its in zip(texts, sites, strict=True) if its == site}
        stands_on = Counter(passage for page in pages for passage in {each for each, _ in passages_of(page, ngram)})
        covered = {
            first + at
            for passage, first in passages_of(text, ngram)
            if stands_on[passage] > share * len(pages)
            and stands_on[passage] >= LEAST_PAGES
            and (stands_on[passage] > 10 or stands_on[passage] > len(pages) / 2)
            for at in range(len(passage))
        }
        words = words_of(text)
        own = [word for at, word in enumerate(words) if at not in covered]
        left.append(own if len(own) >= ngram else words)
    return left


def removed(texts: list[str], sites: list[Any] | None = None, **options: Any) -> list[str]:
    return list(fit_templates(texts, sites, **options).remove(texts, sites))


# Lines of few sorts, so that many stand on many pages; and white space of many.
_lines = st.one_of(
    st.sampled_from(["Home", "Home > News", "a b c d e f", "菜单导航首页", "Impressum und Kontakt\r", "", " \t "]),
    st.lists(st.sampled_from(["a", "b", "c", "é", "中", "文", "\ud800", "x-1", "\u00a0", " "]), max_size=8).map(
        " ".join
    ),
)
_texts = st.lists(_lines, max_size=6).map("\n".join)


class TestRemove:
    @given(
        texts=st.lists(_texts, max_size=30),
        sites=st.lists(st.sampled_from(["x", 1, None]), min_size=30, max_size=30) | st.just([None] * 30),
        share=st.sampled_from([0, 0.25, 0.5, 0.9]),
        ngram=st.integers(1, 5),
    )
    def test_agrees_with_the_definition(
        self, texts: list[str], sites: list[Hashable], share: float, ngram: int
    ) -> None:
        sites = sites[: len(texts)]
        left = removed(texts, sites, share=share, ngram=ngram)
        assert list(map(words_of, left)) == words_left(texts, sites, share, ngram)
        for text, rest in zip(texts, left, strict=True):
            assert rest == text or len(words_of(rest)) < len(words_of(text))
            characters = iter(text)
            assert all(character in characters for character in rest if not character.isspace())

    @given(texts=st.lists(_texts, max_size=12), order=st.randoms(use_true_random=False))
    def test_neither_order_nor_equal_pages_count(self, texts: list[str], order: random.Random) -> None:
        left = dict(zip(texts, removed(texts, ngram=3), strict=True))
        mixed = [*texts, *texts[:4], *texts[:1] * 9]
        order.shuffle(mixed)
        assert removed(mixed, ngram=3) == [left[text] for text in mixed]

    def test_words_do_not_weld(self) -> None:
        """Where the template stands between them without a space, as Chinese does in Latin text."""
        texts = [f"one{n}共享模板在这里two{n} and more words of page {n} itself{n}" for n in range(9)]
        assert removed(texts, ngram=6) == [text.replace("共享模板在这里", " ") for text in texts]

    def test_what_is_left_is_as_it_was_written(self) -> None:
        own = ["\tPage {0}:  it  has\u00a0{0} odd   spaces,\r\n\r\n and {0} ends", "so {0} .\n"]
        pages = [
            f"The same line on all of the pages of it \n{own[0]}\nShare this!\n{own[1]}© a b c d e f g h i j k".format(
                n
            )
            for n in range(8)
        ]
        expected = [f"{own[0]}\n{own[1]}".format(n).lstrip() for n in range(8)]
        assert removed(pages) == expected

    def test_fewer_pages_than_a_template_needs(self) -> None:
        own = [" ".join(f"word{n}x{m}" for m in range(12)) for n in range(LEAST_PAGES)]
        texts = [f"a b c d e f g h i j k {text}" for text in own]
        assert removed(texts[:-1]) == texts[:-1]
        assert removed(texts) == own

    def test_pages_that_are_nothing_but_template_stay_whole(self) -> None:
        """So do many copies with small changes: they are no template, and would be equal to anything empty."""
        menu = "\n".join(f"item {n} of the menu" for n in range(20))
        error = "Sorry, the page that you asked for is not there any more: it was {0}."
        texts = [menu, *(f"{menu}\n{error.format(n)}" for n in range(12))]
        assert removed(texts) == texts
        news = [f"{menu}\n{' '.join(f'w{n}{m}' for m in range(30))}" for n in range(9)]
        left = removed([*texts, *news])
        assert left[: len(texts)] == texts
        assert left[len(texts) :] == [text.removeprefix(menu).lstrip() for text in news]

    @pytest.mark.parametrize(("copies", "others", "is_template"), [(10, 190, False), (11, 189, True), (11, 220, False)])
    def test_copies_of_a_page_are_no_template(self, copies: int, others: int, is_template: bool) -> None:
        """Ten pages may be copies of one; what stands on more, and on more than 5 %, is the menu of a section."""
        passage = "ten words that stand on some of all these pages"
        own = [" ".join(f"w{n}x{m}" for m in range(12)) for n in range(copies + others)]
        texts = [f"{passage}\n{text}" if n < copies else text for n, text in enumerate(own)]
        assert removed(texts) == (own if is_template else texts)

    @pytest.mark.parametrize("language", sorted({language for language, _ in PAGES}))
    def test_each_language(self, language: str) -> None:
        """Behind a template, in one line and in many, what each page says by itself: other words or characters."""
        template, other = PAGES[language, "page"], PAGES[language, "other"]
        pieces, rng = list(other.replace(" ", "")) if language in UNSPACED else other.split(), random.Random(0)
        own = [("" if language in UNSPACED else " ").join(rng.sample(pieces, 40)) for _ in range(12)]
        for gap in ("\n", " "):
            assert removed([f"{template}{gap}{text}" for text in own]) == own

    def test_sites_are_apart(self) -> None:
        texts = [f"{site} one two three four five six seven {n} own{n}" for site in "ab" for n in range(8)]
        sites = [text[0] for text in texts]
        assert removed(texts, sites, ngram=2) == [text[-6:].lstrip() for text in texts]
        learned = fit_templates(texts[:8], sites[:8], ngram=2)
        assert list(learned.remove(texts[8:], sites[8:])) == texts[8:]
        assert list(learned.remove(iter(texts[8:]), iter(["a"] * 8))) == [
            f"b {text[-6:].lstrip()}" for text in texts[8:]
        ]

    def test_of_a_large_site_a_sample_is_enough(self) -> None:
        """2,000 pages: the same figures every time, for pages that were not drawn too."""
        texts = [f"a template of ten words that stands on every page {' '.join(f'w{n}x{m}' for m in range(12))}"
                 for n in range(2_000)]  # fmt: skip
        learned = fit_templates(iter(texts))
        assert list(learned.remove(texts)) == [text.split("page ", 1)[1] for text in texts]


class TestBadInput:
    @pytest.mark.parametrize("share", [-0.1, 1, 2, float("nan")])
    def test_share(self, share: float) -> None:
        with pytest.raises(ValueError, match=rf"share={share}: give a number from 0 to below 1"):
            fit_templates([], share=share)

    def test_ngram(self) -> None:
        with pytest.raises(ValueError, match="ngram=0: give 1 or more"):
            fit_templates([], ngram=0)

    def test_what_are_no_texts(self) -> None:
        with pytest.raises(TypeError, match="texts come as an iterable of one for each page, not as one string"):
            fit_templates("a b")
        with pytest.raises(TypeError, match="sites come as an iterable of one for each page, not as one string"):
            fit_templates(["a b"], "a")
        with pytest.raises(TypeError, match="b'a' is no str"):
            fit_templates([b"a"])  # type: ignore[list-item]

    @pytest.mark.parametrize("many", [0, 1, 3, 9])
    def test_numbers_of_sites(self, many: int) -> None:
        with pytest.raises(ValueError, match=f"{'fewer' if many < 2 else 'more'} sites than texts: give one for each"):
            fit_templates(["a", "b"], ["x"] * many)

    def test_sites_left_out(self) -> None:
        learned = fit_templates(["a"], ["x"])
        with pytest.raises(ValueError, match="learned for sites: say of which site each text is"):
            list(learned.remove(["a"]))

    def test_nothing(self) -> None:
        assert removed([]) == []
        assert removed(["", "", " \n"]) == ["", "", " \n"]
