"""What a typed pass keeps for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.typed.graph import TypedGraph, list_receivers
from ringfence.models.inference.typed.kept_rows import LabelRows
from ringfence.models.inference.typed.kept_sums import NEVER, ChannelSums
from ringfence.models.inference.typed.plan import TypedPlan

__all__ = ["Kept"]

Ints = NDArray[np.int64]
Columns = TypeVar("Columns", ChannelSums, LabelRows)
Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(slots=True)
class Kept:
    """Sums by channel and first-layer rows by label, right for the columns at ``version``."""

    channels: dict[int, ChannelSums] = field(default_factory=dict)
    labels: dict[int, LabelRows] = field(default_factory=dict)
    version: int = NEVER

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return sum(array.nbytes for array in self.arrays().values())

    def forget_altered(self, plan: TypedPlan, graph: TypedGraph, altered: Ints) -> None:
        """Let everything be made anew that has a row with other columns in it."""
        for label, rows in self.labels.items():
            rows.forget(altered[graph.labels[altered] == label])
        for place in plan.layers[0].channels:
            channel = plan.schema.channels[place]
            hearing = list_receivers(
                graph, channel, altered[graph.labels[altered] == channel.source]
            )
            if place in self.channels:
                self.channels[place].forget(hearing)
            if channel.target in self.labels:
                self.labels[channel.target].forget(hearing)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything by name, to be written to a file."""
        found: dict[str, NDArray[np.generic]] = {"version": np.array([self.version])}
        parts: dict[str, Mapping[int, Any]] = {"channel": self.channels, "label": self.labels}
        for part, by_place in parts.items():
            for place, columns in by_place.items():
                for one in fields(columns):
                    found[f"{part}.{place}.{one.name}"] = getattr(columns, one.name)
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Kept:
        """Return what `arrays` was taken from; KeyError where something is missing."""
        return cls(
            _columns("channel", ChannelSums, arrays),
            _columns("label", LabelRows, arrays),
            int(np.asarray(arrays["version"], np.int64)[0]),
        )


def _columns(part: str, kind: type[Columns], arrays: Arrays) -> dict[int, Columns]:
    places = {int(name.split(".")[1]) for name in arrays if name.startswith(f"{part}.")}
    names = [one.name for one in fields(kind)]
    found: dict[int, Columns] = {}
    for place in places:
        columns: list[Any] = [np.array(arrays[f"{part}.{place}.{name}"]) for name in names]
        found[place] = kind(*columns)
    return found
