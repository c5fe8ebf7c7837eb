"""The file with the partition of each row, next to the mirror: new rows join, the others stay."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.files import make_private_folder, open_private
from ringfence.models.inference import InferenceGraph
from ringfence.models.inference.partition.ownership import divide, extend

Owners = NDArray[np.int16]
SUFFIX = "-partitions"  # after the name of the tables' folder
FILE = "owners"


def ownership_folder(tables: Path) -> Path:
    """Return the folder of a project's division; workers without a disk keep partitions there."""
    return tables.with_name(tables.name + SUFFIX)


def owners_of(tables: Path, epoch: str, graph: InferenceGraph, parts: int) -> Owners:
    """Return the owner of each row of the graph, int16 [n]; new rows are added to the file.

    Another number of partitions, or another numbering of the rows, divides the graph anew.
    """
    kept = read_owners(tables, epoch, parts)
    if kept is not None and len(kept) == graph.size:
        return kept
    if kept is None or len(kept) > graph.size:
        owners = divide(graph, parts)
    else:
        owners = extend(graph, kept, parts)
    write_owners(tables, epoch, parts, owners)
    return owners


def read_owners(tables: Path, epoch: str, parts: int) -> Owners | None:
    """Return the stored division; None if there is none, or a damaged one."""
    path = ownership_folder(tables) / FILE
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        facts = json.loads(head)
        known = facts["epoch"] == epoch and facts["parts"] == parts
        if not known or facts["crc"] != zlib.crc32(body):
            return None
        owners = np.frombuffer(body, np.int16).copy()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    inside = not len(owners) or (owners.min() >= 0 and owners.max() < parts)
    return owners if inside else None


def write_owners(tables: Path, epoch: str, parts: int, owners: Owners) -> None:
    """Store a division; partitions that have another one are filled again."""
    folder, body = ownership_folder(tables), owners.tobytes()
    make_private_folder(folder)
    head = json.dumps({"epoch": epoch, "parts": parts, "crc": zlib.crc32(body)})
    draft = folder / f"{FILE}.new"
    with open_private(draft, "wb") as file:
        file.write(head.encode() + b"\n" + body)
    draft.replace(folder / FILE)
