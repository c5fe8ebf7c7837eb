"""An empty mirror in a folder of its own, with tables of vectors or of raw columns."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ringfence.connector.files import make_private_folder
from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.connector.mirror.columns import Column
from ringfence.connector.mirror.key_index import Keys
from ringfence.connector.mirror.labels import CLASSIFIED
from ringfence.connector.mirror.locks import claim
from ringfence.connector.mirror.mirror import Mirror
from ringfence.connector.mirror.patches import Patches
from ringfence.connector.mirror.raw_table import RawTable
from ringfence.connector.mirror.related.table import RelationTable
from ringfence.connector.mirror.table import Table, VectorTable


def create(folder: Path, identity: str, width: int) -> Mirror:
    """Return an empty mirror of one label with vectors, in a folder of its own below `folder`."""
    epoch, place = _new_epoch(folder)
    return _empty(folder, identity, epoch, (VectorTable.empty(place, width),))


def create_raw(
    folder: Path,
    identity: str,
    names: Sequence[Sequence[str]],
    related: Mapping[int, Sequence[str]] | None = None,
) -> Mirror:
    """Return an empty mirror of labels with raw columns; `names` are their columns, by label.

    `related` are the columns of relations that have any, by their places.
    """
    epoch, place = _new_epoch(folder)
    tables = (RawTable.empty(place, label, columns) for label, columns in enumerate(names))
    mirror = _empty(folder, identity, epoch, tuple(tables))
    for relation, columns in (related or {}).items():
        mirror.related[relation] = RelationTable.empty(place, relation, columns)
    return mirror


def _new_epoch(folder: Path) -> tuple[str, Path]:
    epoch = f"{time.time_ns():x}-{secrets.token_hex(4)}"
    make_private_folder(folder / epoch)
    return epoch, folder / epoch


def _empty(folder: Path, identity: str, epoch: str, tables: tuple[Table, ...]) -> Mirror:
    place = folder / epoch
    mirror = Mirror(
        identity, place, epoch, Keys.empty(place), Adjacency.empty(place),
        Column(place / "classes", np.int32),
        Column(place / "created_ns", np.int64),
        Column(place / "labels", np.uint8),
        tables, Patches.empty(place, tables[CLASSIFIED].width),
    )  # fmt: skip
    mirror.claim = claim(folder, epoch)
    mirror.advance()
    return mirror
