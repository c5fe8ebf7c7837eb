"""Each protection taken away in turn, inside a worker: the checker must then see red."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import Any

from sqlalchemy import delete, select, update

from ringfence.connector import mirror as mirrors
from ringfence.connector.neo4j.read import sync
from ringfence.connector.neo4j.read.accounting import Difference
from ringfence.connector.neo4j.read.comparison import SliceDifference
from ringfence.connector.neo4j.write import fence, prediction_sets
from ringfence.connector.store import (
    corrections,
    engine,
    models,
    predictions,
    runs,
    tables,
    writer,
)
from ringfence.connector.store.lease import Lease
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.auditing import audit
from ringfence.jobs.inference import cache_files
from ringfence.jobs.lifecycle import promotion
from ringfence.jobs.project import session, workspace
from ringfence.jobs.scoring import decision, evaluation_flags, score
from ringfence.jobs.scoring.calibration import calibration_set
from tests.known_nodes import ListedNodes


def nothing() -> None:
    """All protections stay."""


def no_recovery() -> None:
    """A run that a crash left decided stays so."""
    session.recover = lambda *_: ()


def recompute() -> None:
    """A run that a crash left decided is thrown away, and its nodes are evaluated again."""

    def recover(workspace: Any, writer: Any, _progress: Any) -> tuple[int, ...]:
        undone = runs.undone(workspace.store, workspace.project)
        with workspace.store.transaction() as connection:
            for seq in undone:
                of = tables.prediction.c
                connection.execute(
                    delete(tables.prediction).where(of.project == workspace.project, of.seq == seq)
                )
                at = tables.run.c
                connection.execute(
                    update(tables.run)
                    .where(at.project == workspace.project, at.seq == seq)
                    .values(state="applied")
                )
        del writer
        return tuple(undone)

    session.recover = recover


def graph_first() -> None:
    """The graph is written before SQL has decided."""
    decide_due, decide = score.decide_due, runs.decide
    here = SimpleNamespace()

    def considered(workspace: Any, *rest: Any) -> Any:
        here.workspace = workspace
        return decide_due(workspace, *rest)

    def decided(writer: Any, decision: Any) -> int:
        _project(here.workspace, writer, decision)
        return decide(writer, decision)

    score.decide_due, runs.decide = considered, decided


def _project(workspace: Any, writer: Any, decision: Any) -> None:
    with workspace.store.reading() as connection:
        seq = connection.execute(
            select(tables.lease.c.next_seq).where(tables.lease.c.project == workspace.project)
        ).scalar_one()
    facts = {**asdict(decision.facts), "seq": seq, "decided_ns": time.time_ns()}
    row = SimpleNamespace(project=workspace.project, **facts)
    names = dumps_classes(workspace, row.model)
    prediction_sets.write_run(workspace.graph, writer.lease, row, names)
    sets = [
        SimpleNamespace(
            project=workspace.project,
            node_key=prediction.node_key,
            size=len(prediction.classes),
            classes=prediction.classes,
            p_values=prediction.p_values,
            band=prediction.band,
        )
        for prediction in decision.predictions.records()
    ]
    prediction_sets.write_sets(
        workspace.graph,
        writer.lease,
        workspace.mapping,
        row,
        prediction_sets.prepare_sets(sets, names),
    )


def dumps_classes(workspace: Any, version: str) -> list[str]:
    """Class names of a model version."""
    import json

    manifest = json.loads(manifest_of(workspace.store, workspace.project, version))
    return list(manifest["classes"])


def blocks_commit() -> None:
    """Each block of a run is committed by itself; on SQLite, where the controls run."""
    insert_entries = predictions.insert_entries

    def committed(connection: Any, *rest: Any) -> None:
        insert_entries(connection, *rest)
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    predictions.insert_entries = committed


def no_fence() -> None:
    """The graph takes writes with any lease token."""
    fence.FENCE = "RETURN $token AS token"


def no_lease_check() -> None:
    """SQL transactions neither renew the lease nor ask whose it is."""
    writer.renew = lambda *_: None


def create_without_key() -> None:
    """Evaluations are created without asking what stands (and the harness drops the unique key)."""
    asked = "[to IN [run] WHERE NOT to IN there]"
    prediction_sets.SETS = prediction_sets.SETS.replace(asked, "[run]")


def forget_evaluated() -> None:
    """The mirror's flags are believed; neither SQL nor the graph is asked who was evaluated."""
    score.mark_evaluated = lambda *_: None
    decision.leave_out_evaluated = lambda _workspace, _mirror, due: due


def mirror_first() -> None:
    """The mirror remembers nodes as evaluated before SQL has decided."""
    decide_due = score.decide_due

    def considered(workspace: Any, model: Any, read: Any, stopwatch: Any) -> Any:
        due, decision = decide_due(workspace, model, read, stopwatch)
        read.mirror.evaluated[due.rows] = True
        mirrors.save(read.mirror, workspace.mirror)
        return due, decision

    score.decide_due = considered


def own_clock() -> None:
    """Leases run by the worker's clock instead of the database's."""
    engine.Store.now_ns = lambda _self, _connection: time.time_ns()


def any_backup() -> None:
    """A store older than the graph is taken as it is, and the graph has no fence."""
    session.refuse_older_store = lambda *_: None
    no_fence()


def no_accounts() -> None:
    """What is new is read; nobody counts what is there, or compares a slice."""
    sync.settle_accounts = lambda *_: Difference()
    no_slices()


def no_slices() -> None:
    """Nodes that were read are never compared with the graph again."""
    sync.compare_slice = lambda *_: SliceDifference()


def no_corrections() -> None:
    """Calibration nodes keep the classes of the training."""
    score.correct_some = lambda *_: 0
    audit.correct_all = lambda *_: 0


def no_creation_times() -> None:
    """A calibration node is known by its key alone."""
    corrections._is_another_node = lambda *_: False
    evaluation_flags.members = lambda *of: [
        replace(m, created_ns=None) for m in models.members(*of)
    ]


def no_checksums() -> None:
    """Kept tables are believed as they are."""
    cache_files.damaged_arrays = lambda *_: []


def one_folder() -> None:
    """All projects have the same mirror and the same tables."""
    workspace.Workspace.mirror = property(lambda of: of.settings.engine.folder / "mirror")
    sync.mirror_identity = lambda graph, mapping: "shared"


def any_mapping() -> None:
    """A model takes whatever the configuration names."""
    score.require_mapping = lambda *_: None


def promotion_without_lease() -> None:
    """A promotion neither waits for a run that is at work nor takes the lease from it."""

    @contextmanager
    def at_once(of: Any, _progress: Any) -> Iterator[Any]:
        with of.store.reading() as connection:
            query = select(tables.lease).where(tables.lease.c.project == of.project)
            row = connection.execute(query).one()
        held = Lease(of.project, row.owner, row.token, of.settings.engine.lease_seconds)
        yield SimpleNamespace(writer=of.writer_with(held), recovered=())

    no_lease_check()
    promotion.write_session = at_once


def learnt_nodes() -> None:
    """Nobody remembers which nodes a version learnt from: once known they calibrate it too."""
    known: Any = calibration_set.KnownNodes
    broken: Any = calibration_set

    def forget(*of: Any) -> ListedNodes:
        return ListedNodes([replace(node, role=None) for node in known(*of).all()])

    broken.KnownNodes = forget


BREAKS: dict[str, Callable[[], None]] = {
    "": nothing,
    **{
        protection.__name__: protection
        for protection in (
            no_recovery, recompute, graph_first, blocks_commit, no_fence, no_lease_check,
            create_without_key,
            forget_evaluated, mirror_first, own_clock, any_backup, no_accounts, no_slices,
            no_corrections, no_creation_times, no_checksums, one_folder, any_mapping,
            promotion_without_lease, learnt_nodes,
        )
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Control:
    """A protection taken away, and the fault that it protects from."""

    without: str
    deed: str
    place: str

    @property
    def name(self) -> str:
        """What was taken away, and from what it protects where that has several."""
        named = sum(other.without == self.without for other in CONTROLS) > 1
        return f"{self.without} ({self.deed})" if named else self.without


CONTROLS = (
    Control("no_recovery", "kill", "decided"),
    Control("recompute", "kill", "after block"),
    Control("graph_first", "kill", "inside decide"),
    Control("blocks_commit", "kill", "block in sql"),
    Control("no_fence", "freeze", "coverage in sql"),
    Control("no_lease_check", "freeze", "before coverage"),
    Control("create_without_key", "kill", "before close"),
    Control("forget_evaluated", "kill", "decided"),
    Control("mirror_first", "kill", "inside decide"),
    Control("own_clock", "kill", "decided"),
    Control("any_backup", "backup", ""),
    Control("no_accounts", "relationships_deleted", ""),
    Control("no_accounts", "nodes_deleted", ""),
    Control("no_slices", "features_changed", ""),
    Control("no_corrections", "classes_changed", ""),
    Control("no_creation_times", "calibration_removed", ""),
    Control("one_folder", "two_projects", ""),
    Control("no_checksums", "damaged_tables", ""),
    Control("any_mapping", "schedule_reconfigured", ""),
    Control("promotion_without_lease", "promotion", ""),
    Control("learnt_nodes", "promotion", ""),
)
