"""The fence: one node per project that lets only the newest lease holder write to the graph.

Every writing transaction first shows its lease token to the project's fence node: a process that
slept through its lease carries a smaller token than its successor and writes nothing. The same node
holds the audit chain's newest entry, out of reach of someone who edits the SQL store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ringfence.connector.errors import GraphError, LeaseLost
from ringfence.connector.neo4j.bolt import ManagedTransaction
from ringfence.connector.neo4j.driver import Graph

if TYPE_CHECKING:
    from ringfence.connector.store.lease import Lease

T = TypeVar("T")

# The first SET takes the lock: a token read before it may be older than what another has written.
FENCE = """
MERGE (f:RingfenceFence {project: $project}) ON CREATE SET f.token = $token
SET f.asked = $token
WITH f WHERE f.token <= $token
SET f.token = $token
RETURN f.token AS token
"""

HIGHEST = "MATCH (f:RingfenceFence {project: $project}) RETURN f.token AS token"

# Only forward: an entry that was rewritten in SQL keeps differing from the one remembered here.
ANCHOR = """
MATCH (f:RingfenceFence {project: $project})
WHERE coalesce(f.chain_n, 0) < $n
SET f.chain_n = $n, f.chain_hash = $hash, f.public_key = $public_key
"""

ANCHORED = """
MATCH (f:RingfenceFence {project: $project}) WHERE f.chain_n IS NOT NULL
RETURN f.chain_n AS n, f.chain_hash AS hash, f.public_key AS public_key
"""


NO_ENTRY = -1  # the number of an anchor that someone replaced by something else


@dataclass(frozen=True, slots=True)
class Anchor:
    """Number and hash of the chain entry that the graph holds, and the public signing key."""

    n: int
    hash: str
    public_key: str | None = None


def write_fenced(graph: Graph, held: Lease, work: Callable[[ManagedTransaction], T]) -> T:
    """Run `work` in a transaction that passes the fence first; raise `LeaseLost` where it can't.

    The server ends the transaction when the lease would end.
    """

    def fenced(tx: ManagedTransaction) -> T:
        if tx.run(FENCE, project=held.project, token=held.token).single() is None:
            raise LeaseLost(
                found=f"another process has written for project {held.project!r} since",
                needed="the newest lease token; nothing of this transaction was written",
                next_step="nothing: the other process goes on with the work",
            )
        return work(tx)

    return graph.write(fenced, timeout_seconds=held.seconds)


def fence_token(graph: Graph, project: str) -> int:
    """Return the highest lease token that has written to the graph; 0 where none has."""
    rows = graph.read(HIGHEST, project=project)
    token = rows[0]["token"] if rows else 0
    if not isinstance(token, int):
        raise GraphError(
            found=f"the token of project {project!r}'s (:RingfenceFence) is {token!r}",
            needed="the number of the lease that wrote last; someone changed it",
            next_step="ringfence verify (docs/reliability.md, Answers)",
        )
    return token


def write_anchor(graph: Graph, held: Lease, newest: Anchor) -> None:
    """Store the chain's newest entry in the graph (the anchor); an older one is ignored."""
    values: dict[str, Any] = {"n": newest.n, "hash": newest.hash, "public_key": newest.public_key}
    write_fenced(graph, held, lambda tx: tx.run(ANCHOR, project=held.project, **values).consume())


def read_anchor(graph: Graph, project: str) -> Anchor | None:
    """Return the anchor: the chain entry that the graph holds; None if there is none."""
    rows = graph.read(ANCHORED, project=project)
    if not rows:
        return None
    n, public_key = rows[0]["n"], rows[0]["public_key"]
    return Anchor(
        n if isinstance(n, int) else NO_ENTRY,
        str(rows[0]["hash"]),
        None if public_key is None else str(public_key),
    )
