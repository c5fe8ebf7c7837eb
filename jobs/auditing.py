"""`ringfence audit`: classes that became known since, and whether the promise was kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Row

from ringfence.connector import checkpoints, coverage, labels, projection
from ringfence.connector.models import manifest_of
from ringfence.connector.refresh import Progress
from ringfence.connector.runs import Writer
from ringfence.jobs.applying import anchor_head, recover, refuse_older_store
from ringfence.jobs.workspace import Workspace
from ringfence.models.verdict import judge, sentence

RUN_SLICE = "run"
TOTAL_SLICE = "total"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What `ringfence audit` found: classes newly known, coverage rows, the worst verdict."""

    newly_known: int
    rows: tuple[dict[str, Any], ...]
    alarm: bool

    @property
    def total(self) -> dict[str, Any] | None:
        """The newest model's row over all its runs."""
        return next((row for row in reversed(self.rows) if row["slice"] == TOTAL_SLICE), None)


def run_audit(
    workspace: Workspace, progress: Progress = lambda _what, _done, _all: None
) -> AuditReport:
    """Ask the graph for classes, write coverage to SQL and to the graph."""
    workspace.require_migrated()
    with workspace.writer() as writer:
        refuse_older_store(workspace, writer)
        recover(workspace, writer, progress)
        found = _note_classes(workspace, writer, progress)
        checkpoints.at("labels read")
        tallies = coverage.tallies(workspace.store, workspace.project)
        checkpoints.at("before coverage")
        rows = coverage.record_coverage(writer, coverage_rows(tallies))
        checkpoints.at("coverage in sql")
        # all rows, not these alone: the audit before may have died between the two stores
        shown = [row._asdict() for row in coverage.stored(workspace.store, workspace.project)]
        projection.write_coverage(workspace.graph, writer.lease, shown)
        checkpoints.at("coverage in graph")
        anchor_head(workspace, writer)
    return AuditReport(found, tuple(rows), any(row["verdict"] == "broken" for row in rows))


def _note_classes(workspace: Workspace, writer: Writer, progress: Progress) -> int:
    classes: dict[str, list[str]] = {}
    found = asked = 0
    for block in labels.pending(
        workspace.store, workspace.project, workspace.settings.engine.read_rows
    ):
        known = labels.known_classes(
            workspace.graph, workspace.mapping, [row.node_key for row in block]
        )
        for version in {row.model for row in block} - set(classes):
            manifest = manifest_of(workspace.store, workspace.project, version)
            classes[version] = json.loads(manifest)["classes"]
        judged = [
            labels.judge(row, known[row.node_key], classes[row.model])
            for row in block
            if row.node_key in known
        ]
        labels.record_labels(writer, judged)
        found += len(judged)
        asked += len(block)
        progress("predictions asked about", asked, 0)
    return found


def coverage_rows(tallies: Sequence[Row[Any]]) -> list[dict[str, Any]]:
    """Return a row per run, and one over all runs of each model, at its last run.

    Nodes of different runs of one model share its calibration nodes, and each is evaluated once:
    the law for all of them together is the same beta-binomial with the larger m.
    """
    rows = [_row(RUN_SLICE, [tally]) for tally in tallies]
    for _, runs in groupby(tallies, key=lambda tally: (tally.model, tally.rule, tally.alpha)):
        rows.append(_row(TOTAL_SLICE, list(runs)))
    return rows


def _row(name: str, tallies: Sequence[Row[Any]]) -> dict[str, Any]:
    last = tallies[-1]
    exact = last.rule == "NodeEx"
    n = min(
        float(tally.n_calibration) if exact else tally.effective_calibration for tally in tallies
    )
    evaluated, known, covered, naive, size = (
        int(sum(getattr(tally, name) for tally in tallies))
        for name in ("evaluated", "known", "covered", "covered_naive", "total_size")
    )
    judgement = judge(n, evaluated, known, covered, last.alpha)
    return {
        "seq": last.seq,
        "slice": name,
        "evaluated": evaluated,
        "known": known,
        "covered": covered,
        "covered_naive": naive,
        "low": judgement.low,
        "high": judgement.high,
        "p_value": judgement.p_value,
        "mean_size": size / evaluated,
        "exact": exact,
        "verdict": judgement.verdict,
        "words": sentence(judgement, evaluated, known, last.alpha),
    }
