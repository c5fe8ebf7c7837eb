"""The network's outputs where a run needs them, with what is kept on disk between runs.

The kept tables belong to one model and one numbering of the nodes (the mirror's epoch). They are
marked open while a run works on them and closed only after the mirror is saved: tables that a crash
left open, or that lived through a restart of the machine, are thrown away and made again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.model_files import SavedModel
from ringfence.jobs.tensors import edge_index
from ringfence.jobs.threads import SMALL, threads_for
from ringfence.models.incremental import Incidence, Plan, Tables, empty_tables, forward, plan_of
from ringfence.models.incremental.tables import COLUMNS, NEVER, shape_of

STATE = "state.json"
FORMAT = 3  # also raised when kernels change: kept rows must have the bits of new ones
KEPT = ("rows", "version", "used")  # numbers that belong to the tables
BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Passed:
    """Logits at the wanted rows [m, classes], and one sentence on how they were computed."""

    logits: Tensor
    words: str


def incidence(mirror: Mirror, mapping: GraphMapping) -> Incidence:
    """Return the mirror's relationships as the networks' kernels take them; nothing is copied."""
    near = mirror.adjacency
    nodes, offsets, others, codes = near.late_part()
    both = [kind.undirected for kind in mapping.relationships]
    base = near.offsets.array if near.offsets.rows else np.zeros(1, np.int64)
    return Incidence(
        base, near.others.array, near.codes.array, nodes, offsets, others, codes,
        mirror.size, np.array(both, np.bool_), near.changed, mirror.version,
    )  # fmt: skip


def outputs_at(
    folder: Path,
    model: SavedModel,
    mirror: Mirror,
    mapping: GraphMapping,
    graph: Incidence,
    wanted: NDArray[np.int64],
) -> Passed:
    """Return the network's outputs on the graph as it is now, at `wanted`.

    A user's own module runs in full. ringfence's networks pay for what changed since the tables in
    `folder` were kept.
    """
    plan = plan_of(model.network, model.scaling.mean, model.scaling.spread)
    if plan is None:
        return _own_module(model, mirror, mapping, wanted)
    width = max(plan.first_width, plan.second_width)
    place = folder / f"{model.version}-{mirror.epoch}"
    large = graph.entries * width > SMALL
    # the kernels have threads of their own; torch's would wait for each other block by block
    with _opened(place, plan, mirror) as tables, threads_for(0, width):
        found = forward(
            plan, graph, mirror.features, wanted, tables, (os.cpu_count() or 1) if large else 1
        )
    words = (
        f"{found.way} forward pass, {found.refreshed:,} of {mirror.size:,} rows computed: "
        f"{found.reason}"
    )
    return Passed(torch.from_numpy(found.logits), words)


def keep(folder: Path, model: SavedModel, mirror: Mirror) -> None:
    """Close the tables of this run: the mirror that they belong to is saved."""
    place = folder / f"{model.version}-{mirror.epoch}"
    state = _state(place)
    if state and state["open"] and state["version"] == mirror.version:
        _write_state(place, {**state, "open": False})


def _own_module(
    model: SavedModel, mirror: Mirror, mapping: GraphMapping, wanted: NDArray[np.int64]
) -> Passed:
    edges = edge_index(mirror, mapping)
    with torch.inference_mode(), threads_for(edges.size(1), 64):
        logits = model.network(model.scaling(mirror.features), edges)
    words = f"full forward pass, {mirror.size:,} rows computed: the module is your own"
    return Passed(logits[torch.from_numpy(wanted)], words)


@contextmanager
def _opened(place: Path, plan: Plan, mirror: Mirror) -> Iterator[Tables]:
    """Yield the tables, marked open; new ones where none can be trusted."""
    state = _state(place)
    usable = (
        bool(state)
        and not state["open"]
        and state["boot"] == _boot() != ""
        and state["rows"] <= mirror.size
        and all((place / name).exists() for name in COLUMNS)
    )
    room = int(state["room"]) if usable else 0
    if not usable:
        shutil.rmtree(place.parent, ignore_errors=True)
        place.mkdir(parents=True)
    _write_state(place, {**_fresh(room), "open": True})
    if room < mirror.size:
        room = mirror.size + mirror.size // 4 + 1_024
    tables = empty_tables(plan, 0)
    for name, kind in COLUMNS.items():
        setattr(tables, name, _mapped(place / name, kind, shape_of(name, plan, room)))
    if usable:
        tables.rows, tables.version, tables.used = (state[name] for name in KEPT)
    yield tables
    done = {name: getattr(tables, name) for name in KEPT} | {"room": room}
    _write_state(place, {**_fresh(room), **done, "open": True})


def _mapped(path: Path, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map a file, made longer where needed; a full disk is an error here, and no SIGBUS later."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if not size:
        path.touch()
        return np.empty(shape, kind)
    with path.open("ab") as file:
        if hasattr(os, "posix_fallocate") and file.tell() < size:
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
    return np.memmap(path, kind, mode="r+", shape=shape).view(np.ndarray)


def _fresh(room: int) -> dict[str, Any]:
    return {"format": FORMAT, "boot": _boot(), "rows": 0, "version": NEVER, "used": 0, "room": room}


def _state(place: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((place / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if found.get("format") == FORMAT else {}


def _write_state(place: Path, state: dict[str, Any]) -> None:
    temporary = place / f"{STATE}.{os.getpid()}.tmp"
    temporary.write_text(json.dumps(state), encoding="utf-8")
    temporary.replace(place / STATE)


def _boot() -> str:
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
