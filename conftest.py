"""What all tests share: the hypothesis profiles, the header, the closing table of speeds."""

import os
import pathlib
from dataclasses import dataclass

import hypothesis
import numba
import numpy as np
import pytest

import simdup

# Every push runs the same examples; nightly runs (HYPOTHESIS_PROFILE=nondeterministic) look for new ones.
hypothesis.settings.register_profile("deterministic", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.register_profile("nondeterministic", deadline=None, max_examples=1000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


@dataclass(frozen=True)
class Speed:
    """A row of the closing table."""

    job: str
    yardstick: str
    measured: str
    result: str
    """The ratio to the yardstick, or the slope of growth."""
    floor: str = ""


SPEEDS = pytest.StashKey[list[Speed]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start with no speed measured."""
    config.stash[SPEEDS] = []


def pytest_report_header() -> list[str]:
    """Say what is tested, with what."""
    where = pathlib.Path(simdup.__file__).parent
    return [f"simdup: {where}, numba {numba.__version__}, numpy {np.__version__}, {os.cpu_count()} cores"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the speeds as ratios to the article's algorithm in pure Python, in this run."""
    speeds = config.stash[SPEEDS]
    if not speeds:
        return
    terminalreporter.section("speed: ratio to the yardstick in this run, interleaved, medians")
    width = max(len(speed.job) for speed in speeds)
    rows = [Speed("job", "yardstick", "simdup", "ratio", "floor"), *speeds]
    for row in rows:
        numbers = f"{row.yardstick:>18}  {row.measured:>18}  {row.result:>9}  {row.floor:>7}"
        terminalreporter.write_line(f"{row.job:{width}}  {numbers}")
