"""What dividing the graph costs: cut, halo, balance, bytes and memory of each worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringfence.connector.errors import GraphError, ModelError
from ringfence.connector.store.models import find_active_manifest
from ringfence.jobs.engines.ownership_file import read_owners, write_owners
from ringfence.jobs.inference import inference_graph
from ringfence.jobs.project import memory
from ringfence.jobs.project.columns.column_encoders import network_of
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import load_model
from ringfence.models.inference.partition.ownership import Cut, divide, extend, measure_cut

if TYPE_CHECKING:
    from ringfence.connector.mirror import Mirror
    from ringfence.jobs.project.workspace import Workspace

CLASSES_WHERE_UNKNOWN = 2
WORKER_BASE_BYTES = 0.32e9  # a process of Ray with numba loaded; as `make bench-scale` fits it
WORKER_BYTES_PER_HELD = 1.65


@dataclass(frozen=True, slots=True)
class WorkerNeed:
    """One worker: rows that it owns, entries of their lists, rows of others that it reads.

    received: bytes that a full pass brings it. memory: its peak in one, mapped files with it;
    disk: what it keeps.
    """

    rows: int
    entries: int
    halo: int
    received: float
    memory: float
    disk: float


@dataclass(frozen=True, slots=True)
class Division:
    """A division of the mirror's rows, compared with what one machine needs and has free.

    kept: whether it is the one on record, grown by new rows; written: whether it is on record now.
    """

    parts: int
    nodes: int
    cut: float
    balance: float
    workers: tuple[WorkerNeed, ...]
    one_machine: float
    free: float
    kept: bool
    written: bool

    @property
    def one_is_cheaper(self) -> bool:
        """Whether this machine has the memory for the whole graph."""
        return self.one_machine <= self.free


def preview_division(workspace: Workspace, parts: int, *, anew: bool, write: bool) -> Division:
    """Measure the division on record, or a new one; `write` puts it on record."""
    mirror = load_graph(workspace)
    if mirror is None:
        raise GraphError(
            found="there is no mirror of the graph yet",
            needed="a graph that was read",
            next_step="ringfence train, or ringfence score",
        )
    width = mirror.width or _mean_width(workspace, mirror)
    graph = inference_graph(mirror, workspace.mapping)
    known = None if anew else read_owners(workspace.tables, mirror.epoch, parts)
    kept = known is not None and len(known) <= graph.size
    owners = extend(graph, known, parts) if kept and known is not None else divide(graph, parts)
    if write:
        write_owners(workspace.tables, mirror.epoch, parts, owners)
    cut = measure_cut(graph, owners, parts)
    hidden, classes = workspace.settings.model.hidden, len(mirror.class_names)
    classes = max(classes, CLASSES_WHERE_UNKNOWN)
    need = memory.predict(graph.size, mirror.edge_count, width, hidden, classes)
    return Division(
        parts=parts,
        nodes=graph.size,
        cut=cut.share,
        balance=cut.balance,
        workers=worker_needs(cut, graph.size, width, hidden, classes),
        one_machine=need.score,
        free=memory.available(),
        kept=kept,
        written=write,
    )


def _mean_width(workspace: Workspace, mirror: Mirror) -> int:
    """Encoded columns that a row has on average, as the model in use encodes the labels."""
    recorded = find_active_manifest(workspace.store, workspace.project)
    if recorded is None:
        raise ModelError(
            found="the project has several labels and no model yet",
            needed="a model: how many columns a row has is known when it was trained",
            next_step="ringfence train",
        )
    return network_of(load_model(workspace.models, recorded)).mean_width(mirror)


def worker_needs(
    cut: Cut, nodes: int, width: int, hidden: int, classes: int
) -> tuple[WorkerNeed, ...]:
    """Return what each worker needs for a full pass of a network with these widths.

    It holds features, both tables and stamps of its rows, the tables' rows of its halo, 4 bytes per
    list entry, and owner and mark of every node. What a worker takes at its peak follows from that
    by two constants that `make bench-scale` fits, and checks at sizes that were not fitted.

    >>> cut = Cut(rows=(10, 10), entries=(40, 40), halo=(5, 0), cut=9)
    >>> [int(need.received) for need in worker_needs(cut, 20, width=3, hidden=8, classes=2)]
    [280, 0]
    """
    tables = hidden + 2 * classes
    needs = []
    for rows, entries, halo in zip(cut.rows, cut.entries, cut.halo, strict=True):
        held = rows * (4 * (width + tables) + 28) + 4 * halo * (tables + 1)
        held += 4 * entries + 3 * nodes
        needs.append(
            WorkerNeed(
                rows=rows,
                entries=entries,
                halo=halo,
                received=4 * halo * (tables + 2),
                memory=WORKER_BASE_BYTES + WORKER_BYTES_PER_HELD * held,
                disk=held,
            )
        )
    return tuple(needs)
