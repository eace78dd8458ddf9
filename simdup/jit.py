"""How the hot loops are compiled: without the interpreter's lock, and kept on disk for the next process."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from numba import njit


@functools.cache
def _warn() -> None:
    warnings.warn(
        "Numba finds no folder to keep compiled code in, so that every process compiles anew, which takes half a "
        "minute: set NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=4,
    )


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call.

    It may call others of its own file only: what is kept is thrown away when that file changes, not others.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        _warn()
        return njit(nogil=True)(function)
