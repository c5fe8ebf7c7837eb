"""A scorer that was fitted to a split: its arrays, how training went, and its outputs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.cores import usable_openmp_threads
from ringfence.connector.json_types import JsonObject
from ringfence.jobs.training.network_family import FittedInputs
from ringfence.jobs.training.warm_start import WarmStart
from ringfence.models.arrays import as_array
from ringfence.models.networks.threads import threads_for
from ringfence.models.training.loop import Trained

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SubgraphOutputs:
    """Outputs of a network on the subgraph of some nodes: logits, edges by place."""

    logits: NDArray[Any]
    edges: Ints


@dataclass(frozen=True, slots=True)
class FittedNetwork:
    """Weights by name, the inputs that were fitted with them, and how training went.

    The weights have the encoders' arrays too. `start` says which weights training began with, None
    where no warm start was configured.
    """

    weights: dict[str, NDArray[Any]]
    inputs: FittedInputs
    trained: Trained
    start: WarmStart | None = None

    @property
    def validation_accuracy(self) -> float:
        """Accuracy on validation nodes."""
        return self.trained.validation_accuracy

    def digest(self) -> str:
        """Return a hash over all weights."""
        digest = hashlib.sha256()
        for name, value in sorted(self.weights.items()):
            digest.update(name.encode() + value.tobytes())
        return digest.hexdigest()

    def manifest_facts(self) -> JsonObject:
        """Return the network's name and options, and what the manifest keeps of the inputs."""
        return self.inputs.manifest_facts()

    def outputs_inside(self, rows: Ints, classes: int) -> SubgraphOutputs:
        """Run the network on the subgraph of `rows`, with all context if there is any."""
        graph = self.inputs.select(rows)
        network = self.inputs.build_network(classes)
        network.load_state_dict(self.trained.state)
        with torch.no_grad(), threads_for(graph.edge_count, usable_openmp_threads()):
            logits = as_array(network.eval()(*graph.tensors()))[: len(rows)]
        return SubgraphOutputs(logits, self.inputs.inner_edges(graph, rows))
