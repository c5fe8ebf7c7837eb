"""What an engine is: outputs of a model at rows of a mirror, and the end of what it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.progress import Progress
from ringfence.jobs.inference import PassOutputs
from ringfence.jobs.project.model_files import SavedModel
from ringfence.models.inference import InferenceGraph


class Engine(Protocol):
    """Computes forward passes; every engine gives the same bits."""

    def require_network(self, network: str) -> None:
        """Raise `ConfigError` where it can't compute a network, before anything is started."""
        ...

    def outputs_at(
        self,
        folder: Path,
        model: SavedModel,
        mirror: Mirror,
        mapping: GraphMapping,
        graph: InferenceGraph,
        wanted: NDArray[np.int64],
    ) -> PassOutputs:
        """Return the network's outputs on the graph as it is now, at `wanted`.

        `folder` is where this project keeps what a pass leaves for the next.
        """
        ...

    def set_progress(self, progress: Progress) -> None:
        """Report long passes to `progress`: what is counted, how many are done, of how many."""
        ...

    def close_tables(self, folder: Path, model: SavedModel, mirror: Mirror) -> None:
        """Release what this run kept for the next one: the mirror that it belongs to is saved."""
        ...

    def close(self) -> None:
        """Stop everything that the engine started."""
        ...
