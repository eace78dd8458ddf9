"""Tables, sentences and plots of what was measured."""

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from simdup.files import whole
from simdup.pages import Problems
from simdup.scheme import ARTICLE, Scheme
from simdup.study.corpus import article_corpus
from simdup.study.experiment import Condition
from simdup.study.measure import Distances, Measurement, Threshold
from simdup.study.reproduce import THRESHOLDS, Result, measurements

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST_SHOWN = 0.01
_MOST_EXAMPLES = 5
_VERDICT_STYLE = {"reproduced": "green", "other corpus": "dim", "contradicted": "bold red"}


def number(value: float, digits: int = 3) -> str:
    """A number for a table: whole if it is, else with so many significant digits, and never in exponents."""
    if value == round(value) or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return np.format_float_positional(value, precision=digits, unique=False, fractional=False, trim="-")


def _about(value: float) -> str:
    """A number for a sentence: two significant digits."""
    return number(float(f"{value:.2g}"))


def _expected(value: float) -> str:
    return _about(value) if value >= _LEAST_SHOWN else f"less than {_LEAST_SHOWN}"


def percent(share: float) -> str:
    """A share in per cent with one digit."""
    return f"{100 * share:.1f} %"


def share_cut(before: int, after: int) -> float:
    """Which share of so many characters is gone."""
    return 1 - after / before if before else 0.0


def problems_told(problems: Problems) -> str:
    """What was wrong with records, in lines."""
    lines = [f"{many(count, 'page')}: {what}." for what, count in problems.unusual.items()]
    if problems.left_out:
        lines.append(f"Left out, for they cannot be read: {many(problems.left_out, 'record')}.")
        lines += [f"  {place}: {what}" for place, what in problems.examples[:_MOST_EXAMPLES]]
    if (more := problems.left_out - _MOST_EXAMPLES) > 0:
        lines.append(f"  and {more:,} more")
    return "\n".join(lines)


def problems_json(problems: Problems) -> dict[str, Any]:
    """What was wrong with records, for JSON."""
    examples = [{"place": place, "problem": what} for place, what in problems.examples]
    return {"left_out": problems.left_out, "examples": examples, "unusual": dict(problems.unusual)}


def figures_table(results: Sequence[Result], others: Sequence[Mapping[str, float]] = ()) -> Group:
    """Return published beside measured with the verdict, a row for each of the article's, and the range over seeds."""
    tables: list[Table] = []
    for where, group in groupby(results, key=lambda result: result.figure.where):
        # Widths are fixed, so that the tables stand below one another as one.
        table = _table(where)
        table.show_header = not tables
        table.add_column("figure", width=28, no_wrap=True)
        table.add_column("published", width=15, justify="right")
        table.add_column("measured", width=15, justify="right")
        table.add_column("verdict", width=13, no_wrap=True)
        for row, cells in groupby(group, key=_row):
            found = list(cells)
            table.add_row(
                row,
                ", ".join(result.figure.printed(result.figure.number) for result in found),
                ", ".join(result.figure.printed(result.value) for result in found),
                _verdict(found),
            )
            if others and found[0].fast is None:
                ranges = ", ".join(_range(result, others) for result in found)
                table.add_row("  other seeds, 5 to 95 %", "", ranges, style="dim")
        tables.append(table)
    return Group(*tables)


def _table(title: str | None = None) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )


def _row(result: Result) -> str:
    """The row of the article's table that a figure stands in; the distances and thresholds have several in one."""
    name = result.figure.id
    return name.rpartition(".")[0] if name.count(".") > 2 else name


def _verdict(results: Sequence[Result]) -> str:
    if results[0].fast is not None:
        return f"simdup: {results[0].ratio:.0f} x"
    worst = max((result.verdict for result in results), key=list(_VERDICT_STYLE).index)
    return f"[{_VERDICT_STYLE[worst]}]{worst}[/]"


def _range(result: Result, others: Sequence[Mapping[str, float]]) -> str:
    low, high = np.quantile([values[result.figure.id] for values in others], (0.05, 0.95))
    return f"{number(low)}–{number(high)}"


def summary(results: Sequence[Result]) -> str:
    """Say how many figures came out as published."""
    judged = [result for result in results if result.verdict in ("reproduced", "contradicted")]
    if not judged:
        return "Another seed is another corpus: nothing was judged."
    held = sum(result.verdict == "reproduced" for result in judged)
    return f"{held} of {len(judged)} figures reproduced; timings are ratios in this run, not judged."


def many(count: int, what: str) -> str:
    """A number of things, in words that fit it."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def distances_table(conditions: Mapping[str, Measurement], jaccard: Mapping[str, float]) -> Group:
    """Return min, median, max distance of edited, same and unrelated pairs in every condition."""
    table = _table()
    table.add_column("pairs")
    table.add_column("Jaccard", justify="right")
    for condition in conditions:
        table.add_column(condition, justify="right")
    named = [_named(measurement) for measurement in conditions.values()]
    for name in named[0]:
        spreads = (_spread(found[name]) if name in found else "" for found in named)
        table.add_row(name, f"{jaccard[name]:.3f}", *spreads)
    return Group("[bold]Distance in bits: min, median, max[/]", table)


def _named(measurement: Measurement) -> dict[str, Distances]:
    same = {"the same before": measurement.same} if measurement.same.pairs else {}
    return {**measurement.edited, **same, "unrelated": measurement.unrelated}


def _spread(distances: Distances) -> str:
    return f"{distances.min}, {distances.median:g}, {distances.max}"


def thresholds(measurement: Measurement, advised: Iterable[int]) -> list[int]:
    """The thresholds to show: the article's, as shares of the width, and those advised."""
    return sorted({k * measurement.bits // 64 for k in THRESHOLDS} | set(advised))


def thresholds_table(conditions: Mapping[str, Measurement], advice: Mapping[str, Threshold | None]) -> Group:
    """Return recall with its interval and false pairs for a range of thresholds in every condition."""
    table = _table()
    table.add_column("k", justify="right")
    for condition in conditions:
        table.add_column(f"recall, {condition}", justify="right", no_wrap=True)
        table.add_column("false pairs", justify="right", no_wrap=True)
    advised = {threshold.k for threshold in advice.values() if threshold}
    for k in thresholds(next(iter(conditions.values())), advised):
        row = []
        for condition, measurement in conditions.items():
            at, best = measurement.at(k), advice[condition]
            low, high = at.recall_interval
            star = "*" if best and best.k == k else ""
            row += [f"{star}{100 * at.recall:.1f} ({100 * low:.1f} to {100 * high:.1f})", f"{at.false:,}"]
        table.add_row(str(k), *row)
    table.caption = "* advised" if advised else None
    table.caption_justify = "left"
    title = "[bold]Threshold k: recall of edited pages in % (95 % interval), unrelated pairs found[/]"
    return Group(title, table)


def advice(
    condition: str, measurement: Measurement, threshold: Threshold | None, scheme: Scheme, budget: float, pages: int
) -> str:
    """Say in plain sentences which threshold to trust, and what it would mean among so many pages."""
    allowed = f"{number(budget)} false per million pairs"
    if threshold is None:
        return (
            f"{condition}: trust no threshold: even equal fingerprints are unrelated pages more often than {allowed}. "
            "Remove what the pages share, or choose more bits or longer n-grams."
        )
    low, high = threshold.recall_interval
    of_each = ", ".join(f"{name}: {percent(pairs.share(threshold.k))}" for name, pairs in measurement.edited.items())
    sentence = (
        f"{condition}: use k = {threshold.k} of {scheme.bits} bits: it finds {percent(threshold.recall)} of the edited "
        f"pages (95 % interval {100 * low:.1f} to {100 * high:.1f}; {of_each}) with "
        f"{many(threshold.false, 'false pair')} among {threshold.unrelated:,} unrelated, copies included ({allowed} "
        "allowed). "
    )
    if same := measurement.same.pairs:
        sentence += (
            f"Of the {many(same, 'pair')} of pages that said the same before any edit it finds "
            f"{measurement.same.within(threshold.k):,}. "
        )
    sentence += f"Among {pages:,} pages like these expect "
    most = _about(threshold.false_among(pages, at_most=True))
    if threshold.false:
        sentence += f"about {_about(threshold.false_among(pages))} false pairs (at most {most})."
    else:
        sentence += f"at most {most} false pairs: none was seen."
    rate = threshold.false_per_million_at_most
    if rate > budget:
        sentence += (
            f" These pages are too few to be sure of the budget: the rate may be up to {number(rate)} per million."
        )
    return sentence


def threshold_json(at: Threshold) -> dict[str, Any]:
    """Return a threshold as JSON holds it; shares are from 0 to 1."""
    low, high = at.recall_interval
    return {
        "k": at.k,
        "recall": at.recall,
        "recall_low": low,
        "recall_high": high,
        "found": at.found,
        "edited": at.edited,
        "false_pairs": at.false,
        "unrelated": at.unrelated,
        "false_per_million": at.false_per_million,
        "false_per_million_at_most": at.false_per_million_at_most,
    }


def dedup_table(counts: Mapping[str, int], by_chance: float) -> Table:
    """Return how many pages of each sort there were; sorts of which there was none are left out."""
    table = _table()
    table.show_header = False
    table.add_column("pages")
    table.add_column("", justify="right")
    for name, count in counts.items():
        if count or name in ("read", "exact duplicates", "near duplicates", "kept"):
            table.add_row(name, f"{count:,}", style="bold" if name == "kept" else "")
    table.add_row("false pairs expected by chance", _expected(by_chance), style="dim")
    return table


def dedup_threshold(scheme: Scheme, k: int, pages: int, threshold: Threshold | None, most: float | None) -> str:
    """Say in plain sentences by which threshold pages were near, and how many false pairs there are at most."""
    sentence = f"Near: within k = {k} of {scheme.bits} bits, scheme {scheme.id}. "
    if threshold is None or most is None:
        return sentence + "Chance knows nothing of what pages share: simdup study measures it."
    low, high = threshold.recall_interval
    return sentence + (
        f"On a sample of these pages it found {percent(threshold.recall)} of the copies with 1, 5 and 15 % of the "
        f"words replaced (95 % interval {100 * low:.1f} to {100 * high:.1f}) and {many(threshold.false, 'false pair')} "
        f"among {threshold.unrelated:,} unrelated: expect at most {_expected(most)} among all {pages:,} "
        "different pages."
    )


def study_json(
    condition: Condition, jaccard: Mapping[str, float], advised: Threshold | None, page_ids: Sequence[str]
) -> dict[str, Any]:
    """Return a condition of `simdup study --json`; shares are from 0 to 1."""
    measurement = condition.measurement

    def of_each(at: Threshold) -> dict[str, Any]:
        shares = {name: pairs.share(at.k) for name, pairs in measurement.edited.items()}
        return threshold_json(at) | {"recall_of_each": shares}

    return {
        "scheme": condition.scheme.id,
        "without_text": measurement.without_text,
        "distances": {
            name: {
                "pairs": distances.pairs,
                **{statistic: getattr(distances, statistic) for statistic in ("min", "median", "max")},
                "jaccard": jaccard[name],
                "counts": distances.counts.tolist(),
            }
            for name, distances in _named(measurement).items()
        },
        "thresholds": [of_each(measurement.at(k)) for k in range(measurement.bits + 1)],
        "advice": of_each(advised) if advised else None,
        "closest": [
            {"left": page_ids[pair.left], "right": page_ids[pair.right]}
            | {"distance": pair.distance, "jaccard": pair.jaccard}
            for pair in condition.closest
        ],
    }


def plot_distances(path: str | os.PathLike[str], seed: int) -> None:
    """Plot the distances of the article's corpus, text only above with template, to an SVG, PNG or PDF file.

    Raises
    ------
    ValueError
        If the file's ending names no format, or the extra "plot" is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError("plots need matplotlib: pip install 'simdup[plot]'") from error
    kind = Path(path).suffix[1:]
    if kind not in ("svg", "png", "pdf"):
        raise ValueError(f"{os.fspath(path)}: give a file ending in .svg, .png or .pdf")
    # The same figures give the same file: no date, and names of the parts that do not change.
    with rc_context({"svg.hashsalt": "simdup"}), whole(path) as temporary:
        figure = Figure(figsize=(8, 4.2), layout="constrained")
        _draw(figure, measurements(article_corpus(seed), ARTICLE))
        figure.savefig(temporary, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)


def _draw(figure: "Figure", conditions: Mapping[str, Measurement]) -> None:
    # Okabe and Ito's colours, told apart by colour-blind readers too; the lines differ as well.
    styles = {
        "1pct": ("#0072B2", "-"),
        "5pct": ("#009E73", "--"),
        "15pct": ("#E69F00", "-."),
        "unrelated": ("#D55E00", ":"),
    }
    titles = {"text": "text only", "template": "with the 600-word template"}
    axes = figure.subplots(2, sharex=True)
    for panel, (condition, measurement) in zip(axes, conditions.items(), strict=True):
        for name, (colour, line) in styles.items():
            distances = measurement.edited.get(name, measurement.unrelated)
            share = 100 * distances.counts[:41] / distances.pairs
            label = f"{name.removesuffix('pct')} % of the words replaced" if name != "unrelated" else "unrelated pages"
            panel.step(range(41), share, where="mid", color=colour, linestyle=line, linewidth=1.8, label=label)
            panel.fill_between(range(41), share, step="mid", color=colour, alpha=0.12)
        panel.set_title(titles[condition], loc="left", fontsize=10)
        panel.set_ylabel("% of pairs")
        panel.axvline(3, color="0.5", linewidth=0.8)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].annotate("k = 3", (3.2, axes[0].get_ylim()[1] * 0.9), fontsize=9, color="0.35")
    axes[0].legend(frameon=False, fontsize=9)
    axes[1].set_xlabel("Hamming distance in bits of 64")
