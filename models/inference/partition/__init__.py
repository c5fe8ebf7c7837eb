"""A forward pass whose rows are divided among partitions, with the bits of the undivided one.

A partition owns some rows: their features, their lists of incoming neighbours and what is cached of
them. A layer at an owned row needs rows of its neighbours, and those that others own (the halo) are
requested. Lists ascend by the number that a node has in the whole graph, whoever owns it, so every
sum adds the same numbers in the same order however the rows are divided.
"""

from functools import singledispatch
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


def new_part(number: int, plan: Any, allocate: Allocate) -> Part[Any]:
    """Return a partition without rows, of the family of networks that a plan is of."""
    return _part_of(plan)(number, plan, allocate)


@singledispatch
def _part_of(_plan: object) -> type[Part[Any]]:
    return TablePart


@_part_of.register(TypedPlan)
def _typed_part_of(_plan: TypedPlan) -> type[Part[Any]]:
    return TypedPart
