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
from ringfence.connector.mirror.first_read import FirstRead
from ringfence.connector.mirror.key_index import Keys
from ringfence.connector.mirror.locks import SUFFIX, claim, find_holder
from ringfence.connector.mirror.mirror import Mirror
from ringfence.connector.mirror.patches import Patches
from ringfence.connector.mirror.raw_table import RawTable
from ringfence.connector.mirror.related.table import RelationTable
from ringfence.connector.mirror.related.tables import Related
from ringfence.connector.mirror.table import Table, TableFacts, VectorTable
from ringfence.connector.records import RejectedNode

FORMAT = 5  # 5: labels and tables of every kind under one manifest
FILE = "mirror.json"
PART = "reading.json"  # a first read that isn't finished
FOLDER_OF_FORMAT_4 = "raw"  # where raw columns stood beside the mirror
MAX_MARKS = 1_000
KINDS: dict[str, type[Table]] = {table.kind: table for table in (VectorTable, RawTable)}
EPOCH = re.compile(r"[0-9a-f]{12,}-[0-9a-f]{8}")
BOOT = Path("/proc/sys/kernel/random/boot_id")
MAX_TRIES_TO_SHARE = 5  # each fails only if a run saved the mirror at this very moment


def load(folder: Path, identity: str) -> Mirror | None:
    """Return the stored mirror to add to, or None where none can be trusted for `identity`.

    One that another process still holds (frozen, without its lease) isn't touched: `writer_of`
    names that process.

    Nothing is read but the manifest, the flags and what came since the last merge. After the
    machine was rebooted, or if a file was touched by another program, checksums are compared.
    """
    return _load(folder / FILE, identity)


def open_shared(folder: Path, identity: str) -> Mirror | None:
    """Return the stored mirror for reading beside any writer; None where none can be trusted.

    No lock is taken. All files are mapped at once and stay readable when a run replaces them; what
    a run appends lies behind the rows that are mapped here.
    """
    for _ in range(MAX_TRIES_TO_SHARE):
        try:
            meta = _read_fitting(folder / FILE, identity)
            if meta is None:
                return None
        except (OSError, ValueError, KeyError):
            return None
        try:
            return _open(folder / meta["epoch"], meta, shared=True)
        except (OSError, ValueError, KeyError, TypeError, TornColumn):
            if _manifest_has(folder, "version", meta["version"]):
                return None  # the manifest is still the same: its files are damaged
    return None


def writer_of(folder: Path, identity: str) -> str | None:
    """Return which other process holds the stored mirror to write, None where none does."""
    try:
        meta = _read_fitting(folder / FILE, identity)
    except (OSError, ValueError, KeyError):
        return None
    return None if meta is None else find_holder(folder, str(meta["epoch"]))


def exists(folder: Path, identity: str) -> bool:
    """Whether there is a manifest of this format for `identity`; its files aren't read."""
    return _manifest_has(folder, "identity", identity) and _manifest_has(folder, "format", FORMAT)


def _manifest_has(folder: Path, name: str, value: object) -> bool:
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
        meta = _read_fitting(path, identity)
        if meta is None:
            return None
        held = claim(folder, meta["epoch"])
        if held is None:
            return None
        mirror = _open(folder / meta["epoch"], meta)
        mirror.claim = held
        return mirror
    except (OSError, ValueError, KeyError, TypeError, TornColumn):
        return None


def _read_fitting(path: Path, identity: str) -> dict[str, Any] | None:
    """Return a manifest of this format for `identity`."""
    meta = _read(path)
    fits = meta["format"] == FORMAT and meta["identity"] == identity
    return meta if fits else None


def save(mirror: Mirror, folder: Path) -> None:
    """Bring the files to the disk, then the manifest: a crash leaves the old state or the new.

    Relationships that came since the last merge join the base here, when they have become many, or
    when the graph was read for the first time: the run's sets are in the graph by now, so this
    delays nobody.
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
    """Save what a first read has brought so far: the next one continues from there.

    Relationships aren't merged; every call writes flags of its own, so that the files that the
    last manifest names stay unchanged until the new one replaces it.
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
    columns["steps"] = written(mirror.folder / f"steps.{tag}", mirror.first_read.steps)
    columns["places"] = written(mirror.folder / f"places.{tag}", mirror.places)
    columns["revised"] = written(mirror.folder / f"revised.{tag}", mirror.revised)
    for column in columns.values():
        column.sync()
    odd = mirror.odd_relationships
    meta = {
        "format": FORMAT,
        "identity": mirror.identity,
        "epoch": mirror.epoch,
        "boot": _boot(),
        "at": time.time(),
        "tables": [table.facts() for table in mirror.tables],
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
        "read_at_targets": mirror.first_read.at_targets,
        "raw_counts": list(mirror.raw_counts.items()),
        "settled": list(mirror.settled.items()),
        "gaps": list(mirror.gaps.items()),
        "context_rejected": list(mirror.context_rejected.items()),
        "checked": mirror.checked,
        "members_checked": mirror.members_checked,
        "incarnations": list(mirror.incarnations.items()),
        "related": [_relation_facts(*item) for item in mirror.related.items()],
        "columns": {name: column.facts() for name, column in columns.items()},
    }
    _write(path, meta)
    return {column.path.name for column in columns.values()}


def _columns(mirror: Mirror) -> dict[str, Column]:
    keys, near = mirror.keys, mirror.adjacency
    tables = {
        f"{name}.{label}": column
        for label, table in enumerate(mirror.tables)
        for name, column in table.files().items()
    }
    related = {
        f"{name}.r{relation}": column
        for relation, table in mirror.related.items()
        for name, column in table.files().items()
    }
    return {
        **tables, **related, "labels": mirror.label_column,
        "classes": mirror.class_column, "created_ns": mirror.created_column,
        "text": keys.text, "ends": keys.ends, "hashes": keys.hashes, "rows": keys.rows,
        "offsets": near.offsets, "others": near.others, "codes": near.codes,
        "stamps": near.stamps, "log": near.log,
        **mirror.patches.columns(),
    }  # fmt: skip


def _trimmed(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Flags up to the last one that is set: most mirrors have none."""
    set_places = np.flatnonzero(flags)
    return flags[: set_places[-1] + 1] if len(set_places) else flags[:0]


def _open(place: Path, meta: dict[str, Any], *, shared: bool = False) -> Mirror:
    trusted = meta["boot"] == _boot() != ""
    columns = {name: column_from(place, facts, trusted) for name, facts in meta["columns"].items()}
    if shared:
        for column in columns.values():
            column.pin()
    adjacency = Adjacency(
        place, columns["offsets"], columns["others"], columns["codes"],
        columns["stamps"], columns["log"],
        [(nodes, rows, version) for nodes, rows, version in meta["marks"]],
    )  # fmt: skip
    adjacency.recall()
    patches = Patches(*(columns[name] for name in Patches.empty(place, 0).columns()))
    gone = np.array(columns["gone"].array, np.bool_)
    mirror = Mirror(
        identity=meta["identity"],
        folder=place,
        epoch=meta["epoch"],
        keys=Keys(columns["text"], columns["ends"], columns["hashes"], columns["rows"], gone),
        adjacency=adjacency,
        class_column=columns["classes"],
        created_column=columns["created_ns"],
        label_column=columns["labels"],
        tables=_open_tables(meta["tables"], columns),
        patches=patches,
        version=meta["version"],
        watermark_ns=meta["watermark_ns"],
        seq=meta["seq"],
        members_of=meta["members_of"],
        relationship_count=meta["relationship_count"],
        class_names=meta["class_names"],
        evaluated=np.array(columns["evaluated"].array, np.bool_),
        first_read=FirstRead(np.array(columns["steps"].array), tuple(meta["read_at_targets"])),
        dangling=[(a, b, kind) for a, b, kind in meta["dangling"]],
        rejected={row[0]: RejectedNode(*row) for row in meta["rejected"]},
        odd_relationships=[
            RejectedNode(id_, key, reason, "relationship")
            for id_, key, reason in meta["odd_relationships"]
        ],
        raw_counts=dict(meta["raw_counts"]),
        settled={kind: (low, high, at) for kind, (low, high, at) in meta["settled"]},
        checked=meta["checked"],
        members_checked=meta["members_checked"],
        places=np.array(columns["places"].array, np.int64),
        revised=np.array(columns["revised"].array, np.int64),
        gaps=dict(meta["gaps"]),
        context_rejected=dict(meta["context_rejected"]),
        incarnations=dict(meta.get("incarnations", ())),
        related=Related(_open_related(facts, columns) for facts in meta.get("related", ())),
    )
    mirror.show_patches()
    return mirror


def _open_tables(facts: list[TableFacts], columns: dict[str, Column]) -> tuple[Table, ...]:
    """The tables that a manifest describes; an unknown kind is a `KeyError`."""
    tables: list[Table] = []
    for label, table in enumerate(facts):
        files = {
            name.removesuffix(f".{label}"): column
            for name, column in columns.items()
            if name.endswith(f".{label}")
        }
        tables.append(KINDS[table["kind"]].restore(table, files))
    return tuple(tables)


def _relation_facts(relation: int, table: RelationTable) -> dict[str, Any]:
    waiting = [(n, a, b, text.decode()) for n, (a, b, text) in table.waiting.items()]
    return {"relation": relation, "names": list(table.names), "waiting": waiting}


def _open_related(facts: dict[str, Any], columns: dict[str, Column]) -> tuple[int, RelationTable]:
    """The relationships of a relation with columns, which a manifest describes."""
    suffix = f".r{facts['relation']}"
    files = {
        name.removesuffix(suffix): column
        for name, column in columns.items()
        if name.endswith(suffix)
    }
    table = RelationTable(RawTable(facts["names"], files["text"], files["ends"]), files)
    table.waiting = {n: (a, b, text.encode()) for n, a, b, text in facts["waiting"]}
    return int(facts["relation"]), table


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
    """Remove files that the manifest no longer names; mapped ones live on until unmapped."""
    for other in folder.iterdir():
        if other.is_dir() and EPOCH.fullmatch(other.name) and other.name != epoch:
            shutil.rmtree(other, ignore_errors=True)
            other.with_name(f"{other.name}{SUFFIX}").unlink(missing_ok=True)
    shutil.rmtree(folder / FOLDER_OF_FORMAT_4, ignore_errors=True)
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
