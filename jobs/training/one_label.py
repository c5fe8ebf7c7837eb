"""Training inputs of a graph of one label: scaled features, and edges between its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.project import memory
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import (
    InputChange,
    Scaling,
    edge_index,
    edges_of,
    induced,
)
from ringfence.models.baselines.boosted_trees import neighbour_columns, neighbours_at
from ringfence.models.networks.factory import build
from ringfence.models.training.one_label_data import OneLabelData

if TYPE_CHECKING:
    from torch_geometric.data.data import Data

Ints = NDArray[np.int64]
Table = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class ScaledFeatures:
    """Features scaled by the training nodes, and the edges that networks see."""

    mirror: Mirror
    mapping: GraphMapping
    settings: ModelSettings
    scaling: Scaling
    fanouts: tuple[int, ...] = (10, 5)
    change: InputChange | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return nothing: the scaling has its own place in a model's file."""
        return {}

    def column_names(self) -> None:
        """Return None: features are told apart by their position."""

    def choose_batch_size(self, _rows: int) -> int:
        """Return the configured batch size; `auto` is full passes."""
        return self.settings.fixed_batch_size or 0

    def predict_bytes(self, rows: int, classes: int, batch_size: int) -> float:
        """Return what full passes take besides Python itself; blocks are small: 0."""
        if batch_size:
            return 0.0
        nodes, mirror = max(self.mirror.node_count, 1), self.mirror
        need = memory.predict(
            nodes, mirror.edge_count, mirror.width, self.settings.hidden, classes, rows / nodes
        )
        return need.train - memory.BASE_BYTES

    def select(self, rows: Ints) -> OneLabelData:
        """Return the subgraph that `rows` induce."""
        edges = induced(self._edge_index(), rows, self.mirror.size)
        features = self.scaling(self.mirror.features[rows])
        if self.change is not None:
            features = self.change.widen(features, rows)
        return OneLabelData(torch.from_numpy(features), torch.from_numpy(edges))

    def _edge_index(self) -> Ints:
        if self.change is None:
            return edge_index(self.mirror, self.mapping)
        return edges_of(self.change.edges, self.mirror.size, self.mapping)

    def changed(self, change: InputChange) -> ScaledFeatures:
        """Return the inputs with other relationships and more columns, for the graph check."""
        return replace(self, change=change)

    def relationships_among(self, rows: Ints) -> Ints:
        """Return the relationships that `rows` induce (source, target, type) [3, E]."""
        here = np.zeros(self.mirror.size, np.bool_)
        here[rows] = True
        edges = self.mirror.edges
        return edges[:, here[edges[0]] & here[edges[1]]]

    def count_heard(self, rows: Ints) -> Table:
        """Return no columns: a network of one label hears numbers in its messages alone."""
        return np.empty((len(rows), 0), np.float32)

    def count_neighbours(self, rows: Ints) -> Table:
        """Return how many neighbours some nodes have in their own subgraph [n, 1]."""
        target = induced(self._edge_index(), rows, self.mirror.size)[1]
        return np.bincount(target, minlength=len(rows)).astype(np.float32)[:, None]

    def inner_edges(self, graph: OneLabelData, _rows: Ints) -> Ints:
        """Return the edges of the subgraph: they are all among its rows."""
        edges: Ints = graph.edge_index.numpy()
        return edges

    def build_network(self, classes: int) -> torch.nn.Module:
        """Return the configured network, untrained; a `ConfigError` where there is no such one."""
        settings = self.settings
        try:
            return build(
                settings.network, self._width, classes, seed=settings.seed, **self._options()
            )
        except ValueError as error:
            raise ConfigError(
                found=f"[model] network: {error}",
                needed="a network that ringfence has, or a module of your own that passes its "
                "checks",
            ) from None

    @property
    def _width(self) -> int:
        return self.mirror.width + (0 if self.change is None else self.change.width)

    def manifest_facts(self) -> JsonObject:
        """Return the network's name and options."""
        return {"network": self.settings.network, "options": self._options()}

    def _options(self) -> dict[str, Any]:
        """Options of the network's constructor."""
        options: dict[str, Any] = {"hidden": self.settings.hidden}
        if self.settings.dropout is not None:
            options["dropout"] = self.settings.dropout
        return options


@dataclass(frozen=True, slots=True, eq=False)
class OneLabel:
    """Networks for graphs of one label."""

    mirror: Mirror
    mapping: GraphMapping

    def fit_inputs(
        self, settings: ModelSettings, train: Ints, _learnt: Ints | None = None
    ) -> ScaledFeatures:
        """Measure the features of the training nodes; no other nodes are seen in training."""
        scaling = Scaling.of(self.mirror.features[train])
        return ScaledFeatures(self.mirror, self.mapping, settings, scaling)

    def column_tables(self, _model: SavedModel, rows: Ints) -> tuple[Table, Table]:
        """Return raw features of some nodes [n, d], and counts and means of their neighbours."""
        source, target = edge_index(self.mirror, self.mapping)
        place, neighbour = neighbours_at(rows, target, source, self.mirror.size)
        others, at = np.unique(neighbour, return_inverse=True)
        near = neighbour_columns(place, at, self._raw_features(others), len(rows))
        return self._raw_features(rows), near

    def to_pyg(
        self, _model: SavedModel | None, describe: Callable[[Ints], Mapping[str, Any]]
    ) -> Data:
        """`x` has the features as they stand in the graph, `edge_index` the edges of networks."""
        from ringfence.models.networks import pyg

        mirror, rows = self.mirror, np.flatnonzero(self.mirror.present)
        edges = induced(edge_index(mirror, self.mapping), rows, mirror.size)
        data: Data = pyg.Data(
            x=torch.from_numpy(np.array(mirror.features[rows], np.float32)),
            edge_index=torch.from_numpy(edges),
            **describe(rows),
        )
        data.keys_of_nodes = [decode_key(key) for key in mirror.keys.take(rows.tolist())]
        data.class_names = list(mirror.class_names)
        return data

    def _raw_features(self, rows: Ints) -> Table:
        return np.ascontiguousarray(self.mirror.features[rows], np.float32)
