"""The SQL side of a trained model: its manifest and the labelled nodes that belong to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, insert, select

from ringfence.connector.errors import ModelError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import Member, Role
from ringfence.connector.store import chain
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.activations import (
    FIRST_REASON,
    How,
    State,
    active_version,
    insert_activation,
)
from ringfence.connector.store.tables import member, model
from ringfence.connector.store.writer import Writer

MEMBER = (member.c.node_key, member.c.role, member.c.class_index, member.c.created_ns)
"""The columns of a `Member`, in its order."""


def record_model(
    writer: Writer,
    version: str,
    manifest: str,
    digest: str,
    members: Sequence[Member],
    promote: str | None = None,
    signing_key: JsonObject | None = None,
) -> State:
    """Write manifest, members and chain entries in one transaction; return the model's state.

    The project's first model is taken into use, and so is one with a reason to `promote` it; any
    other one is a candidate. `signing_key` is what the entry says of the project's first one.
    """
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        first = active_version(connection, project) is None
        state: State = "active" if first or promote is not None else "candidate"
        how: How = "first" if first else "promoted"
        connection.execute(
            insert(model).values(
                project=project, version=version, trained_ns=now, manifest=manifest
            )
        )
        for part in split(members):
            connection.execute(
                insert(member),
                [
                    {
                        "project": project,
                        "version": version,
                        "node_key": labelled.node_key,
                        "role": labelled.role,
                        "class_index": labelled.class_index,
                        "created_ns": labelled.created_ns,
                    }
                    for labelled in part
                ],
            )
        facts: JsonObject = {
            "version": version,
            "manifest_sha256": digest,
            "members": len(members),
            "member_digests": member_digests(members),
            "trained_ns": now,
            "state": state,
            **(signing_key or {}),
        }
        if state == "active":
            reason = FIRST_REASON if promote is None else promote
            member_ = insert_activation(connection, project, now, version, how, reason)
            facts |= {"activation": asdict(member_)}
        chain.append(connection, project, writer.key, "trained", facts)
    return state


def member_digests(members: Iterable[Member]) -> dict[str, str]:
    """Return for each role one hash over keys, classes and creation times, by key.

    Members without creation times hash as older versions hashed them.

    >>> sorted(member_digests([Member("i:1", "train", 0), Member("i:2", "calibration", 1)]))
    ['calibration', 'train']
    """
    rows = [
        (member_.node_key, member_.role, member_.class_index, member_.created_ns)
        for member_ in members
    ]
    return _digests_by_role(rows)


def stored_member_digests(
    connection: Connection, project: str, version: str
) -> tuple[int, dict[str, str]]:
    """Return how many labelled nodes a version has on record, and the digests of its roles.

    Rows go from the driver's cursor into the hash: a run begins with this, for a million members
    in a third of the time that records of them would take.
    """
    query = select(*MEMBER).where(member.c.project == project, member.c.version == version)
    with connection.execute(query) as result:
        rows = list(result.cursor.fetchall())
    return len(rows), _digests_by_role(rows)


def _digests_by_role(rows: list[Any]) -> dict[str, str]:
    """Hash the texts that `dumps` would give for key, class and time; sorts ``rows``."""
    rows.sort(key=itemgetter(0))
    texts: dict[str, list[str]] = {}
    for key, role, class_index, created_ns in rows:
        time = "" if created_ns is None else f",{created_ns}"
        texts.setdefault(role, []).append(f"[{encode_basestring(key)},{class_index}{time}]")
    return {
        role: hashlib.sha256("".join(parts).encode()).hexdigest() for role, parts in texts.items()
    }


def find_active_manifest(store: Store, project: str) -> str | None:
    """Return the manifest of the model version in use; None before there is one."""
    with store.reading() as connection:
        version = active_version(connection, project)
        if version is None:
            return None
        query = select(model.c.manifest).where(
            model.c.project == project, model.c.version == version
        )
        return str(connection.execute(query).scalar_one())


def active_manifest(store: Store, project: str) -> str:
    """Return the manifest of the model version in use."""
    manifest = find_active_manifest(store, project)
    if manifest is None:
        raise ModelError(
            found=f"project {project!r} has no trained model",
            needed="a trained model",
            next_step="ringfence train",
        )
    return manifest


def manifest_of(store: Store, project: str, version: str) -> str:
    """Return the manifest of one model version, as it was trained."""
    with store.reading() as connection:
        query = select(model.c.manifest).where(
            model.c.project == project, model.c.version == version
        )
        return str(connection.execute(query).scalar_one())


def manifests(store: Store, project: str) -> list[str]:
    """Return the manifests of all model versions, oldest first."""
    with store.reading() as connection:
        query = select(model.c.manifest).where(model.c.project == project)
        rows = connection.execute(query.order_by(model.c.trained_ns, model.c.version))
        return [str(manifest) for manifest in rows.scalars()]


def class_names(store: Store, project: str) -> dict[str, list[str]]:
    """Return the classes of every model version, in the order of its p-values."""
    with store.reading() as connection:
        rows = connection.execute(
            select(model.c.version, model.c.manifest)
            .where(model.c.project == project)
            .order_by(model.c.trained_ns, model.c.version)
        )
        return {row.version: json.loads(row.manifest)["classes"] for row in rows}


def members(store: Store, project: str, version: str, role: Role | None = None) -> list[Member]:
    """Return the labelled nodes of a model version, all of them or those of one role."""
    query = select(*MEMBER).where(member.c.project == project, member.c.version == version)
    with store.reading() as connection:
        rows = connection.execute(query if role is None else query.where(member.c.role == role))
        return [Member(*row) for row in rows]
