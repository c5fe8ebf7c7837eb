"""Prefetching memory before it is read, compiled into loops that gather scattered rows.

A row of a large table is rarely in a cache, and a processor that learns its address only when it
needs it waits. Lists of neighbours tell in advance what will be read. The instruction changes no
result and never fails: an address outside the memory is ignored.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ringfence.models.compile import inlined, lowered

Array = Any

#: How many neighbours ahead rows are prefetched.
AHEAD = 8
#: Bytes per cache line.
LINE_BYTES = 64


@lowered
def fetch(typing_context: Any, values: Any, place: Any) -> Any:
    """Prefetch the memory around ``values[place]``, of an array of one dimension."""
    ir: Any = import_module("llvmlite.ir")  # without types; numba is imported by then
    cgutils: Any = import_module("numba.core.cgutils")
    types: Any = import_module("numba.core.types")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        at = context.cast(builder, arguments[1], signature.args[1], types.intp)
        address = cgutils.get_item_pointer(context, builder, signature.args[0], array, [at])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        asked = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        instruction = cgutils.get_or_insert_function(builder.module, asked, "llvm.prefetch.p0i8")
        for_reading, into_all_caches, data = word(0), word(3), word(1)
        where = builder.bitcast(address, byte)
        builder.call(instruction, [where, for_reading, into_all_caches, data])
        return context.get_dummy_value()

    return types.void(values, place), codegen


@inlined
def fetch_row(table: Array, row: Any) -> None:
    """Prefetch a row of a table."""
    values = table[row]
    step = LINE_BYTES // values.itemsize
    for c in range(0, len(values), step):
        fetch(values, c)
    fetch(values, len(values) - 1)
