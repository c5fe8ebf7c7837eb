"""What dividing the graph costs: cut, halo, balance, bytes and memory of each worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringfence.connector.errors import ConfigError, GraphError
from ringfence.jobs.engines.ownership_file import read_owners, write_owners
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.scoring.inference import inference_graph
from ringfence.jobs.setup import memory
from ringfence.models.inference.partition.ownership import Cut, divide, extend, measure_cut

if TYPE_CHECKING:
    from ringfence.jobs.project.workspace import Workspace

CLASSES_WHERE_UNKNOWN = 2


@dataclass(frozen=True, slots=True)
class WorkerNeed:
    """One worker: rows that it owns, entries of their lists, rows of others that it reads.

    received: bytes that a full pass brings it. memory: what it needs for one, features left out,
    which are mapped from its disk; disk: with them.
    """

    rows: int
    entries: int
    halo: int
    received: float
    memory: float
    disk: float


@dataclass(frozen=True, slots=True)
class Division:
    """A division of the mirror's rows, beside what one machine needs and has free.

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
    if mirror.typed is not None:
        raise ConfigError(
            found="the project has several labels",
            needed="one label: graphs of several are computed by one machine so far",
            next_step='[engine] kind = "local"',
        )
    graph = inference_graph(mirror, workspace.mapping)
    known = None if anew else read_owners(workspace.tables, mirror.epoch, parts)
    kept = known is not None and len(known) <= graph.size
    owners = extend(graph, known, parts) if kept and known is not None else divide(graph, parts)
    if write:
        write_owners(workspace.tables, mirror.epoch, parts, owners)
    cut = measure_cut(graph, owners, parts)
    hidden, classes = workspace.settings.model.hidden, len(mirror.class_names)
    classes = max(classes, CLASSES_WHERE_UNKNOWN)
    need = memory.predict(graph.size, mirror.edge_count, mirror.width, hidden, classes)
    return Division(
        parts=parts,
        nodes=graph.size,
        cut=cut.share,
        balance=cut.balance,
        workers=worker_needs(cut, graph.size, mirror.width, hidden, classes),
        one_machine=need.score,
        free=memory.available(),
        kept=kept,
        written=write,
    )


def worker_needs(
    cut: Cut, nodes: int, width: int, hidden: int, classes: int
) -> tuple[WorkerNeed, ...]:
    """Return what each worker needs for a full pass of a network with these widths.

    Tables hold hidden + 2 classes numbers per row, of the halo as well; a list entry takes 4 bytes,
    and every worker knows the owner of every node, 2 bytes each.

    >>> cut = Cut(rows=(10, 10), entries=(40, 40), halo=(5, 0), cut=9)
    >>> [int(one.received) for one in worker_needs(cut, 20, width=3, hidden=8, classes=2)]
    [280, 0]
    """
    per_row = 4 * (hidden + 2 * classes + 2)
    found = []
    for rows, entries, halo in zip(cut.rows, cut.entries, cut.halo, strict=True):
        tables = (rows + halo) * per_row + rows * (8 + 8)
        lists = entries * 4 + rows * 8 + nodes * 2
        found.append(
            WorkerNeed(
                rows=rows,
                entries=entries,
                halo=halo,
                received=halo * per_row,
                memory=memory.SCORING_BASE_BYTES + tables + lists + nodes,
                disk=tables + lists + rows * width * 4,
            )
        )
    return tuple(found)
