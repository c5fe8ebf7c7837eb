"""What was changed between runs: versions taken into use, configurations; charts are marked so."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from ringfence.connector.store.lifecycle.activations import FIRST_REASON
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tables import run

MAX_CHANGES = 40
PROMOTION, ROLLBACK, CONFIGURATION = "promotion", "rollback", "configuration"
COMPARED = ("alpha", "rule", "score", "promise", "calibration_set", "adapt", "weights")
"""Columns of a run that say what its configuration changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: when, of which kind, and what in a few words."""

    at_ns: int
    kind: str
    words: str


def read_changes(queries: ProjectQueries) -> list[Change]:
    """Return the newest changes within the span of the queries, oldest first.

    A changed configuration is at the run that was first decided under it.
    """
    changes = [*_activations(queries), *_configurations(queries)]
    span = queries.span
    inside = [change for change in changes if span is None or span.holds(change.at_ns)]
    return sorted(inside, key=lambda change: change.at_ns)[-MAX_CHANGES:]


def _activations(queries: ProjectQueries) -> list[Change]:
    return [
        Change(
            activation.at_ns,
            ROLLBACK if activation.how == "rolled back" else PROMOTION,
            f"{activation.version} in use",
        )
        for activation in queries.activations()
        if activation.was is not None and activation.reason != FIRST_REASON
    ][-MAX_CHANGES:]


def _configurations(queries: ProjectQueries) -> list[Change]:
    names = ("config", *COMPARED)
    before = [
        func.lag(run.c[name]).over(order_by=run.c.seq).label(f"{name}_before") for name in names
    ]
    compared = (
        select(run.c.seq, run.c.decided_ns, *(run.c[name] for name in names), *before)
        .where(run.c.project == queries.project)
        .subquery()
    )
    changed = (
        select(compared)
        .where(compared.c.config != compared.c.config_before)
        .order_by(compared.c.seq.desc())
        .limit(MAX_CHANGES)
    )
    changes = []
    for row in queries.rows(changed):
        parts = [
            f"{name.replace('_', ' ')} {row[f'{name}_before']} to {row[name]}"
            for name in COMPARED
            if row[name] != row[f"{name}_before"]
        ]
        words = ", ".join(parts) or "settings that are no terms of the promise"
        changes.append(Change(row["decided_ns"], CONFIGURATION, f"run {row['seq']}: {words}"))
    return changes
