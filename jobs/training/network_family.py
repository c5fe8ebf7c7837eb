"""The two families of networks, for one label and for several, behind one protocol.

`family_of` is the one place in training that depends on how many labels a graph has. A family
defines how its inputs are fitted and selected, how much memory training takes, what the manifest
keeps, which columns the baselines see, and how the graph looks in PyG.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.json_types import JsonObject
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import InputChange, Scaling
from ringfence.jobs.training.one_label import OneLabel
from ringfence.jobs.training.several_labels import SeveralLabels
from ringfence.models.training.batches import Tensors, TrainingGraph

if TYPE_CHECKING:
    from torch_geometric.data.data import Data
    from torch_geometric.data.hetero_data import HeteroData

Ints = NDArray[np.int64]
Table = NDArray[np.float32]
DescribeNodes = Callable[[Ints], Mapping[str, Any]]
"""Classes, times and roles of some rows of the mirror, by their names in PyG."""


class SelectedGraph(TrainingGraph, Protocol):
    """The subgraph of some nodes, as a network of the family takes it."""

    @property
    def edge_count(self) -> int:
        """Number of edges."""

    def tensors(self) -> Tensors:
        """Return the arguments of the network's ``forward``."""


class FittedInputs(Protocol):
    """A network's inputs: columns scaled or encoded by the training nodes, and edges."""

    @property
    def settings(self) -> ModelSettings:
        """The settings that they are fitted with; a trial may have its own."""

    @property
    def scaling(self) -> Scaling:
        """Mean and spread of the features; empty where encoders scale the columns."""

    @property
    def fanouts(self) -> Sequence[int]:
        """The most neighbours per node of a sampled block, by hop."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the encoders' arrays by name; they are saved with the weights."""

    def column_names(self) -> list[list[str]] | None:
        """Return the encoded columns by label; None where columns are features by position."""

    def choose_batch_size(self, rows: int) -> int:
        """Return the train nodes per step on a subgraph of so many rows; 0 for full passes."""

    def predict_bytes(self, rows: int, classes: int, batch_size: int) -> float:
        """Return the bytes that training takes besides Python, torch and the mirror."""

    def select(self, rows: Ints) -> SelectedGraph:
        """Return the subgraph of some classified nodes, with all context if there is any."""

    def changed(self, change: InputChange) -> FittedInputs:
        """Return the inputs with other relationships and more columns."""

    def relationships_among(self, rows: Ints) -> Ints:
        """Return the relationships of the subgraph of `rows` (source, target, type) [3, E]."""

    def count_neighbours(self, rows: Ints) -> Table:
        """Return how many neighbours some nodes have in their own subgraph [n, k]."""

    def count_heard(self, rows: Ints) -> Table:
        """Return the counts among these that trees of these settings have as columns [n, k]."""

    def inner_edges(self, graph: Any, rows: Ints) -> Ints:
        """Return the edges among `rows`, by place; `graph` is what `select` returned."""

    def build_network(self, classes: int) -> torch.nn.Module:
        """Return the configured network, untrained; a `ConfigError` where there is no such one."""

    def manifest_facts(self) -> JsonObject:
        """Return the network's name and options, and what the manifest keeps of the inputs."""


class NetworkFamily(Protocol):
    """Networks for graphs of one schema, and what training does differently for them."""

    def fit_inputs(
        self, settings: ModelSettings, train: Ints, learnt: Ints | None = None
    ) -> FittedInputs:
        """Fit scaling or encoders to the training nodes.

        `learnt`, train and validation nodes: where counts are columns, training sees every node
        that had arrived by the latest of them; None: no classified node beside those it selects.
        """

    def column_tables(self, model: SavedModel, rows: Ints) -> tuple[Table, Table]:
        """Return own columns [n, d] and those of the neighbours [n, k] of some nodes."""

    def to_pyg(self, model: SavedModel | None, describe: DescribeNodes) -> Data | HeteroData:
        """Return the graph as PyG takes it; `model` is the version in use, if there is one."""


def family_of(mapping: GraphMapping, mirror: Mirror) -> NetworkFamily:
    """Return the family of networks that fits the schema of a graph."""
    if mapping.features_are_strict:
        return OneLabel(mirror, mapping)
    return SeveralLabels(mirror, mapping)
