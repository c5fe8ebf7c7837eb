"""Training inputs of a graph of several labels: encoded columns, and edges by relationship type.

Encoders are fitted to the training nodes of the classified label and to all nodes of the others,
the context; the whole context belongs to every subgraph. Where counts are columns, every node that
had arrived by the latest of the nodes to learn from belongs to it too: a run counts them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror, plain_key
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.inference import inference_graph
from ringfence.jobs.project.columns.column_encoders import (
    TYPED_KEY,
    ColumnEncoders,
    schema_of,
)
from ringfence.jobs.project.columns.fit import fit_encoders, rows_by_key
from ringfence.jobs.project.columns.relation_means import RelationMeans
from ringfence.jobs.project.model_files import SEEN_KEY, SavedModel
from ringfence.jobs.project.network_inputs import (
    InputChange,
    Scaling,
    arrival_times,
    changed_targets,
    edge_index,
    induced,
    node_times,
)
from ringfence.models.inference.graph import graph_of_types
from ringfence.models.inference.several_labels import typed_graph
from ringfence.models.networks.registry import is_trees
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.schema import CLASSIFIED, TypedSchema
from ringfence.models.training.typed_data import TypedData, select_typed
from ringfence.models.training.typed_memory import (
    NEIGHBOURS_PER_CHANNEL,
    TrainingSize,
    choose_batch_size,
    predict_bytes,
)
from ringfence.models.trees.columns import (
    ColumnInputs,
    CountRule,
    count_table,
    neighbour_table,
)
from ringfence.models.trees.identity import identity_table

if TYPE_CHECKING:
    from torch_geometric.data.hetero_data import HeteroData

Ints = NDArray[np.int64]
Table = NDArray[np.float32]
ARRIVED = "arrived"  # of a manifest: what training saw


@dataclass(frozen=True, eq=False)
class EncodedColumns:
    """Columns of all labels by encoders of the training, and the relationships between them.

    learnt: train and validation nodes; None: counts see context alone, as older versions did.
    """

    mirror: Mirror
    mapping: GraphMapping
    settings: ModelSettings
    schema: TypedSchema
    encoders: ColumnEncoders
    learnt: Ints | None = None
    change: InputChange | None = None
    kept_means: RelationMeans | None = None

    @property
    def scaling(self) -> Scaling:
        """Empty: encoders scale the columns."""
        return Scaling(np.empty(0, np.float32), np.empty(0, np.float32))

    @property
    def fanouts(self) -> tuple[int, ...]:
        """The most neighbours per node and channel of a sampled block, by hop."""
        return (NEIGHBOURS_PER_CHANNEL,) * self.settings.layers

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the encoders' arrays by name."""
        return self.encoders.arrays()

    def column_names(self) -> list[list[str]]:
        """Return the encoded columns by label."""
        return self.encoders.names

    def choose_batch_size(self, rows: int) -> int:
        """Return the configured batch size; by default the size of the graph decides."""
        return choose_batch_size(self._size(rows), self.settings.fixed_batch_size)

    def predict_bytes(self, rows: int, _classes: int, batch_size: int) -> float:
        """Return the bytes that training takes besides Python, torch and the mirror."""
        return predict_bytes(self._size(rows), batch_size)

    def _size(self, rows: int) -> TrainingSize:
        context = range(1, len(self.schema.labels))
        counts = self.mirror.raw_counts
        arrived = self._arrived & (np.asarray(self.mirror.labels) == CLASSIFIED)
        rows = max(rows, int(np.count_nonzero(arrived)))
        return TrainingSize(
            self.schema,
            (rows, *(self.mirror.count(label) for label in context)),
            self.encoders.widths,
            [counts.get(index, 0) for index in range(len(self.schema.relations))],
            self.settings.hidden,
            self.settings.layers,
        )

    @cached_property
    def relation_means(self) -> RelationMeans:
        """Means of relationships with columns, which are encoded once for a training."""
        if self.kept_means is not None:
            return self.kept_means
        return RelationMeans(self.mirror, self.encoders.related, keeps=True)

    @cached_property
    def _context(self) -> tuple[tuple[Ints, ...], tuple[Table, ...]]:
        """Rows and own encoded columns of the labels that are not classified."""
        labels = range(1, len(self.schema.labels))
        rows = tuple(rows_by_key(self.mirror, label) for label in labels)
        columns = tuple(
            self.encoders.encode_own(self.mirror, label, label_rows)
            for label, label_rows in zip(labels, rows, strict=True)
        )
        return rows, columns

    @cached_property
    def _arrived(self) -> NDArray[np.bool_]:
        """The nodes that are there whichever are learnt from [nodes]: a pass counts them all."""
        there: NDArray[np.bool_] = np.asarray(self.mirror.labels) != CLASSIFIED
        counts = self.settings.degrees or is_trees(self.settings.typed_network)
        if self.learnt is None or not counts:
            return there
        times = self.mirror.created_ns
        there |= self.mirror.present & (times <= times[self.learnt].max())
        return there

    def rows_seen(self, rows: Ints) -> NDArray[np.bool_]:
        """Return which nodes are there [nodes] beside `rows`, which are."""
        seen = self._arrived.copy()
        seen[rows] = True
        return seen

    def select(self, rows: Ints) -> TypedData:
        """Return the subgraph of some nodes of the classified label, of all that is seen with them.

        `rows` stand first, others of their label behind them in the order of keys.
        """
        context_rows, context_columns = self._context
        seen = self.rows_seen(rows)
        rows = np.concatenate([rows, self._others(rows, seen)])
        columns = self.encoders.encode_own(self.mirror, CLASSIFIED, rows)
        features: tuple[Table, ...] = (columns, *context_columns)
        if self.encoders.related.tables:
            features = tuple(
                np.concatenate([columns, self.relation_means.at(label, at, seen)], axis=1)
                for label, (columns, at) in enumerate(
                    zip(features, (rows, *context_rows), strict=True)
                )
            )
        blank, edges = self.encoders.blank(), self.mirror.edges
        if self.change is not None:
            edges = self.change.edges
            features = (self.change.widen(features[CLASSIFIED], rows), *features[1:])
            blank = (self.change.widen_blank(blank[CLASSIFIED]), *blank[1:])
        return select_typed(
            self.schema,
            features,
            edges,
            (rows, *context_rows),
            self.mirror.size,
            node_times=node_times(self.mirror, self.mapping),
            blank=blank,
        )

    def _others(self, rows: Ints, seen: NDArray[np.bool_]) -> Ints:
        """Classified nodes that are seen beside `rows`, in the order of keys."""
        others = seen & (np.asarray(self.mirror.labels) == CLASSIFIED)
        others[rows] = False
        if not others.any():
            return rows[:0]
        by_key = rows_by_key(self.mirror, CLASSIFIED)
        return np.asarray(by_key[others[by_key]], np.int64)

    def changed(self, change: InputChange) -> EncodedColumns:
        """Return the inputs with other relationships and more columns, for the graph check."""
        targets = changed_targets(self.mirror, change)
        means = replace(self.relation_means, targets=targets)
        return replace(self, change=change, kept_means=means)

    def relationships_among(self, rows: Ints) -> Ints:
        """Return the relationships of the subgraph of `rows` (source, target, type) [3, E]."""
        here, edges = self.rows_seen(rows), self.mirror.edges
        return edges[:, here[edges[0]] & here[edges[1]]]

    def count_neighbours(self, rows: Ints) -> Table:
        """Return how many neighbours some nodes have in their own subgraph, by channel [n, k].

        Numbers of relationships with columns stand behind them. Every label is counted, whatever
        the scorer counts.
        """
        return count_table(self.tree_inputs(rows, replace(self.rule, classified=True)), rows)

    def count_heard(self, rows: Ints) -> Table:
        """Return the counts that trees have as columns [n, k]."""
        return count_table(self.tree_inputs(rows), rows)

    @property
    def rule(self) -> CountRule:
        """Which neighbours trees count: those of the classified label with `[model] degrees`."""
        return CountRule(arrival_times(self.mirror, self.mapping), self.settings.degrees)

    def tree_inputs(self, rows: Ints, rule: CountRule | None = None) -> ColumnInputs:
        """Return what trees' columns are made of, on the graph that is seen with `rows`."""
        mirror, mapping, means = self.mirror, self.mapping, self.relation_means
        seen, counted = self.rows_seen(rows), self.rule if rule is None else rule
        inputs = mirror_columns(mirror, mapping, self.schema, self.encoders, means, seen)
        if self.change is not None:
            inputs = self._with_change(inputs, self.change)

        def count(rows: Ints) -> Table:
            return means.counts(CLASSIFIED, rows, counted, seen)

        return replace(inputs, rule=counted, count_related=count)

    def _with_change(self, inputs: ColumnInputs, change: InputChange) -> ColumnInputs:
        both_ways = np.array([relation.undirected for relation in self.mapping.relations], np.bool_)
        relationships = graph_of_types(change.edges, self.mirror.size, both_ways)

        def encode(label: int, rows: Ints) -> Table:
            values = inputs.encode(label, rows)
            return change.widen(values, rows) if label == CLASSIFIED else values

        graph = replace(inputs.graph, relationships=relationships)
        return replace(inputs, graph=graph, encode=encode)

    def inner_edges(self, _graph: TypedData | None, rows: Ints) -> Ints:
        """Return the edges among `rows`, which are of the classified label, by place."""
        return induced(edge_index(self.mirror, self.mapping), rows, self.mirror.size)

    def build_network(self, classes: int) -> torch.nn.Module:
        """Return the configured network, untrained; a `ConfigError` where there is no such one."""
        try:
            return build_typed(
                self.settings.typed_network,
                self.schema,
                self._widths,
                classes,
                seed=self.settings.seed,
                **self._options(),
            )
        except ValueError as error:
            raise ConfigError(
                found=f"[model] network: {error}",
                needed="a scorer for several labels: typed_sage, trees, or a module of your own",
            ) from None

    @property
    def _widths(self) -> tuple[int, ...]:
        classified, *context = self.encoders.widths
        return (classified + (0 if self.change is None else self.change.width), *context)

    def manifest_facts(self) -> JsonObject:
        """Return the network's name and options, the schema and the encoders."""
        return {
            "network": self.settings.typed_network,
            "options": self._options(),
            SEEN_KEY: None if self.learnt is None else ARRIVED,
            TYPED_KEY: {"schema": self.schema.to_json(), **self.encoders.facts()},
        }

    def _options(self) -> dict[str, Any]:
        """Options of the network's constructor; a user's own module takes no degrees."""
        options: dict[str, Any] = {"hidden": self.settings.hidden}
        if self.settings.dropout is not None:
            options["dropout"] = self.settings.dropout
        if ":" not in self.settings.typed_network:
            options |= {"layers": self.settings.layers, "degrees": self.settings.degrees}
        return options


@dataclass(frozen=True, slots=True, eq=False)
class SeveralLabels:
    """Networks for graphs of several labels."""

    mirror: Mirror
    mapping: GraphMapping

    def fit_inputs(
        self, settings: ModelSettings, train: Ints, learnt: Ints | None = None
    ) -> EncodedColumns:
        """Fit the encoders of all labels."""
        encoders = fit_encoders(self.mirror, self.mapping, train)
        schema = schema_of(self.mapping)
        return EncodedColumns(self.mirror, self.mapping, settings, schema, encoders, learnt)

    def column_tables(self, model: SavedModel, rows: Ints) -> tuple[Table, Table]:
        """Return encoded columns of some nodes, and of their neighbours by type and direction."""
        encoders = ColumnEncoders.restore(model.manifest[TYPED_KEY], model.weights)
        schema = TypedSchema.from_json(model.manifest[TYPED_KEY]["schema"])
        inputs = mirror_columns(self.mirror, self.mapping, schema, encoders)
        columns = encoders.encode(self.mirror, CLASSIFIED, rows)
        near = neighbour_table(inputs, rows)
        return columns, np.concatenate([near, identity_table(inputs, rows)], axis=1)

    def to_pyg(
        self, model: SavedModel | None, describe: Callable[[Ints], Mapping[str, Any]]
    ) -> HeteroData:
        """`x` by label is encoded as the model in use does it; relationships keep direction."""
        from ringfence.models.networks import pyg

        encoders, mirror = _encoders_in_use(model), self.mirror
        data: HeteroData = pyg.HeteroData()
        place = np.full(mirror.size, -1, np.int64)
        for label, node in enumerate(self.mapping.nodes):
            rows = mirror.rows_of_label(label)
            place[rows] = np.arange(len(rows))
            store = data[node.label]
            store.x = torch.from_numpy(encoders.encode(mirror, label, rows))
            keys = mirror.keys.take(rows.tolist())
            store.keys_of_nodes = [decode_key(plain_key(key)) for key in keys]
            if label == CLASSIFIED:
                for name, value in describe(rows).items():
                    store[name] = value
        source, target, kind = mirror.edges
        for index, relation in enumerate(self.mapping.relations):
            chosen = kind == index
            ends = np.stack([place[source[chosen]], place[target[chosen]]])
            labels = [self.mapping.nodes[at].label for at in (relation.source, relation.target)]
            edges = torch.from_numpy(ends[:, (ends >= 0).all(axis=0)])
            data[labels[0], relation.type, labels[1]].edge_index = edges
        data.class_names = list(mirror.class_names)
        return data


def mirror_columns(
    mirror: Mirror,
    mapping: GraphMapping,
    schema: TypedSchema,
    encoders: ColumnEncoders,
    means: RelationMeans | None = None,
    seen: NDArray[np.bool_] | None = None,
) -> ColumnInputs:
    """Return what columns of own values and neighbours are made of: the mirror as it is now.

    `means`: of relationships, if they are needed more than once; `seen` [nodes]: the nodes that are
    there, all of them by default.
    """
    graph = typed_graph(inference_graph(mirror, mapping), schema, mirror.labels)
    means = RelationMeans(mirror, encoders.related, keeps=True) if means is None else means

    def encode(label: int, rows: Ints) -> Table:
        return encoders.encode(mirror, label, rows, means, seen)

    return ColumnInputs(graph, encode, seen=seen)


def _encoders_in_use(model: SavedModel | None) -> ColumnEncoders:
    if model is None:
        raise ConfigError(
            found="no model is in use, so no encoder was fitted to the columns of the labels",
            needed="a model: its encoders turn texts, dates and categories into numbers",
            next_step="ringfence train",
        )
    return ColumnEncoders.restore(model.manifest[TYPED_KEY], model.weights)
