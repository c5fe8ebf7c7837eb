"""Compilation by numba, with a cache on disk if a folder for one can be written.

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
    """Compile a function that releases the GIL, so that threads run it in parallel."""
    return _later(function, "never", nogil=True)


def lowered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function that emits the machine code of its calls (a numba intrinsic).

    It takes numba's typing context and types, and is called by compiled functions alone.
    """
    return _later(function, "never", writes_code=True)


class Kernel:
    """A function that is compiled by numba once the first kernel of the process is called.

    Compiled functions refer to each other through the globals of their modules, where numba only
    accepts its own dispatchers: so all are handed over at once, and replace these objects there.
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
            kernels = {name: value for name, value in names.items() if isinstance(value, Kernel)}
            names.update({name: made.get(k, k.dispatcher) for name, k in kernels.items()})
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
