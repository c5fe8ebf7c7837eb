"""Outputs of a network for several labels, with what is kept on disk between runs.

Kept per model: one encoded float32 row per node, made once, and the sums of hubs. Both are files
with checksums under the rules of `table_state`; what can't be trusted is made again from the raw
columns of the mirror.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from ringfence.connector.files import make_private_folder, open_private
from ringfence.connector.mirror import Mirror
from ringfence.connector.mirror.typed import TypedMirror
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.typed_inputs import ENCODER, MANIFEST_KEY, TypedEncoders
from ringfence.jobs.scoring.table_state import closed_state, write_state
from ringfence.models.inference import InferenceGraph
from ringfence.models.inference.border import checksum
from ringfence.models.inference.pool import MIN_NUMBERS_FOR_THREADS
from ringfence.models.inference.typed import Kept, TypedGraph, forward_typed, typed_graph
from ringfence.models.networks.registry import typed_planner, typed_whole_pass
from ringfence.models.schema import TypedSchema

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

SUMS_FILE = "sums"
ROWS_PER_STEP = 65_536  # encoded and written at a time


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """Logits at the wanted rows [m, classes], and one sentence on how they were computed.

    seconds: by stage, where the pass had several.
    """

    logits: Float32s
    sentence: str
    seconds: Mapping[str, float] = field(default_factory=dict)


def typed_outputs_at(
    folder: Path,
    model: SavedModel,
    mirror: Mirror,
    typed: TypedMirror,
    relationships: InferenceGraph,
    wanted: Ints,
) -> ForwardPass:
    """Return the network's outputs on the graph as it is now, at `wanted`.

    A network that ringfence has pays for what changed; a user's own module runs in full.
    """
    facts = model.manifest[MANIFEST_KEY]
    schema = TypedSchema.from_json(facts["schema"])
    encoders = TypedEncoders.restore(facts, model.weights)
    place = folder / f"{model.version}-{mirror.epoch}"
    kept = _open_tables(place, mirror, encoders)
    graph = typed_graph(relationships, schema, typed.labels)
    altered = _bring_up_to_date(kept, typed, graph, encoders)
    features = [kept.mapped(label, encoders.widths[label]) for label in range(len(schema.labels))]
    weights = {name: one for name, one in model.weights.items() if not name.startswith(ENCODER)}
    planner = typed_planner(model.network)
    if planner is None:
        found = _whole_pass(model, weights, mirror, graph, features, wanted)
    else:
        entries = relationships.entries * max(encoders.widths)
        workers = (os.cpu_count() or 1) if entries > MIN_NUMBERS_FOR_THREADS else 1
        plan = planner(schema, weights)
        outputs = forward_typed(plan, graph, features, wanted, kept.sums, altered, workers)
        why = "sums of hubs were kept" if outputs.kept else "nothing was kept from an earlier pass"
        found = ForwardPass(
            outputs.logits,
            f"typed forward pass, {outputs.rows:,} rows computed, {outputs.gathered:,} gathered "
            f"into context of {mirror.size:,} rows: {kept.damage or why}",
        )
    _write_tables(kept, mirror, features)
    return found


def read_encoded(
    folder: Path, model: SavedModel, mirror: Mirror, graph: TypedGraph, encoders: TypedEncoders
) -> list[Float32s]:
    """Return the encoded rows by label, as the last run left them or made anew; nothing is written.

    The arrays are the caller's own: what is changed in them reaches no file.
    """
    place = folder / f"{model.version}-{mirror.epoch}"
    state, typed = closed_state(place, mirror), mirror.typed
    if state and state["version"] == mirror.version:
        kept = _read_tables(place, state, encoders.widths)
        if kept.rows:
            return [kept.mapped(label, width) for label, width in enumerate(encoders.widths)]
    if typed is None:
        return []
    rows = [np.flatnonzero(graph.labels == label) for label in range(len(encoders.widths))]
    return [encoders.encode(typed, label, own) for label, own in enumerate(rows)]


@dataclass(slots=True)
class _Tables:
    """Files of one model and one numbering: encoded rows by label, and sums."""

    place: Path
    version: int = -1
    rows: list[int] = field(default_factory=list)
    sums: Kept = field(default_factory=Kept)
    damage: str = ""

    def path(self, label: int) -> Path:
        """The file of a label's encoded rows."""
        return self.place / f"encoded.{label}"

    def mapped(self, label: int, width: int) -> Float32s:
        """Encoded rows of a label [rows, width]."""
        if not self.rows[label] or not width:
            return np.empty((self.rows[label], width), np.float32)
        shape = (self.rows[label], width)
        return np.memmap(self.path(label), np.float32, mode="c", shape=shape).view(np.ndarray)


def _open_tables(place: Path, mirror: Mirror, encoders: TypedEncoders) -> _Tables:
    """The kept tables, or empty ones where there are none that can be trusted."""
    labels = len(encoders.widths)
    state = closed_state(place, mirror)
    kept = _read_tables(place, state, encoders.widths) if state else _Tables(place)
    if not kept.rows:
        shutil.rmtree(place.parent, ignore_errors=True)
        make_private_folder(place)
        kept.rows = [0] * labels
    write_state(place, {"open": True, "version": -1})
    return kept


def _read_tables(place: Path, state: dict[str, Any], widths: tuple[int, ...]) -> _Tables:
    """Tables whose checksums fit; without rows where one does not."""
    kept = _Tables(place, state["version"], list(state["rows"]))
    try:
        damaged = [
            f"encoded.{label}"
            for label, width in enumerate(widths)
            if checksum(kept.mapped(label, width)) != state["checksums"][f"encoded.{label}"]
        ]
        raw = np.fromfile(place / SUMS_FILE, np.uint8)
        if checksum(raw) == state["checksums"][SUMS_FILE]:
            kept.sums = Kept.from_arrays(load_arrays(raw.tobytes()))
        else:
            damaged.append(SUMS_FILE)
    except (OSError, ValueError, KeyError, SafetensorError):
        return _Tables(place)
    if damaged:
        why = f"the kept tables were damaged ({', '.join(damaged)}) and are made again"
        return _Tables(place, damage=why)
    return kept


def _bring_up_to_date(
    kept: _Tables, typed: TypedMirror, graph: TypedGraph, encoders: TypedEncoders
) -> Ints:
    """Encode what is new or was written since; return the rows that had other columns before."""
    written = np.flatnonzero(typed.revised > kept.version)
    altered = [np.empty(0, np.int64)]
    for label in range(len(kept.rows)):
        rows, before = np.flatnonzero(graph.labels == label), kept.rows[label]  # gaps too
        mine = written[graph.labels[written] == label]
        old = mine[graph.places[mine] < before]
        for start in range(0, len(old), ROWS_PER_STEP):
            part = old[start : start + ROWS_PER_STEP]
            _write_at(kept.path(label), graph.places[part], encoders.encode(typed, label, part))
        for start in range(before, len(rows), ROWS_PER_STEP):
            part = rows[start : start + ROWS_PER_STEP]
            places = np.arange(start, start + len(part))
            _write_at(kept.path(label), places, encoders.encode(typed, label, part))
        altered.append(old)
        kept.rows[label] = len(rows)
    return np.concatenate(altered)


def _write_at(path: Path, places: Ints, rows: Float32s) -> None:
    """Write encoded rows to their places; a run of places is written at once."""
    width = rows.shape[1] * rows.itemsize
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    with open_private(path, "r+b" if path.exists() else "w+b") as file:
        for at in np.split(np.arange(len(places)), ends):
            if len(at):
                file.seek(int(places[at[0]]) * width)
                file.write(np.ascontiguousarray(rows[at]).tobytes())


def _write_tables(kept: _Tables, mirror: Mirror, features: list[Float32s]) -> None:
    """Write the sums and what belongs to all tables; they stay open until the mirror is saved."""
    blob = save_arrays({name: np.asarray(one) for name, one in kept.sums.arrays().items()})
    with open_private(kept.place / SUMS_FILE, "wb") as file:
        file.write(blob)
    checksums = {f"encoded.{label}": checksum(rows) for label, rows in enumerate(features)}
    checksums[SUMS_FILE] = checksum(np.frombuffer(blob, np.uint8))
    state = {
        "open": True,
        "version": mirror.version,
        "rows": kept.rows,
        "checksums": checksums,
    }
    write_state(kept.place, state)


def _whole_pass(
    model: SavedModel,
    weights: dict[str, NDArray[Any]],
    mirror: Mirror,
    graph: TypedGraph,
    features: list[Float32s],
    wanted: Ints,
) -> ForwardPass:
    """Run the module itself, in torch, which is imported here and nowhere else in scoring."""
    run_module, select = typed_whole_pass()
    rows = [np.flatnonzero(graph.labels == label) for label in range(len(features))]
    data = select(graph.schema, features, mirror.edges, rows, mirror.size)
    logits = run_module(model.network, weights, len(model.classes), model.options, data)
    sentence = (
        f"full forward pass, {mirror.size:,} rows computed: {model.network.rpartition(':')[2]} has "
        "no incremental kernel"
    )
    return ForwardPass(logits[graph.places[wanted]], sentence)
