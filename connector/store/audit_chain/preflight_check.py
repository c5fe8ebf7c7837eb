"""A cheap check that the record a run relies on is the one that the chain sealed.

`ringfence score` and `ringfence audit` check at their start the newest entry of the chain, the
manifest, members and corrections of the model in use, and that the chain has it as the one in use.
What they decide with is compared in the snapshot that it is read from (`basis_check`).
`ringfence verify` compares everything.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sqlalchemy import Connection, func, select

from ringfence.connector.errors import StoreError
from ringfence.connector.store import chain, corrections
from ringfence.connector.store.audit_chain.rotation import is_sealed
from ringfence.connector.store.calibration.calibration_digest import is_as_recorded
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.lifecycle.activations import SEALED_MARK, active_version
from ringfence.connector.store.models import stored_member_digests
from ringfence.connector.store.tables import audit, model
from ringfence.connector.store.writer import Writer

CANDIDATE_MARK = '"state":"candidate"'  # of a training that took nothing into use


def require_sound_record(writer: Writer) -> None:
    """Raise `StoreError` with what differs; a project without a model has nothing to differ."""
    project = writer.lease.project
    with writer.store.reading() as connection:
        difference = _chain_difference(connection, project, writer.key)
        if difference is None:
            difference = _activation_difference(connection, project, writer.key)
        active = active_version(connection, project)
        if difference is None and active is not None:
            difference = model_difference(connection, project, writer.key, active)
    refuse_difference(difference)


def require_sound_model(writer: Writer, version: str) -> None:
    """Raise `StoreError` if a version or its record is not as the chain sealed it."""
    with writer.store.reading() as connection:
        difference = model_difference(connection, writer.lease.project, writer.key, version)
    refuse_difference(difference)


def refuse_difference(difference: str | None) -> None:
    """Raise `StoreError` about rows that are not as the chain has them; None: there is nothing."""
    if difference is not None:
        raise StoreError(
            found=difference,
            needed="the record as the audit chain sealed it; sets and verdicts would rest on it",
            next_step="ringfence verify",
        )


def _chain_difference(connection: Connection, project: str, key: bytes) -> str | None:
    last = chain.newest_entry(connection, project)
    if last is None:
        return None
    if not chain.fits(last, key):
        rotation = chain.describe_rotation(connection, project)
        return f"entry {last.n} of the audit chain does not fit this machine's key{rotation}"
    count = select(func.count()).where(audit.c.project == project)
    if connection.execute(count).scalar() != last.n:
        return f"the audit chain ends at entry {last.n}, but entries before it are missing"
    return None


def _activation_difference(connection: Connection, project: str, key: bytes) -> str | None:
    """Compare the version in use with the newest entry that took one into use."""
    active = active_version(connection, project)
    mark = f"%{SEALED_MARK}%"
    body, difference = newest_sealed(connection, project, key, "%", mark)
    if body is None and difference is None:  # in older versions, without states, every training did
        body, difference = newest_sealed(
            connection, project, key, "trained", unlike=f"%{CANDIDATE_MARK}%"
        )
    if difference is not None:
        return difference
    if body is None:
        nothing = f"the audit chain has no entry that fits for model {active}"
        return None if active is None else nothing
    recorded = body["activation"]["version"] if "activation" in body else body["version"]
    if recorded != active:
        return f"the active model is {active}, but the chain has {recorded} as such"
    return None


def model_difference(connection: Connection, project: str, key: bytes, version: str) -> str | None:
    """Return what differs in manifest, members, corrections or joined nodes of a version."""
    query = select(model).where(model.c.project == project, model.c.version == version)
    newest = connection.execute(query).first()
    if newest is None:
        return f"model {version} has no row"
    like = f'%"version":{dumps(version)}%'
    body, _ = newest_sealed(connection, project, key, "trained", like)
    if body is None:
        return f"the audit chain has no entry that fits for model {version}"
    if body["manifest_sha256"] != hashlib.sha256(newest.manifest.encode()).hexdigest():
        return f"the manifest of model {version} is not the one that was recorded"
    count, digests = stored_member_digests(connection, project, version)
    if count != body["members"]:
        return f"model {version} has {count} members, but {body['members']} were recorded"
    sealed_digests = body.get("member_digests")  # older entries have the number alone
    if sealed_digests is not None and sealed_digests != digests:
        return f"the members of model {version} are not those that were recorded"
    return _correction_difference(connection, project, key, version) or _joined_difference(
        connection, project, key, version
    )


def newest_sealed(
    connection: Connection, project: str, key: bytes, kind: str, like: str = "%", unlike: str = ""
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the body of the newest entry of a kind, or what is wrong with that entry.

    Both are None where the chain has no such entry.
    """
    entry = chain.newest_of_kind(connection, project, kind, like, unlike)
    if entry is None:
        return None, None
    if not is_sealed(connection, project, entry, key):
        return None, f"entry {entry.n} of the audit chain does not fit this machine's key"
    return json.loads(entry.body), None


def _joined_difference(
    connection: Connection, project: str, key: bytes, version: str
) -> str | None:
    """Compare the nodes that joined the calibration with the newest run's entry about them."""
    like = f'%"model":"{version}"%'
    body, difference = newest_sealed(connection, project, key, "decided", like)
    if difference is not None:
        return difference
    recorded = {} if body is None else body.get("joined", {})  # in older runs no node joined
    if not is_as_recorded(connection, project, version, recorded):
        return f"the nodes that joined the calibration of {version} are not those recorded"
    return None


def _correction_difference(
    connection: Connection, project: str, key: bytes, version: str
) -> str | None:
    """Compare the corrections of a model's calibration nodes with the newest entry about them."""
    like = f'%"version":"{version}"%'
    body, difference = newest_sealed(connection, project, key, corrections.KIND, like)
    if difference is not None:
        return difference
    rows = [r for r in corrections.all_corrections(connection, project) if r.version == version]
    digest = None if body is None else body["all_rows"]
    if digest != (corrections.corrections_digest(rows) if rows else None):
        return f"the corrected classes of model {version} are not those that were recorded"
    return None
