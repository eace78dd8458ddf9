"""How the hot loops are compiled: without the interpreter's lock, and kept on disk for the next process."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.extending import intrinsic


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

    It may call others of its own file and `popcount` only: what is kept is thrown away when that file changes, not
    others.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        _warn()
        return njit(nogil=True)(function)


@intrinsic
def popcount(_context, _word):  # type: ignore[no-untyped-def]
    """The processor's own population count, which the compiler widens to many words at once."""

    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate
