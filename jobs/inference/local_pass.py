"""A forward pass in this process: which pass a model's network has, and its cache on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.inference.base import Pass, PassOutputs, run_pass
from ringfence.jobs.inference.blend_pass import BlendPass
from ringfence.jobs.inference.cache_files import CacheFiles, cache_place
from ringfence.jobs.inference.table_pass import TablePass, WholePass
from ringfence.jobs.inference.tree_pass import TreePass
from ringfence.jobs.inference.typed_pass import EncodedRows, TypedPass, TypedWholePass
from ringfence.jobs.project.columns.column_encoders import TypedNetwork, typed_network
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import arrival_times
from ringfence.models.inference import InferenceGraph
from ringfence.models.trees.columns import CountRule


def outputs_at(
    folder: Path,
    model: SavedModel,
    mirror: Mirror,
    mapping: GraphMapping,
    graph: InferenceGraph,
    wanted: NDArray[np.int64],
) -> PassOutputs:
    """Return the network's outputs on the graph as it is now, at `wanted`.

    A network with inference layers pays for what changed since the cache in `folder` was written;
    any other module, such as a user's own, runs in full.
    """
    cache = CacheFiles(cache_place(folder, model.version, mirror.epoch))
    network = typed_network(model)
    if network is not None:
        return run_pass(_typed_pass(network, model, mirror, mapping, graph, cache), wanted)
    plan = model.plan()
    if plan is None:
        return run_pass(WholePass(model, mirror, mapping), wanted)
    return run_pass(TablePass(plan, graph, mirror, cache), wanted)


def close_tables(folder: Path, model: SavedModel, mirror: Mirror) -> None:
    """Close the cache for the next run: the mirror that it belongs to is saved."""
    CacheFiles(cache_place(folder, model.version, mirror.epoch)).close(mirror.version)


def _typed_pass(
    network: TypedNetwork,
    model: SavedModel,
    mirror: Mirror,
    mapping: GraphMapping,
    graph: InferenceGraph,
    cache: CacheFiles,
) -> Pass:
    rows = EncodedRows(mirror, network.graph(mirror, graph), network.encoders, cache)
    rule = CountRule(arrival_times(mirror, mapping), network.counts_classified)
    halves = network.halves()
    if halves is not None:
        return BlendPass(TypedPass(halves[0], rows), halves[1], rule, len(model.classes))
    trees = network.trees()
    if trees is not None:
        return TreePass(trees, rows, rule, len(model.classes))
    plan = network.plan()
    return TypedWholePass(model, rows) if plan is None else TypedPass(plan, rows)
