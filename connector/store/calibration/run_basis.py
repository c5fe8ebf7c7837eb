"""What a run's entry can be derived from again, beside the rows that were there before it.

The exchangeability monitor is fed with p-values that follow from the network's outputs on the graph
of the run, which are not kept. So the p-values themselves are on record, in the order in which they
were fed: the monitor's state after the run follows from the state before it and from them. Which
runs are settled depends on `[graph] label_delay_days`, which the entry has as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.tables import monitor_input

FIELD = "basis"
"""Of an entry `decided`; runs of older versions have none."""


@dataclass(frozen=True, slots=True)
class MonitorInput:
    """Smoothed p-values of nodes whose class became known, in the order in which they were fed."""

    node_keys: tuple[str, ...] = ()
    p_values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class RunBasis:
    """What the monitor was fed with, and `[graph] label_delay_days`."""

    monitor: MonitorInput
    label_delay_days: float | None = None


@dataclass(frozen=True, slots=True)
class StoredInput:
    """A row of `monitor_input`, its JSON still text."""

    node_keys: str
    p_values: str

    def digest(self) -> str:
        """Return the hash that the run's entry has."""
        return hashlib.sha256(f"{self.node_keys}\n{self.p_values}".encode()).hexdigest()

    def read(self) -> MonitorInput:
        """Return keys and p-values; `ValueError` where the texts are none of the product's."""
        keys, p_values = json.loads(self.node_keys), json.loads(self.p_values)
        if len(keys) != len(p_values):
            raise ValueError(f"{len(keys)} nodes with {len(p_values)} p-values")
        return MonitorInput(tuple(keys), tuple(map(float, p_values)))


NOTHING_FED = StoredInput("[]", "[]")


def insert_basis(
    connection: Connection, project: str, seq: int, basis: RunBasis | None
) -> JsonObject:
    """Write what the monitor was fed with; return what the run's entry has of it."""
    if basis is None:
        return {}
    fed = basis.monitor
    row = StoredInput(dumps(fed.node_keys), dumps(fed.p_values))
    if fed.node_keys:
        values = {"node_keys": row.node_keys, "p_values": row.p_values}
        connection.execute(insert(monitor_input).values(project=project, seq=seq, **values))
    sealed: JsonObject = {"nodes": len(fed.node_keys), "rows": row.digest()}
    return {FIELD: {"monitor": sealed, "label_delay_days": basis.label_delay_days}}


def read_inputs(
    connection: Connection, project: str, seqs: Collection[int] | None = None
) -> Mapping[int, StoredInput]:
    """Return the rows of `monitor_input` by run, all or those of some runs."""
    of = monitor_input.c
    every = select(of.seq, of.node_keys, of.p_values).where(of.project == project)
    parts = [every] if seqs is None else [
        every.where(of.seq.in_(part)) for part in split(sorted(seqs))
    ]  # fmt: skip
    return {int(row.seq): _stored(row) for query in parts for row in connection.execute(query)}


def _stored(row: Any) -> StoredInput:
    return StoredInput(row.node_keys, row.p_values)
