"""The network's outputs where a run needs them, with what is kept on disk between runs.

The kept tables belong to one model and one numbering of the nodes (the mirror's epoch). They are
marked open while a run works on them and closed only after the mirror is saved: tables that a crash
left open, or that lived through a restart of the machine, are thrown away and made again. So are
damaged ones: every run compares the checksums of all that it may read.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.files import (
    PRIVATE,
    make_private_folder,
    open_private,
)
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import edge_index
from ringfence.jobs.scoring.table_state import close_state, closed_state, write_state
from ringfence.jobs.scoring.typed_inference import ForwardPass, typed_outputs_at
from ringfence.models.inference import (
    InferenceGraph,
    InferencePlan,
    Tables,
    empty_tables,
    forward,
    leave_out_types,
)
from ringfence.models.inference.graph import AlteredFeatures, RemovedEntries
from ringfence.models.inference.pool import MIN_NUMBERS_FOR_THREADS
from ringfence.models.inference.state import NEVER_COMPUTED, TABLE_COLUMNS, shape_of
from ringfence.models.networks.registry import whole_pass

KEPT_NUMBERS = ("rows", "version", "used")  # numbers that belong to the tables


def inference_graph(mirror: Mirror, mapping: GraphMapping) -> InferenceGraph:
    """Return the mirror's relationships as the networks' kernels take them.

    Nothing is copied, unless some types are set only after evaluation: those are left out.
    """
    near = mirror.adjacency
    nodes, offsets, others, codes = near.late_part()
    kinds = mapping.relationships if mapping.typed is None else mapping.typed.relations
    both = [kind.undirected for kind in kinds]
    base = near.offsets.array if near.offsets.rows else np.zeros(1, np.int64)
    graph = InferenceGraph(
        base, near.others.array, near.codes.array, nodes, offsets, others, codes,
        mirror.size, np.array(both, np.bool_), near.changed, mirror.version,
        RemovedEntries(*near.removed_part()), AlteredFeatures(*mirror.patches.altered()),
        near.base_number,
    )  # fmt: skip
    cut = [index for index, kind in enumerate(kinds) if getattr(kind, "after_evaluation", False)]
    return leave_out_types(graph, cut) if cut else graph


def inner_types(mapping: GraphMapping) -> list[int] | None:
    """Return the types between nodes of the classified label, which have outputs; None: all."""
    return None if mapping.typed is None else mapping.typed.inner_relations


def inner_graph(graph: InferenceGraph, mapping: GraphMapping) -> InferenceGraph:
    """Return the relationships between nodes that have outputs, as a graph of its own: a copy."""
    inner = inner_types(mapping)
    if mapping.typed is None or inner is None:
        return graph
    outer = [index for index in range(len(mapping.typed.relations)) if index not in inner]
    return leave_out_types(graph, outer)


def outputs_at(
    folder: Path,
    model: SavedModel,
    mirror: Mirror,
    mapping: GraphMapping,
    graph: InferenceGraph,
    wanted: NDArray[np.int64],
) -> ForwardPass:
    """Return the network's outputs on the graph as it is now, at `wanted`.

    A network with inference layers pays for what changed since the tables in `folder` were kept;
    any other module, such as a user's own, runs in full.
    """
    if mirror.typed is not None:
        return typed_outputs_at(folder, model, mirror, mirror.typed, graph, wanted)
    plan = model.plan()
    if plan is None:
        return _whole_pass(model, mirror, mapping, wanted)
    width = max(plan.first_width, plan.second_width)
    place = folder / f"{model.version}-{mirror.epoch}"
    large = graph.entries * width > MIN_NUMBERS_FOR_THREADS
    with _opened(place, plan, mirror) as (tables, damage):
        found = forward(
            plan, graph, mirror.features, wanted, tables, (os.cpu_count() or 1) if large else 1
        )
    sentence = (
        f"{found.way} forward pass, {found.refreshed:,} of {mirror.size:,} rows computed: "
        f"{damage or found.reason}"
    )
    return ForwardPass(found.logits, sentence)


def close_tables(folder: Path, model: SavedModel, mirror: Mirror) -> None:
    """Close the tables of this run: the mirror that they belong to is saved."""
    place = folder / f"{model.version}-{mirror.epoch}"
    close_state(place, mirror)


def _whole_pass(
    model: SavedModel, mirror: Mirror, mapping: GraphMapping, wanted: NDArray[np.int64]
) -> ForwardPass:
    """Run the module itself, in torch, which is imported here and nowhere else in scoring."""
    run_module = whole_pass()
    logits = run_module(
        model.network,
        model.weights,
        len(model.classes),
        model.options,
        model.scaling(mirror.features),
        edge_index(mirror, mapping),
    )
    sentence = (
        f"full forward pass, {mirror.size:,} rows computed: {model.network.rpartition(':')[2]} has "
        "no incremental kernel"
    )
    return ForwardPass(logits[wanted], sentence)


@contextmanager
def _opened(place: Path, plan: InferencePlan, mirror: Mirror) -> Iterator[tuple[Tables, str]]:
    """Yield the tables, marked open, and what was wrong with the kept ones ("": nothing).

    New tables where there are none, or none that can be trusted.
    """
    state, damage = _usable_state(place, mirror), ""
    tables = _map_tables(place, plan, int(state["room"]), state) if state else None
    if tables is not None and (damaged := _damaged_columns(tables, state)):
        damage = f"the kept tables were damaged ({', '.join(damaged)}) and are made again"
        tables, state = None, {}
    if tables is None:
        shutil.rmtree(place.parent, ignore_errors=True)
        make_private_folder(place)
    room = int(state["room"]) if state else 0
    write_state(place, {**_fresh(room), "open": True})
    if tables is None or room < mirror.size:
        room = mirror.size + mirror.size // 4 + 1_024
        tables = _map_tables(place, plan, room, state)
    yield tables, damage
    done = {name: getattr(tables, name) for name in KEPT_NUMBERS} | {"room": room}
    done["checksums"] = tables.checksums()
    write_state(place, {**_fresh(room), **done, "open": True})


def _usable_state(place: Path, mirror: Mirror) -> dict[str, Any]:
    """What is written about tables that may be used by this run; {} where there are none."""
    state = closed_state(place, mirror)
    usable = (
        bool(state)
        and state["rows"] <= mirror.size
        and all((place / name).exists() for name in TABLE_COLUMNS)
    )
    return state if usable else {}


def _map_tables(place: Path, plan: InferencePlan, room: int, state: dict[str, Any]) -> Tables:
    tables = empty_tables(plan, 0)
    for name, kind in TABLE_COLUMNS.items():
        setattr(tables, name, _mapped(place / name, kind, shape_of(name, plan, room)))
    if state:
        tables.rows, tables.version, tables.used = (state[name] for name in KEPT_NUMBERS)
    return tables


def _damaged_columns(tables: Tables, state: dict[str, Any]) -> list[str]:
    """Names of the files that don't hold what the last run left there."""
    found, kept = tables.checksums(), state["checksums"]
    return [name for name in found if found[name] != kept.get(name)]


def _mapped(path: Path, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map a file, made longer where needed; a full disk is an error here, and no SIGBUS later."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if not size:
        path.touch(mode=PRIVATE)
        return np.empty(shape, kind)
    with open_private(path, "ab") as file:
        if hasattr(os, "posix_fallocate") and file.tell() < size:
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
    return np.memmap(path, kind, mode="r+", shape=shape).view(np.ndarray)


def _fresh(room: int) -> dict[str, Any]:
    return {
        "rows": 0,
        "version": NEVER_COMPUTED,
        "used": 0,
        "room": room,
        "checksums": {},
    }
