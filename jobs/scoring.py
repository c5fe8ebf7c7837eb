"""`ringfence score`: one scoring run, in the order of docs/design.md."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ringfence.connector import checkpoints, runs
from ringfence.connector import mirror as mirrors
from ringfence.connector.models import newest_manifest
from ringfence.connector.refresh import Progress, Refreshed, refresh
from ringfence.connector.runs import Decision
from ringfence.jobs import forwarding, model_files
from ringfence.jobs.applying import apply, recover, refuse_older_store
from ringfence.jobs.deciding import Due, consider
from ringfence.jobs.marking import mark_evaluated
from ringfence.jobs.patience import patiently
from ringfence.jobs.stopwatch import Stopwatch
from ringfence.jobs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RunReport:
    """What `ringfence score` did; `seq` is None where nothing was due.

    `run` holds the columns of the run's row in SQL, `sizes` counts sets by their size.
    """

    seq: int | None
    recovered: tuple[int, ...]
    new_nodes: int
    new_edges: int
    evaluated: int
    waiting: int
    already_known: int
    quarantined: int
    sizes: dict[int, int]
    run: dict[str, Any]
    seconds: dict[str, float]

    @property
    def mean_size(self) -> float:
        """Average number of classes in a set."""
        return sum(size * count for size, count in self.sizes.items()) / max(self.evaluated, 1)


def run_scoring(
    workspace: Workspace, progress: Progress = lambda _what, _done, _all: None
) -> RunReport:
    """Evaluate the nodes that are new since the last run, once each, and write their sets."""
    workspace.require_migrated()
    watch = Stopwatch()
    with workspace.writer() as writer:
        checkpoints.at("lease taken")
        refuse_older_store(workspace, writer)
        recovered = recover(workspace, writer, progress)
        watch.lap("recover")
        recorded = newest_manifest(workspace.store, workspace.project)
        model = model_files.load(workspace.models, recorded)
        watch.lap("load model")
        read = patiently("reading", lambda: refresh(workspace.reader(progress)))
        mark_evaluated(workspace, read.mirror)
        watch.lap("read")
        checkpoints.at("graph read")
        due, decision = consider(workspace, model, read, watch)
        seq = None
        if decision is not None:
            checkpoints.at("before decide")
            seq = runs.decide(writer, decision)
            checkpoints.at("decided")
            watch.lap("decide")
            apply(workspace, writer, seq, progress, watch)
            read.mirror.evaluated[due.rows] = True
            read.mirror.seq = seq
        mirrors.save(read.mirror, workspace.mirror)
        forwarding.keep(workspace.tables, model, read.mirror)
        watch.lap("save mirror")
    return _report(seq, recovered, read, due, decision, watch)


def _report(
    seq: int | None,
    recovered: tuple[int, ...],
    read: Refreshed,
    due: Due,
    decision: Decision | None,
    watch: Stopwatch,
) -> RunReport:
    facts = dict(decision.facts) if decision else {}
    if decision:
        facts["notes"] = json.loads(facts["notes"])
        facts.pop("timings")
    sizes = Counter(len(one.classes) for one in decision.predictions) if decision else Counter()
    return RunReport(
        seq=seq,
        recovered=recovered,
        new_nodes=len(read.new_rows),
        new_edges=read.new_edges,
        evaluated=len(due.rows),
        waiting=due.waiting,
        already_known=due.already_known,
        quarantined=len(read.mirror.rejected),
        sizes=dict(sorted(sizes.items())),
        run=facts,
        seconds=watch.seconds,
    )
