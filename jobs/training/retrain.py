"""A training in parallel with the schedule: runs continue while the network learns.

The graph is read into a mirror of its own, without the lease; the lease is taken to put the version
on record, and once more for its comparison. A process that dies leaves runs, mirror and the model
in use as they are; the next training removes what it left.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ringfence.connector.json_types import JsonObject
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.audit_chain.actor import acting_as
from ringfence.connector.store.lifecycle.comparisons import StoredComparison, record_comparison
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.lifecycle.comparison import better_by_the_rule, newest_comparison
from ringfence.jobs.lifecycle.promotion import in_session, run_promotion
from ringfence.jobs.lifecycle.retrain_need import BEGAN_KEY, WHY_KEY
from ringfence.jobs.project.graph_read import read_graph
from ringfence.jobs.project.node_seed import key_for_training
from ringfence.jobs.project.sealed_basis import active_on_record
from ringfence.jobs.project.session import Session
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.scoring.evaluation_flags import mark_evaluated
from ringfence.jobs.training.comparison import compute_comparison
from ringfence.jobs.training.score_choice import check_promise
from ringfence.jobs.training.train import (
    TrainReport,
    compare_fresh,
    database_time,
    train_on,
)

FOLDER = "training"
WAIT_SECONDS = 1_800.0
"""How long to wait for a run in progress: what was trained should not be lost."""


@dataclass(frozen=True, slots=True)
class _Beside(Workspace):
    """A workspace with a mirror of its own: the runs' mirror stays theirs."""

    @property
    def mirror(self) -> Path:
        return self.folder / FOLDER


@dataclass(frozen=True, slots=True)
class RetrainReport:
    """What a scheduled training did, and whether the new version is in use."""

    trained: TrainReport
    promoted: bool
    words: str


def retrain_project(settings: Settings, why: str) -> str:
    """Open a project, retrain it and return the outcome; runs in the scheduler's child process."""
    with open_workspace(settings) as workspace, acting_as("schedule retrain"):
        return run_retraining(workspace, why).words


def run_retraining(
    workspace: Workspace, why: str, progress: Progress = no_progress
) -> RetrainReport:
    """Train a version while runs continue, compare it, and promote it if the rule allows."""
    trained = train_beside(workspace, why, progress)
    words = f"version {trained.version}, because {why}"
    if trained.state == "active":
        return RetrainReport(trained, True, f"{words}; in use: it is the first one")
    rule = workspace.settings.retrain
    if rule.promote == "manual":
        return RetrainReport(trained, False, f"{words}; a candidate until someone promotes it")
    if trained.comparison is None:
        return RetrainReport(trained, False, f"{words}; a candidate: {trained.not_compared}")
    stored = newest_comparison(workspace.store, workspace.project, trained.version)
    verdict = better_by_the_rule(stored, rule.worst_class)
    if not verdict.better:
        return RetrainReport(trained, False, f"{words}; a candidate: {verdict.words}")
    reason = f"retrained because {why}; {verdict.words}"
    run_promotion(workspace, trained.version, reason, progress, WAIT_SECONDS)
    return RetrainReport(trained, True, f"{words}; in use: {verdict.words}")


def train_beside(workspace: Workspace, why: str, progress: Progress) -> TrainReport:
    """Train and record a version while other processes may write."""
    workspace.require_migrated()
    check_promise(workspace)
    key, made = key_for_training(workspace)
    beside = _Beside(workspace.settings, workspace.mapping, workspace.graph, workspace.store)
    shutil.rmtree(beside.mirror, ignore_errors=True)
    try:
        began = database_time(workspace)
        mirror = read_graph(beside, None, progress, whole=True).mirror
        mark_evaluated(beside, mirror)
        facts: JsonObject = {BEGAN_KEY: began, WHY_KEY: why}
        fresh = train_on(
            workspace, mirror, None, lambda _sentence: None, facts, progress, key, made
        )
        before = active_on_record(workspace)
        state = in_session(
            workspace, progress, WAIT_SECONDS, lambda session: fresh.record(session.writer)
        )

        def compare(active: str | None) -> StoredComparison:
            other, result = compute_comparison(workspace, mirror, fresh.version, active, progress)

            def record(session: Session) -> StoredComparison:
                return record_comparison(session.writer, fresh.version, other, result)

            return in_session(workspace, progress, WAIT_SECONDS, record)

        return fresh.report(state, before, compare_fresh(fresh, before, compare))
    finally:
        shutil.rmtree(beside.mirror, ignore_errors=True)
