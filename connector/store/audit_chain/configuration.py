"""Changes of the configuration between two runs, each an entry of the audit chain.

A run's row has the digest of its settings; where it is another one than that of the run before, the
entry says what changed, from which run on, when, and who held the lease.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from ringfence.connector.records import Run
from ringfence.connector.store import chain
from ringfence.connector.store.tables import audit
from ringfence.connector.store.writer import Writer

KIND = "configuration"


def record_change(
    connection: Connection,
    writer: Writer,
    before: Run | None,
    run: Mapping[str, Any],
    terms: Mapping[str, Any],
) -> None:
    """Add an entry where a run's settings are not those of the run `before`.

    `run` has the columns of the new run, `terms` the settings that coverage is counted under.
    """
    if before is None or before.config == run["config"]:
        return
    project = writer.lease.project
    known = {"alpha": before.alpha, "rule": before.rule, "score": before.score}
    was = {**_recorded_terms(connection, project), **known}
    now = {**terms, **{name: run[name] for name in known}}
    facts = {
        "seq": run["seq"],
        "at_ns": run["decided_ns"],
        "owner": writer.lease.owner,
        "config": [before.config, run["config"]],
        "changed": {
            name: [was[name], now[name]] for name in now if name in was and was[name] != now[name]
        },
        "terms": now,
    }
    chain.append(connection, project, writer.key, KIND, facts)


def describe_change(body: Mapping[str, Any]) -> str:
    """Return an entry in words.

    >>> describe_change({"seq": 8, "changed": {"alpha": [0.2, 0.2001]}})
    'from run 8 on: alpha 0.2 to 0.2001'
    """
    parts = [f"{name} {was} to {now}" for name, (was, now) in body["changed"].items()]
    return f"from run {body['seq']} on: {', '.join(parts) or 'settings that are not terms'}"


def _recorded_terms(connection: Connection, project: str) -> dict[str, Any]:
    """The terms of the newest entry of this kind; none where the configuration never changed.

    Bodies are canonical JSON: a text inside one has its quotes escaped and can't look like this.
    """
    query = (
        select(audit.c.body)
        .where(audit.c.project == project, audit.c.body.contains(f'"kind":"{KIND}"'))
        .order_by(audit.c.n.desc())
        .limit(1)
    )
    body = connection.execute(query).scalar()
    return {} if body is None else dict(json.loads(body)["terms"])
