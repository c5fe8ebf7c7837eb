"""Each protection taken away in turn, inside a worker: the checker must then see red."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

from sqlalchemy import delete, select, update

from ringfence.connector import mirror as mirrors
from ringfence.connector.neo4j.write import fence, prediction_sets
from ringfence.connector.store import engine, runs, tables, writer
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.project import session
from ringfence.jobs.scoring import score


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
            node_key=one.node_key,
            size=len(one.classes),
            classes=one.classes,
            p_values=one.p_values,
        )
        for one in decision.predictions
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
    """The mirror's flags are believed; SQL isn't asked who was evaluated."""
    score.mark_evaluated = lambda *_: None


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


BREAKS: dict[str, Callable[[], None]] = {
    "": nothing,
    **{
        one.__name__: one
        for one in (
            no_recovery, recompute, graph_first, no_fence, no_lease_check, create_without_key,
            forget_evaluated, mirror_first, own_clock, any_backup,
        )
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Control:
    """A protection taken away, and the fault that it protects from."""

    without: str
    deed: str
    place: str


CONTROLS = (
    Control("no_recovery", "kill", "decided"),
    Control("recompute", "kill", "after block"),
    Control("graph_first", "kill", "inside decide"),
    Control("no_fence", "freeze", "coverage in sql"),
    Control("no_lease_check", "freeze", "before coverage"),
    Control("create_without_key", "kill", "before close"),
    Control("forget_evaluated", "kill", "decided"),
    Control("mirror_first", "kill", "inside decide"),
    Control("own_clock", "kill", "decided"),
    Control("any_backup", "backup", ""),
)
