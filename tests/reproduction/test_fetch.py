"""Fetching, without any network: what is tried, how long, and what the cache holds afterwards."""

import hashlib
import os
import pathlib
import platform
import sys
import time
import zipfile
from dataclasses import replace

import pytest

from tests.reproduction.corpora import CORPORA, PACKAGES
from tests.reproduction.evidence import THRESHOLDS
from tests.reproduction.fetch import TRIES, Package, UnavailableError, cache_folder, fetched, run

PAGES = {"site/a.html": b"<p>a</p>", "site/deep/b.html": b"<p>b</p>", "site/picture.png": b"no page"}


@pytest.fixture
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "simdup" / "corpora"


@pytest.fixture
def scratch(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def package(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """A wheel that pip finds in a folder."""
    wheel = tmp_path / "links" / "someones_pages-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as file:
        for name, content in PAGES.items():
            file.writestr(name, content)
        file.writestr(
            "someones_pages-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: someones-pages\nVersion: 1.0"
        )
        file.writestr("someones_pages-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Package("pages-1.0", r"site/(.+\.html)", pip="someones-pages==1.0", sha256=digest)


def counting(folder: pathlib.Path, *, good: int) -> list[str]:
    """A command that notes each try and does well from the given one on."""
    notes = folder / "tries"
    script = (
        f"import pathlib, sys; notes = pathlib.Path({str(notes)!r}); notes.touch(); "
        "tried = len(notes.read_text()) + 1; notes.write_text('x' * tried); print('first line'); "
        f"print('no answer from https://somewhere.example/simple, try', tried); sys.exit(tried < {good})"
    )
    return [sys.executable, "-c", script]


def test_a_command_that_keeps_failing_is_tried_three_times(scratch: pathlib.Path) -> None:
    with pytest.raises(UnavailableError, match=r"^python[\d.]*: no answer from … try 3$"):
        run(counting(scratch, good=9), scratch)
    assert (scratch / "tries").read_text() == "x" * TRIES == "xxx"


def test_a_command_may_do_well_later(scratch: pathlib.Path) -> None:
    assert "first line" in run(counting(scratch, good=3), scratch)
    assert (scratch / "tries").read_text() == "xxx"


def test_a_command_that_is_not_there_is_a_reason(scratch: pathlib.Path) -> None:
    with pytest.raises(UnavailableError, match="no-such-command"):
        run(["no-such-command"], scratch)


def test_a_command_that_hangs_ends_with_all_that_it_started(scratch: pathlib.Path) -> None:
    """As pip does, which starts compilers; what they started must not be waited for."""
    child = f"import time; time.sleep(1); open({str(scratch / 'survived')!r}, 'w')"
    hangs = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    start = time.monotonic()
    with pytest.raises(UnavailableError, match=r"not done in 0\.3 seconds"):
        run([sys.executable, "-c", hangs], scratch, 0.3)
    time.sleep(max(0.0, 1.6 - (time.monotonic() - start)))
    assert not (scratch / "survived").exists()


def test_pages_are_kept_and_fetched_once(cache: pathlib.Path, scratch: pathlib.Path, package: Package) -> None:
    path = fetched(package, scratch)
    with zipfile.ZipFile(path) as kept:
        assert {name: kept.read(name) for name in kept.namelist()} == {
            "a.html": b"<p>a</p>",
            "deep/b.html": b"<p>b</p>",
        }
        assert kept.comment == b"someones_pages-1.0-py3-none-any.whl"
    assert list(cache.iterdir()) == [path]
    assert fetched(package, pathlib.Path("/no/such/folder")) == path


def test_what_is_not_whole_is_not_used(cache: pathlib.Path, scratch: pathlib.Path, package: Package) -> None:
    """Nothing stays of a package without pages, and what a killed process left counts for nothing."""
    none = replace(package, name="none", keep="nowhere/(.+)")
    with pytest.raises(UnavailableError, match="has no page nowhere"):
        fetched(none, scratch)
    assert not list(cache.iterdir())
    digest = fetched(package, scratch).name
    (cache / digest).rename(cache / f".{digest}.0123456789abcdef")
    os.truncate(cache / f".{digest}.0123456789abcdef", 20)
    with zipfile.ZipFile(fetched(package, scratch)) as kept:
        assert kept.testzip() is None


def test_another_file_than_the_pinned_one_is_refused(
    cache: pathlib.Path, scratch: pathlib.Path, package: Package
) -> None:
    with pytest.raises(UnavailableError, match="DO NOT MATCH THE HASHES"):
        fetched(replace(package, sha256="0" * 64), scratch)
    assert not cache.exists()


def test_a_suite_that_cannot_be_read_is_asked_for_once(
    cache: pathlib.Path, scratch: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the machine's sources the suite is exchanged; the reason holds for all of the suite's packages."""
    tools = scratch / "tools"
    tools.mkdir()
    (tools / "apt-get").write_text(
        f'#!/bin/sh\necho "$@" >> {scratch}/calls\n'
        'case "$*" in\n'
        "indextargets*) printf 'old-updates main http://a.example\\nold main http://b.example/debian\\n';;\n"
        "*update) echo 'E: http://b.example/debian has no Release file'; exit 100;;\n"
        "esac\n"
    )
    (tools / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "old"})
    for name in ("one", "two"):
        with pytest.raises(UnavailableError, match=r"^apt-get: E: … has no Release file$"):
            fetched(Package(name, "(.+)", apt=name, suite="new"), scratch)
    calls = (scratch / "calls").read_text().splitlines()
    assert [call.split()[-1] for call in calls] == ["$(REPO_URI)", *TRIES * ["update"]]
    source = (scratch / "new" / "sources.list").read_text()
    assert source.endswith("http://b.example/debian new main\n")
    assert not cache.exists()


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for base, folder in (
        (str(tmp_path / "x"), tmp_path / "x"),
        ("relative", tmp_path / ".cache"),
        ("", tmp_path / ".cache"),
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert cache_folder() == folder / "simdup" / "corpora"


def test_the_list_of_corpora_makes_sense() -> None:
    text = pathlib.Path(__file__).with_name("corpora.toml").read_text(encoding="utf-8")
    assert "://" not in text
    for package in PACKAGES.values():
        assert bool(package.pip) != bool(package.apt)
        assert len(package.sha256) == (64 if package.pip else 0)
        assert bool(package.suite) == bool(package.apt)
        assert bool(package.main) != bool(package.head)
    assert {name for corpus in CORPORA.values() for name in corpus.packages} == set(PACKAGES)
    for corpus in CORPORA.values():
        texts = {"known"} if not corpus.html else {"whole", "cut", "main"} | (set() if corpus.articles else {"known"})
        assert set(corpus.false) == texts
        assert set(corpus.recall) == (set() if corpus.articles else texts)
        assert all(len(row) == len(THRESHOLDS) for row in (*corpus.recall.values(), *corpus.false.values()))
        assert set(corpus.helps) | set(corpus.same) <= set(THRESHOLDS)
        for claims in (corpus.better, corpus.worse):
            assert set(claims) <= {"cut", "idf"}
            assert all(set(claimed) <= set(THRESHOLDS) for claimed in claims.values())
        assert not set(corpus.helps) & set(corpus.same)
