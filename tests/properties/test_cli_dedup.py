"""`simdup dedup`: what is kept is as it was and in order, for every kind of input; nothing is lost or half-written."""

import contextlib
import gzip
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import simdup.cli
from simdup import Scheme, fit_idf
from simdup.dedup import Check, decide, read, remember
from simdup.fields import Batch
from simdup.index import Index
from tests.properties.command import COMMAND, INTERRUPTED, Run, make_pages, refused
from tests.properties.test_warc import INFO, REQUEST, response, warc

VOCABULARY = [f"Word{i}" for i in range(900)]


def corpus() -> list[dict[str, Any]]:
    """Pages, of which some are equal, some are edited, some have no text, and some are longer or later than others."""
    rng = random.Random(1)
    texts = make_pages(30, 60)
    texts += [texts[row] for row in range(10)]
    for row in range(10, 18):
        words = texts[row].split(" ")
        words[rng.randrange(60)] = "Other"
        texts.append(" ".join(words) + (" and more" if row % 2 else ""))
    texts += ["", "!!!"]
    return [{"id": row, "text": text, "date": (row * 7) % 50, "meta": {"ü": [row]}} for row, text in enumerate(texts)]


RECORDS = corpus()
TEXTS = [record["text"] for record in RECORDS]


def lines(records: list[dict[str, Any]] = RECORDS) -> bytes:
    """JSON with odd spaces, which must stay."""
    return b"".join(json.dumps(record, separators=(" , ", ":  ")).encode() + b"\n" for record in records)


def expected(k: int, keep: str = "first", scheme: Scheme | None = None, **options: Any) -> list[bool]:
    scheme = scheme or Scheme()
    orders = [record[keep] if keep == "date" else None for record in RECORDS]
    pages = read([Batch(TEXTS, orders)], scheme, keep, compare="check" in options, threads=1)
    kept: list[bool] = decide(pages, k, texts=lambda: iter(TEXTS), **options).keep.tolist()
    return kept


def kept_lines(keep: list[bool]) -> bytes:
    every = lines().splitlines(keepends=True)
    return b"".join(line for line, is_kept in zip(every, keep, strict=True) if is_kept)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("pages.jsonl").write_bytes(lines())
    return tmp_path


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


class TestKept:
    @pytest.mark.parametrize("k", [0, 3, 12, 40])
    @pytest.mark.parametrize("keep", ["first", "longest", "date"])
    def test_agrees_with_the_library(self, run: Run, k: int, keep: str) -> None:
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", str(k), "--keep", keep, "--json", "out.json")
        assert (ran.code, ran.err) == (0, "")
        keeps = expected(k, keep)
        assert Path("kept.jsonl").read_bytes() == kept_lines(keeps)
        content = json.loads(Path("out.json").read_text())
        assert (content["read"], content["kept"], content["k"]) == (len(RECORDS), sum(keeps), k)
        assert content["no_text"] == 2
        assert content["exact_duplicates"] + content["near_duplicates"] == len(RECORDS) - sum(keeps)
        assert content["exact_duplicates"] == 10 or k > 12
        assert sorted(files()) == ["kept.jsonl", "out.json", "pages.jsonl"]

    @pytest.mark.parametrize(
        ("options", "scheme"),
        [
            ("--unit char --ngram 3", Scheme("char", 3)),
            ("--bits 64 --weight tf", Scheme(bits=64, weight="tf")),
            ("--hash blake2b --raw", Scheme(hash="blake2b", normalize=False)),
            ("--weight idf", fit_idf(TEXTS, Scheme())),
            ("--mask uuid,date", Scheme(mask=("date", "uuid"))),
        ],
    )
    def test_options_of_the_scheme(self, run: Run, options: str, scheme: Scheme) -> None:
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", *options.split(), "--json", "-")
        assert ran.code == 0
        assert ran.json["scheme"] == scheme.id
        assert Path("kept.jsonl").read_bytes() == kept_lines(expected(9, scheme=scheme))

    def test_a_saved_scheme(self, run: Run) -> None:
        scheme = fit_idf(TEXTS[:20], Scheme(bits=256, ngram=1))
        scheme.save("scheme.parquet")
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--scheme", "scheme.parquet", "--json", "-")
        assert ran.json["scheme"] == scheme.id
        assert Path("kept.jsonl").read_bytes() == kept_lines(expected(9, scheme=scheme))

    @pytest.mark.parametrize("verify", ["0.8", "jaccard:0.99", "containment:0.9"])
    def test_verify(self, run: Run, verify: str) -> None:
        assert run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "128", "--verify", verify).code == 0
        keeps = expected(128, check=Check.parse(verify))
        assert 20 < sum(keeps) < len(RECORDS)
        assert Path("kept.jsonl").read_bytes() == kept_lines(keeps)

    def test_least_features(self, run: Run) -> None:
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "3", "--least-features", "70", "--json", "-")
        assert (ran.json["too_few_features"], ran.json["kept"]) == (len(RECORDS) - 2, len(RECORDS))
        assert Path("kept.jsonl").read_bytes() == lines()

    def test_threads_change_nothing(self, run: Run) -> None:
        assert run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--threads", "3").code == 0
        assert Path("kept.jsonl").read_bytes() == kept_lines(expected(9))

    def test_k_is_measured_on_the_pages(self, run: Run) -> None:
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--json", "out.json")
        content = json.loads(Path("out.json").read_text())
        advice = json.loads(run("study", "pages.jsonl", "--json", "-").out)["conditions"]["as they are"]["advice"]
        del advice["recall_of_each"]
        assert content["advice"] == advice
        assert content["k"] == advice["k"] > 3
        assert Path("kept.jsonl").read_bytes() == kept_lines(expected(advice["k"]))
        assert f"k = {advice['k']} of 128 bits" in ran.out
        few = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--false-per-million", "900000", "--json", "-").json
        assert few["k"] > content["k"]

    def test_the_table(self, run: Run) -> None:
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9")
        kept = sum(expected(9))
        near = len(RECORDS) - kept - 10
        assert near > 2
        for part in (
            "read 50",
            "no text 2",
            "exact duplicates 10",
            f"near duplicates {near}",
            f"kept {kept}",
            "by chance",
        ):
            assert part in " ".join(ran.out.split()), part
        assert "too few features" not in ran.out
        assert max(map(len, ran.out.splitlines())) <= 80

    def test_no_pages(self, run: Run) -> None:
        Path("none.jsonl").write_bytes(b"")
        ran = run("dedup", "none.jsonl", "-o", "kept.jsonl", "--k", "3", "--json", "-")
        assert (ran.code, ran.json["read"], ran.json["kept"]) == (0, 0, 0)
        assert Path("kept.jsonl").read_bytes() == b""


class TestKinds:
    def test_warc(self, run: Run) -> None:
        """Pages that are equal but for their markup; the records that are no pages stay."""
        pages = [response(f"http://a/{row}", f"<p>{text}</p>".encode()) for row, text in enumerate(TEXTS)]
        twins = [response(f"http://b/{row}", f"<b>{text}".encode()) for row, text in enumerate(TEXTS[:9])]
        warc(Path("a.warc.gz"), [INFO, *pages, REQUEST, *twins, response("u", b"{")[:-9]])
        ran = run("dedup", "a.warc.gz", "-o", "kept.warc.gz", "--k", "3", "--clusters", "c.jsonl")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("Left out, for they cannot be read: 1 record.\n  a.warc.gz, record ")
        kept = [page for page, is_kept in zip(pages, expected(3), strict=True) if is_kept]
        assert gzip.decompress(Path("kept.warc.gz").read_bytes()) == b"".join([INFO, *kept, REQUEST])
        clusters = [json.loads(line) for line in Path("c.jsonl").read_text().splitlines()]
        assert {"a.warc.gz, record 2 (http://a/0)"} == {
            row["representative"] for row in clusters if row["page"].endswith("(http://b/0)")
        }

    def test_templates_are_cut_host_by_host(self, run: Run) -> None:
        """Two hosts with templates of their own and the same pages; alone, none of them is a template."""
        menus = {host: " ".join(f"{host}{number}" for number in range(300)) for host in "ab"}
        twins = [
            response(f"http://{host.upper()}/{row}", f"<p>{menus[host]}<p>{text}</p>".encode())
            for host in "ab"
            for row, text in enumerate(TEXTS[:9])
        ]
        warc(Path("a.warc"), twins)
        for options, kept in ((["--cut-templates"], 9), ([], 18)):
            ran = run("dedup", "a.warc", "-o", "kept.warc", "--k", "3", "--json", "-", *options)
            assert ran.json["kept"] == kept
            assert (0.7 < ran.json["share_cut"] < 0.8) == bool(options)
        ran = run("dedup", "a.warc", "-o", "kept.warc", "--k", "3", "--cut-templates")
        assert ran.out.startswith("Templates cut: 7")
        assert Path("kept.warc").read_bytes() == b"".join(twins[:9])

    def test_compressed_lines(self, run: Run) -> None:
        Path("pages.jsonl.gz").write_bytes(gzip.compress(lines() + b"{"))
        for name in ("kept.jsonl", "kept.jsonl.gz"):
            ran = run("dedup", "pages.jsonl.gz", "-o", name, "--k", "3", "--json", "-")
            assert ran.json["problems"]["left_out"] == 1
            data = Path(name).read_bytes()
            assert (gzip.decompress(data) if name.endswith(".gz") else data) == kept_lines(expected(3))

    def test_standard_input_and_output(self) -> None:
        done = subprocess.run(
            [*COMMAND, "dedup", "-", "-o", "-", "--k", "9"], input=lines(), capture_output=True, check=True
        )
        assert done.stdout == kept_lines(expected(9))
        assert b"near duplicates" in done.stderr

    def test_parquet(self, run: Run) -> None:
        table = pa.Table.from_pylist(RECORDS).replace_schema_metadata({"from": "a crawl"})
        pq.write_table(table, "pages.parquet", row_group_size=7)
        assert run("dedup", "pages.parquet", "-o", "kept.parquet", "--k", "9", "--keep", "date").code == 0
        kept = pq.read_table("kept.parquet")
        assert kept.equals(table.filter(pa.array(expected(9, "date"))))
        assert kept.schema.metadata[b"from"] == b"a crawl"

    def test_a_folder(self, run: Run) -> None:
        for row, text in enumerate(TEXTS):
            path = Path("in", f"part{row % 3}", f"{row:02}.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert run("dedup", "in", "-o", "kept", "--k", "9").code == 0
        kept = {path.relative_to("kept"): path.read_text() for path in Path("kept").rglob("*.txt")}
        assert len(kept) == sum(expected(9))
        assert all(kept[path] == (Path("in") / path).read_text() for path in kept)

    def test_several_files(self, run: Run) -> None:
        every = lines().splitlines(keepends=True)
        Path("a.jsonl").write_bytes(b"".join(every[:20]).rstrip(b"\n"))
        Path("b.ndjson").write_bytes(b"\n" + b"".join(every[20:]))
        assert run("dedup", "a.jsonl", "b.ndjson", "-o", "kept.jsonl", "--k", "9", "--clusters", "c.jsonl").code == 0
        assert Path("kept.jsonl").read_bytes() == kept_lines(expected(9))
        rows = [json.loads(line) for line in Path("c.jsonl").read_text().splitlines()]
        assert {"page": "b.ndjson, line 12", "representative": "a.jsonl, line 1"}.items() <= next(
            row for row in rows if row["page"] == "b.ndjson, line 12"
        ).items()


class TestTables:
    def test_pairs_and_clusters(self, run: Run) -> None:
        options = ("--k", "20", "--verify", "0.5", "--pairs", "p.parquet", "--clusters", "c.jsonl")
        assert run("dedup", "pages.jsonl", "-o", "kept.jsonl", *options).code == 0
        pairs = pq.read_table("p.parquet").to_pylist()
        assert len(pairs) == 18
        assert {row["distance"] for row in pairs if row["similarity"] == 1} == {0}
        assert all(0.5 <= row["similarity"] <= 1 and row["distance"] <= 20 for row in pairs)
        clusters = [json.loads(line) for line in Path("c.jsonl").read_text().splitlines()]
        assert len(clusters) == 36
        assert {row["size"] for row in clusters} == {2}
        assert all(row["diameter"] >= row["distance"] for row in clusters)

    @pytest.mark.parametrize("option", ["--pairs", "--clusters"])
    def test_names_of_other_kinds(self, run: Run, option: str) -> None:
        refused(run("dedup", "pages.jsonl", "-o", "kept.jsonl", option, "p.txt"), "p.txt: give a name that ends in")
        assert sorted(files()) == ["pages.jsonl"]


class TestIndex:
    def test_a_second_run_keeps_nothing_new(self, run: Run) -> None:
        Path("pages.jsonl").write_bytes(lines(RECORDS[:-2]))
        command = ("dedup", "pages.jsonl", "--k", "9", "--index", "seen.index", "--json", "-", "-o")
        first = run(*command, "first.jsonl").json
        again = run(*command, "again.jsonl").json
        assert first["kept"] == sum(expected(9)) - 2
        assert (again["kept"], again["seen_in_an_earlier_run"]) == (0, 48)
        assert Path("again.jsonl").read_bytes() == b""
        assert sorted(files()) == ["again.jsonl", "first.jsonl", "pages.jsonl", "seen.index"]

    def test_parts_are_as_good_as_the_whole(self, run: Run) -> None:
        every = lines().splitlines(keepends=True)
        kept = b""
        for start in range(0, len(every), 13):
            Path("part.jsonl").write_bytes(b"".join(every[start : start + 13]))
            assert run("dedup", "part.jsonl", "-o", f"{start}.jsonl", "--k", "9", "--index", "seen.index").code == 0
            kept += Path(f"{start}.jsonl").read_bytes()
        assert kept == kept_lines(expected(9))

    def test_what_an_earlier_run_kept_is_not_replaced(self, run: Run) -> None:
        """The same command again would leave an empty file where all pages were."""
        command = ("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--index", "seen.index")
        assert run(*command).code == 0
        before = files()
        refused(run(*command), "kept.jsonl: is there already", "give another name")
        assert files() == before

    def test_a_name_that_is_no_text(self, run: Run) -> None:
        """As file systems allow: it stands escaped in the tables and in the index."""
        name = os.fsdecode(b"p\xff.jsonl")
        Path(name).write_bytes(lines())
        command = ("dedup", name, "--k", "9", "--index", "seen.index", "--clusters", "c.parquet", "-o")
        assert run(*command, "kept.jsonl").code == 0
        assert pq.read_table("c.parquet")["page"][0].as_py() == "p\\udcff.jsonl, line 1"
        assert run(*command, "again.jsonl").code == 0
        assert Path("again.jsonl").read_bytes().count(b"\n") == 2

    def test_an_earlier_page_is_named(self, run: Run) -> None:
        Path("one.jsonl").write_bytes(lines(RECORDS[:3]))
        run("dedup", "one.jsonl", "-o", "one.kept.jsonl", "--k", "9", "--index", "seen.index")
        run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--index", "seen.index", "--clusters", "c.jsonl")
        row = json.loads(Path("c.jsonl").read_text().splitlines()[1])
        assert row["page"] == "pages.jsonl, line 2"
        assert row["representative"].startswith("one.jsonl, line 2 #")
        assert (row["distance"], row["size"], row["diameter"]) == (0, 3, None)

    def test_of_another_scheme(self, run: Run) -> None:
        run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--index", "seen.index")
        before = files()
        ran = run("dedup", "pages.jsonl", "-o", "other.jsonl", "--k", "9", "--index", "seen.index", "--bits", "64")
        refused(ran, "seen.index", "word2-128-set-xxh64-nfkc14", "word2-64-set-xxh64-nfkc14")
        assert files() == before

    def test_that_is_none(self, run: Run) -> None:
        Path("seen.index").write_text("my notes")
        refused(run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--index", "seen.index"), "seen.index")
        assert Path("seen.index").read_text() == "my notes"
        assert sorted(files()) == ["pages.jsonl", "seen.index"]

    def test_nothing_is_remembered_that_was_not_written(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device", "kept.jsonl")

        with monkeypatch.context() as patch:
            patch.setattr("simdup.records._JsonLines._write", fail)
            refused(run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--index", "seen.index"), "No space")
        with Index(9, Scheme(), "seen.index") as index:
            assert len(index) == 0

    def test_verify_needs_texts(self, run: Run) -> None:
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--verify", "0.8", "--index", "seen.index")
        refused(ran, "--verify needs the texts of earlier pages")
        assert sorted(files()) == ["pages.jsonl"]


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "parts"),
        [
            ("missing.jsonl -o k.jsonl", ["missing.jsonl: No such file or directory"]),
            ("pages.jsonl", ["--output"]),
            ("-o k.jsonl", ["pages"]),
            ("pages.jsonl -o k.parquet", ["k.parquet: JSONL is written"]),
            ("pages.jsonl -o none/k.jsonl", ["none: no such folder"]),
            ("pages.jsonl -o folder", ["folder"]),
            ("pages.jsonl -o k.jsonl --k -1", ["k=-1"]),
            ("pages.jsonl -o k.jsonl --k 129", ["k=129: give 0 to 128 bits"]),
            ("pages.jsonl -o k.jsonl --k 1.5", ["--k"]),
            ("pages.jsonl -o k.jsonl --verify 2", ["--verify 2: give a similarity"]),
            ("pages.jsonl -o k.jsonl --keep author", ["pages.jsonl, line 1: no field 'author'"]),
            ("pages.jsonl -o k.jsonl --keep meta", ["pages.jsonl, line 1: field 'meta' is"]),
            ("pages.jsonl -o k.jsonl --least-features 0", ["--least-features"]),
            ("pages.jsonl -o k.jsonl --false-per-million -1", ["--false-per-million"]),
            ("pages.jsonl -o k.jsonl --bits 96", ["bits=96"]),
            ("pages.jsonl -o k.jsonl --scheme pages.jsonl", ["pages.jsonl: ", "parquet"]),
            ("pages.jsonl -o k.jsonl --text-field body", ["no field 'body'"]),
            ("one.jsonl -o k.jsonl", ["no threshold can be measured on these pages", "give --k"]),
            ("broken.jsonl -o k.jsonl --k 3", ["broken.jsonl, line 2: broken JSON"]),
            ("pages.jsonl folder -o k.jsonl --k 3", ["JSONL", "text", "one kind"]),
            (
                "pages.jsonl -o k.jsonl --scheme s.parquet --bits 64",
                ["--scheme says what the options", "one or the other"],
            ),
            ("pages.jsonl -o k.jsonl --k 3 --false-per-million 1", ["--false-per-million", "give it or --k"]),
            ("pages.jsonl -o - --json -", ["- is given for two outputs"]),
            ("- - -o k.jsonl", ["- is given twice"]),
        ],
    )
    def test_one_line_and_nothing_written(self, run: Run, arguments: str, parts: list[str]) -> None:
        Path("one.jsonl").write_bytes(lines(RECORDS[:1]))
        Path("broken.jsonl").write_bytes(b"\n{\n")
        Path("folder").mkdir()
        Path("folder", "a.txt").write_text("a")
        before = files()
        more = ["--pairs", "p.jsonl", "--clusters", "c.jsonl", "--index", "i"]
        refused(run("dedup", *arguments.split(), *([] if "--verify" in arguments else more)), *parts)
        assert set(files()) - set(before) <= {"i"}

    def test_k_is_looked_at_before_any_page(self, run: Run) -> None:
        Path("broken.jsonl").write_bytes(b"{")
        refused(run("dedup", "broken.jsonl", "-o", "k.jsonl", "--k", "129"), "k=129: give 0 to 128 bits")

    @pytest.mark.parametrize(
        "arguments",
        [
            "pages.jsonl -o pages.jsonl",
            "pages.jsonl -o k.jsonl --pairs k.jsonl",
            "pages.jsonl -o k.jsonl --clusters pages.jsonl",
            "pages.jsonl -o k.jsonl --index pages.jsonl",
            "pages.jsonl -o k.jsonl --json k.jsonl",
            "pages.jsonl -o k.jsonl --scheme s.parquet --index s.parquet",
        ],
    )
    def test_nothing_is_written_over_what_is_read_or_written(self, run: Run, arguments: str) -> None:
        Scheme().save("s.parquet")
        before = files()
        refused(run("dedup", *arguments.split(), "--k", "3"), "is read or written already")
        assert files() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_interrupted(folder: Path, number: signal.Signals) -> None:
    """While it reads: one line that says how to go on, an old file as it was, no other; then it runs again."""
    heard = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "signal.signal(signal.SIGTERM, signal.SIG_DFL); "
    )
    Path("out.json").write_bytes(b"old")
    command = [*COMMAND[:2], heard + COMMAND[2], "dedup", "-", "-o", "kept.jsonl", "--k", "9"]
    command += ["--json", "out.json", "--index", "seen.index", "--clusters", "c.jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stderr
        deadline = time.monotonic() + 60
        while not Path("seen.index").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.stdin.write(lines())
        process.stdin.flush()
        time.sleep(0.2)
        process.send_signal(number)
        assert process.wait(60) == 130
        assert process.stderr.read() == INTERRUPTED
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith("seen.index-")) == [
        "out.json",
        "pages.jsonl",
        "seen.index",
    ]
    assert Path("out.json").read_bytes() == b"old"
    done = subprocess.run([*COMMAND, *command[3:]], input=lines(), capture_output=True, check=True)
    assert b"kept" in done.stdout
    assert Path("kept.jsonl").read_bytes() == kept_lines(expected(9))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_interrupted_while_the_index_learns(number: signal.Signals, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """The output stands already, so the index is completed first: else a later run would keep the same pages again."""

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), number)
        remember(*arguments)

    monkeypatch.setattr("simdup.cli.remember", interrupted)
    before = signal.signal(number, simdup.cli._interrupt)
    try:
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--index", "seen.index")
    finally:
        signal.signal(number, before)
    assert (ran.code, ran.err.encode()) == (130, INTERRUPTED)
    with Index(9, Scheme(), "seen.index") as index:
        assert len(index) == sum(expected(9)) - 2
    assert Path("kept.jsonl").read_bytes() == kept_lines(expected(9))


def test_an_interrupt_that_is_ignored_stays_so(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """As of a command that runs in the background of a shell."""

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        remember(*arguments)

    monkeypatch.setattr("simdup.cli.remember", interrupted)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ran = run("dedup", "pages.jsonl", "-o", "kept.jsonl", "--k", "9", "--index", "seen.index")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.skipif(os.name != "posix", reason="there are pseudo-terminals on POSIX only")
@pytest.mark.parametrize("options", [[], ["--verify", "0.5", "--weight", "idf"]], ids=len)
def test_a_terminal_shows_what_is_done(options: list[str]) -> None:
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    command = [*COMMAND, "dedup", "pages.jsonl", "-o", "kept.jsonl", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):
            while data := os.read(master, 1 << 16):
                shown += data
        assert process.stdout
        out = process.stdout.read()
        assert process.wait(60) == 0
    os.close(master)
    for step in (b"pages read", b"a threshold is measured", b"near pairs", b"written"):
        assert step in shown, step
    assert b"near duplicates" in out
