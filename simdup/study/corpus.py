"""The article's synthetic corpus, word for word.

One generator, seeded once, makes everything in this order: the site template, the originals, the variants of
each original at each rate, the unrelated pages. Any other order gives another corpus.
"""

import random
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from simdup.study.edits import replaced

SEED = 39
RATES = (0.01, 0.05, 0.15)
ORIGINALS, UNRELATED = 150, 150
PAGE_WORDS, TEMPLATE_WORDS, VOCABULARY = 400, 600, 6_000


@dataclass(frozen=True)
class Corpus:
    """The pages of the article: originals, then the variants of each original in turn, then unrelated pages."""

    template: str
    """The 600 words that stand before every page in the template condition."""
    pages: list[str]
    """The 750 pages, text only."""
    family: NDArray[np.int64]
    """Shape (750,): variants share their original's number, unrelated pages have their own."""
    variants: dict[float, NDArray[np.int64]]
    """For each rate the rows (original, variant), shape (150, 2)."""

    def with_template(self) -> list[str]:
        """Return the 750 pages, the template before each."""
        return [f"{self.template} {page}" for page in self.pages]


def article_corpus(seed: int = SEED) -> Corpus:
    """Generate the article's corpus, or with another seed one like it.

    Parameters
    ----------
    seed
        The article's is 39.

    Notes
    -----
    A vocabulary of 6,000 words w0 to w5999, drawn with weight 1 / (i + 5); a variant replaces each word with the
    probability of its rate by a word drawn uniformly (article, 语料).
    """
    rng = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(VOCABULARY)]
    weights = list(accumulate(1 / (i + 5) for i in range(VOCABULARY)))

    def draw(words: int) -> list[str]:
        return rng.choices(vocabulary, cum_weights=weights, k=words)

    template = draw(TEMPLATE_WORDS)
    originals = [draw(PAGE_WORDS) for _ in range(ORIGINALS)]
    variants = [replaced(page, rate, vocabulary, rng) for page in originals for rate in RATES]
    unrelated = [draw(PAGE_WORDS) for _ in range(UNRELATED)]
    own = np.arange(ORIGINALS)
    return Corpus(
        " ".join(template),
        [" ".join(page) for page in (*originals, *variants, *unrelated)],
        np.concatenate((own, np.repeat(own, len(RATES)), ORIGINALS + np.arange(UNRELATED))),
        {rate: np.column_stack((own, ORIGINALS + len(RATES) * own + place)) for place, rate in enumerate(RATES)},
    )
