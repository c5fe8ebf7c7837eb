"""Compilation with a cache on disk where there is a place for one, and without elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers at its first call.

    No fast-math: sums and comparisons stay those of IEEE 754, bit by bit.
    """
    return _compile(function, "never")


def inlined(function: Function) -> Function:
    """Compile a function into each of its callers."""
    return _compile(function, "always")


def released(function: Function) -> Function:
    """Compile a function that gives Python's lock away, so that threads run it side by side."""
    return _compile(function, "never", nogil=True)


def _compile(
    function: Function, inline: Literal["never", "always"], nogil: bool = False
) -> Function:
    try:
        return cast(Function, njit(function, cache=True, inline=inline, nogil=nogil))
    except RuntimeError:  # numba found no folder to write its cache to
        return cast(Function, njit(function, inline=inline, nogil=nogil))
