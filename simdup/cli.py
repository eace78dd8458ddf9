"""The command line. It reads options, calls the library, prints; it has no logic of its own."""

import contextlib
import itertools
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Generic, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from simdup import Scheme, fit_idf, tokens
from simdup.dedup import FIRST, LONGEST, Check, Table, advise, chance, decide, read, remember
from simdup.fields import Batch
from simdup.files import whole
from simdup.hamming import check_k
from simdup.index import Index
from simdup.mask import NOISE
from simdup.pages import TEXTS, Page, Problems, read_pages
from simdup.records import open_records
from simdup.scheme import Hash, Unit, Weight
from simdup.study import report
from simdup.study.corpus import SEED, article_corpus
from simdup.study.edits import KINDS, USUAL, Edit
from simdup.study.experiment import LEAST_SAME, SAME, experiment
from simdup.study.reproduce import counted
from simdup.study.reproduce import reproduce as reproduce_figures
from simdup.templates import Templates, fit_templates

_Item = TypeVar("_Item")

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Do these two pages say the same thing, and which threshold should I trust?",
)
_DEFAULT = Scheme()
_INTERRUPTED, _BROKEN_PIPE = 130, 141
_ON_INTERRUPT = "interrupted: a file that was not finished is as it was; the same command begins anew"
_NARROWEST = 76
# How a system asks a process to stop.
_STOPS = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
_SAMPLE = 2_000


class _Console(Console):
    """A console that leaves a closed pipe to `main`."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr)
        self.width = max(self.width, _NARROWEST)  # below that, numbers would be cut

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def main() -> None:
    """Run the command: exit 2 with one line for what cannot be done, never with a traceback."""
    if sys.stdout is None:
        _fail("standard output is closed")
    # What the terminal has no letter for is escaped, not a reason to stop half-way.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for number in _STOPS:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)
    try:
        try:
            code = app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0
        except SystemExit as stop:  # typer's way to say that the reader of standard output went away
            raise BrokenPipeError from stop
        if code == _INTERRUPTED:  # some versions of typer make an exit code of it
            raise KeyboardInterrupt
        sys.stdout.flush()
    except (ValueError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader went away, as `head` does. Nothing more can be written, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(_BROKEN_PIPE)
        where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        _fail(
            f"{where}{(error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__}"
        )
    except KeyboardInterrupt:
        _fail(_ON_INTERRUPT, _INTERRUPTED)
    except Exception as error:
        # Typer's own errors, of whichever click it brings: they say themselves how they want to be shown.
        message = getattr(error, "format_message", None)
        if message is None:
            if type(error).__name__ == "Abort":
                _fail(_ON_INTERRUPT, _INTERRUPTED)
            raise
        _fail(message())
    sys.exit(code)


def _fail(message: str, code: int = 2) -> NoReturn:
    with contextlib.suppress(OSError):
        print(f"simdup: {_printable(' '.join(message.split()))}", file=sys.stderr)
    sys.exit(code)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _printable(text: str) -> str:
    """Escape what a terminal might obey, as in the name of a file that somebody else chose."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _apart(outputs: Iterable[str | None], inputs: Iterable[str]) -> None:
    """Refuse to write to a file that is read, or to one file twice: what it held would be lost."""
    taken = {Path(os.path.realpath(path)) for path in inputs if path != "-"}
    for path in outputs:
        if path is None or path == "-":
            continue
        real = Path(os.path.realpath(path))
        page = real.exists() and real.suffix.lower() in TEXTS and not taken.isdisjoint(real.parents)
        if real in taken or page:
            raise ValueError(f"{path}: is read or written already: give the result another name")
        taken.add(real)


def _bar() -> Progress:
    """A progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(show_speed=True), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Put off an interrupt until the block has ended."""
    late: list[object] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_STOPS)}
    before = {number: handler for number, handler in before.items() if callable(handler)}  # others are ignored
    for number in before:
        signal.signal(number, lambda *happened: late.append(happened))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if late:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _doing(bar: Progress, what: str) -> Iterator[None]:
    """Say what is done for as long as it takes."""
    task = bar.add_task(what, total=None)
    yield
    bar.update(task, total=1, completed=1)


@contextlib.contextmanager
def _steps(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with the name of each of so many steps when it begins."""
    with _bar() as bar:
        task, number = bar.add_task("", total=total), itertools.count()
        yield lambda name: bar.update(task, description=name, completed=next(number), refresh=True)


@contextlib.contextmanager
def _json_file(path: str | None) -> Iterator[dict[str, Any]]:
    """Yield an object to fill, and write it whole at the end. A file that cannot be written fails at once."""
    content: dict[str, Any] = {"simdup": version("simdup")}
    if path is None or path == "-":
        yield content
        if path:
            print(json.dumps(content, indent=2, allow_nan=False))
        return
    with whole(path) as temporary:
        yield content
        temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


_TextField = Annotated[str, typer.Option(help="Field or column that holds the text.")]
_Unit = Annotated[Unit, typer.Option(help="What a token is.")]
_Ngram = Annotated[int, typer.Option(help="How many tokens make a feature.")]
_Bits = Annotated[int, typer.Option(help="Width of the fingerprint: 64, 128 or 256.")]
_Weight = Annotated[Weight, typer.Option(help="tf: as often as it occurs; set: once; idf: fitted on these pages.")]
_Hash = Annotated[Hash, typer.Option("--hash", help="Hash of the features.")]
_Normalize = Annotated[bool, typer.Option("--normalize/--raw", help="Normalise, or only split on white space.")]
_Cut = Annotated[
    bool, typer.Option("--cut-templates", help="Cut out what stands on many pages of a site (a host in WARC files).")
]
_Mask = Annotated[
    str, typer.Option(metavar="NOISE,...", help=f"Noise that does not count: all, or some of {', '.join(NOISE)}.")
]
_Budget = typer.Option(min=0, max=1e6, help="False pairs allowed among a million pairs of unrelated pages.")
_Threads = Annotated[int, typer.Option(min=1, help="Threads that work at once.")]
_JSON = typer.Option("--json", metavar="FILE", help="Write everything to this file too; - prints it instead of tables.")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"simdup {version('simdup')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


@app.command()
def reproduce(
    seed: Annotated[int, typer.Option(help="Seed of the corpus; the article's is 39.")] = SEED,
    sweep: Annotated[
        int, typer.Option(min=0, help="Also measure so many other seeds, and show their 5 to 95 % range.")
    ] = 0,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the distances to a .svg, .png or .pdf.")
    ] = None,
    json_file: Annotated[str | None, _JSON] = None,
) -> int:
    """Measure the article's figures, published beside measured, a verdict each.

    Exits 1 if one that is not a timing is not reproduced at the article's seed.
    """
    _apart([json_file, plot], [])
    with _json_file(json_file) as content, _steps(1 + sweep) as step:
        step(f"seed {seed}")
        if plot:
            report.plot_distances(plot, seed)
        results = reproduce_figures(seed)
        others = []
        for other in range(SEED + 1, SEED + 1 + sweep):
            step(f"seed {other}")
            others.append(counted(article_corpus(other)))
        content |= {"seed": seed, "figures": [result.as_json() for result in results]}
        for entry in content["figures"] if others else ():
            if entry["verdict"] != "timing":
                entry["other_seeds"] = [values[entry["id"]] for values in others]
    if json_file != "-":
        console = _Console()
        console.print(report.figures_table(results, others))
        console.print(report.summary(results), soft_wrap=True)
    return int(any(result.verdict == "contradicted" for result in results))


@app.command()
def study(
    pages: Annotated[
        list[str],
        typer.Argument(help="JSONL, Parquet, WARC, text or HTML files, folders of the last two; - for JSONL on stdin."),
    ],
    text_field: _TextField = "text",
    unit: _Unit = _DEFAULT.unit,
    ngram: _Ngram = _DEFAULT.ngram,
    bits: _Bits = _DEFAULT.bits,
    weight: _Weight = _DEFAULT.weight,
    hash_: _Hash = _DEFAULT.hash,
    normalize: _Normalize = True,
    mask: _Mask = "",
    cut_templates: _Cut = False,
    template: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text to put before every page as well.")
    ] = None,
    edits: Annotated[
        str, typer.Option(help=f"What to do to a copy of each page: {KINDS}. A rate alone replaces words.")
    ] = USUAL,
    same: Annotated[
        float, typer.Option(min=LEAST_SAME, max=1, help="Pages that share so much say the same before any edit.")
    ] = SAME,
    max_false_per_million: Annotated[float, _Budget] = 1.0,
    among: Annotated[
        int, typer.Option(min=2, max=10**15, help="For how many pages to say what the advice would mean.")
    ] = 1_000_000,
    sample: Annotated[
        int, typer.Option(min=0, help="Study at most so many pages, drawn at random; 0 for all.")
    ] = _SAMPLE,
    seed: Annotated[int, typer.Option(help="Seed of the sample and the edits.")] = 0,
    threads: _Threads = 1,
    save_scheme: Annotated[
        str | None, typer.Option(metavar="FILE", help="Save the scheme, with the table that idf was fitted to.")
    ] = None,
    json_file: Annotated[str | None, _JSON] = None,
) -> None:
    """Edit copies of your pages, measure how far they move, and advise a threshold."""
    scheme = Scheme(unit, ngram, bits, weight, hash_, normalize, mask=_noise(mask))
    chosen = [Edit.parse(text) for text in edits.split(",")]
    inputs = [*pages, os.fspath(template)] if template else pages
    if inputs.count("-") > 1:
        raise ValueError("- is given twice: standard input can be read only once")
    _apart([json_file, save_scheme], inputs)
    prefix = _template(template) if template else None
    conditions = {"as they are": None} | ({"with template": prefix} if prefix else {})
    saved = whole(save_scheme) if save_scheme else contextlib.nullcontext()
    with _json_file(json_file) as content, saved as scheme_file:
        problems, drawn = Problems(), _Sample[tuple[str, str, str | None]](sample, seed)
        with _bar() as bar:
            for page in bar.track(_readable(read_pages(pages, text_field), problems), description="pages read"):
                drawn.add(page)
        read, studied = drawn.seen, drawn.kept
        texts = [text for _, text, _ in studied]
        written = sum(map(len, texts))
        if cut_templates:
            sites = [site for _, _, site in studied]
            texts = list(fit_templates(texts, sites).remove(texts, sites))
        cut = report.share_cut(written, sum(map(len, texts)))
        with _steps(len(chosen) + len(conditions) + 2) as step:
            trial = experiment(texts, chosen, seed, same, step)
            found = {}
            for name, text in conditions.items():
                step(f"distances {name}")
                found[name] = trial.under(scheme, text, threads=threads)
            step("words shared")
            jaccard = trial.jaccard()
        measured = {name: condition.measurement for name, condition in found.items()}
        advised = {name: measurement.advise(max_false_per_million) for name, measurement in measured.items()}
        ids = [name for name, _, _ in studied]
        content |= {
            "scheme": found["as they are"].scheme.id,
            "edits": [edit.name for edit in chosen],
            "same": same,
            "seed": seed,
            "max_false_per_million": max_false_per_million,
            "pages": read,
            "studied": len(studied),
            "share_cut": cut,
            "problems": report.problems_json(problems),
            "same_before": len(trial.same),
            "conditions": {
                name: report.study_json(condition, jaccard, advised[name], ids) for name, condition in found.items()
            },
        }
        if scheme_file:
            found["as they are"].scheme.save(scheme_file)
    if json_file == "-":
        return
    console = _Console()
    _tell(problems, console)
    if cut_templates:
        console.print(f"Templates cut: {report.percent(cut)} of the text.", highlight=False)
    console.print(f"{len(studied):,} of {report.many(read, 'page')}, scheme {content['scheme']}", highlight=False)
    if same_before := len(trial.same):
        console.print(
            f"{report.many(same_before, 'pair')} of pages say the same before any edit: counted as neither.",
            highlight=False,
        )
    if without := measured["as they are"].without_text:
        console.print(f"{without:,} of pages and copies have no text: in no pair.", highlight=False)
    console.print(report.distances_table(measured, jaccard))
    console.print(report.thresholds_table(measured, advised))
    console.print("The nearest unedited pages that count as unrelated: are they? If not, lower --same.")
    for pair in found["as they are"].closest:
        shared = f"{pair.distance} bits, {100 * pair.jaccard:.0f} % of their word 3-grams shared"
        names = _printable(f"{ids[pair.left]} ~ {ids[pair.right]}")
        console.print(f"  {shared}: {names}", markup=False, highlight=False)
    for name, threshold in advised.items():
        sentences = report.advice(name, measured[name], threshold, scheme, max_false_per_million, among)
        console.print(sentences, highlight=False)


@app.command()
def dedup(
    pages: Annotated[
        list[str],
        typer.Argument(help="JSONL files, - for stdin; or Parquet; or WARC; or .txt, .html and folders of them."),
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="KEPT", help="Where to write what is kept, in the kind it was read."),
    ],
    pairs: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write all near pairs to a .jsonl or .parquet file.")
    ] = None,
    clusters: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write what is kept for which page to such a file.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", help="Bits within which pages say the same; measured on them if not given.")
    ] = None,
    false_per_million: Annotated[
        float | None,
        typer.Option(
            min=0, max=1e6, help="False pairs allowed in a million; by default 1, and 1 for 1,000 pages in all."
        ),
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option(metavar="J", help="Jaccard similarity that their features must have too; or containment:J."),
    ] = None,
    keep: Annotated[
        str, typer.Option(metavar="first|longest|FIELD", help="Which to keep; of a field the largest value.")
    ] = FIRST,
    index: Annotated[
        str | None, typer.Option(metavar="FILE", help="Count the pages kept in earlier runs with it, and add these.")
    ] = None,
    least_features: Annotated[
        int, typer.Option(min=1, help="Keep pages of fewer features without comparing them.")
    ] = 1,
    text_field: _TextField = "text",
    scheme_file: Annotated[
        Path | None, typer.Option("--scheme", metavar="FILE", help="A scheme that study saved, instead of the options.")
    ] = None,
    unit: _Unit = _DEFAULT.unit,
    ngram: _Ngram = _DEFAULT.ngram,
    bits: _Bits = _DEFAULT.bits,
    weight: _Weight = _DEFAULT.weight,
    hash_: _Hash = _DEFAULT.hash,
    normalize: _Normalize = True,
    mask: _Mask = "",
    cut_templates: _Cut = False,
    threads: _Threads = 1,
    json_file: Annotated[str | None, _JSON] = None,
) -> None:
    """Keep one of the pages that say the same. Pages without text are kept."""
    scheme = Scheme(unit, ngram, bits, weight, hash_, normalize, mask=_noise(mask))
    if scheme_file and scheme != _DEFAULT:
        raise ValueError("--scheme says what the options of a scheme say too: give one or the other")
    if k is not None and false_per_million is not None:
        raise ValueError("--false-per-million is what k is chosen by: give it or --k")
    if scheme_file:
        scheme = Scheme.load(scheme_file)
    check = Check.parse(verify) if verify else None
    if check and index:
        raise ValueError("--verify needs the texts of earlier pages, which an index does not have: give one of the two")
    if k is not None:
        check_k(k, scheme.bits)
    outputs = [output, pairs, clusters, index, json_file]
    if outputs.count("-") > 1:
        raise ValueError("- is given for two outputs: they would be mixed")
    _apart(outputs, [*pages, os.fspath(scheme_file)] if scheme_file else pages)
    tables = {name: Table(path, name) for name, path in (("pairs", pairs), ("clusters", clusters)) if path}
    order_field = None if keep in (FIRST, LONGEST) else keep
    with contextlib.ExitStack() as stack:
        content = stack.enter_context(_json_file(json_file))
        records = stack.enter_context(open_records(pages, text_field, order_field))
        records.check_output(output)
        if index and output != "-" and Path(output).is_file() and Path(output).stat().st_size:
            raise ValueError(
                f"{output}: is there already: with --index it would be replaced by what is new alone: give another name"
            )
        bar = stack.enter_context(_bar())
        sample = _Sample[str](_SAMPLE, 0)
        templates: Templates | None = None
        written = left = 0

        def batches(*, sampled: bool = False) -> Iterator[Batch]:
            nonlocal written, left
            task = bar.add_task("pages read", total=None)
            for batch in records.batches():
                if templates:
                    texts, sites = zip(*batch.with_sites(), strict=True) if len(batch.texts) else ((), ())
                    batch = batch._replace(texts=list(templates.remove(texts, sites)))
                    written, left = written + sum(map(len, texts)), left + sum(map(len, batch.texts))
                for text in batch.as_list() if sampled else ():
                    sample.add(text)
                yield batch
                bar.advance(task, len(batch.texts))
            bar.update(task, total=len(records))

        def place(row: int) -> str:
            return records.place(row).encode("utf-8", "backslashreplace").decode()  # the name of a file may be no text

        def texts() -> Iterator[str]:
            return (text for batch in batches() for text in batch.as_list())

        if cut_templates:
            some, same = itertools.tee(page for batch in batches() for page in batch.with_sites())
            templates = fit_templates((text for text, _ in some), (site for _, site in same))
        if scheme.weight == "idf" and scheme.idf is None:
            scheme = fit_idf(texts(), scheme)
        earlier = stack.enter_context(Index(k, scheme, index)) if index and k is not None else None
        read_ = read(batches(sampled=k is None), scheme, keep, compare=check is not None, threads=threads)
        advised = None
        if k is None:
            with _doing(bar, "a threshold is measured"):
                advised = advise(sample.kept, scheme, sample.seen, false_per_million)
            k = advised.threshold.k
            earlier = stack.enter_context(Index(k, scheme, index)) if index else None
        with _doing(bar, "near pairs"):
            decision = decide(
                read_, k, least_features=least_features, check=check, texts=texts, index=earlier, threads=threads
            )
        with _doing(bar, "written"):
            for name, table in tables.items():
                table.write(getattr(decision, name)(place))
            records.write(decision.keep, output)
            if earlier is not None:
                with _undisturbed():  # what stands in the output must be known, or it would be kept again
                    remember(earlier, decision, place)
        counts, by_chance = decision.counts(), chance(decision.units, k)
        threshold, most = (advised.threshold, advised.false_among(len(decision.units))) if advised else (None, None)
        content |= {
            "scheme": scheme.id,
            "k": k,
            "advice": report.threshold_json(threshold) if threshold else None,
            "false_pairs_at_most": most,
            "share_cut": report.share_cut(written, left),
            **{name.replace(" ", "_"): count for name, count in counts.items()},
            "false_pairs_by_chance": by_chance,
            "problems": report.problems_json(records.problems),
        }
    if json_file == "-":
        return
    console = _Console(stderr=output == "-")
    _tell(records.problems, console)
    if cut_templates:
        console.print(f"Templates cut: {report.percent(content['share_cut'])} of the text.", highlight=False)
    console.print(report.dedup_table(counts, by_chance))
    console.print(report.dedup_threshold(scheme, k, len(decision.units), threshold, most), highlight=False)


def _noise(names: str) -> tuple[Any, ...]:
    return NOISE if names == "all" else tuple(map(str.strip, names.split(","))) if names else ()


def _template(path: Path) -> str:
    texts = [text for _, text, _ in _readable(read_pages([path]), Problems())]
    if len(texts) != 1 or not tokens(texts[0], _DEFAULT):
        raise ValueError(f"{path}: a template is one text with at least a word in it")
    return texts[0]


def _readable(pages: Iterable[Page], problems: Problems) -> Iterator[tuple[str, str, str | None]]:
    """The ids, texts and sites of the pages that have a text."""
    for page in pages:
        for problem in page.problems:
            problems.add(page.id, problem, left_out=page.text is None)
        if page.text is not None:
            yield page.id, page.text, page.site


def _tell(problems: Problems, console: Console) -> None:
    if told := report.problems_told(problems):
        console.print("\n".join(map(_printable, told.split("\n"))), markup=False, highlight=False)


class _Sample(Generic[_Item]):
    """At most so many of the items that are added, each equally likely, in order; all for 0."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._rng = size, random.Random(seed)
        self._kept: dict[int, tuple[int, _Item]] = {}
        self.seen = 0

    def add(self, item: _Item) -> None:
        """Count an item, and perhaps keep it."""
        slot = self.seen if not self._size or self.seen < self._size else self._rng.randint(0, self.seen)
        if not self._size or slot < self._size:
            self._kept[slot] = (self.seen, item)
        self.seen += 1

    @property
    def kept(self) -> list[_Item]:
        """Those that were drawn."""
        return [item for _, item in sorted(self._kept.values(), key=itemgetter(0))]
