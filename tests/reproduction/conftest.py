"""The fixture that fetches and measures real pages, and the closing table of what they show."""

import functools
import itertools
import pathlib
import tempfile
from collections.abc import Callable, Iterator

import pytest

from tests.reproduction.corpora import CORPORA
from tests.reproduction.evidence import Evidence, evidence_of, where_it_helps
from tests.reproduction.fetch import UnavailableError

MEASURED = pytest.StashKey[list[Evidence]]()
MISSING = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start with nothing measured and nothing missing."""
    config.stash[MEASURED] = []
    config.stash[MISSING] = {}


@pytest.fixture(scope="session")
def evidence(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Evidence]]:
    """Measure a corpus by its name, once; skip the test if it cannot be had."""
    stash = request.config.stash
    with tempfile.TemporaryDirectory() as scratch:

        @functools.cache
        def measured(name: str) -> Evidence | None:
            try:
                found = evidence_of(CORPORA[name], pathlib.Path(scratch))
            except UnavailableError as error:
                stash[MISSING][name] = str(error)
                return None
            stash[MEASURED].append(found)
            return found

        def get(name: str) -> Evidence:
            return measured(name) or pytest.skip(stash[MISSING][name])

        yield get


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the figures of each corpus, and what could not be had."""
    measured, missing = config.stash[MEASURED], config.stash[MISSING]
    if measured:
        terminalreporter.section("real pages: recall in % (95 % interval) and false pairs, 64 bits")
        for line in (*itertools.chain.from_iterable(found.lines() for found in measured), *where_it_helps(measured)):
            terminalreporter.write_line(line)
    if missing:
        reasons = "; ".join(sorted(set(missing.values())))
        terminalreporter.write_line(
            f"NOT REPRODUCED, not fetched: {', '.join(missing)} ({reasons})", red=True, bold=True
        )
