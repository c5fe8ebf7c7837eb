"""Passes of networks with one list of neighbours per node: GCN, SAGE, GAT, APPNP, MLP.

A row per node and layer is cached. A pass computes again the rows whose inputs changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.cores import usable_openmp_threads, usable_threads
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.inference.cache_files import CacheFiles
from ringfence.jobs.inference.network_packages import require_network_packages
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import edge_index
from ringfence.models.inference import InferenceGraph, InferencePlan, Tables, empty_tables, forward
from ringfence.models.inference.pool import MIN_NUMBERS_FOR_THREADS
from ringfence.models.inference.state import TABLE_COLUMNS, shape_of
from ringfence.models.networks.registry import whole_pass

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(slots=True)
class TablePass:
    """An incremental pass; `tables` are arrays of the cache."""

    plan: InferencePlan
    graph: InferenceGraph
    mirror: Mirror
    cache: CacheFiles
    tables: Tables = field(init=False)
    _sentence: str = field(default="", init=False)

    def open(self) -> None:
        """Map the tables of the last pass, with a row for every node that there is now."""
        cached = self.cache.restore(self.mirror.version)
        if cached is not None and len(cached.arrays["second"]) > self.mirror.size:
            cached = None
        if cached is None:
            self.cache.clear()
        self.cache.mark_open()
        self.tables = empty_tables(self.plan, 0)
        for name, kind in TABLE_COLUMNS.items():
            shape = shape_of(name, self.plan, self.mirror.size)
            setattr(self.tables, name, self.cache.arrays(name, shape, kind))
        if cached is not None:
            self.tables.version = cached.version
            self.tables.rows = len(cached.arrays["second"])
            self.tables.used = len(cached.arrays["hashes"])

    def outputs(self, wanted: Ints) -> Float32s:
        """Return the logits at `wanted`; rows of the tables whose inputs changed are computed."""
        width = max(self.plan.first_width, self.plan.second_width)
        large = self.graph.entries * width > MIN_NUMBERS_FOR_THREADS
        threads = usable_threads() if large else 1
        result = forward(self.plan, self.graph, self.mirror.features, wanted, self.tables, threads)
        self._sentence = (
            f"{result.way} forward pass, {result.refreshed:,} of {self.mirror.size:,} rows "
            f"computed: {self.cache.damage or result.reason}"
        )
        return result.logits

    def seal(self) -> None:
        """Write the tables for the next pass."""
        self.cache.seal(self.tables.version, self.tables.filled())

    def describe(self) -> str:
        """Return a sentence on how much was computed, and why."""
        return self._sentence


@dataclass(slots=True)
class WholePass:
    """A user's own module, which runs in full: nothing is cached."""

    model: SavedModel
    mirror: Mirror
    mapping: GraphMapping

    def open(self) -> None:
        """Nothing is cached."""

    def outputs(self, wanted: Ints) -> Float32s:
        """Run the module in torch, which is imported by this call."""
        require_network_packages(self.model.network)
        run_module = whole_pass()
        logits: Float32s = run_module(
            self.model.network,
            self.model.weights,
            len(self.model.classes),
            self.model.options,
            self.model.scaling(self.mirror.features),
            edge_index(self.mirror, self.mapping),
            usable_openmp_threads(),
        )
        return logits[wanted]

    def seal(self) -> None:
        """Nothing is cached."""

    def describe(self) -> str:
        """Return a sentence on how much was computed, and why."""
        return describe_whole_pass(self.model, self.mirror)


def describe_whole_pass(model: SavedModel, mirror: Mirror) -> str:
    """Return the sentence on a pass of a user's own module."""
    name = model.network.rpartition(":")[2]
    return f"full forward pass, {mirror.size:,} rows computed: {name} has no incremental kernel"
