"""An engine of partitions: row ownership, passes over all partitions, and workers that died."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatchmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError, ServerError
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.progress import Progress, no_progress
from ringfence.jobs.engines.ownership_file import owners_of
from ringfence.jobs.engines.partitioned_pass import Stage, forget_stage
from ringfence.jobs.engines.table_pass import PartitionedTablePass
from ringfence.jobs.engines.typed_pass import EncodedColumns, PartitionedTypedPass
from ringfence.jobs.engines.workers import WorkerLost, Workers
from ringfence.jobs.inference import PassOutputs
from ringfence.jobs.project.columns.column_encoders import (
    PlainNetwork,
    TypedNetwork,
    network_of,
)
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.telemetry.log_lines import log_run_event
from ringfence.models.inference import InferenceGraph
from ringfence.models.networks.registry import NETWORK_NAMES, has_layers

AnyPass = PartitionedTablePass | PartitionedTypedPass
BeginPass = Callable[[Workers, str, NDArray[np.int16]], AnyPass]
ATTEMPTS = 3  # of a pass whose workers die
DIVIDED = f"{', '.join(NETWORK_NAMES)}, or SAGE for several labels"


@dataclass(frozen=True, slots=True)
class FeatureRows:
    """Features of a mirror by row, read on demand and not held."""

    mirror: Mirror

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the features of some rows."""
        return self.mirror.feature_rows(rows)


class PartitionedEngine(ABC):
    """Passes over the partitions of some workers; `kind` names it in notes and errors.

    watch: called after every stage of a pass.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lost = 0
        self._worked_in: set[Path] = set()
        self.watch: Callable[[Stage], None] = forget_stage
        self.progress: Progress = no_progress

    @abstractmethod
    def open_workers(self, folder: Path) -> Workers:
        """Return the workers of a project, started where they are not running."""

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def require_network(self, network: str) -> None:
        """Refuse a network that can't be divided: one that has no inference layers."""
        if not has_layers(network):
            raise self._refusal(f"the network {network}", DIVIDED)

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

        A pass whose workers die begins again: those that live keep what they had made, the others
        are filled from the mirror.
        """
        begin = self._begin(network_of(model), model, mirror, graph)
        self._worked_in.add(folder)
        workers = self.open_workers(folder)
        begun = time.perf_counter()
        owners = owners_of(folder, mirror.epoch, graph, workers.count)
        mirror.release_pages()
        self._report(Stage("divide", time.perf_counter() - begun, 0, 0))
        name = f"{model.version}-{mirror.epoch}"
        for _ in range(ATTEMPTS):
            forward_pass = begin(workers, name, owners)
            forward_pass.progress = self.progress
            try:
                logits = forward_pass.run(wanted)
            except WorkerLost as lost:
                self.lost, reason = self.lost + 1, str(lost)
                workers.revive()
                continue
            return PassOutputs(logits, self._describe(forward_pass, mirror), forward_pass.seconds)
        raise ServerError(
            found=f"workers of the {self.kind} engine died in {ATTEMPTS} passes: {reason}",
            needed="workers that live through a pass: memory and disk for their partitions",
            next_step='ringfence partition (says what each needs), or [engine] kind = "local"',
        )

    def set_progress(self, progress: Progress) -> None:
        """Report the stages of passes, and the rows that are sent, to `progress`."""
        self.progress = progress

    def close_tables(self, folder: Path, model: SavedModel, mirror: Mirror) -> None:
        """Release what the partitions kept for the next run: the mirror is saved.

        A worker that is gone by now left its partition open, and the next run fills it again.
        If no pass was computed nothing was opened, and no worker is started.
        """
        if folder not in self._worked_in:
            return
        self._worked_in.discard(folder)
        workers = self.open_workers(folder)
        for part in range(workers.count):
            try:
                workers.get(workers.call(part, "close_state", mirror.version))
            except WorkerLost:
                self.lost += 1

    def _report(self, stage: Stage) -> None:
        """Report a stage: to the log and to `watch`."""
        log_run_event(
            logging.INFO, "stage", stage=stage.name, seconds=round(stage.seconds, 3),
            rows=stage.rows, bytes=stage.moved,
        )  # fmt: skip
        self.watch(stage)

    @singledispatchmethod
    def _begin(
        self, network: object, model: SavedModel, mirror: Mirror, graph: InferenceGraph
    ) -> BeginPass:
        """Return how a pass of this model is begun; refuse a model that can't be divided."""
        raise TypeError(network)

    @_begin.register(PlainNetwork)
    def _begin_plain(
        self, _network: PlainNetwork, model: SavedModel, mirror: Mirror, graph: InferenceGraph
    ) -> BeginPass:
        plan, features = model.plan(), FeatureRows(mirror)
        if plan is None:
            raise self._refusal(f"the network {model.network}", DIVIDED)
        return lambda workers, name, owners: PartitionedTablePass(
            workers, name, plan, graph, features, owners, self._report, mirror.release_pages
        )

    @_begin.register(TypedNetwork)
    def _begin_typed(
        self, network: TypedNetwork, _model: SavedModel, mirror: Mirror, graph: InferenceGraph
    ) -> BeginPass:
        plan = network.plan()
        if plan is None:
            raise self._refusal(f"the network {network.name}", DIVIDED)
        whole = network.graph(mirror, graph)
        columns = EncodedColumns(mirror, network.encoders)
        return lambda workers, name, owners: PartitionedTypedPass(
            workers, name, plan, whole, columns, owners, self._report, mirror.release_pages
        )

    def _refusal(self, reason: str, needed: str) -> ConfigError:
        return ConfigError(
            found=f'[engine] kind = "{self.kind}" can\'t compute {reason} yet',
            needed=f'{needed}, or [engine] kind = "local", which computes every model',
            next_step='set [engine] kind = "local"',
        )

    def _describe(self, forward_pass: AnyPass, mirror: Mirror) -> str:
        count = forward_pass.workers.count
        why = forward_pass.reused
        if forward_pass.filled:
            why = f"{forward_pass.filled} of {count} partitions were filled from the mirror"
        if self.lost:
            why += f"; {self.lost} times a worker died, or its files, and the pass began again"
        return (
            f"forward pass over {count} partitions ({self.kind}), {forward_pass.computed:,} of "
            f"{mirror.size:,} rows computed, {forward_pass.exchanged:,} rows exchanged: {why}"
        )
