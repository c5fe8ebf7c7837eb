"""Whether a scheduled training is due, and why: its time, an alarm, classes that became known.

Everything is read from the audit store. What counts is what happened after the newest version's
training began to read the graph: an alarm that began to fire while it trained makes the next
training due.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.store.engine import Store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.times import format_time
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.sealed_basis import on_record
from ringfence.jobs.project.workspace import Workspace

BEGAN_KEY = "began_ns"
"""Under which a manifest has when its training began, by the audit store's clock."""

WHY_KEY = "retrained_because"
"""Under which the manifest of a scheduled training has what made it due."""


@dataclass(frozen=True, slots=True)
class Need:
    """Whether a training is due, and the reason in words."""

    due: bool
    words: str


def need_on_record(workspace: Workspace) -> Need:
    """Say whether a training is due, by alarms, classes and models that are as they were sealed."""
    with on_record(workspace) as (held, basis):
        basis.require_runs()
        basis.require_labels()
        basis.require_alarms()
        return retraining_need(held.store, held.settings)


def retraining_need(store: Store, settings: Settings) -> Need:
    """Say whether a training is due now by the configuration."""
    queries, wanted = ProjectQueries(store, settings.project), settings.retrain
    models = queries.models()
    if not models:
        return Need(False, "there is no model yet; the first one is trained by: ringfence train")
    newest = models[-1]
    began = int(newest.manifest.get(BEGAN_KEY, newest.trained_ns))
    if "time" in wanted.when:
        return Need(True, "its time came")
    missing = []
    if "alarm" in wanted.when:
        for alarm in queries.alarms():
            if alarm.rule in wanted.alarms and alarm.state == "firing" and alarm.since_ns > began:
                since = format_time(alarm.since_ns)
                return Need(True, f"the alarm {alarm.rule} fires since {since}")
        missing.append(f"no alarm of {', '.join(wanted.alarms)} fires since the last training")
    if "classes" in wanted.when:
        known = queries.count_known_since(began)
        if known >= wanted.new_classes:
            return Need(True, f"{known:,} classes became known since the last training")
        missing.append(f"{known:,} of {wanted.new_classes:,} classes became known")
    return Need(False, "; ".join(missing))
