"""The demo's recipe: a growing graph, a model, arriving batches, late classes, an audit.

A `DemoView` shows each step to the user; `ringfence demo` has one for the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ringfence.connector.neo4j.read.example_queries import DEVICES_OF_MULES
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.auditing.audit import AuditReport, run_audit
from ringfence.jobs.auditing.list_audit import ListAudit, audit_lists
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.samples.accounts import Batch, batches
from ringfence.jobs.samples.demo_project import ProjectView, keep_open, open_demo
from ringfence.jobs.samples.payments import (
    PAYMENTS_TOML,
    load_accounts,
    load_merchants,
    reveal_kinds,
)
from ringfence.jobs.scoring.score import RunReport, run_scoring
from ringfence.jobs.training.train import TrainReport, run_training
from ringfence.jobs.worklist.triage import Triage, read_triage
from ringfence.models.sample.payments import PaymentGraph, payment_graph

LABELLED_SHARE = 0.5  # of the first accounts: their kind is known
KNOWN_LATER_SHARE = 0.8  # of evaluated accounts: their kind becomes known, a batch later


@dataclass(frozen=True, slots=True)
class DemoReport:
    """All that the demo did, for `--json`."""

    folder: str
    training: TrainReport
    runs: tuple[RunReport, ...]
    audit: AuditReport
    rows: tuple[dict[str, Any], ...]
    triage: Triage
    lists: tuple[ListAudit, ...]


class DemoView(ProjectView, Protocol):
    """Receives each step of the demo."""

    def loaded(
        self, accounts: int, devices: int, merchants: int, relationships: int, known: int
    ) -> None:
        """The first accounts are in the graph."""

    def trained(self, training: TrainReport) -> None:
        """The model is trained."""

    def scored(self, run: RunReport) -> None:
        """A run has written its sets."""

    def finished(self, report: DemoReport, query: str) -> None:
        """Everything is done, and `query` was run."""


def run_demo(
    folder: Path, nodes: int, arriving: int, seed: int, view: DemoView, *, serve: bool = False
) -> DemoReport:
    """Run all steps once in `folder`; what an earlier demo left there is replaced."""
    with open_demo(folder, PAYMENTS_TOML, view) as workspace:
        report = _run_line(workspace, folder, nodes, arriving, seed, view)
        view.finished(report, DEVICES_OF_MULES)
        if serve:
            keep_open(workspace, view)
        return report


def _run_line(
    workspace: Workspace, folder: Path, nodes: int, arriving: int, seed: int, view: DemoView
) -> DemoReport:
    sample = payment_graph(nodes, seed=seed)
    portion = nodes // (2 * arriving)
    first, *later = batches(sample.accounts, [nodes - arriving * portion] + [portion] * arriving)
    rng = np.random.default_rng(seed)
    labelled = rng.random(nodes) < LABELLED_SHARE
    with view.progress("loading the first accounts") as report:
        load_merchants(workspace.graph, sample)
        joined = load_accounts(workspace.graph, sample, first, labelled, report)
    known = int(labelled[first.nodes].sum())
    view.loaded(
        len(first.nodes), _count_devices(sample, first), len(sample.merchants), joined, known
    )
    training = _train(workspace, view)
    runs = [_score(workspace, view)]
    audit = None
    unknown = first.nodes[~labelled[first.nodes]]
    for batch in later:
        _load_arrivals(workspace, sample, batch, view)
        runs.append(_score(workspace, view))
        reveal_kinds(workspace.graph, sample, unknown[rng.random(len(unknown)) < KNOWN_LATER_SHARE])
        unknown = batch.nodes
        audit = run_audit(workspace)
    audit = audit or run_audit(workspace)
    rows = tuple(row.data() for row in workspace.graph.read(DEVICES_OF_MULES))
    piles = read_triage(ProjectQueries(workspace.store, workspace.project))
    lists = tuple(audit_lists(workspace.store, workspace.project))
    return DemoReport(str(folder), training, tuple(runs), audit, rows, piles, lists)


def _count_devices(sample: PaymentGraph, batch: Batch) -> int:
    """How many devices the accounts of a batch use."""
    return len(np.unique(sample.uses[1, np.isin(sample.uses[0], batch.nodes)]))


def _train(workspace: Workspace, view: DemoView) -> TrainReport:
    most = workspace.settings.model.max_epochs
    with view.progress("training") as report:
        training = run_training(
            workspace, report, lambda epoch: report("training, epochs", epoch.number + 1, most)
        )
    view.trained(training)
    return training


def _load_arrivals(
    workspace: Workspace, sample: PaymentGraph, batch: Batch, view: DemoView
) -> None:
    nobody = np.zeros(sample.accounts.nodes, np.bool_)
    with view.progress("new accounts") as report:
        load_accounts(workspace.graph, sample, batch, nobody, report)


def _score(workspace: Workspace, view: DemoView) -> RunReport:
    with view.progress("scoring") as report:
        run = run_scoring(workspace, report)
    view.scored(run)
    return run
