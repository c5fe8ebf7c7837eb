"""The mirror on disk: a manifest that names the files, swapped in when they are whole."""

from __future__ import annotations

import json
import re
import shutil
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.files import write_atomically
from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.connector.mirror.columns import Column, TornColumn, column_from, written
from ringfence.connector.mirror.key_index import Keys
from ringfence.connector.mirror.locks import SUFFIX, claim
from ringfence.connector.mirror.mirror import Mirror
from ringfence.connector.mirror.patches import Patches
from ringfence.connector.records import RejectedNode

FORMAT = 4  # 4: removed relationships in the log, gaps, patches
READABLE_FORMATS = (3, 4)  # a mirror of 3 has none of those
FILE = "mirror.json"
PART = "reading.json"  # a first read that isn't finished
MAX_MARKS = 1_000
EPOCH = re.compile(r"[0-9a-f]{12,}-[0-9a-f]{8}")
BOOT = Path("/proc/sys/kernel/random/boot_id")


def load(folder: Path, identity: str) -> Mirror | None:
    """Return the stored mirror, or None where there is none that can be trusted for `identity`.

    One that another process still has (frozen, without its lease) isn't touched.

    Nothing is read but the manifest, the flags and what came since the last merge. After the
    machine has started anew, or where a file was touched by somebody else, checksums are compared.
    """
    return _load(folder / FILE, identity)


def exists(folder: Path, identity: str) -> bool:
    """Whether there is a manifest for `identity`; its files aren't read."""
    return _manifest_has(folder, "identity", identity)


def _manifest_has(folder: Path, name: str, value: str) -> bool:
    try:
        return bool(_read(folder / FILE)[name] == value)
    except (OSError, ValueError, KeyError):
        return False


def load_part(folder: Path, identity: str, seconds: float) -> Mirror | None:
    """Return what a first read had saved when it died, if that is not longer ago than `seconds`."""
    try:
        age = time.time() - float(_read(folder / PART)["at"])
    except (OSError, ValueError, KeyError):
        return None
    return _load(folder / PART, identity) if age < seconds else None


def forget_part(folder: Path) -> None:
    """Remove the trace of an unfinished read; its files go at the next save."""
    (folder / PART).unlink(missing_ok=True)


def _load(path: Path, identity: str) -> Mirror | None:
    folder = path.parent
    try:
        meta = _read(path)
        if meta["format"] not in READABLE_FORMATS or meta["identity"] != identity:
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

    Relationships that came since the last merge join the base here, when they have become many, or
    when the graph was read for the first time: the run's sets are in the graph by now, and nobody
    waits.
    """
    adjacency = mirror.adjacency
    first = not _manifest_has(folder, "epoch", mirror.epoch) and adjacency.log.rows > 0
    if first or adjacency.is_due() or len(adjacency.marks) > MAX_MARKS:
        adjacency.merge(mirror.version)
    else:
        adjacency.marks.append((mirror.size, adjacency.log.rows, mirror.version))
    names = _write_manifest(mirror, folder / FILE, mirror.version, adjacency.marks)
    forget_part(folder)
    _tidy(folder, mirror.epoch, names)


def save_part(mirror: Mirror, folder: Path) -> None:
    """Keep what a first read has brought so far: the next one goes on from there.

    Relationships aren't merged; every call writes flags of its own, so that the files that the
    last manifest names stay as they are until the new one is in its place.
    """
    adjacency = mirror.adjacency
    adjacency.settle(mirror.version)
    mark = (mirror.size, adjacency.log.rows, mirror.version)
    names = _write_manifest(mirror, folder / PART, time.time_ns(), [*adjacency.marks, mark])
    _tidy_files(folder / mirror.epoch, names)


def _write_manifest(
    mirror: Mirror, path: Path, tag: int, marks: list[tuple[int, int, int]]
) -> set[str]:
    """Bring all columns to the disk, then their description; return the names of their files."""
    columns = _columns(mirror)
    columns["evaluated"] = written(mirror.folder / f"evaluated.{tag}", mirror.evaluated)
    columns["gone"] = written(mirror.folder / f"gone.{tag}", _trimmed(mirror.keys.gone))
    columns["sources"] = written(mirror.folder / f"sources.{tag}", mirror.sources_read)
    for column in columns.values():
        column.sync()
    odd = mirror.odd_relationships
    meta = {
        "format": FORMAT,
        "identity": mirror.identity,
        "epoch": mirror.epoch,
        "boot": _boot(),
        "at": time.time(),
        "width": mirror.width,
        "version": mirror.version,
        "watermark_ns": mirror.watermark_ns,
        "seq": mirror.seq,
        "members_of": mirror.members_of,
        "relationship_count": mirror.relationship_count,
        "class_names": mirror.class_names,
        "dangling": mirror.dangling,
        "rejected": [(r.element_id, r.node_key, r.reason) for r in mirror.rejected.values()],
        "odd_relationships": [(r.element_id, r.node_key, r.reason) for r in odd],
        "marks": marks,
        "raw_counts": None if mirror.raw_counts is None else list(mirror.raw_counts.items()),
        "settled": list(mirror.settled.items()),
        "checked": mirror.checked,
        "members_checked": mirror.members_checked,
        "columns": {name: column.facts() for name, column in columns.items()},
    }
    _write(path, meta)
    return {column.path.name for column in columns.values()}


def _columns(mirror: Mirror) -> dict[str, Column]:
    keys, near = mirror.keys, mirror.adjacency
    return {
        "features": mirror.feature_column, "classes": mirror.class_column,
        "created_ns": mirror.created_column,
        "text": keys.text, "ends": keys.ends, "hashes": keys.hashes, "rows": keys.rows,
        "offsets": near.offsets, "others": near.others, "codes": near.codes,
        "stamps": near.stamps, "log": near.log,
        **mirror.patches.columns(),
    }  # fmt: skip


def _trimmed(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Flags up to the last one that is set: most mirrors have none."""
    found = np.flatnonzero(flags)
    return flags[: found[-1] + 1] if len(found) else flags[:0]


def _open(place: Path, meta: dict[str, Any]) -> Mirror:
    trusted = meta["boot"] == _boot() != ""
    found = {name: column_from(place, one, trusted) for name, one in meta["columns"].items()}
    adjacency = Adjacency(
        place, found["offsets"], found["others"], found["codes"], found["stamps"], found["log"],
        [(nodes, rows, version) for nodes, rows, version in meta["marks"]],
    )  # fmt: skip
    adjacency.recall()
    patches = Patches.empty(place, meta["width"])
    if "patch_rows" in found:
        patches = Patches(*(found[name] for name in patches.columns()))
    gone = np.array(found["gone"].array, np.bool_) if "gone" in found else None
    mirror = Mirror(
        identity=meta["identity"],
        width=meta["width"],
        folder=place,
        epoch=meta["epoch"],
        keys=Keys(found["text"], found["ends"], found["hashes"], found["rows"], gone),
        adjacency=adjacency,
        class_column=found["classes"],
        created_column=found["created_ns"],
        feature_column=found["features"],
        patches=patches,
        version=meta["version"],
        watermark_ns=meta["watermark_ns"],
        seq=meta["seq"],
        members_of=meta["members_of"],
        relationship_count=meta["relationship_count"],
        class_names=meta["class_names"],
        evaluated=np.array(found["evaluated"].array, np.bool_),
        sources_read=np.array(found["sources"].array),
        dangling=[(a, b, kind) for a, b, kind in meta["dangling"]],
        rejected={row[0]: RejectedNode(*row) for row in meta["rejected"]},
        odd_relationships=[
            RejectedNode(id_, key, reason, "relationship")
            for id_, key, reason in meta.get("odd_relationships", [])
        ],
        raw_counts=None if (raw := meta.get("raw_counts")) is None else dict(raw),
        settled={kind: (low, high, at) for kind, (low, high, at) in meta.get("settled", [])},
        checked=meta.get("checked", 0),
        members_checked=meta.get("members_checked", 0),
    )
    mirror.show_patches()
    return mirror


def _read(path: Path) -> dict[str, Any]:
    checksum, _, body = path.read_text(encoding="utf-8").partition("\n")
    if int(checksum, 16) != zlib.crc32(body.encode()):
        raise ValueError("the manifest is torn")
    meta: dict[str, Any] = json.loads(body)
    return meta


def _write(path: Path, meta: dict[str, Any]) -> None:
    body = json.dumps(meta)
    write_atomically(path, f"{zlib.crc32(body.encode()):08x}\n{body}")


def _tidy(folder: Path, epoch: str, names: set[str]) -> None:
    """Remove what the manifest no longer names; mapped files live on until they are let go."""
    for other in folder.iterdir():
        if other.is_dir() and EPOCH.fullmatch(other.name) and other.name != epoch:
            shutil.rmtree(other, ignore_errors=True)
            other.with_name(f"{other.name}{SUFFIX}").unlink(missing_ok=True)
    _tidy_files(folder / epoch, names)


def _tidy_files(place: Path, names: set[str]) -> None:
    for file in place.iterdir():
        if file.name not in names:
            file.unlink(missing_ok=True)


def _boot() -> str:
    """A name for this start of the machine; empty where the system has none: nothing is trusted."""
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
