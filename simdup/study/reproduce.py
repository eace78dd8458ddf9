"""The article's figures: published, measured, and a verdict for each."""

import statistics
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from simdup import reference
from simdup.fingerprint import fingerprint
from simdup.hamming import all_pairs
from simdup.scheme import ARTICLE, Scheme
from simdup.similarity import FeatureSets
from simdup.study.corpus import RATES, SEED, Corpus, article_corpus
from simdup.study.measure import Measurement, measure

Kind = Literal["exact", "rounded", "timing"]
Verdict = Literal["reproduced", "contradicted", "other corpus", "timing"]
THRESHOLDS = (0, 3, 6, 10, 14, 18, 22, 26)

_TIMED_DOCUMENTS, _TIMED_ROUNDS = 30, 7


@dataclass(frozen=True)
class Figure:
    """A published figure."""

    id: str
    where: str
    """The article's table."""
    quote: str
    published: str
    """As printed."""
    kind: Kind

    @property
    def number(self) -> float:
        """The published number; recall in per cent."""
        return float(self.published.rstrip("%").replace(",", ""))

    @property
    def digits(self) -> int:
        """How many digits were printed behind the point."""
        return len(self.published.rstrip("%").partition(".")[2])

    @property
    def unit(self) -> str:
        """What stands behind the number: a per cent sign, or nothing."""
        return "%" if self.published.endswith("%") else ""

    def rounded(self, value: float) -> float:
        """Round a measured value to the digits that were printed."""
        return round(value, self.digits) if self.digits else round(value)

    def printed(self, value: float) -> str:
        """Print a value as the published one is printed."""
        return f"{value:,.{self.digits}f}{self.unit}"

    def holds(self, value: float) -> bool:
        """Whether a measured value is the published one: equal, or equal once rounded as printed."""
        if self.kind == "exact":
            return value == self.number
        # Half a unit of the last printed digit, and a hair for the binary fraction.
        return abs(value - self.number) <= 0.5 * 10.0**-self.digits + 1e-9


@dataclass(frozen=True)
class Result:
    """A figure, measured."""

    figure: Figure
    value: float
    """Unrounded; recall in per cent."""
    verdict: Verdict
    fast: float | None = None
    """Of a timing: what simdup takes for the same in the same run."""

    def as_json(self) -> dict[str, Any]:
        """The figure as an object of `simdup reproduce --json`."""
        result = {
            "id": self.figure.id,
            "where": self.figure.where,
            "published": self.figure.published,
            "measured": self.figure.rounded(self.value),
            "verdict": self.verdict,
            "value": self.value,
        }
        if self.fast is not None:
            result |= {"simdup": self.fast, "ratio": self.ratio}
        return result

    @property
    def ratio(self) -> float:
        """How many times faster simdup is than the article's algorithm."""
        if self.fast is None:
            raise ValueError(f"{self.figure.id} is no timing")
        return self.fast / self.value if "per_second" in self.figure.id else self.value / self.fast


def figures() -> list[Figure]:
    """Every figure of the article, in its order."""
    text = files("simdup.study").joinpath("figures/article.toml").read_text(encoding="utf-8")
    return [
        Figure(f"{table['id']}.{key}", table["where"], table["quote"], published, kind)
        for table in tomllib.loads(text)["table"]
        for key, kind, published in table["figures"]
    ]


def measurements(
    corpus: Corpus, scheme: Scheme, fingerprinter: Callable[..., Any] = fingerprint
) -> dict[str, Measurement]:
    """Measure the corpus under a scheme, text only ("text") and with the template ("template")."""
    edited = {f"{round(100 * rate)}pct": rows for rate, rows in corpus.variants.items()}
    return {
        condition: measure(fingerprinter(pages, scheme), corpus.family, edited)
        for condition, pages in (("text", corpus.pages), ("template", corpus.with_template()))
    }


def counted(corpus: Corpus, fingerprinter: Callable[..., Any] = fingerprint) -> dict[str, float]:
    """Measure every figure of the article that is not a timing.

    Parameters
    ----------
    corpus
        The article's, or one of another seed.
    fingerprinter
        Takes texts and a scheme and returns their `Fingerprints`.

    Returns
    -------
    dict
        For each figure's id the value; recall in per cent.
    """
    words = measurements(corpus, ARTICLE, fingerprinter)
    trigrams = measurements(corpus, replace(ARTICLE, ngram=3), fingerprinter)
    sets = FeatureSets(corpus.pages, ARTICLE)
    rows = np.concatenate(list(corpus.variants.values()))
    originals = len(corpus.variants[RATES[0]])
    positive, negative = words["text"].at(0).edited, words["text"].at(0).unrelated
    values: dict[str, float] = {
        "F1.originals": originals,
        "F1.words": statistics.mean(len(page.split()) for page in corpus.pages),
        "F1.variants": len(corpus.variants),
        "F1.unrelated": int(corpus.family.max()) + 1 - originals,
        "F1.template_words": len(corpus.template.split()),
        "F1.documents": len(corpus.pages),
        "F1.positive_pairs": positive,
        "F1.negative_pairs": negative,
        "F1.pairs": len(corpus.pages) * (len(corpus.pages) - 1) // 2,
        "F3.variants": float(sets.similarity(rows[:, 0], rows[:, 1]).mean()),
        # The article does not say which pairs it drew: here all pairs of originals.
        "F3.random": float(sets.similarity(*np.triu_indices(originals, 1)).mean()),
    }
    for table, found in (("F2", words), ("F5", trigrams)):
        for condition, measurement in found.items():
            for name, distances in (*measurement.edited.items(), ("unrelated", measurement.unrelated)):
                for statistic in ("min", "median", "max"):
                    values[f"{table}.{condition}.{name}.{statistic}"] = getattr(distances, statistic)
    for condition, measurement in words.items():
        for k in THRESHOLDS:
            threshold = measurement.at(k)
            values[f"F4.{condition}.k{k}.recall"] = 100 * threshold.recall
            values[f"F4.{condition}.k{k}.false_pairs"] = threshold.false
    return values


def timed(corpus: Corpus) -> dict[str, tuple[float, float]]:
    """Time the article's algorithm and simdup on the article's jobs, alternately, and take the medians.

    Returns
    -------
    dict
        For each timing's id the article's algorithm in pure Python, and simdup, on this machine in this run.
    """
    pages = corpus.pages[:_TIMED_DOCUMENTS]
    values = [reference.article(page) for page in pages]
    fast_values = fingerprint(corpus.pages, ARTICLE)
    if list(map(int, fast_values[:_TIMED_DOCUMENTS])) != values:
        raise RuntimeError("the article's algorithm and simdup disagree on the article's corpus")
    all_values = list(map(int, fast_values))
    jobs: dict[str, Callable[[], Any]] = {
        "article": lambda: [reference.article(page) for page in pages],
        "simdup": lambda: fingerprint(corpus.pages, ARTICLE),
        "article pairs": lambda: sum(1 for _ in reference.all_pairs(all_values, 3)),
        "simdup pairs": lambda: all_pairs(fast_values.words, 3),
    }
    for job in jobs.values():
        job()
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(_TIMED_ROUNDS):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    median = {name: statistics.median(times) for name, times in seconds.items()}

    pairs = len(all_values) * (len(all_values) - 1) / 2 / 1e6
    return {
        "F6.milliseconds_per_document": (
            1e3 * median["article"] / len(pages),
            1e3 * median["simdup"] / len(corpus.pages),
        ),
        "F6.million_pairs_per_second": (pairs / median["article pairs"], pairs / median["simdup pairs"]),
    }


def reproduce(seed: int = SEED) -> list[Result]:
    """Measure all figures of the article.

    Parameters
    ----------
    seed
        39 is the article's corpus, where every figure that is not a timing must come out as printed. Any other is
        another corpus, and nothing is judged.
    """
    corpus = article_corpus(seed)
    values, times = counted(corpus), timed(corpus)
    results = []
    for figure in figures():
        if figure.kind == "timing":
            slow, fast = times[figure.id]
            results.append(Result(figure, slow, "timing", fast))
        elif seed != SEED:
            results.append(Result(figure, values[figure.id], "other corpus"))
        else:
            verdict: Verdict = "reproduced" if figure.holds(values[figure.id]) else "contradicted"
            results.append(Result(figure, values[figure.id], verdict))
    return results
