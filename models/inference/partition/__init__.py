"""A forward pass whose rows are divided among partitions, with the bits of the undivided one.

A partition owns some rows: their features, their lists of incoming neighbours and what is cached of
them. A layer at an owned row needs rows of its neighbours, and those that others own (the halo) are
requested. Lists ascend by the number that a node has in the whole graph, whoever owns it, so every
sum adds the same numbers in the same order however the rows are divided.
"""

from typing import Any

from ringfence.models.inference.partition.base import Allocate, Part, PartUpdate
from ringfence.models.inference.partition.lists import OwnedLists
from ringfence.models.inference.partition.staleness import newest_inputs, rows_around
from ringfence.models.inference.partition.table_part import TablePart, TableUpdate
from ringfence.models.inference.partition.typed_part import TypedPart, TypedUpdate
from ringfence.models.inference.several_labels.plan import TypedPlan

__all__ = [
    "OwnedLists",
    "Part",
    "PartUpdate",
    "TablePart",
    "TableUpdate",
    "TypedPart",
    "TypedUpdate",
    "new_part",
    "newest_inputs",
    "rows_around",
]

PARTS: dict[type[Any], type[Part[Any]]] = {TypedPlan: TypedPart}
"""The parts of plans that are not of one table."""


def new_part(number: int, plan: Any, allocate: Allocate) -> Part[Any]:
    """Return a partition without rows, of the family of networks that a plan is of."""
    return PARTS.get(type(plan), TablePart)(number, plan, allocate)
