"""The mirror on disk: a manifest that names the files, swapped in when they are whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.connector.mirror.claims import SUFFIX, claim
from ringfence.connector.mirror.columns import Column, TornColumn, column_from, written
from ringfence.connector.mirror.keys import Keys
from ringfence.connector.mirror.mirror import Mirror
from ringfence.connector.rows import Rejected

FORMAT = 2
FILE = "mirror.json"
MOST_MARKS = 1_000
EPOCH = re.compile(r"[0-9a-f]{12,}-[0-9a-f]{8}")
BOOT = Path("/proc/sys/kernel/random/boot_id")


def load(folder: Path, identity: str) -> Mirror | None:
    """Return the stored mirror, or None where there is none that can be trusted for `identity`.

    One that another process still has (frozen, without its lease) isn't touched.

    Nothing is read but the manifest, the flags and what came since the last merge. After the
    machine has started anew, or where a file was touched by somebody else, checksums are compared.
    """
    try:
        meta = _read(folder / FILE)
        if meta["format"] != FORMAT or meta["identity"] != identity:
            return None
        held = claim(folder, meta["epoch"])
        if held is None:
            return None
        mirror = _open(folder / meta["epoch"], meta)
        mirror.claim = held
        return mirror
    except (OSError, ValueError, KeyError, TypeError, TornColumn):
        return None


def save(mirror: Mirror, folder: Path) -> None:
    """Bring the files to the disk, then the manifest: a crash leaves the old state or the new.

    Relationships that came since the last merge join the base here, when they have become many: the
    run's sets are in the graph by now, and nobody waits.
    """
    adjacency = mirror.adjacency
    if adjacency.is_due() or len(adjacency.marks) > MOST_MARKS:
        adjacency.merge(mirror.version)
    else:
        adjacency.marks.append((mirror.size, adjacency.log.rows, mirror.version))
    flags = written(mirror.folder / f"evaluated.{mirror.version}", mirror.evaluated)
    columns = {**_columns(mirror), "evaluated": flags}
    for column in columns.values():
        column.sync()
    meta = {
        "format": FORMAT,
        "identity": mirror.identity,
        "epoch": mirror.epoch,
        "boot": _boot(),
        "width": mirror.width,
        "version": mirror.version,
        "watermark_ns": mirror.watermark_ns,
        "seq": mirror.seq,
        "members_of": mirror.members_of,
        "relationship_count": mirror.relationship_count,
        "class_names": mirror.class_names,
        "dangling": mirror.dangling,
        "rejected": [(r.element_id, r.node_key, r.reason) for r in mirror.rejected.values()],
        "marks": adjacency.marks,
        "columns": {name: column.facts() for name, column in columns.items()},
    }
    _write(folder / FILE, meta)
    _tidy(folder, mirror.epoch, {column.path.name for column in columns.values()})


def _columns(mirror: Mirror) -> dict[str, Column]:
    keys, near = mirror.keys, mirror.adjacency
    return {
        "features": mirror.feature_column, "classes": mirror.class_column,
        "created_ns": mirror.created_column,
        "text": keys.text, "ends": keys.ends, "hashes": keys.hashes, "rows": keys.rows,
        "offsets": near.offsets, "others": near.others, "codes": near.codes,
        "stamps": near.stamps, "log": near.log,
    }  # fmt: skip


def _open(place: Path, meta: dict[str, Any]) -> Mirror:
    trusted = meta["boot"] == _boot() != ""
    found = {name: column_from(place, one, trusted) for name, one in meta["columns"].items()}
    adjacency = Adjacency(
        place, found["offsets"], found["others"], found["codes"], found["stamps"], found["log"],
        [(nodes, rows, version) for nodes, rows, version in meta["marks"]],
    )  # fmt: skip
    adjacency.recall()
    return Mirror(
        identity=meta["identity"],
        width=meta["width"],
        folder=place,
        epoch=meta["epoch"],
        keys=Keys(found["text"], found["ends"], found["hashes"], found["rows"]),
        adjacency=adjacency,
        class_column=found["classes"],
        created_column=found["created_ns"],
        feature_column=found["features"],
        version=meta["version"],
        watermark_ns=meta["watermark_ns"],
        seq=meta["seq"],
        members_of=meta["members_of"],
        relationship_count=meta["relationship_count"],
        class_names=meta["class_names"],
        evaluated=np.array(found["evaluated"].array, np.bool_),
        dangling=[(a, b, kind) for a, b, kind in meta["dangling"]],
        rejected={row[0]: Rejected(*row) for row in meta["rejected"]},
    )


def _read(path: Path) -> dict[str, Any]:
    checksum, _, body = path.read_text(encoding="utf-8").partition("\n")
    if int(checksum, 16) != zlib.crc32(body.encode()):
        raise ValueError("the manifest is torn")
    meta: dict[str, Any] = json.loads(body)
    return meta


def _write(path: Path, meta: dict[str, Any]) -> None:
    body = json.dumps(meta)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(f"{zlib.crc32(body.encode()):08x}\n{body}")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _tidy(folder: Path, epoch: str, names: set[str]) -> None:
    """Remove what the manifest no longer names; mapped files live on until they are let go."""
    for other in folder.iterdir():
        if other.is_dir() and EPOCH.fullmatch(other.name) and other.name != epoch:
            shutil.rmtree(other, ignore_errors=True)
            other.with_name(f"{other.name}{SUFFIX}").unlink(missing_ok=True)
    for file in (folder / epoch).iterdir():
        if file.name not in names:
            file.unlink(missing_ok=True)


def _boot() -> str:
    """A name for this start of the machine; empty where the system has none: nothing is trusted."""
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
