"""A model's life as a demo: drift, alarm, candidate, shadow, promotion, coverage back, rollback.

Everything is done by the verbs that a project uses, on a real graph whose new accounts change on
the way (`payment_graph(drift_at=…)`): no result is hard-coded. Each step is reported to a
`StoryView`, and shows on the dashboard and in the chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.alarm_records import AlarmState
from ringfence.connector.store.audit_chain.actor import acting_as
from ringfence.jobs.auditing.audit import AuditReport, run_audit
from ringfence.jobs.integrity.verify import Verification, run_verification
from ringfence.jobs.lifecycle.comparison import HoldoutReport
from ringfence.jobs.lifecycle.promotion import PromotionReport, run_promotion, run_rollback
from ringfence.jobs.lifecycle.retrain_need import need_on_record
from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary, read_shadows
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.samples.accounts import Batch, batches
from ringfence.jobs.samples.demo_project import ProjectView, keep_open, open_demo
from ringfence.jobs.samples.payments import (
    STORY_TOML,
    load_accounts,
    load_merchants,
    reveal_kinds,
)
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.retrain import RetrainReport, run_retraining
from ringfence.jobs.training.train import TrainReport, run_training
from ringfence.models.sample.payments import PaymentGraph, payment_graph

LABELLED_SHARE = 0.5  # of the first accounts: their kind is known
KNOWN_LATER_SHARE = 0.8  # of evaluated accounts: their kind becomes known before the next batch
BATCHES = {"before the drift": 2, "drift": 3, "shadow": 2, "promoted": 2, "rolled back": 1}
"""How many batches of accounts arrive in each chapter; all are of one size."""
ROLLBACK_REASON = "drill: the way back to the version before must be open"


@dataclass(frozen=True, slots=True)
class Chapter:
    """Runs of one part of the story: the version, and how many known accounts were covered.

    `verdict` is that of the last of these runs alone.
    """

    name: str
    version: str
    runs: tuple[int, ...]
    evaluated: int
    known: int
    covered: int
    mean_size: float
    verdict: str

    @property
    def coverage(self) -> float:
        """Share of the known accounts whose set holds their kind."""
        return self.covered / max(self.known, 1)


@dataclass(frozen=True, slots=True)
class StoryReport:
    """All that happened, for `--json`; `twice` counts accounts that were evaluated twice."""

    folder: str
    first: TrainReport
    alarms: tuple[AlarmState, ...]
    candidate: RetrainReport
    shadow: ShadowSummary
    promotion: PromotionReport
    rollback: PromotionReport
    chapters: tuple[Chapter, ...]
    twice: int
    verification: Verification


class StoryView(ProjectView, Protocol):
    """Receives each step of the story."""

    def trained(self, training: TrainReport) -> None:
        """The first version is in use."""

    def drift_begins(self) -> None:
        """From now on new accounts have changed features."""

    def chapter(self, chapter: Chapter) -> None:
        """The runs of a part of the story are over, and their accounts' kinds known."""

    def alarmed(self, alarms: tuple[AlarmState, ...], need: str) -> None:
        """Alarms fire, and what they mean for a training."""

    def retrained(self, report: RetrainReport) -> None:
        """There is a candidate."""

    def compared(self, comparison: HoldoutReport) -> None:
        """Candidate and version in use stand side by side on the holdout."""

    def shadowed(self, shadow: ShadowSummary) -> None:
        """The candidate has scored some runs together with the version in use."""

    def taken_into_use(self, report: PromotionReport) -> None:
        """Another version is in use: promoted or rolled back."""

    def finished(self, report: StoryReport) -> None:
        """Everything is done and verified."""


def run_story(
    folder: Path, nodes: int, seed: int, view: StoryView, *, serve: bool = False
) -> StoryReport:
    """Run the story once in `folder`; what an earlier one left there is replaced."""
    with open_demo(folder, STORY_TOML, view) as workspace:
        report = _tell(_Story.begin(workspace, nodes, seed, view), folder)
        view.finished(report)
        if serve:
            keep_open(workspace, view)
        return report


def _tell(story: _Story, folder: Path) -> StoryReport:
    workspace, view = story.workspace, story.view
    first = story.train_first()
    story.live("before the drift")
    view.drift_begins()
    audit = story.live("drift")
    candidate = story.retrain(audit)
    story.live("shadow")
    shadow = read_shadows(workspace.store, workspace.project)[candidate.trained.version]
    view.shadowed(shadow)
    promotion = run_promotion(workspace, shadow.version, _reason_of(shadow))
    view.taken_into_use(promotion)
    story.live("promoted")
    rollback = run_rollback(workspace, ROLLBACK_REASON)
    view.taken_into_use(rollback)
    story.live("rolled back")
    with view.progress("verifying"):
        verification = run_verification(workspace)
    evaluated = sum(chapter.evaluated for chapter in story.chapters)
    return StoryReport(
        folder=str(folder),
        first=first,
        alarms=tuple(alarm for alarm in audit.alarms if alarm.state == "firing"),
        candidate=candidate,
        shadow=shadow,
        promotion=promotion,
        rollback=rollback,
        chapters=tuple(story.chapters),
        twice=evaluated - verification.predictions,
        verification=verification,
    )


def _reason_of(shadow: ShadowSummary) -> str:
    """Why the candidate is taken into use: what its shadow sets show."""
    if shadow.coverage is None or shadow.active_coverage is None:
        return "the alarm of drift"
    return (
        f"after the drift it covers {100 * shadow.coverage:.1f} % of {shadow.known:,} known "
        f"accounts, the version in use {100 * shadow.active_coverage:.1f} %"
    )


@dataclass(slots=True)
class _Story:
    """The graph that grows, and how far the story has come."""

    workspace: Workspace
    view: StoryView
    sample: PaymentGraph
    first: Batch
    later: Iterator[Batch]
    rng: np.random.Generator
    chapters: list[Chapter] = field(default_factory=list)

    @classmethod
    def begin(cls, workspace: Workspace, nodes: int, seed: int, view: StoryView) -> _Story:
        count = sum(BATCHES.values())
        portion = nodes // (2 * count)
        first = nodes - count * portion
        drift_at = (first + BATCHES["before the drift"] * portion) / nodes
        sample = payment_graph(nodes, seed=seed, drift_at=drift_at)
        later = batches(sample.accounts, [first] + [portion] * count)
        return cls(workspace, view, sample, next(later), later, np.random.default_rng(seed))

    def train_first(self) -> TrainReport:
        """Load the first accounts, train on them, evaluate those of unknown kind."""
        labelled = self.rng.random(self.sample.accounts.nodes) < LABELLED_SHARE
        most = self.workspace.settings.model.max_epochs
        with self.view.progress("loading the first accounts") as report:
            load_merchants(self.workspace.graph, self.sample)
            load_accounts(self.workspace.graph, self.sample, self.first, labelled, report)
        with self.view.progress("training") as report:
            training = run_training(
                self.workspace,
                report,
                lambda epoch: report("training, epochs", epoch.number + 1, most),
            )
        self.view.trained(training)
        seq, audit = self._pass_time(self.first.nodes[~labelled[self.first.nodes]])
        self._close("first accounts", [seq], audit)
        return training

    def live(self, name: str) -> AuditReport:
        """Let a chapter's batches arrive: each is evaluated, then most of its kinds are known."""
        nobody = np.zeros(self.sample.accounts.nodes, np.bool_)
        runs: list[int] = []
        for _ in range(BATCHES[name]):
            batch = next(self.later)
            with self.view.progress("new accounts") as report:
                load_accounts(self.workspace.graph, self.sample, batch, nobody, report)
            seq, audit = self._pass_time(batch.nodes)
            runs.append(seq)
        self._close(name, runs, audit)
        return audit

    def retrain(self, audit: AuditReport) -> RetrainReport:
        """Do what the scheduled job does: check whether a training is due, and why, and train."""
        need = need_on_record(self.workspace)
        firing = tuple(alarm for alarm in audit.alarms if alarm.state == "firing")
        self.view.alarmed(firing, need.words)
        why = need.words if need.due else "a person asked for it"
        with self.view.progress("retraining") as report, acting_as("schedule retrain"):
            done = run_retraining(self.workspace, why, report)
        self.view.retrained(done)
        if done.trained.comparison is not None:
            self.view.compared(done.trained.comparison)
        return done

    def _pass_time(self, unknown: NDArray[np.int64]) -> tuple[int, AuditReport]:
        """Score what is due, then make the kinds of most of `unknown` known, and audit."""
        with self.view.progress("scoring") as report:
            run = run_scoring(self.workspace, report)
        known = unknown[self.rng.random(len(unknown)) < KNOWN_LATER_SHARE]
        reveal_kinds(self.workspace.graph, self.sample, known)
        with self.view.progress("auditing") as report:
            return run.seq or 0, run_audit(self.workspace, report)

    def _close(self, name: str, runs: list[int], audit: AuditReport) -> None:
        chapter = _count(name, runs, audit)
        self.chapters.append(chapter)
        self.view.chapter(chapter)


def _count(name: str, runs: list[int], audit: AuditReport) -> Chapter:
    """Add up the coverage rows of some runs of one version."""
    rows = [row for row in audit.rows if row.slice == "run" and row.seq in runs]
    evaluated = sum(row.evaluated for row in rows)
    return Chapter(
        name=name,
        version=rows[-1].model,
        runs=tuple(runs),
        evaluated=evaluated,
        known=sum(row.known for row in rows),
        covered=sum(row.covered for row in rows),
        mean_size=sum(row.mean_size * row.evaluated for row in rows) / max(evaluated, 1),
        verdict=rows[-1].verdict,
    )
