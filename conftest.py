"""What all tests share: the hypothesis profiles, the header."""

import os
import pathlib

import hypothesis
import numba
import numpy as np

import simdup

# Every push runs the same examples; nightly runs (HYPOTHESIS_PROFILE=nondeterministic) look for new ones.
hypothesis.settings.register_profile("deterministic", deadline=None, derandomize=True, max_examples=100)
hypothesis.settings.register_profile("nondeterministic", deadline=None, max_examples=1000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


def pytest_report_header() -> list[str]:
    """Say what is tested, with what."""
    where = pathlib.Path(simdup.__file__).parent
    return [f"simdup: {where}, numba {numba.__version__}, numpy {np.__version__}, {os.cpu_count()} cores"]
