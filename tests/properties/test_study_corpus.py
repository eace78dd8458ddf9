"""The article's corpus: frozen to the last byte, and generated as the recipe says, for any seed."""

import hashlib
import random
from itertools import accumulate

import numpy as np
import pytest

from simdup.study.corpus import Corpus, article_corpus

# Of the template and the 750 pages in UTF-8, a line each. Python promises that `random.Random` and `choices` keep
# their sequences; should a release break that, this fails, and not only some figure.
SHA256 = "83d18d4ede06b6df8e7cc2c5a9f8578b32f8ac3ef60451128ad6d0929cecbf5b"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return article_corpus()


def digest(corpus: Corpus) -> str:
    return hashlib.sha256("\n".join([corpus.template, *corpus.pages]).encode()).hexdigest()


def test_frozen(corpus: Corpus) -> None:
    assert digest(corpus) == SHA256
    assert digest(article_corpus(39)) == SHA256


def test_another_seed_is_another_corpus(corpus: Corpus) -> None:
    other = article_corpus(40)
    assert other.template != corpus.template
    assert not set(other.pages) & set(corpus.pages)
    assert digest(article_corpus(40)) == digest(other)


@pytest.mark.parametrize("seed", [39, 0, -1])
def test_the_recipe_step_by_step(seed: int) -> None:
    """The order of the draws is the corpus: this writes them down once more, without the library's functions."""
    rng = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(6000)]
    cumulated = list(accumulate(1 / (i + 5) for i in range(6000)))
    template = rng.choices(vocabulary, cum_weights=cumulated, k=600)
    originals = [rng.choices(vocabulary, cum_weights=cumulated, k=400) for _ in range(150)]
    variants = []
    for original in originals:
        for rate in (0.01, 0.05, 0.15):
            copy = []
            for word in original:
                if rng.random() < rate:
                    copy.append(rng.choice(vocabulary))
                else:
                    copy.append(word)
            variants.append(copy)
    unrelated = [rng.choices(vocabulary, cum_weights=cumulated, k=400) for _ in range(150)]
    corpus = article_corpus(seed)
    assert corpus.template == " ".join(template)
    assert corpus.pages == [" ".join(page) for page in originals + variants + unrelated]


def test_shapes(corpus: Corpus) -> None:
    assert len(corpus.pages) == 750
    assert {len(page.split()) for page in corpus.pages} == {400}
    assert len(corpus.template.split()) == 600
    assert {word for page in corpus.pages for word in page.split()} <= {f"w{i}" for i in range(6000)}
    assert corpus.family.shape == (750,)
    assert list(corpus.variants) == [0.01, 0.05, 0.15]
    assert all(rows.shape == (150, 2) for rows in corpus.variants.values())


def test_families(corpus: Corpus) -> None:
    sizes = np.bincount(corpus.family)
    assert sizes.tolist() == [4] * 150 + [1] * 150
    assert corpus.family[:150].tolist() == list(range(150))
    assert corpus.family[600:].tolist() == list(range(150, 300))


def test_variants_are_original_major(corpus: Corpus) -> None:
    """A variant's row is 150 + 3 x original + rate; each row once, beside its own original and in its family."""
    rows = np.concatenate(list(corpus.variants.values()))
    assert sorted(rows[:, 1].tolist()) == list(range(150, 600))
    assert np.array_equal(corpus.family[rows[:, 0]], corpus.family[rows[:, 1]])
    assert [corpus.variants[rate][7].tolist() for rate in (0.01, 0.05, 0.15)] == [[7, 171], [7, 172], [7, 173]]


def test_realised_rates(corpus: Corpus) -> None:
    """60,000 words per rate, each replaced with its probability; a replacement is the same word 1 time in 6,000."""
    for rate, rows in corpus.variants.items():
        changed = sum(
            a != b
            for original, variant in rows
            for a, b in zip(corpus.pages[original].split(), corpus.pages[variant].split(), strict=True)
        )
        expected = 60_000 * rate * (1 - 1 / 6_000)
        assert abs(changed - expected) < 5 * (expected * (1 - rate)) ** 0.5


def test_words_are_as_frequent_as_their_weights(corpus: Corpus) -> None:
    """Word i has weight 1 / (i + 5): of 120,000 drawn words, w0 and w5 stand in the ratio 2 to 1."""
    drawn = " ".join(corpus.pages[:150] + corpus.pages[600:]).split()
    total = sum(1 / (i + 5) for i in range(6000))
    for word in (0, 5, 95):
        share = 1 / (word + 5) / total
        expected = len(drawn) * share
        assert abs(drawn.count(f"w{word}") - expected) < 5 * expected**0.5


def test_with_template_stands_before_the_page(corpus: Corpus) -> None:
    pages = corpus.with_template()
    assert pages == [corpus.template + " " + page for page in corpus.pages]
    assert len(pages[0].split()) == 1000
