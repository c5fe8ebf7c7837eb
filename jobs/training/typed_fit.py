"""Fit a network for several labels to a split: encoders, columns, edges, training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.mapping import TypedMapping
from ringfence.connector.mirror.typed import TypedMirror
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.project.typed_inputs import (
    TypedEncoders,
    fit_encoders,
    rows_by_key,
    schema_of,
)
from ringfence.jobs.training.room import refuse_without_memory
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.warm_start import WarmStart, begin_with
from ringfence.models.arrays import as_array
from ringfence.models.networks.threads import threads_for
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.schema import CLASSIFIED, TypedSchema
from ringfence.models.training.loop import Epoch, Trained
from ringfence.models.training.typed import train_typed, train_typed_in_batches
from ringfence.models.training.typed_data import ALWAYS, TypedData, select_typed
from ringfence.models.training.typed_memory import (
    NEIGHBOURS_PER_CHANNEL,
    TrainingSize,
    choose_batch_size,
    predict_bytes,
)

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TypedFit:
    """What training on several labels leaves behind: schema, encoders, encoded context."""

    schema: TypedSchema
    encoders: TypedEncoders
    context_rows: tuple[Ints, ...]
    context: tuple[NDArray[np.float32], ...]

    def facts(self) -> dict[str, Any]:
        """Return what a manifest holds of it."""
        return {"schema": self.schema.to_json(), **self.encoders.facts()}

    def select(self, typed: TypedMirror, mapping: TypedMapping, rows: Ints) -> TypedData:
        """Return the subgraph of some nodes of the classified label and all context."""
        own = self.encoders.encode(typed, CLASSIFIED, rows)
        return select_typed(
            self.schema,
            (own, *self.context),
            typed.base.edges,
            (rows, *self.context_rows),
            typed.size,
            node_times=_node_times(typed, mapping),
            blank=self.encoders.blank(),
        )


def typed_options(settings: ModelSettings) -> dict[str, Any]:
    """Return the options of the network's constructor; users' own modules know no degrees."""
    options: dict[str, Any] = {"hidden": settings.hidden}
    if settings.dropout is not None:
        options["dropout"] = settings.dropout
    if ":" not in settings.typed_network:
        options |= {"layers": settings.layers, "degrees": settings.degrees}
    return options


def fit_typed(
    typed: TypedMirror,
    mapping: TypedMapping,
    settings: ModelSettings,
    split: Split,
    on_epoch: Callable[[Epoch], None] | None,
    class_weights: bool = False,
    start: WarmStart | None = None,
) -> tuple[TypedFit, Trained, WarmStart | None]:
    """Train on the subgraph of train and validation nodes and all context, and on nothing else."""
    schema = schema_of(mapping)
    encoders = fit_encoders(typed, mapping, split.train)
    rows = np.concatenate([split.train, split.validation])
    batch_size = _batch_size(typed, schema, encoders, settings, len(rows))
    context_rows = tuple(rows_by_key(typed, label) for label in range(1, len(schema.labels)))
    context = tuple(
        encoders.encode(typed, label, rows) for label, rows in enumerate(context_rows, start=1)
    )
    fitted = TypedFit(schema, encoders, context_rows, context)
    data = fitted.select(typed, mapping, rows)
    network = new_typed_network(settings, fitted, len(split.classes))
    initial, begun = begin_with(network, start, [list(table.names) for table in encoders.tables])
    cut, edges = len(split.train), sum(pair.shape[1] for pair in data.edges)
    more: dict[str, Any] = {}
    if batch_size:
        fanouts = (NEIGHBOURS_PER_CHANNEL,) * settings.layers
        more = {"batch_size": batch_size, "fanouts": fanouts}
    with threads_for(edges, settings.hidden):
        trained = (train_typed_in_batches if more else train_typed)(
            network,
            data,
            torch.from_numpy(split.class_indices[rows]),
            torch.arange(cut),
            torch.arange(cut, len(rows)),
            classes=len(split.classes),
            seed=settings.seed,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            max_epochs=settings.max_epochs,
            patience=settings.patience,
            class_weights=class_weights,
            on_epoch=on_epoch,
            initial=initial,
            **more,
        )
    return fitted, trained, begun


def _batch_size(
    typed: TypedMirror,
    schema: TypedSchema,
    encoders: TypedEncoders,
    settings: ModelSettings,
    classified: int,
) -> int:
    """The batch size, 0 for full passes; refused where neither has the memory it needs."""
    context = range(1, len(schema.labels))
    counts = typed.base.raw_counts or {}
    size = TrainingSize(
        schema,
        (classified, *(typed.count(label) for label in context)),
        encoders.widths,
        [counts.get(index, 0) for index in range(len(schema.relations))],
        settings.hidden,
        settings.layers,
    )
    batch_size = choose_batch_size(size, settings.fixed_batch_size)
    refuse_without_memory(predict_bytes(size, batch_size))
    return batch_size


def typed_outputs_inside(
    typed: TypedMirror,
    mapping: TypedMapping,
    settings: ModelSettings,
    fitted: TypedFit,
    trained: Trained,
    classes: int,
    rows: Ints,
) -> NDArray[np.float32]:
    """Run the fitted network on the subgraph of `rows` and all context [rows, classes]."""
    network = new_typed_network(settings, fitted, classes)
    network.load_state_dict(trained.state)
    with torch.no_grad():
        return as_array(network.eval()(*fitted.select(typed, mapping, rows).tensors()))


def new_typed_network(settings: ModelSettings, fitted: TypedFit, classes: int) -> torch.nn.Module:
    """Return the configured network, untrained; a `ConfigError` where there is no such one."""
    try:
        return build_typed(
            settings.typed_network,
            fitted.schema,
            fitted.encoders.widths,
            classes,
            seed=settings.seed,
            **typed_options(settings),
        )
    except ValueError as error:
        raise ConfigError(
            found=f"[model] network: {error}",
            needed="a network for several labels: typed_sage, or a module of your own",
        ) from None


def _node_times(typed: TypedMirror, mapping: TypedMapping) -> Ints:
    """Creation times by row; context without them was always there."""
    times = np.array(typed.base.created_ns, np.int64)
    for label, node in enumerate(mapping.nodes):
        if label != CLASSIFIED and not node.created_at:
            times[typed.rows_of_label(label)] = ALWAYS
    return times
