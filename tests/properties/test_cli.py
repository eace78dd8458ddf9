"""The command: its answers agree with the library, every option counts, and bad input is one line and exit 2."""

import contextlib
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import simdup
import simdup.cli
import simdup.study.reproduce
from simdup import Scheme, fit_idf
from simdup.mask import NOISE
from simdup.study.corpus import article_corpus
from simdup.study.edits import Edit
from simdup.study.experiment import experiment
from simdup.study.report import study_json
from simdup.study.reproduce import counted, figures
from tests.properties.command import COMMAND, INTERRUPTED, Run, json_lines, make_pages, refused, without_names

EDITS = "0.01,0.05,0.15"


PAGES = make_pages()


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "pages.jsonl"
    path.parent.mkdir()
    path.write_bytes(json_lines(PAGES))
    return path


def expected(texts: list[str], scheme: Scheme, edits: str = EDITS, seed: int = 0, template: str | None = None) -> Any:
    """What the library says to the same, but for the names of the pages."""
    trial = experiment(texts, [Edit.parse(edit) for edit in edits.split(",")], seed)
    found = {"as they are": trial.under(scheme)}
    if template is not None:
        found["with template"] = trial.under(scheme, template)
    ids = list(map(str, range(len(texts))))
    answer = {name: study_json(c, trial.jaccard(), c.measurement.advise(1), ids) for name, c in found.items()}
    return without_names(json.loads(json.dumps(answer)))


@pytest.fixture(scope="module")
def values() -> dict[int, dict[str, float]]:
    return {seed: counted(article_corpus(seed)) for seed in (39, 40, 41)}


class TestReproduce:
    @pytest.fixture(autouse=True)
    def _quick(self, values: dict[int, dict[str, float]], monkeypatch: pytest.MonkeyPatch) -> None:
        """Count each corpus once for all tests, and time nothing: test_in_a_process does all of it."""
        for module in (simdup.study.reproduce, simdup.cli):
            monkeypatch.setattr(module, "article_corpus", lambda seed: seed)
            monkeypatch.setattr(module, "counted", values.__getitem__)
        times = {"F6.milliseconds_per_document": (2.0, 0.02), "F6.million_pairs_per_second": (2.0, 1000.0)}
        monkeypatch.setattr(simdup.study.reproduce, "timed", lambda _corpus: times)

    def test_text(self, run: Run) -> None:
        ran = run("reproduce")
        assert (ran.code, ran.err) == (0, "")
        assert "85 of 85 figures reproduced" in ran.out
        assert "contradicted" not in ran.out
        assert "37,005" in ran.out
        assert max(map(len, ran.out.splitlines())) <= 80

    def test_json_schema(self, run: Run, tmp_path: Path) -> None:
        ran = run("reproduce", "--json", tmp_path / "out.json")
        assert ran.code == 0
        assert "85 of 85" in ran.out
        content = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        assert content["seed"] == 39
        found = {entry["id"]: entry for entry in content["figures"]}
        assert len(found) == len(content["figures"]) == 87
        keys = {"id", "where", "published", "measured", "verdict"}
        assert all(keys <= entry.keys() for entry in found.values())
        named = ["F4.text.k3.false_pairs", "F4.template.k3.recall", "F2.text.unrelated.median"]
        named += ["F5.template.unrelated.min", "F3.random"]
        assert [(found[name]["published"], found[name]["measured"]) for name in named] == [
            ("0", 0),
            ("93.1%", 93.1),
            ("18", 18),
            ("5", 5),
            ("0.150", 0.15),
        ]
        verdicts = [entry["verdict"] for entry in found.values()]
        assert (verdicts.count("reproduced"), verdicts.count("timing")) == (85, 2)
        timings = [entry for entry in found.values() if entry["verdict"] == "timing"]
        assert [entry["ratio"] for entry in timings] == [pytest.approx(100), pytest.approx(500)]
        assert not any("ratio" in entry for entry in found.values() if entry["verdict"] != "timing")
        # What is measured is a number, printed as published: the reader need not know how to round it.
        for figure in figures():
            if figure.kind != "timing":
                entry = found[figure.id]
                assert entry["published"] == figure.published
                assert entry["measured"] == pytest.approx(figure.number, abs=1e-9)

    def test_json_on_standard_output_is_nothing_else(self, run: Run) -> None:
        ran = run("reproduce", "--json", "-")
        assert (ran.code, ran.err) == (0, "")
        assert len(ran.json["figures"]) == 87

    def test_a_contradicted_figure_exits_1(self, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        wrong = [replace(f, published="37,006") if f.id == "F4.template.k3.false_pairs" else f for f in figures()]
        monkeypatch.setattr(simdup.study.reproduce, "figures", lambda: wrong)
        ran = run("reproduce", "--json", tmp_path / "out.json")
        assert ran.code == 1
        assert "84 of 85 figures reproduced" in ran.out
        assert ran.out.count("contradicted") == 1
        content = json.loads((tmp_path / "out.json").read_text())
        (entry,) = (entry for entry in content["figures"] if entry["verdict"] == "contradicted")
        assert (entry["id"], entry["published"], entry["measured"]) == ("F4.template.k3.false_pairs", "37,006", 37005)
        assert run("reproduce", "--json", "-").code == 1

    def test_a_corpus_that_is_not_the_articles_exits_1(
        self, run: Run, values: dict[int, dict[str, float]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(simdup.study.reproduce, "counted", lambda _corpus: values[40])
        ran = run("reproduce")
        assert ran.code == 1
        assert "contradicted" in ran.out

    def test_a_slow_machine_contradicts_nothing(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        times = {"F6.milliseconds_per_document": (900.0, 950.0), "F6.million_pairs_per_second": (0.01, 0.009)}
        monkeypatch.setattr(simdup.study.reproduce, "timed", lambda _corpus: times)
        assert run("reproduce").code == 0

    def test_another_seed_is_not_judged(self, run: Run) -> None:
        ran = run("reproduce", "--seed", "40")
        assert ran.code == 0
        assert "nothing was judged" in ran.out
        assert "reproduced" not in ran.out.replace("figures reproduced", "")
        content = run("reproduce", "--seed", "40", "--json", "-").json
        assert content["seed"] == 40
        assert {entry["verdict"] for entry in content["figures"]} == {"other corpus", "timing"}

    def test_sweep(self, run: Run, values: dict[int, dict[str, float]]) -> None:
        content = run("reproduce", "--sweep", "2", "--json", "-").json
        for entry in content["figures"]:
            if entry["verdict"] == "timing":
                assert "other_seeds" not in entry
            else:
                assert entry["other_seeds"] == [values[seed][entry["id"]] for seed in (40, 41)]
        ran = run("reproduce", "--sweep", "2")
        assert "other seeds" in ran.out
        assert max(map(len, ran.out.splitlines())) <= 80
        assert "other_seeds" not in run("reproduce", "--json", "-").out

    @pytest.mark.parametrize("option", ["--json", "--plot"])
    def test_a_file_that_cannot_be_written(self, run: Run, tmp_path: Path, option: str) -> None:
        name = "out.json" if option == "--json" else "out.svg"
        refused(run("reproduce", option, tmp_path / "none" / name), str(tmp_path / "none"), "no such folder")
        assert not list(tmp_path.iterdir())

    def test_fails_before_the_work(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_corpus: Any) -> None:
            pytest.fail("counted before the file was tried")

        monkeypatch.setattr(simdup.study.reproduce, "counted", fail)
        refused(run("reproduce", "--json", tmp_path / "none" / "out.json"))
        refused(run("reproduce", "--plot", tmp_path / "out.gif"), "out.gif", ".svg, .png or .pdf")

    def test_nothing_is_written_when_it_fails(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_corpus: Any) -> None:
            raise ValueError("no\nluck")

        (tmp_path / "old.json").write_text("old")
        monkeypatch.setattr(simdup.study.reproduce, "counted", fail)
        refused(run("reproduce", "--json", tmp_path / "old.json"), "no luck")
        assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]

    def test_plot(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn = []
        monkeypatch.setattr("simdup.study.report.plot_distances", lambda *arguments: drawn.append(arguments))
        assert run("reproduce", "--plot", tmp_path / "a.svg", "--seed", "40").code == 0
        assert drawn == [(str(tmp_path / "a.svg"), 40)]


class TestStudy:
    def test_text(self, run: Run, pages: Path) -> None:
        ran = run("study", pages)
        assert (ran.code, ran.err) == (0, "")
        assert "24 of 24 pages, scheme word2-128-set-xxh64-nfkc14" in ran.out
        assert re.search(r"as they are: use k = \d+ of 128 bits", ran.out)
        assert "\x1b" not in ran.out
        assert max(map(len, ran.out.splitlines())) <= 80

    def test_json_agrees_with_the_library(self, run: Run, pages: Path, tmp_path: Path) -> None:
        ran = run("study", pages, "--json", tmp_path / "out.json")
        assert ran.code == 0
        assert "use k =" in ran.out
        content = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        assert (content["pages"], content["studied"], content["same_before"]) == (24, 24, 0)
        assert content["scheme"] == Scheme().id
        assert run("study", pages, "--json", "-").json == content
        assert without_names(content["conditions"]) == expected(PAGES, Scheme())

    def test_the_sentence_says_what_the_json_says(self, run: Run, pages: Path) -> None:
        advice = run("study", pages, "--json", "-").json["conditions"]["as they are"]["advice"]
        text = " ".join(run("study", pages).out.split())
        assert f"use k = {advice['k']} of 128 bits" in text
        assert f"finds {100 * advice['recall']:.1f} % of the edited pages" in text
        assert f"{advice['false_pairs']} false pairs among {advice['unrelated']:,} unrelated" in text
        for name, recall in advice["recall_of_each"].items():
            assert f"{name}: {100 * recall:.1f} %" in text

    def test_every_kind_of_input(self, run: Run, pages: Path, tmp_path: Path) -> None:
        """The same pages from a folder, Parquet, standard input, several files: the same answer."""

        def answer(*arguments: Any, **options: Any) -> dict[str, Any]:
            content: dict[str, Any] = run("study", *arguments, "--json", "-", **options).json
            without_names(content["conditions"])  # where the pages were read
            return content

        whole = answer(pages)
        folder = tmp_path / "folder"
        folder.mkdir()
        for number, text in enumerate(PAGES):
            (folder / f"{number:03}.txt").write_text(text)
        pq.write_table(pa.table({"body": PAGES}), tmp_path / "a.parquet")
        (tmp_path / "first.ndjson").write_bytes(json_lines(PAGES[:10], "body"))
        (tmp_path / "rest.jsonl").write_bytes(json_lines(PAGES[10:], "body"))
        assert answer(folder) == whole
        assert answer(tmp_path / "a.parquet", "--text-field", "body") == whole
        assert answer("-", stdin=json_lines(PAGES)) == whole
        parts = tmp_path / "first.ndjson", tmp_path / "rest.jsonl"
        assert answer(*parts, "--text-field", "body") == whole

    @pytest.mark.parametrize(
        ("options", "scheme"),
        [
            (["--unit", "char"], Scheme("char")),
            (["--ngram", "1"], Scheme(ngram=1)),
            (["--ngram", "5"], Scheme(ngram=5)),
            (["--bits", "64"], Scheme(bits=64)),
            (["--bits", "256"], Scheme(bits=256)),
            (["--weight", "tf"], Scheme(weight="tf")),
            (["--weight", "idf"], Scheme(weight="idf")),
            (["--hash", "blake2b"], Scheme(hash="blake2b")),
            (["--raw"], Scheme(normalize=False)),
            (["--mask", "date, counter"], Scheme(mask=("counter", "date"))),
            (["--mask", "all"], Scheme(mask=NOISE)),
            (["--unit", "char", "--ngram", "4", "--bits", "64", "--weight", "set", "--hash", "blake2b", "--raw"],
             Scheme("char", 4, 64, "set", "blake2b", normalize=False)),
        ],
        ids=lambda value: value.id if isinstance(value, Scheme) else " ".join(value),
    )  # fmt: skip
    def test_options_of_the_scheme(self, run: Run, pages: Path, options: list[str], scheme: Scheme) -> None:
        # The weights must differ from word to word, and in writing: a repeated word, a capital, a comma, a time.
        texts = [f"the the the The, {text} {text[:60]} menu 14:{row + 10}" for row, text in enumerate(PAGES)]
        pages.write_bytes(json_lines(texts))
        ran = run("study", pages, *options, "--json", "-")
        assert ran.code == 0, ran.err
        if scheme.weight == "idf":
            scheme = fit_idf(texts, scheme)
        assert ran.json["scheme"] == scheme.id == ran.json["conditions"]["as they are"]["scheme"]
        assert ran.conditions == expected(texts, scheme)
        assert ran.conditions != expected(texts, Scheme())
        assert run("study", pages, "--normalize", "--json", "-").conditions == expected(texts, Scheme())

    def test_edits(self, run: Run, pages: Path) -> None:
        edits = "delete:0.1, swap-sentences:1,token"
        found = run("study", pages, "--edits", edits, "--json", "-")
        distances = found.json["conditions"]["as they are"]["distances"]
        assert list(distances) == ["delete 10 %", "swap sentences 100 %", "token", "unrelated"]
        assert found.json["edits"] == list(distances)[:-1]
        assert found.conditions == expected(PAGES, Scheme(), edits)
        text = run("study", pages, "--edits", edits).out
        assert all(name in text for name in distances)

    def test_seed(self, run: Run, pages: Path) -> None:
        assert run("study", pages, "--seed", "7", "--json", "-").conditions == expected(PAGES, Scheme(), seed=7)
        assert expected(PAGES, Scheme(), seed=7) != expected(PAGES, Scheme())

    def test_sample(self, run: Run, pages: Path) -> None:
        """Drawn without repetition and in order; another seed draws others; 0 and as many as there are take all."""
        found = run("study", pages, "--sample", "6", "--json", "-").json
        assert (found["pages"], found["studied"]) == (24, 6)
        assert "6 of 24 pages" in run("study", pages, "--sample", "6").out
        whole = run("study", pages, "--json", "-").json
        for size in ("0", "24", "25"):
            assert run("study", pages, "--sample", size, "--json", "-").json == whole
        assert run("study", pages, "--sample", "6", "--json", "-").json == found
        # Named as they were read, the nearest pairs of 6 say which pages were drawn.
        drawn = [
            {
                pair[side]
                for pair in run("study", pages, "--sample", "3", "--seed", seed, "--json", "-").json["conditions"][
                    "as they are"
                ]["closest"]
                for side in ("left", "right")
            }
            for seed in ("0", "1", "2", "3")
        ]
        assert all(len(names) == 3 for names in drawn)
        assert len(set(map(frozenset, drawn))) == 4

    def test_every_page_is_as_likely_to_be_sampled(self) -> None:
        """5,000 samples of 5 of 20: each page in 1,250 of them, within 5 sigma."""
        drawn = [0] * 20
        everything = list(map(str, range(20)))
        for seed in range(5_000):
            sample = simdup.cli._Sample[str](5, seed)
            for text in everything:
                sample.add(text)
            texts = sample.kept
            assert sample.seen == 20
            assert len(set(texts)) == 5
            assert texts == sorted(texts, key=int)
            for text in texts:
                drawn[int(text)] += 1
        assert all(abs(count - 1250) < 5 * (5_000 * 0.25 * 0.75) ** 0.5 for count in drawn)

    def test_threads_change_nothing(self, run: Run, pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []
        original = simdup.fingerprint

        def watched(texts: Any, scheme: Scheme, threads: int = 1) -> Any:
            asked.append(threads)
            return original(texts, scheme, threads=threads)

        monkeypatch.setattr("simdup.study.experiment.fingerprint", watched)
        one = run("study", pages, "--json", "-").out
        assert set(asked) == {1}
        assert run("study", pages, "--threads", "2", "--json", "-").out == one
        assert max(asked) == 2

    def test_same(self, run: Run) -> None:
        words = PAGES[0].split()
        near = " ".join([*words[:60], *PAGES[1].split()[:20]])
        data = json_lines([*PAGES, near])
        assert run("study", "-", "--json", "-", stdin=data).json["same_before"] == 0
        found = run("study", "-", "--same", "0.5", "--json", "-", stdin=data).json
        assert (found["same"], found["same_before"]) == (0.5, 1)
        assert found["conditions"]["as they are"]["distances"]["the same before"]["pairs"] == 1
        text = " ".join(run("study", "-", "--same", "0.5", stdin=data).out.split())
        assert "1 pair of pages say the same before any edit" in text
        assert "Of the 1 pair of pages that said the same before any edit it finds" in text

    def test_save_scheme(self, run: Run, pages: Path, tmp_path: Path) -> None:
        """What was advised can be applied: with the table that was fitted."""
        path = tmp_path / "scheme.parquet"
        ran = run("study", pages, "--weight", "idf", "--save-scheme", path, "--json", "-")
        assert Scheme.load(path) == fit_idf(PAGES, Scheme())
        assert Scheme.load(path).id == ran.json["scheme"]
        refused(run("study", pages, "--save-scheme", tmp_path / "none" / "s.parquet"), "no such folder")

    def test_max_false_per_million(self, run: Run, pages: Path) -> None:
        """A budget of all pairs allows the whole width; the tighter one advises less, and says what it allowed."""
        tight, loose = (run("study", pages, "--ngram", "1", "--bits", "64", "--max-false-per-million", budget)
                        for budget in ("0", "200000"))  # fmt: skip
        k = [int(re.search(r"use k = (\d+)", " ".join(ran.out.split()))[1]) for ran in (tight, loose)]  # type: ignore[index]
        assert k[0] < k[1]
        assert "0 false per million pairs allowed" in " ".join(tight.out.split())
        assert "200,000 false per million pairs allowed" in " ".join(loose.out.split())

    def test_the_nearest_unrelated_pages_are_named(self, run: Run, pages: Path) -> None:
        closest = run("study", pages, "--json", "-").json["conditions"]["as they are"]["closest"]
        assert len(closest) == 3
        assert [pair["distance"] for pair in closest] == sorted(pair["distance"] for pair in closest)
        text = "".join(run("study", pages).out.split())
        for pair in closest:
            shared = f"{pair['distance']} bits, {100 * pair['jaccard']:.0f} % of their word 3-grams shared"
            assert "".join(f"{shared}: {pair['left']} ~ {pair['right']}".split()) in text

    def test_among(self, run: Run, pages: Path) -> None:
        few, many = (" ".join(run("study", pages, "--among", n).out.split()) for n in ("500", "7000000"))
        assert "Among 500 pages" in few
        assert "Among 7,000,000 pages" in many
        most = [int(re.search(r"at most ([\d,]+)", text)[1].replace(",", "")) for text in (few, many)]  # type: ignore[index]
        assert most[1] / most[0] == pytest.approx(7e6**2 / 500**2, rel=0.05)

    def test_template(self, run: Run, pages: Path, tmp_path: Path) -> None:
        """Unrelated pages come nearer; the numbers are those of the library, and both conditions are spoken of."""
        template = tmp_path / "template.txt"
        template.write_text(make_pages(1, 400, 5)[0])
        found = run("study", pages, "--template", template, "--json", "-").conditions
        assert found == expected(PAGES, Scheme(), template=template.read_text())
        without, with_it = (found[name]["distances"]["unrelated"] for name in ("as they are", "with template"))
        assert with_it["median"] < without["median"] - 10
        assert with_it["min"] < without["min"]
        text = run("study", pages, "--template", template).out
        assert "as they are: " in text
        assert "with template: " in text
        assert max(map(len, text.splitlines())) <= 80

    def test_template_with_idf_is_fitted_with_it(self, run: Run, pages: Path, tmp_path: Path) -> None:
        """Field case 13: what stands on every page weighs nothing, so the template moves unrelated pages less."""
        template = tmp_path / "template.txt"
        template.write_text(make_pages(1, 400, 5)[0])
        medians = {}
        for weight in ("tf", "idf"):
            found = run("study", pages, "--template", template, "--weight", weight, "--json", "-").json["conditions"]
            medians[weight] = found["with template"]["distances"]["unrelated"]["median"]
        assert medians["idf"] > medians["tf"] + 10

    def test_chinese_pages(self, run: Run) -> None:
        rng = random.Random(39)
        characters = [chr(0x4E00 + n) for n in range(600)]
        texts = ["".join(rng.choices(characters, k=90)) + "。" for _ in range(12)]
        ran = run("study", "-", "--json", "-", stdin=json_lines(texts))
        assert ran.code == 0
        assert ran.conditions == expected(texts, Scheme())
        distances = ran.json["conditions"]["as they are"]["distances"]
        assert 0 < distances["replace 5 %"]["median"] < distances["unrelated"]["median"]
        # One character in twenty changed, not the one word that a page without spaces would be.
        assert 0.8 < distances["replace 5 %"]["jaccard"] < 1

    def test_pages_that_say_the_same_are_reported(self, run: Run) -> None:
        ran = run("study", "-", stdin=json_lines([*PAGES, PAGES[0], PAGES[3].upper()]))
        assert "2 pairs of pages say the same before any edit" in ran.out
        assert run("study", "-", "--json", "-", stdin=json_lines([*PAGES, PAGES[0]])).json["same_before"] == 1

    def test_pages_without_text_are_reported(self, run: Run) -> None:
        data = json_lines([*PAGES, "", "!!!"])
        ran = run("study", "-", stdin=data)
        assert "8 of pages and copies have no text" in ran.out
        assert run("study", "-", "--json", "-", stdin=data).json["conditions"]["as they are"]["without_text"] == 8
        assert "no text" not in run("study", "-", stdin=json_lines(PAGES)).out

    def test_what_cannot_be_read_is_reported(self, run: Run) -> None:
        """In the first lines of what is printed, and in JSON; however much, no more than a few of them."""
        pages = json_lines(make_pages(24)).splitlines()
        data = b"".join(line + b"\n" + b"{\n" * (2 * row) for row, line in enumerate(pages))
        ran = run("study", "-", stdin=data + b"\n")
        assert (ran.code, ran.err) == (0, "")
        told = ran.out.splitlines()
        assert told[0] == "Left out, for they cannot be read: 552 records."
        assert told[1].startswith("  standard input, line 3: broken JSON: ")
        assert "  and 547 more" in told
        problems = run("study", "-", "--json", "-", stdin=data).json["problems"]
        assert (problems["left_out"], len(problems["examples"]), problems["unusual"]) == (552, 20, {})
        assert problems["examples"][0]["place"] == "standard input, line 3"
        assert problems["examples"][0]["problem"].startswith("broken JSON: ")

    def test_templates_are_cut(self, run: Run, tmp_path: Path) -> None:
        """As if they had not been there: the same distances, and which share of the text they were."""
        menu = " ".join(f"menu{number}" for number in range(40))
        plain, whole = tmp_path / "plain.jsonl", tmp_path / "whole.jsonl"
        plain.write_bytes(json_lines(PAGES))
        whole.write_bytes(json_lines([f"{menu} {text} © {menu}" for text in PAGES]))
        cut = run("study", whole, "--cut-templates", "--json", "-")
        assert cut.conditions == run("study", plain, "--json", "-").conditions
        assert cut.conditions != run("study", whole, "--json", "-").conditions
        shorter = 1 - sum(map(len, PAGES)) / sum(len(f"{menu} {text} © {menu}") for text in PAGES)
        assert cut.json["share_cut"] == pytest.approx(shorter, abs=0.001)
        line = f"Templates cut: {100 * cut.json['share_cut']:.1f} % of the text."
        assert line in run("study", whole, "--cut-templates").out

    def test_that_all_text_was_taken_is_reported(self, run: Run, tmp_path: Path) -> None:
        for number, text in enumerate(make_pages(24)):
            links = "".join(f"<a href=x>{word}</a> " for word in text.split())
            (tmp_path / f"{number}.html").write_text(f"<nav>{links * 5}</nav><p>x" if number % 2 else f"<p>{text}")
        ran = run("study", tmp_path)
        assert ran.out.splitlines()[0] == "12 pages: no main part found: all text was taken."
        assert run("study", tmp_path, "--json", "-").json["problems"]["unusual"] == {
            "no main part found: all text was taken": 12
        }

    def test_no_threshold_to_trust(self, run: Run, pages: Path, tmp_path: Path) -> None:
        template = tmp_path / "template.txt"
        template.write_text("menu " * 100_000)
        options = ("study", pages, "--template", template, "--ngram", "1", "--weight", "tf")
        ran = run(*options, "--json", "-")
        assert ran.json["conditions"]["with template"]["advice"] is None
        assert "with template: trust no threshold" in run(*options).out


class TestBadInput:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Short names, and a place where a file written by mistake would show."""
        monkeypatch.chdir(tmp_path)
        Path("pages.jsonl").write_bytes(json_lines(PAGES))
        Path("broken.jsonl").write_bytes(b'\n{"text": "a"\n')
        Path("other.jsonl").write_bytes(b'{"title": "a", "body": "b"}\n')
        Path("null.jsonl").write_bytes(b'{"text": null}\n')
        Path("latin.jsonl").write_bytes('{"text": "café"}\n'.encode("latin-1"))
        Path("latin.txt").write_bytes("café".encode("latin-1"))
        Path("one.jsonl").write_bytes(json_lines(PAGES[:1]))
        Path("same.jsonl").write_bytes(json_lines(PAGES[:1] * 3))
        Path("blank.jsonl").write_bytes(json_lines(["", "!!!", "…"]))
        Path("zero.jsonl").write_bytes(b"")
        Path("blank.txt").write_bytes(b" \n")
        Path("damaged.parquet").write_bytes(b"PAR1 no")
        Path("page.docx").write_bytes(b"<p>")
        Path("nothing").mkdir()
        return tmp_path

    @pytest.mark.parametrize(
        ("arguments", "parts"),
        [
            ("missing.jsonl", ["missing.jsonl: No such file or directory"]),
            ("pages.jsonl missing.jsonl", ["missing.jsonl: No such file or directory"]),
            ("missing.parquet", ["missing.parquet", "No such file or directory"]),
            ("broken.jsonl", ["broken.jsonl, line 2: broken JSON: "]),
            ("other.jsonl", ["other.jsonl, line 1: no field 'text' (it has 'title', 'body')", "--text-field"]),
            ("pages.jsonl --text-field body", ["pages.jsonl, line 1: no field 'body' (it has 'text')"]),
            ("null.jsonl", ["null.jsonl, line 1: field 'text' is null, not a string"]),
            ("latin.jsonl", ["latin.jsonl, line 1: not UTF-8 at byte 13"]),
            ("latin.txt", ["latin.txt: not UTF-8 at byte 3"]),
            ("damaged.parquet", ["damaged.parquet: not a Parquet file, or damaged"]),
            ("page.docx", ["page.docx: unknown kind of file"]),
            ("nothing", ["nothing: no .txt or .html file in this folder"]),
            ("one.jsonl", ["fewer than two pages", "give at least two"]),
            ("zero.jsonl", ["fewer than two pages", "give at least two"]),
            ("same.jsonl", ["pages with text that all say the same", "give at least two"]),
            ("blank.jsonl", ["text"]),
            ("pages.jsonl --sample 1", ["fewer than two pages"]),
            ("pages.jsonl --edits delete:1", ["delete 100 %"]),
            ("pages.jsonl --bits 96", ["bits=96", "64, 128 or 256"]),
            ("pages.jsonl --bits 0", ["bits=0"]),
            ("pages.jsonl --bits -64", ["bits=-64"]),
            ("pages.jsonl --bits wide", ["--bits"]),
            ("pages.jsonl --weight bm25", ["bm25", "tf"]),
            ("pages.jsonl --hash md5", ["md5", "xxh64"]),
            ("pages.jsonl --mask date,year", ["mask 'year': choose among counter, date"]),
            ("pages.jsonl --mask date,", ["mask '': choose among"]),
            ("pages.jsonl --unit sentence", ["sentence", "word"]),
            ("pages.jsonl --ngram 0", ["ngram=0"]),
            ("pages.jsonl --ngram -1", ["ngram=-1"]),
            ("pages.jsonl --ngram 1.5", ["--ngram"]),
            ("pages.jsonl --edits foo", ["'foo' is no edit"]),
            ("pages.jsonl --edits 1.5", ["'1.5' is no edit"]),
            ("pages.jsonl --edits nan", ["'nan' is no edit"]),
            ("pages.jsonl --edits 0.1,,0.2", ["'' is no edit"]),
            ("pages.jsonl --edits 0.1,0.10", ["the same edit twice", "replace 10 %"]),
            ("pages.jsonl --max-false-per-million -1", ["--max-false-per-million"]),
            ("pages.jsonl --max-false-per-million nan", ["--max-false-per-million"]),
            ("pages.jsonl --max-false-per-million inf", ["--max-false-per-million"]),
            ("pages.jsonl --max-false-per-million x", ["--max-false-per-million"]),
            ("pages.jsonl --among 1", ["--among"]),
            ("pages.jsonl --among -5", ["--among"]),
            (f"pages.jsonl --among 1{400 * '0'}", ["00000"]),
            ("pages.jsonl --sample -1", ["--sample"]),
            ("pages.jsonl --threads 0", ["--threads"]),
            ("pages.jsonl --threads -2", ["--threads"]),
            ("pages.jsonl --seed x", ["--seed"]),
            ("pages.jsonl --same 0.4", ["--same"]),
            ("pages.jsonl --same nan", ["--same"]),
            ("pages.jsonl --save-scheme none/s.parquet", ["none", "no such folder"]),
            ("pages.jsonl --template missing.txt", ["missing.txt: No such file or directory"]),
            ("pages.jsonl --template blank.txt", ["blank.txt", "text"]),
            ("pages.jsonl --template latin.txt", ["latin.txt: not UTF-8 at byte 3"]),
            ("pages.jsonl --template nothing", ["nothing: no .txt or .html file"]),
            ("pages.jsonl --template zero.jsonl", ["zero.jsonl"]),
            ("pages.jsonl --colour", ["--colour"]),
            ("--bits 64", ["pages"]),
            ("pages.jsonl --bits", ["--bits"]),
        ],
    )
    @pytest.mark.usefixtures("folder")
    def test_study(self, run: Run, arguments: str, parts: list[str]) -> None:
        before = sorted(Path().rglob("*"))
        refused(run("study", *arguments.split(), "--json", "out.json"), *parts)
        refused(run("study", *arguments.split(), "--json", "-"), *parts)
        assert sorted(Path().rglob("*")) == before

    @pytest.mark.parametrize(
        "arguments",
        [
            "study pages.jsonl --json pages.jsonl",
            "study pages.jsonl --json ./nothing/../pages.jsonl",
            "study pages.jsonl --save-scheme pages.jsonl",
            "study pages.jsonl --template some.txt --json some.txt",
            "study . --json some.txt",
            "study . --json some.html",
            "study pages.jsonl --json same.out --save-scheme same.out",
            "reproduce --plot same.svg --json same.svg",
        ],
    )
    @pytest.mark.usefixtures("folder")
    def test_nothing_is_written_over_what_is_read_or_written(self, run: Run, arguments: str) -> None:
        for name in ("some.txt", "some.html"):
            Path(name).write_text("menu")
        before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        refused(run(*arguments.split()), "is read or written already: give the result another name")
        assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before

    def test_standard_input_twice(self, run: Run) -> None:
        refused(run("study", "-", "-"), "- is given twice")
        refused(run("study", "-", "--template", "-"), "- is given twice")

    @pytest.mark.usefixtures("folder")
    def test_names_cannot_command_the_terminal(self, run: Run) -> None:
        refused(run("study", "no\x1b[2Jsuch.jsonl"), "no\\x1b[2Jsuch.jsonl: No such file")

    @pytest.mark.usefixtures("folder")
    def test_an_old_file_stays(self, run: Run) -> None:
        Path("out.json").write_text("old")
        refused(run("study", "broken.jsonl", "--json", "out.json"))
        assert Path("out.json").read_text() == "old"

    @pytest.mark.usefixtures("folder")
    def test_json_file_that_cannot_be_written_fails_before_reading(self, run: Run) -> None:
        refused(run("study", "broken.jsonl", "--json", "none/out.json"), "none", "no such folder")
        refused(run("study", "pages.jsonl", "--json", "nothing"), "nothing", "directory")
        assert not list(Path("nothing").iterdir())

    @pytest.mark.parametrize(
        ("arguments", "part"),
        [
            ("repeat", "repeat"),
            ("--colour", "--colour"),
            ("reproduce --seed x", "--seed"),
            ("reproduce --sweep -1", "--sweep"),
            ("reproduce more", "more"),
            ("reproduce --json", "--json"),
            ("reproduce --plot plot.jpg", "plot.jpg: give a file ending in .svg, .png or .pdf"),
        ],
    )
    @pytest.mark.usefixtures("folder")
    def test_other_commands(self, run: Run, arguments: str, part: str) -> None:
        refused(run(*arguments.split()), part)

    def test_standard_input_is_closed(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        """As `<&-` leaves it."""
        monkeypatch.setattr("simdup.pages.sys", SimpleNamespace(stdin=None))
        refused(run("study", "-"), "standard input")

    def test_standard_input(self, run: Run) -> None:
        refused(run("study", "-", stdin=b"\n\n{"), "standard input, line 3: broken JSON")
        refused(run("study", "-"), "fewer than two pages")


@pytest.mark.parametrize(
    "command", [[], ["--help"], ["study", "--help"], ["reproduce", "--help"], ["dedup", "--help"]], ids=" ".join
)
def test_help(run: Run, command: list[str]) -> None:
    ran = run(*command)
    assert (ran.code, ran.err) == (0, "")
    assert "Usage: " in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_version(run: Run) -> None:
    assert re.fullmatch(r"simdup \d+\.\d+\.\d+\n", run("--version").out)


class TestProcess:
    """What only a process of its own shows."""

    def test_reproduce(self, tmp_path: Path) -> None:
        """The main job, as users run it, with nothing taken from this process."""
        done = subprocess.run(
            [*COMMAND, "reproduce", "--json", "out.json"],
            capture_output=True,
            cwd=tmp_path,
            text=True,
            encoding="utf-8",
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "85 of 85 figures reproduced" in done.stdout
        content = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        ratios = [entry["ratio"] for entry in content["figures"] if entry["verdict"] == "timing"]
        assert len(ratios) == 2
        assert min(ratios) > 5

    def test_study_without_a_terminal_shows_no_bar_and_no_colour(self, pages: Path) -> None:
        done = subprocess.run([*COMMAND, "study", "-"], input=pages.read_bytes(), capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"\x1b" not in done.stdout
        assert b"\r" not in done.stdout
        assert b"use k = " in done.stdout

    @pytest.mark.skipif(os.name != "posix", reason="there are pseudo-terminals on POSIX only")
    def test_study_on_a_terminal_shows_what_it_does(self, pages: Path) -> None:
        """A bar that names its steps, on standard error: what is piped elsewhere has none of it."""
        master, slave = os.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
        with subprocess.Popen(
            [*COMMAND, "study", pages], stdout=subprocess.PIPE, stderr=slave, env=environment
        ) as process:
            os.close(slave)
            shown = b""
            with contextlib.suppress(OSError):  # how Linux says that the other side is closed
                while data := os.read(master, 1 << 16):
                    shown += data
            assert process.stdout
            out = process.stdout.read()
            assert process.wait(60) == 0
        os.close(master)
        for step in (b"replace 1 %", b"which pages say the same", b"distances as they are"):
            assert step in shown, step
        assert b"\x1b" not in out

    def test_an_error_is_one_line(self, tmp_path: Path) -> None:
        """Also where the locale has only ASCII and the name of the file has more: escaped, not a traceback."""
        done = subprocess.run(
            [*COMMAND, "study", "页面.jsonl", "--json", "out.json"],
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert re.fullmatch(rb"simdup: \S+\.jsonl: No such file or directory\n", done.stderr)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
    def test_interrupted(self, tmp_path: Path, number: signal.Signals) -> None:
        """Ctrl-C, or what a system that shuts down sends: one line, exit 130, no file and no temporary file."""
        # Whoever runs the tests may ignore a signal, and what is ignored is so in every process below.
        heard = (
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.signal(signal.SIGHUP, signal.SIG_DFL); "
        )
        with subprocess.Popen(
            [*COMMAND[:2], heard + COMMAND[2], "study", "-", "--json", "out.json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        ) as process:
            assert process.stdin
            deadline = time.monotonic() + 60
            while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
                time.sleep(0.02)
            # Its temporary file is there: it reads, and waits for more.
            process.stdin.write(json_lines(PAGES))
            process.stdin.flush()
            time.sleep(0.2)
            process.send_signal(number)
            assert process.wait(60) == 130
            assert process.stdout
            assert process.stderr
            assert process.stderr.read() == INTERRUPTED
            assert process.stdout.read() == b""
        assert not list(tmp_path.iterdir())

    def test_as_a_module(self) -> None:
        done = subprocess.run([sys.executable, "-m", "simdup", "--version"], capture_output=True, text=True)
        assert (done.returncode, done.stdout.split()[0]) == (0, "simdup")

    @pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
    @pytest.mark.parametrize(
        ("arguments", "code"), [("study {} >&-", 2), ("--version >&-", 2), ("study none 2>/dev/full", 2)]
    )
    def test_closed_or_full_outputs(self, pages: Path, arguments: str, code: int) -> None:
        command = f"{shlex.join(COMMAND)} {arguments.format(shlex.quote(str(pages)))}"
        done = subprocess.run(["sh", "-c", command], capture_output=True)
        assert done.returncode == code
        assert b"Traceback" not in done.stderr
        assert done.stderr.count(b"\n") <= 1

    @pytest.mark.parametrize("encoding", ["ascii"])
    def test_a_terminal_of_few_letters(self, tmp_path: Path, encoding: str) -> None:
        """Whatever cannot be written is escaped; JSON stays JSON."""
        folder = tmp_path / "页面"
        folder.mkdir()
        for number, text in enumerate(PAGES):
            (folder / f"{number}\x1b[31m\nä.txt").write_text(text)
        environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "300"}
        for options in ([], ["--json", "-"]):
            done = subprocess.run([*COMMAND, "study", folder, *options], capture_output=True, env=environment)
            assert (done.returncode, done.stderr) == (0, b"")
            if options:
                closest = json.loads(done.stdout)["conditions"]["as they are"]["closest"]
                assert str(folder) in closest[0]["left"]
            else:
                assert b"\x1b" not in done.stdout
                assert b"\\x1b[31m\\n" in done.stdout
                assert b"use k = " in done.stdout

    @pytest.mark.parametrize("columns", ["0", "20"])
    def test_a_narrow_terminal_cuts_no_number(self, pages: Path, columns: str) -> None:
        environment = {**os.environ, "COLUMNS": columns}
        done = subprocess.run([*COMMAND, "study", pages], capture_output=True, env=environment, text=True)
        assert done.returncode == 0
        assert "…" not in done.stdout
        assert "use k = " in " ".join(done.stdout.split())

    @pytest.mark.parametrize("options", [[], ["--json", "-"]], ids=["tables", "json"])
    def test_closed_pipe(self, pages: Path, options: list[str]) -> None:
        """As `| head -1` leaves it: no word on standard error, however little was left to write."""
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run([*COMMAND, "study", pages, *options], stdout=writer, stderr=subprocess.PIPE)
        finally:
            os.close(writer)
        assert done.stderr == b""
        assert done.returncode == 141
