"""The engine of one machine: passes are computed in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.progress import Progress
from ringfence.jobs import inference
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.inference import PassOutputs
from ringfence.jobs.project.model_files import SavedModel
from ringfence.models.inference import InferenceGraph


class LocalEngine:
    """Keeps tables in the project's folder; see `jobs.inference`."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings

    def require_network(self, network: str) -> None:
        """Every network can be computed."""

    def outputs_at(
        self,
        folder: Path,
        model: SavedModel,
        mirror: Mirror,
        mapping: GraphMapping,
        graph: InferenceGraph,
        wanted: NDArray[np.int64],
    ) -> PassOutputs:
        """Return the network's outputs on the graph as it is now, at `wanted`."""
        return inference.outputs_at(folder, model, mirror, mapping, graph, wanted)

    def set_progress(self, progress: Progress) -> None:
        """A pass in this process has no stages to report."""

    def close_tables(self, folder: Path, model: SavedModel, mirror: Mirror) -> None:
        """Close the tables of this run: the mirror that they belong to is saved."""
        inference.close_tables(folder, model, mirror)

    def close(self) -> None:
        """Nothing was started."""
