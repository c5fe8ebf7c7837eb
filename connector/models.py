"""The SQL side of a trained model: its manifest and the labelled nodes that belong to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import insert, select

from ringfence.connector import chain
from ringfence.connector.errors import ModelError
from ringfence.connector.runs import BLOCK, Writer
from ringfence.connector.store import Store
from ringfence.connector.tables import member, model


@dataclass(frozen=True, slots=True)
class Member:
    """A labelled node and what the model used it for."""

    node_key: str
    role: str
    class_index: int


def record_model(
    writer: Writer, version: str, manifest: str, digest: str, members: Sequence[Member]
) -> None:
    """Write manifest, members and chain entry in one transaction; from then on runs use it."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        connection.execute(
            insert(model).values(
                project=project, version=version, trained_ns=now, manifest=manifest
            )
        )
        for start in range(0, len(members), BLOCK):
            connection.execute(
                insert(member),
                [
                    {
                        "project": project,
                        "version": version,
                        "node_key": one.node_key,
                        "role": one.role,
                        "class_index": one.class_index,
                    }
                    for one in members[start : start + BLOCK]
                ],
            )
        facts = {"version": version, "manifest_sha256": digest, "members": len(members)}
        chain.append(connection, project, writer.key, "trained", facts)


def newest_manifest(store: Store, project: str) -> str:
    """Return the manifest of the project's newest model."""
    with store.reading() as connection:
        found = connection.execute(
            select(model.c.manifest)
            .where(model.c.project == project)
            .order_by(model.c.trained_ns.desc(), model.c.version.desc())
            .limit(1)
        ).scalar()
    if found is None:
        raise ModelError(
            found=f"project {project!r} has no trained model",
            needed="one",
            next_step="ringfence train",
        )
    return str(found)


def manifest_of(store: Store, project: str, version: str) -> str:
    """Return the manifest of one model version, as it was trained."""
    with store.reading() as connection:
        query = select(model.c.manifest).where(
            model.c.project == project, model.c.version == version
        )
        return str(connection.execute(query).scalar_one())


def class_names(store: Store, project: str) -> dict[str, list[str]]:
    """Return the classes of every model version, in the order of its p-values."""
    with store.reading() as connection:
        rows = connection.execute(
            select(model.c.version, model.c.manifest)
            .where(model.c.project == project)
            .order_by(model.c.trained_ns, model.c.version)
        )
        return {row.version: json.loads(row.manifest)["classes"] for row in rows}


def members(store: Store, project: str, version: str, role: str | None = None) -> list[Member]:
    """Return the labelled nodes of a model version, all of them or those of one role."""
    query = select(member.c.node_key, member.c.role, member.c.class_index).where(
        member.c.project == project, member.c.version == version
    )
    with store.reading() as connection:
        rows = connection.execute(query if role is None else query.where(member.c.role == role))
        return [Member(*row) for row in rows]
