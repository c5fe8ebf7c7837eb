"""Passes of networks with weights per label and relation (typed SAGE, users' own such modules).

Cached per model: an encoded float32 row per node, the sums of hubs, and first-layer rows. What
can't be trusted is computed again from the raw columns of the mirror.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.cores import usable_openmp_threads, usable_threads
from ringfence.connector.mirror import Mirror
from ringfence.jobs.inference.cache_files import CachedArrays, CacheFiles, cache_place
from ringfence.jobs.inference.network_packages import require_network_packages
from ringfence.jobs.inference.table_pass import describe_whole_pass
from ringfence.jobs.project.columns.column_encoders import ColumnEncoders, network_weights
from ringfence.jobs.project.columns.relation_means import RelationMeans, means_by_slot, update_sums
from ringfence.jobs.project.model_files import SavedModel
from ringfence.models.inference.pool import MIN_NUMBERS_FOR_THREADS
from ringfence.models.inference.several_labels import (
    LayerCache,
    TypedGraph,
    TypedPlan,
    forward_typed,
)
from ringfence.models.networks.registry import typed_whole_pass
from ringfence.models.schema import CLASSIFIED
from ringfence.models.trees.columns import CountRows, CountRule

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

ROWS_PER_STEP = 65_536  # encoded and written at a time


@dataclass(slots=True)
class EncodedRows:
    """The encoded columns of all nodes, by label, in the cache; brought up to date by `open`.

    altered: rows that had other columns in the last pass. sums: of relationships with columns, by
    label; what came is added to them, and what went is taken away.
    """

    mirror: Mirror
    graph: TypedGraph
    encoders: ColumnEncoders
    cache: CacheFiles
    features: list[Float32s] = field(default_factory=list, init=False)
    sums: dict[int, Ints] = field(default_factory=dict, init=False)
    altered: Ints = field(default_factory=lambda: np.empty(0, np.int64), init=False)

    def open(self) -> CachedArrays | None:
        """Restore the cache or begin an empty one, and encode what is new or was written since."""
        cached = self.cache.restore(self.mirror.version)
        if cached is None:
            self.cache.clear()
        self.cache.mark_open()
        labels = range(len(self.encoders.widths))
        self.altered = np.concatenate([self._update(label, cached) for label in labels])
        return cached

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the encoded rows by the names that they have in the cache."""
        encoded = {encoded_name(label): rows for label, rows in enumerate(self.features)}
        return encoded | {sums_name(label): sums for label, sums in self.sums.items()}

    def count_by(self, rule: CountRule) -> CountRows:
        """Return what counts relationships with columns at classified nodes, for trees."""
        means = RelationMeans(self.mirror, self.encoders.related)
        return lambda rows: means.counts(CLASSIFIED, rows, rule)

    def _update(self, label: int, cached: CachedArrays | None) -> Ints:
        """Bring one label up to date; return its rows that had other columns before."""
        rows = np.flatnonzero(self.graph.labels == label)  # removed nodes have a row too
        known = 0 if cached is None else len(cached.arrays[encoded_name(label)])
        version = -1 if cached is None else cached.version
        shape = (len(rows), self.encoders.widths[label])
        encoded = self.cache.arrays(encoded_name(label), shape, np.float32)
        written = rows[:known][self.mirror.revised[rows[:known]] > version]
        changed = np.concatenate([written, rows[known:]])
        width = self.encoders.tables[label].width  # of its own columns: means stand behind them
        for start in range(0, len(changed), ROWS_PER_STEP):
            block = changed[start : start + ROWS_PER_STEP]
            values = self.encoders.encode_own(self.mirror, label, block)
            encoded[self.graph.places[block], :width] = values
        touched = self._update_means(label, encoded[:, width:], known, version)
        self.features.append(encoded)
        return np.union1d(written, touched[self.graph.places[touched] < known])

    def _update_means(self, label: int, means: Float32s, known: int, version: int) -> Ints:
        """Bring the means of relationships at a label's nodes up to date; return changed rows."""
        if not means.shape[1]:
            return np.empty(0, np.int64)
        sums = self.cache.arrays(sums_name(label), means.shape, np.int64)
        sums[known:], means[known:] = 0, 0
        related = RelationMeans(self.mirror, self.encoders.related)
        touched = update_sums(related, label, sums, self.graph.places, version)
        self.sums[label] = sums
        places = self.graph.places[touched]
        means[places] = means_by_slot(self.encoders.related, label, sums[places])
        return touched


@dataclass(slots=True)
class TypedPass:
    """A pass of a network that ringfence has layers for: it pays for what changed."""

    plan: TypedPlan
    rows: EncodedRows
    layer_cache: LayerCache = field(default_factory=LayerCache, init=False)
    _sentence: str = field(default="", init=False)

    def open(self) -> None:
        """Restore encoded rows and sums."""
        cached = self.rows.open()
        if cached is not None:
            self.layer_cache = LayerCache.from_arrays(cached.arrays)

    def outputs(self, wanted: Ints) -> Float32s:
        """Return the logits at `wanted`; sums and rows that have the same inputs are not redone."""
        graph, features = self.rows.graph, self.rows.features
        numbers = graph.relationships.entries * max(self.rows.encoders.widths)
        threads = usable_threads() if numbers > MIN_NUMBERS_FOR_THREADS else 1
        result = forward_typed(
            self.plan, graph, features, wanted, self.layer_cache, self.rows.altered, threads
        )
        kept, none = "sums of hubs were kept", "nothing was kept from an earlier pass"
        why = kept if result.had_cache else none
        self._sentence = (
            f"typed forward pass, {result.rows:,} rows computed, {result.gathered:,} gathered into "
            f"context of {graph.size:,} rows: {self.rows.cache.damage or why}"
        )
        return result.logits

    def seal(self) -> None:
        """Write encoded rows and sums for the next pass."""
        arrays = self.rows.arrays() | self.layer_cache.arrays()
        self.rows.cache.seal(self.rows.mirror.version, arrays)

    def describe(self) -> str:
        """Return a sentence on how much was computed, and why."""
        return self._sentence


@dataclass(slots=True)
class TypedWholePass:
    """A user's own module, which runs in full; the encoded rows are cached."""

    model: SavedModel
    rows: EncodedRows

    def open(self) -> None:
        """Restore encoded rows."""
        self.rows.open()

    def outputs(self, wanted: Ints) -> Float32s:
        """Run the module in torch, which is imported by this call."""
        require_network_packages(self.model.network)
        run_module, select = typed_whole_pass()
        mirror, graph, features = self.rows.mirror, self.rows.graph, self.rows.features
        rows = [np.flatnonzero(graph.labels == label) for label in range(len(features))]
        data = select(graph.schema, features, mirror.edges, rows, mirror.size)
        model, weights = self.model, network_weights(self.model.weights)
        logits: Float32s = run_module(
            model.network,
            weights,
            len(model.classes),
            model.options,
            data,
            usable_openmp_threads(),
        )
        return logits[graph.places[wanted]]

    def seal(self) -> None:
        """Write encoded rows for the next pass."""
        self.rows.cache.seal(self.rows.mirror.version, self.rows.arrays())

    def describe(self) -> str:
        """Return a sentence on how much was computed, and why."""
        return describe_whole_pass(self.model, self.rows.mirror)


def read_encoded(
    folder: Path, model: SavedModel, mirror: Mirror, graph: TypedGraph, encoders: ColumnEncoders
) -> list[Float32s]:
    """Return the encoded rows by label, from the last run's cache or encoded now.

    Nothing is written, and the arrays are the caller's: changes to them reach no file.
    """
    place = cache_place(folder, model.version, mirror.epoch)
    cached = CacheFiles(place, read_only=True).restore(mirror.version)
    labels = range(len(encoders.widths))
    if cached is not None and cached.version == mirror.version:
        return [cached.arrays[encoded_name(label)] for label in labels]
    return [
        encoders.encode(mirror, label, np.flatnonzero(graph.labels == label)) for label in labels
    ]


def sums_name(label: int) -> str:
    """Return the name that the sums of a label's relationships have in the cache."""
    return f"related.{label}"


def encoded_name(label: int) -> str:
    """Return the name that the encoded rows of a label have in the cache."""
    return f"encoded.{label}"
