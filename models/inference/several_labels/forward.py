"""One forward pass of typed SAGE, at the nodes that matter.

New nodes change every output through hubs, so time is saved by computing only the outputs of due
and calibration nodes, with the hubs' sums of the last pass and the rows of the first layer whose
neighbours did not change. Into context labels: sum first, then weights, so that the sum of raw
columns can be cached. Into the classified label: weights first, since its nodes have few
neighbours. The order is fixed by the schema, never by counts: a row has the same bits in every
pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import InNeighbours, LateEntries, find_late_entries
from ringfence.models.inference.kernels import typed as kernels
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.several_labels.graph import (
    TypedGraph,
    hash_late_entries,
    list_channel,
)
from ringfence.models.inference.several_labels.layer_cache import (
    NEVER,
    CachedRows,
    ChannelSums,
    LayerCache,
)
from ringfence.models.inference.several_labels.plan import TypedPlan
from ringfence.models.schema import CLASSIFIED

__all__ = ["TypedOutputs", "compute_layer", "forward_typed", "needed_rows"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

#: Rows of a label that are multiplied or summed at a time, so that scratch memory stays small.
ROWS_PER_STEP = 65_536
NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class TypedOutputs:
    """Logits at the wanted rows [m, classes], and what they cost.

    rows: rows computed over all layers. gathered: rows added up into context sums of the first
    layer. had_cache: whether anything of an earlier pass was there.
    """

    logits: Float32s
    rows: int
    gathered: int
    had_cache: bool


def forward_typed(
    plan: TypedPlan,
    graph: TypedGraph,
    features: Sequence[Float32s],
    wanted: Ints,
    cache: LayerCache | None = None,
    altered: Ints | None = None,
    workers: int = 1,
) -> TypedOutputs:
    """Return the outputs at ``wanted``, rows of the classified label.

    Exact: the bits are those of a pass over everything, whatever is cached.

    Args:
        plan: from `plan_typed`.
        graph: from `typed_graph`.
        features: by label, encoded rows [n_label, d], in the order of rows.
        wanted: rows, int64 [m].
        cache: of the last pass with this plan over this numbering of rows; it is brought up to
            date. None: nothing is cached.
        altered: rows whose columns were written after the pass that ``cache`` is of.
        workers: threads.
    """
    plan.check_features(features, graph.counts)
    asked = np.ascontiguousarray(wanted, np.int64)
    if len(asked) and not (
        0 <= asked.min() <= asked.max() < graph.size and (graph.labels[asked] == CLASSIFIED).all()
    ):
        raise ValueError("a wanted row is not one of the classified label")
    had_cache = cache is not None and cache.version != NEVER
    if cache is not None and altered is not None and len(altered):
        cache.forget_altered(plan, graph, altered)
    rows, places = np.unique(asked, return_inverse=True)
    pool = Pool(workers)
    try:
        run = _Pass(plan, graph, dict(enumerate(features)), cache, pool)
        logits = run.outputs(rows)
    finally:
        pool.close()
    if cache is not None:
        cache.version = graph.relationships.version
    return TypedOutputs(logits[places], run.rows, run.gathered, had_cache)


def needed_rows(plan: TypedPlan, graph: TypedGraph, wanted: Ints) -> list[dict[int, Ints]]:
    """Return by layer and label the rows that the outputs at ``wanted`` need, ascending."""
    return _Pass(plan, graph, {}, None, Pool(1))._needed_rows(wanted)


def compute_layer(
    plan: TypedPlan,
    graph: TypedGraph,
    number: int,
    label: int,
    rows: Ints,
    inputs: Mapping[int, Float32s],
    pool: Pool,
) -> Float32s:
    """Return one layer at some rows of a label [rows, out]; nothing is cached.

    ``inputs`` are by label what the layer is given, a row for each of the label's rows.
    """
    return _Pass(plan, graph, inputs, None, pool)._layer(number, label, rows)


class _Pass:
    """One pass: which rows each layer needs, then the layers from the first to the last.

    The inputs of a layer are rows by label; ``places`` says where each row of the graph stands
    among those of its label.
    """

    def __init__(
        self,
        plan: TypedPlan,
        graph: TypedGraph,
        inputs: Mapping[int, Float32s],
        cache: LayerCache | None,
        pool: Pool,
    ) -> None:
        self.plan = plan
        self.graph = graph
        self.channels = plan.schema.channels
        self.inputs = inputs
        self.places = graph.places
        self.cache = cache
        self.pool = pool
        self.rows = 0
        self.gathered = 0
        self._listed: dict[int, InNeighbours] = {}

    def outputs(self, wanted: Ints) -> Float32s:
        """Logits of ``wanted``, rows that ascend."""
        needed = self._needed_rows(wanted)
        for number, layer in enumerate(self.plan.layers):
            outputs: dict[int, Float32s] = {}
            places = np.empty(self.graph.size, np.int64)
            for label in layer.roots:
                rows = needed[number].get(label, NO_ROWS)
                places[rows] = np.arange(len(rows))
                outputs[label] = self._layer(number, label, rows)
            self.inputs, self.places = outputs, places
        return self.inputs[CLASSIFIED]

    def _needed_rows(self, wanted: Ints) -> list[dict[int, Ints]]:
        """By layer and label, the rows that the layer has to compute, ascending."""
        needed = [{CLASSIFIED: wanted}]
        for layer in reversed(self.plan.layers[1:]):
            marks = np.zeros(self.graph.size, np.bool_)
            for rows in needed[0].values():
                marks[rows] = True
            self._listed = {}  # the last ones are those of the second layer, which needs them again
            for place in layer.channels:
                channel = self.channels[place]
                if channel.target in needed[0]:
                    near = list_channel(self.graph, channel, needed[0][channel.target])
                    self._listed[place] = near
                    marks[near.sources] = True
            rows = np.flatnonzero(marks)
            labels = self.graph.labels[rows]
            needed.insert(0, {int(label): rows[labels == label] for label in np.unique(labels)})
        return needed

    def _layer(self, number: int, label: int, rows: Ints) -> Float32s:
        """One layer at some rows of a label [rows, out]; the first reuses cached rows."""
        out = np.empty((len(rows), len(self.plan.layers[number].biases[label])), np.float32)
        missing, cache = np.arange(len(rows)), self.cache if number == 0 else None
        if cache is not None:
            graph = self.graph.relationships
            hashes = hash_late_entries(graph, rows, np.full(len(rows), graph.size))
            if label in cache.labels:
                before = cache.labels[label]
                places = before.places_of(graph, rows, hashes)
                there, missing = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
                out[there] = before.outputs[places[there]]
            cache.labels[label] = CachedRows.of(graph, rows, out, hashes)
        self.rows += len(missing)
        for start in range(0, len(missing), ROWS_PER_STEP):
            part = missing[start : start + ROWS_PER_STEP]
            out[part] = self._computed(number, label, rows[part])
        return out

    def _computed(self, number: int, label: int, rows: Ints) -> Float32s:
        """One layer at some rows of a label [rows, out]."""
        layer = self.plan.layers[number]
        total = self._multiplied(self.inputs[label], self.places[rows], layer.roots[label])
        total += layer.biases[label]
        late = find_late_entries(self.graph.relationships, rows)
        for place in sorted(layer.channels):
            if self.channels[place].target != label:
                continue
            heard, counts = self._heard(number, layer.channels[place], place, rows, late)
            total += heard
            if place in layer.degrees:
                degree = np.log1p(counts.astype(np.float64)).astype(np.float32)
                total += degree[:, None] * layer.degrees[place]
        last = number == len(self.plan.layers) - 1
        return total if last else np.maximum(total, np.float32(0))

    def _heard(
        self, number: int, weights: Float32s, place: int, rows: Ints, late: LateEntries
    ) -> tuple[Float32s, Ints]:
        """What rows receive through one channel [rows, out], and from how many sources [rows]."""
        channel = self.channels[place]
        if number == 0 and channel.target != CLASSIFIED and self.cache is not None:
            mean, counts = self._mean_with_cache(place, rows, late, self.cache)
            return self._multiplied(mean, np.arange(len(mean)), weights), counts
        near = self._listed.get(place) if number == 1 else None
        if near is None or len(near.rows) != len(rows):  # a part of them, where there are many
            near = list_channel(self.graph, channel, rows, late=late)
        values = self.inputs[channel.source]
        if channel.target == CLASSIFIED:
            return self._mean_of_products(near, values, weights), near.counts()
        if number == 0:
            self.gathered += len(near.sources)
        mean = self._mean(near, self.places, values)
        return self._multiplied(mean, np.arange(len(mean)), weights), near.counts()

    def _mean(self, near: InNeighbours, places: Ints, values: Float32s) -> Float32s:
        """The mean of values over the sources of each row [rows, width]."""
        mean = np.empty((len(near.rows), values.shape[1]), np.float32)
        self.pool(kernels.mean_rows, near.offsets, near.offsets, near.sources, places, values, mean)
        return mean

    def _mean_of_products(
        self, near: InNeighbours, values: Float32s, weights: Float32s
    ) -> Float32s:
        """Weights first: each source is multiplied once, then the products are averaged."""
        marks = np.zeros(self.graph.size, np.bool_)
        marks[near.sources] = True
        sources = np.flatnonzero(marks)
        products = self._multiplied(values, self.places[sources], weights)
        position = np.empty(self.graph.size, np.int64)
        position[sources] = np.arange(len(sources))
        return self._mean(near, position, products)

    def _multiplied(self, values: Float32s, places: Ints, weights: Float32s) -> Float32s:
        """Rows of ``values`` times weights [rows, out]."""
        out = np.empty((len(places), weights.shape[1]), np.float32)
        even = np.arange(len(places) + 1)
        self.pool(kernels.multiply_rows, even, places, values, weights, out)
        return out

    def _mean_with_cache(
        self, place: int, rows: Ints, late: LateEntries, cache: LayerCache
    ) -> tuple[Float32s, Ints]:
        """Sum first, going on from the cached sums of hubs: the mean, and counts of sources."""
        channel, relationships = self.channels[place], self.graph.relationships
        values = self.inputs[channel.source]
        sums = cache.channels.setdefault(place, ChannelSums.empty(values.shape[1]))
        slots = sums.slots_of(relationships, rows, late)
        least = sums.beginnings(relationships, rows, slots, late)
        near = list_channel(self.graph, channel, rows, least, late)
        mean = np.empty((len(rows), values.shape[1]), np.float32)
        heard, gathered = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        self.pool(
            kernels.mean_with_cached_sums, near.offsets, near.offsets, near.sources, self.places,
            values, least, slots, sums.counts, sums.hashes, sums.sums, mean, heard, gathered,
        )  # fmt: skip
        sums.note(relationships, rows, slots, late)
        self.gathered += int(gathered.sum())
        return mean, heard
