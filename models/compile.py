"""Compilation with a cache on disk where there is a place for one, and without elsewhere.

numba is imported by the first call of a compiled function, and not before: it costs a CPU second
and 60 MB, which a run that finds nothing new need not pay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Literal, TypeVar, cast

__all__ = ["compiled", "inlined", "lowered", "released"]

Function = TypeVar("Function", bound=Callable[..., Any])
Inline = Literal["never", "always"]

_lock = threading.RLock()
_uncompiled: list[Kernel] = []


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers at its first call.

    No fast-math: sums and comparisons stay those of IEEE 754, bit by bit.
    """
    return _later(function, "never")


def inlined(function: Function) -> Function:
    """Compile a function into each of its callers."""
    return _later(function, "always")


def released(function: Function) -> Function:
    """Compile a function that gives Python's lock away, so that threads run it side by side."""
    return _later(function, "never", nogil=True)


def lowered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function say which machine code a call of it becomes (an intrinsic of numba).

    It takes numba's typing context and types, and is called by compiled functions alone.
    """
    return _later(function, "never", writes_code=True)


class Kernel:
    """A function that numba will be given when the first one of all is called.

    Compiled functions find each other in the globals of their modules, and numba knows its own
    kind alone: so all of them are handed over at once, and take these objects' places there.
    """

    def __init__(
        self, function: Callable[..., Any], inline: Inline, nogil: bool, writes_code: bool
    ) -> None:
        self.function, self.inline, self.nogil = function, inline, nogil
        self.writes_code = writes_code
        self.dispatcher: Callable[..., Any] | None = None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        if self.dispatcher is None:
            _hand_over()
        return cast("Callable[..., Any]", self.dispatcher)(*arguments)


def _later(
    function: Function, inline: Inline, nogil: bool = False, writes_code: bool = False
) -> Function:
    kernel = Kernel(function, inline, nogil, writes_code)
    with _lock:
        _uncompiled.append(kernel)
    return cast("Function", kernel)


def _hand_over() -> None:
    """Give numba all functions that were defined so far."""
    with _lock:
        made = {kernel: _compile(kernel) for kernel in _uncompiled}
        for kernel in made:
            names = kernel.function.__globals__
            found = {name: value for name, value in names.items() if isinstance(value, Kernel)}
            names.update({name: made.get(k, k.dispatcher) for name, k in found.items()})
        for kernel, dispatcher in made.items():  # from here on other threads may call them
            kernel.dispatcher = dispatcher
        _uncompiled.clear()


def _compile(kernel: Kernel) -> Callable[..., Any]:
    from numba import njit
    from numba.extending import intrinsic

    if kernel.writes_code:
        return cast("Callable[..., Any]", intrinsic(kernel.function))
    compile_it: Callable[..., Callable[..., Any]] = partial(
        njit, kernel.function, inline=kernel.inline, nogil=kernel.nogil
    )
    try:
        return compile_it(cache=True)
    except RuntimeError:  # numba found no folder to write its cache to
        return compile_it()
