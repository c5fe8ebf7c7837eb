"""Checks of the inputs of the compiled loops, which read and write without looking at bounds.

Each array of places is checked once per pass (a millisecond per million places): a place outside
its array is an error here. A graph's base is checked once, however many late parts it gets: a base
is never written to, so the minimum and maximum of its arrays are remembered for as long as these
live.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # both are checked by this module when they are used
    from ringfence.models.inference.graph import InferenceGraph
    from ringfence.models.inference.state import Tables

__all__ = ["check_graph", "check_tables", "check_wanted"]

NEVER = -1

#: Arrays of bases that were checked: the array, its minimum and its maximum.
_extents: dict[int, tuple[weakref.ref[NDArray[Any]], tuple[int, int]]] = {}


def check_graph(graph: InferenceGraph) -> None:
    """Raise ValueError where a list of neighbours leads outside the graph."""
    base, late = len(graph.offsets) - 1, len(graph.late_nodes)
    _require(0 <= base <= graph.size, "offsets", f"{base} rows for {graph.size} nodes")
    _require(len(graph.changed) >= graph.size, "changed", "it is shorter than the graph")
    _require(len(graph.late_offsets) == late + 1, "late_offsets", "one more than late nodes")
    _check_lists("offsets", graph.offsets, len(graph.others), len(graph.codes))
    _check_lists("late_offsets", graph.late_offsets, len(graph.late_others), len(graph.late_codes))
    gone = graph.removed
    _require(len(gone.offsets) == len(gone.nodes) + 1, "removed", "one more offset than nodes")
    _check_lists("removed offsets", gone.offsets, len(gone.others), len(gone.codes))
    _require(len(graph.altered.rows) == len(graph.altered.versions), "altered", "one version each")
    rows: dict[str, NDArray[Any]] = {
        "late_nodes": graph.late_nodes, "late_others": graph.late_others,
        "removed": gone.nodes, "altered": graph.altered.rows,
    }  # fmt: skip
    for name, places in rows.items():
        _check_range(name, places, 0, graph.size)
    codes = 2 * len(graph.undirected)
    _check_range("late_codes", graph.late_codes, 0, codes)
    _check_base("others", graph.others, 0, graph.size)
    _check_base("codes", graph.codes, 0, codes)
    for name, nodes in (("late_nodes", graph.late_nodes), ("removed", gone.nodes)):
        _require(bool((nodes[1:] > nodes[:-1]).all()), name, "they don't ascend")


def check_tables(tables: Tables, graph: InferenceGraph) -> None:
    """Raise ValueError where kept rows can't be of this graph, or of an earlier state of it."""
    slots, room = len(tables.sums), tables.room
    _require(0 <= tables.rows <= min(room, graph.size), "rows", f"{tables.rows} are filled")
    _require(0 <= tables.used <= slots, "used", f"{tables.used} of {slots} slots are given away")
    _require(NEVER <= tables.version <= graph.version, "version", f"{tables.version}")
    _check_range("computed", tables.computed, NEVER, graph.version + 1)
    _check_range("slots", tables.slots, 0, tables.used + 1)


def check_wanted(wanted: NDArray[np.int64], graph: InferenceGraph) -> None:
    """Raise ValueError where a wanted row isn't in the graph."""
    _check_range("wanted", wanted, 0, graph.size)


def _check_lists(name: str, offsets: NDArray[np.int64], *lengths: int) -> None:
    fits = offsets[0] == 0 and all(offsets[-1] == length for length in lengths)
    _require(bool(fits), name, f"they lead to {offsets[-1]} of {lengths[0]} entries")
    _require(bool((offsets[1:] >= offsets[:-1]).all()), name, "they don't ascend")


def _check_range(name: str, places: NDArray[Any], low: int, end: int) -> None:
    if len(places):
        _require_extent(name, _extent(places), low, end)


def _check_base(name: str, places: NDArray[Any], low: int, end: int) -> None:
    """As `_check_range`, for an array that is never written to: it is checked once."""
    if not len(places):
        return
    known = _extents.get(id(places))
    if known is None or known[0]() is not places:
        key = id(places)
        seen = weakref.ref(places, lambda _: _extents.pop(key, None))
        known = _extents[key] = (seen, _extent(places))
    _require_extent(name, known[1], low, end)


def _extent(places: NDArray[Any]) -> tuple[int, int]:
    return int(places.min()), int(places.max())


def _require_extent(name: str, extent: tuple[int, int], low: int, end: int) -> None:
    least, most = extent
    _require(low <= least and most < end, name, f"{least} to {most}, not {low} to {end - 1}")


def _require(fits: bool, name: str, problem: str) -> None:
    if not fits:
        raise ValueError(f"{name} can't be used by the compiled loops: {problem}")
