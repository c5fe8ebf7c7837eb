"""A forward pass in this process: which pass a model's network has, and its cache on disk."""

from __future__ import annotations

from functools import singledispatch
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
from ringfence.jobs.project.columns.column_encoders import (
    PlainNetwork,
    TypedNetwork,
    network_of,
)
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
    return run_pass(_pass_of(network_of(model), model, mirror, mapping, graph, cache), wanted)


def close_tables(folder: Path, model: SavedModel, mirror: Mirror) -> None:
    """Close the cache for the next run: the mirror that it belongs to is saved."""
    CacheFiles(cache_place(folder, model.version, mirror.epoch)).close(mirror.version)


@singledispatch
def _pass_of(
    network: object,
    model: SavedModel,
    mirror: Mirror,
    mapping: GraphMapping,
    graph: InferenceGraph,
    cache: CacheFiles,
) -> Pass:
    """Return the pass of a model's network."""
    raise TypeError(network)


@_pass_of.register(PlainNetwork)
def _table_pass(
    _network: PlainNetwork,
    model: SavedModel,
    mirror: Mirror,
    mapping: GraphMapping,
    graph: InferenceGraph,
    cache: CacheFiles,
) -> Pass:
    plan = model.plan()
    if plan is None:
        return WholePass(model, mirror, mapping)
    return TablePass(plan, graph, mirror, cache)


@_pass_of.register(TypedNetwork)
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
