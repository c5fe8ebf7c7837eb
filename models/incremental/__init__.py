"""Outputs of a network at the nodes that matter, at a cost that follows the change."""

from ringfence.models.incremental.cost import Cost
from ringfence.models.incremental.forward import Outputs, forward, forward_whole
from ringfence.models.incremental.incidence import (
    Heard,
    Incidence,
    heard,
    incidence_of,
    neighbour_counts,
)
from ringfence.models.incremental.plan import Plan, plan_of
from ringfence.models.incremental.tables import Tables, empty_tables

__all__ = [
    "Cost",
    "Heard",
    "Incidence",
    "Outputs",
    "Plan",
    "Tables",
    "empty_tables",
    "forward",
    "forward_whole",
    "heard",
    "incidence_of",
    "neighbour_counts",
    "plan_of",
]
