"""`ringfence score`: one scoring run, in the order of docs/design.md."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ringfence.connector import fault_points
from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.read.reader import SyncResult
from ringfence.connector.neo4j.retry import retry_while_unavailable
from ringfence.connector.neo4j.write import prediction_sets
from ringfence.connector.prediction_table import count_sizes
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.records import RunFacts
from ringfence.connector.store import runs
from ringfence.connector.store.audit_chain.preflight_check import require_sound_record
from ringfence.connector.store.models import active_manifest
from ringfence.connector.store.rows import run_columns
from ringfence.connector.store.runs import Decision
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project import model_files
from ringfence.jobs.project.apply import apply
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.corrections import correct_some
from ringfence.jobs.scoring.decision import decide_due
from ringfence.jobs.scoring.due import DueNodes
from ringfence.jobs.scoring.evaluation_flags import mark_evaluated
from ringfence.jobs.scoring.shadow import ShadowReport, shadow_run
from ringfence.jobs.scoring.version_on_graph import require_active_network
from ringfence.jobs.telemetry.stopwatch import Stopwatch
from ringfence.jobs.telemetry.traced_run import traced


@dataclass(frozen=True, slots=True)
class RunReport:
    """What `ringfence score` did; `seq` is None where nothing was due.

    `run` is what the run decided, `sizes` counts sets by their size, `corrected` the calibration
    nodes whose class changes from this run on, `shadow` the result of a candidate's shadow run.
    `keys_reused` counts evaluated nodes whose key another evaluated node had, `changed_times` those
    whose creation time changed after they were evaluated.
    """

    seq: int | None
    recovered: tuple[int, ...]
    new_nodes: int
    new_edges: int
    evaluated: int
    waiting: int
    already_known: int
    evaluated_before: int
    keys_reused: int
    changed_times: int
    quarantined: int
    corrected: int
    sizes: dict[int, int]
    run: RunFacts | None
    seconds: dict[str, float]
    shadow: ShadowReport | None = None

    @property
    def mean_size(self) -> float:
        """Average number of classes in a set."""
        return sum(size * count for size, count in self.sizes.items()) / max(self.evaluated, 1)

    def as_json(self) -> dict[str, Any]:
        """Return what `ringfence score --json` prints: `run` has the columns of its row in SQL."""
        columns: dict[str, Any] = {}
        if self.run is not None:
            columns = run_columns(self.run) | {"notes": list(self.run.notes)}
            columns.pop("timings")
        shadow = None if self.shadow is None else asdict(self.shadow)
        report = {field.name: getattr(self, field.name) for field in fields(self)}
        return report | {"run": columns, "shadow": shadow}


@traced("score")
def run_scoring(workspace: Workspace, progress: Progress = no_progress) -> RunReport:
    """Evaluate the nodes that are new since the last run, once each, and write their sets."""
    stopwatch = Stopwatch()
    engine_of(workspace.settings.engine).set_progress(progress)
    with write_session(workspace, progress, require_active_network) as session:
        require_sound_record(session.writer)
        stopwatch.lap("recover")
        refuse_older_graph(workspace)
        recorded = active_manifest(workspace.store, workspace.project)
        require_mapping(workspace.mapping, recorded)  # before the mirror follows another one
        model = model_files.load_model(workspace.models, recorded)
        engine_of(workspace.settings.engine).require_network(model.network)
        node_seed(workspace.settings, model.manifest)  # a lost seed key is refused at once
        stopwatch.lap("load model")
        read = retry_while_unavailable(
            "reading", lambda: read_graph(workspace, session.writer, progress)
        )
        changed_times = mark_evaluated(workspace, read.mirror, session.writer, read.new_rows)
        corrected = correct_some(
            workspace, session.writer, model.version, model.classes, read.mirror
        )
        stopwatch.lap("read")
        fault_points.reach("graph read")
        due, decision = decide_due(workspace, model, read, stopwatch, changed_times)
        seq = None
        if decision is not None:
            fault_points.reach("before decide")
            seq = runs.decide(session.writer, decision)
            fault_points.reach("decided")
            stopwatch.lap("decide")
            apply(workspace, session.writer, seq, progress, stopwatch)
            read.mirror.evaluated[due.rows] = True
            read.mirror.seq = seq
        save_graph(workspace, read.mirror)
        engine_of(workspace.settings.engine).close_tables(workspace.tables, model, read.mirror)
        stopwatch.lap("save mirror")
        shadow = None
        if seq is not None:
            shadow = shadow_run(workspace, session.writer, read.mirror, due, seq)
            if shadow is not None:
                stopwatch.lap("shadow")
    report = _report(seq, session.recovered, read, due, decision, corrected, stopwatch)
    return replace(report, shadow=shadow)


def refuse_older_graph(workspace: Workspace) -> None:
    """Refuse a graph that lacks runs which SQL has on record as applied to it.

    As after a restore of the graph from an older backup: its nodes are evaluated already and would
    never be due again, so without this a run would say that all is well while sets are missing.
    """
    applied = runs.applied_after(workspace.store, workspace.project, 0)
    if lost := prediction_sets.missing_runs(workspace.graph, workspace.project, applied):
        raise GraphError(
            found=f"{len(lost)} of {len(applied)} runs that the audit store has applied are not in "
            f"the graph (run {lost[0]} first): the graph is older than the store",
            needed="the graph that those runs were written to, or their sets written to it again",
            next_step="ringfence reconcile --repair",
        )


def _report(
    seq: int | None,
    recovered: tuple[int, ...],
    read: SyncResult,
    due: DueNodes,
    decision: Decision | None,
    corrected: int,
    stopwatch: Stopwatch,
) -> RunReport:
    sizes = count_sizes(decision.predictions) if decision else {}
    return RunReport(
        seq=seq,
        recovered=recovered,
        new_nodes=len(read.new_rows),
        new_edges=read.new_edges,
        evaluated=len(due.rows),
        waiting=due.waiting,
        already_known=due.already_known,
        evaluated_before=due.evaluated_before,
        keys_reused=due.reused,
        changed_times=due.changed_times,
        quarantined=len(read.mirror.rejected),
        corrected=corrected,
        sizes=sizes,
        run=decision.facts if decision else None,
        seconds=stopwatch.seconds,
    )
