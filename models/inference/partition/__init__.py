"""A forward pass whose rows are divided among partitions, with the bits of the undivided one.

A partition owns some rows: their features, their lists of incoming neighbours and their rows of
both kept tables. A layer at an owned row needs table rows of its neighbours, and those that others
own (the halo) are asked for. Lists ascend by the number that a node has in the whole graph, whoever
owns it, so every sum adds the same numbers in the same order however the rows are divided.
"""

from ringfence.models.inference.partition.lists import OwnedLists
from ringfence.models.inference.partition.part import Part, PartUpdate
from ringfence.models.inference.partition.staleness import newest_inputs, rows_around

__all__ = ["OwnedLists", "Part", "PartUpdate", "newest_inputs", "rows_around"]
