"""Compiled code is kept where it can be, and otherwise said not to be."""

from collections.abc import Callable
from typing import Any

import numba
import pytest

from simdup import jit


def test_without_a_folder_to_keep_it_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user without a home, of a package that root installed: slower, with a warning, but it works."""

    def njit(*, cache: bool = False, **options: Any) -> Callable[..., Any]:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)  # type: ignore[no-any-return]

    monkeypatch.setattr(jit, "njit", njit)
    jit._warn.cache_clear()
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR"):
        twice = jit.kernel(lambda value: 2 * value)
    assert twice(21) == 42
    assert twice.targetoptions["nogil"]
    # Once is enough for all kernels: another warning would be an error here.
    assert jit.kernel(lambda value: value + 1)(1) == 2
    jit._warn.cache_clear()
