"""The raw columns on disk: a manifest per saved version, which belongs to one of the base's.

The raw columns are saved first and the base, whose manifest names its version, last. A crash in
between leaves the old base with the manifest of its own version: files only grow, so the rows that
it names are still there.
"""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.connector import mirror as mirrors
from ringfence.connector.files import write_atomically
from ringfence.connector.mapping import TypedMapping
from ringfence.connector.mirror.columns import Column, TornColumn, column_from, written
from ringfence.connector.mirror.files import BOOT
from ringfence.connector.mirror.typed.mirror import TypedMirror
from ringfence.connector.mirror.typed.table import RawTable

FORMAT = 1
FOLDER = "raw"


def save_typed(typed: TypedMirror, folder: Path) -> None:
    """Bring raw columns and base to the disk; a crash leaves the old state or the new."""
    version = typed.base.version
    columns = _columns(typed)
    columns["places"] = written(typed.folder / f"places.{version}", typed.places)
    columns["revised"] = written(typed.folder / f"revised.{version}", typed.revised)
    for column in columns.values():
        column.sync()
    meta = {
        "format": FORMAT,
        "epoch": typed.base.epoch,
        "boot": _boot(),
        "size": typed.size,
        "names": [table.names for table in typed.tables],
        "gaps": list(typed.gaps.items()),
        "context_rejected": list(typed.context_rejected.items()),
        "columns": {name: column.facts() for name, column in columns.items()},
    }
    body = json.dumps(meta)
    write_atomically(
        _manifest(folder, typed.base.epoch, version), f"{zlib.crc32(body.encode()):08x}\n{body}"
    )
    mirrors.save(typed.base, folder)
    _tidy(typed, folder, {column.path.name for column in columns.values()})


def load_typed(folder: Path, identity: str, mapping: TypedMapping) -> TypedMirror | None:
    """Return the stored mirror, or None where there is none that can be trusted."""
    base = mirrors.load(folder, identity)
    if base is None:
        return None
    try:
        meta = _read(_manifest(folder, base.epoch, base.version))
        if meta["format"] != FORMAT or meta["size"] != base.size:
            return None
        place = folder / FOLDER / base.epoch
        trusted = meta["boot"] == _boot() != ""
        found = {name: column_from(place, one, trusted) for name, one in meta["columns"].items()}
    except (OSError, ValueError, KeyError, TypeError, TornColumn):
        return None
    names = [node.column_names for node in mapping.nodes]
    if [tuple(one) for one in meta["names"]] != names:
        return None
    return TypedMirror(
        base,
        place,
        found["labels"],
        np.array(found["places"].array, np.int64),
        tuple(
            RawTable(columns, found[f"text.{label}"], found[f"ends.{label}"])
            for label, columns in enumerate(names)
        ),
        gaps=dict(meta["gaps"]),
        context_rejected=dict(meta["context_rejected"]),
        revised=np.array(found["revised"].array, np.int64),
    )


def _columns(typed: TypedMirror) -> dict[str, Column]:
    columns = {"labels": typed.label_column}
    for label, table in enumerate(typed.tables):
        columns |= {f"text.{label}": table.text, f"ends.{label}": table.ends}
    return columns


def _manifest(folder: Path, epoch: str, version: int) -> Path:
    return folder / FOLDER / f"{epoch}.{version}.json"


def _read(path: Path) -> dict[str, Any]:
    checksum, _, body = path.read_text(encoding="utf-8").partition("\n")
    if int(checksum, 16) != zlib.crc32(body.encode()):
        raise ValueError("the manifest is torn")
    meta: dict[str, Any] = json.loads(body)
    return meta


def _boot() -> str:
    """A name for this start of the machine, as the base has it."""
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _tidy(typed: TypedMirror, folder: Path, names: set[str]) -> None:
    """Remove what the newest manifest no longer names."""
    kept = _manifest(folder, typed.base.epoch, typed.base.version)
    for other in (folder / FOLDER).iterdir():
        if other.is_dir() and other != typed.folder:
            shutil.rmtree(other, ignore_errors=True)
        elif other.is_file() and other != kept:
            other.unlink(missing_ok=True)
    for file in typed.folder.iterdir():
        if file.name not in names:
            file.unlink(missing_ok=True)
