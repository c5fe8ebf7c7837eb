"""One forward pass of typed SAGE, at the nodes that matter.

New nodes change every output through hubs, so what saves is computing the outputs of due and
calibration nodes alone, with the hubs' sums kept from the last pass. Into context: sum first, then
weights, so that the sum of raw columns can be kept. Into the classified label: weights first, for
its nodes have few neighbours and those are few. The order is fixed by the schema, never by counts:
a row has the same bits in every pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import Incoming
from ringfence.models.inference.kernels import typed as kernels
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.typed.graph import TypedGraph, list_channel, list_receivers
from ringfence.models.inference.typed.kept_sums import NEVER, ChannelSums, KeptSums
from ringfence.models.inference.typed.plan import LayerWeights, TypedPlan
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
    layer. kept: whether sums of an earlier pass were there.
    """

    logits: Float32s
    rows: int
    gathered: int
    kept: bool


def forward_typed(
    plan: TypedPlan,
    graph: TypedGraph,
    features: Sequence[Float32s],
    wanted: Ints,
    kept: KeptSums | None = None,
    altered: Ints | None = None,
    workers: int = 1,
) -> TypedOutputs:
    """Return the outputs at ``wanted``, rows of the classified label.

    Exact: the bits are those of a pass over everything, whatever is kept.

    Args:
        plan: from `plan_typed`.
        graph: from `typed_graph`.
        features: by label, encoded rows [n_label, d], in the order of rows.
        wanted: rows, int64 [m].
        kept: sums from the last pass with this plan over this numbering of rows; they are brought
            up to date. None: nothing is kept.
        altered: rows whose columns were written after the pass that ``kept`` is of.
        workers: threads.
    """
    plan.check_features(features, graph.counts)
    asked = np.ascontiguousarray(wanted, np.int64)
    if len(asked) and not (
        0 <= asked.min() <= asked.max() < graph.size and (graph.labels[asked] == CLASSIFIED).all()
    ):
        raise ValueError("a wanted row is not one of the classified label")
    sums = KeptSums() if kept is None else kept
    was_kept = sums.version != NEVER
    _forget_altered(plan, graph, sums, altered)
    pool = Pool(workers)
    try:
        run = _Pass(plan, graph, features, sums, pool)
        logits = run.outputs(np.unique(asked))
    finally:
        pool.close()
    sums.version = graph.relationships.version
    return TypedOutputs(logits[graph.places[asked]], run.rows, run.gathered, was_kept)


def _forget_altered(
    plan: TypedPlan, graph: TypedGraph, sums: KeptSums, altered: Ints | None
) -> None:
    """A hub that has a row with other columns among its sources is gathered anew."""
    if altered is None or not len(altered):
        return
    for place, kept in sums.channels.items():
        channel = plan.schema.channels[place]
        rows = altered[graph.labels[altered] == channel.source]
        kept.forget(list_receivers(graph, channel, rows))


def needed_rows(plan: TypedPlan, graph: TypedGraph, wanted: Ints) -> list[dict[int, Ints]]:
    """Return by layer and label the rows that the outputs at ``wanted`` need, ascending."""
    return _Pass(plan, graph, [], KeptSums(), Pool(1))._needed_rows(wanted)


def compute_layer(
    plan: TypedPlan,
    graph: TypedGraph,
    number: int,
    label: int,
    rows: Ints,
    inputs: Mapping[int, Float32s],
    pool: Pool,
) -> Float32s:
    """Return one layer at some rows of a label [rows, out]; nothing is kept.

    ``inputs`` are by label what the layer is given, a row for each of the label's rows.
    """
    layer = plan.layers[number]
    out = np.empty((graph.counts[label], layer.roots[label].shape[1]), np.float32)
    last = number == len(plan.layers) - 1
    _Pass(plan, graph, [], KeptSums(), pool)._compute(number, layer, label, rows, inputs, out, last)
    return out[graph.places[rows]]


class _Pass:
    """One pass: which rows each layer needs, then the layers from the first to the last."""

    def __init__(
        self,
        plan: TypedPlan,
        graph: TypedGraph,
        features: Sequence[Float32s],
        sums: KeptSums,
        pool: Pool,
    ) -> None:
        self.plan = plan
        self.graph = graph
        self.features = features
        self.sums = sums
        self.pool = pool
        self.rows = 0
        self.gathered = 0

    def outputs(self, wanted: Ints) -> Float32s:
        """Logits by place of the classified label; only those of ``wanted`` are filled."""
        needed = self._needed_rows(wanted)
        inputs: Mapping[int, Float32s] = dict(enumerate(self.features))
        for number, layer in enumerate(self.plan.layers):
            last = number == len(self.plan.layers) - 1
            found: dict[int, Float32s] = {}
            for label, weights in layer.roots.items():
                found[label] = np.empty((self.graph.counts[label], weights.shape[1]), np.float32)
                rows = needed[number].get(label, NO_ROWS)
                self._compute(number, layer, label, rows, inputs, found[label], last)
            inputs = found
        return inputs[CLASSIFIED]

    def _needed_rows(self, wanted: Ints) -> list[dict[int, Ints]]:
        """By layer and label, the rows that the layer has to compute, ascending."""
        needed = [{CLASSIFIED: wanted}]
        for layer in reversed(self.plan.layers[1:]):
            marks = np.zeros(self.graph.size, np.bool_)
            for rows in needed[0].values():
                marks[rows] = True
            for place in layer.channels:
                channel = self.plan.schema.channels[place]
                if channel.target in needed[0]:
                    near = list_channel(self.graph, channel, needed[0][channel.target])
                    marks[near.sources] = True
            found = np.flatnonzero(marks)
            labels = self.graph.labels[found]
            needed.insert(0, {int(label): found[labels == label] for label in np.unique(labels)})
        return needed

    def _compute(
        self,
        number: int,
        layer: LayerWeights,
        label: int,
        rows: Ints,
        inputs: Mapping[int, Float32s],
        out: Float32s,
        last: bool,
    ) -> None:
        """Fill ``out`` with one layer at some rows of a label, so many at a time."""
        self.rows += len(rows)
        for start in range(0, len(rows), ROWS_PER_STEP):
            part = rows[start : start + ROWS_PER_STEP]
            places = self.graph.places[part]
            total = self._multiplied(inputs[label], places, layer.roots[label])
            total += layer.biases[label]
            for place in sorted(layer.channels):
                channel = self.plan.schema.channels[place]
                if channel.target != label:
                    continue
                near = list_channel(self.graph, channel, part)
                total += self._heard(number, layer, place, near, inputs[channel.source])
                if place in layer.degrees:
                    degree = np.log1p(near.counts().astype(np.float64)).astype(np.float32)
                    total += degree[:, None] * layer.degrees[place]
            out[places] = total if last else np.maximum(total, np.float32(0))

    def _heard(
        self, number: int, layer: LayerWeights, place: int, near: Incoming, values: Float32s
    ) -> Float32s:
        """What rows hear through one channel [rows, out]."""
        weights, channel = layer.channels[place], self.plan.schema.channels[place]
        if channel.target == CLASSIFIED:
            return self._mean_of_products(near, values, weights)
        mean = np.empty((len(near.rows), values.shape[1]), np.float32)
        if number == 0:
            self._mean_with_kept(place, near, values, mean)
        else:
            self.pool(
                kernels.mean_rows, near.offsets, near.offsets, near.sources, self.graph.places,
                values, mean,
            )  # fmt: skip
        return self._multiplied(mean, np.arange(len(mean)), weights)

    def _mean_of_products(self, near: Incoming, values: Float32s, weights: Float32s) -> Float32s:
        """Weights first: each source is multiplied once, then the products are averaged."""
        marks = np.zeros(self.graph.size, np.bool_)
        marks[near.sources] = True
        sources = np.flatnonzero(marks)
        products = self._multiplied(values, self.graph.places[sources], weights)
        position = np.empty(self.graph.size, np.int64)
        position[sources] = np.arange(len(sources))
        mean = np.empty((len(near.rows), weights.shape[1]), np.float32)
        self.pool(
            kernels.mean_rows, near.offsets, near.offsets, near.sources, position, products, mean
        )
        return mean

    def _multiplied(self, values: Float32s, places: Ints, weights: Float32s) -> Float32s:
        """Rows of ``values`` times weights [rows, out]."""
        out = np.empty((len(places), weights.shape[1]), np.float32)
        even = np.arange(len(places) + 1)
        self.pool(kernels.multiply_rows, even, places, values, weights, out)
        return out

    def _mean_with_kept(self, place: int, near: Incoming, values: Float32s, mean: Float32s) -> None:
        """Sum first, going on from the kept sums of hubs."""
        width = values.shape[1]
        kept = self.sums.channels.setdefault(place, ChannelSums.empty(width))
        slots = kept.slots_of(near.rows, near.counts())
        gathered = np.zeros(len(near.rows), np.int64)
        self.pool(
            kernels.mean_kept_rows, near.offsets, near.offsets, near.sources, self.graph.places,
            values, slots, kept.counts, kept.hashes, kept.sums, mean, gathered,
        )  # fmt: skip
        self.gathered += int(gathered.sum())
