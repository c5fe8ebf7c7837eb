"""Outputs of a network at the nodes that matter, at a cost that follows the change."""

from ringfence.models.inference.cost import Cost
from ringfence.models.inference.forward import Outputs, forward, forward_whole
from ringfence.models.inference.graph import (
    InferenceGraph,
    InNeighbours,
    graph_of,
    in_neighbours,
    leave_out_types,
    neighbour_counts,
)
from ringfence.models.inference.layers.base import InferencePlan
from ringfence.models.inference.neighbourhood import Neighbourhood, neighbourhood
from ringfence.models.inference.plan import plan_named, plan_of
from ringfence.models.inference.state import Tables, empty_tables

__all__ = [
    "Cost",
    "InNeighbours",
    "InferenceGraph",
    "InferencePlan",
    "Neighbourhood",
    "Outputs",
    "Tables",
    "empty_tables",
    "forward",
    "forward_whole",
    "graph_of",
    "in_neighbours",
    "leave_out_types",
    "neighbour_counts",
    "neighbourhood",
    "plan_named",
    "plan_of",
]
