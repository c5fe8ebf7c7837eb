"""What the graph shows against what SQL decided, prediction by prediction."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ringfence.connector.neo4j.compare import (
    ON_ANOTHER_NODE,
    ShownSet,
    find_gone,
    ordered,
    read_shown_sets,
)
from ringfence.connector.neo4j.write.prediction_sets import shown_places
from ringfence.connector.records import Run, StoredPrediction
from ringfence.connector.store import predictions, runs
from ringfence.connector.store.audit_chain.same_value import is_identical
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.integrity.checkpoint.progress_file import RunTurn
from ringfence.jobs.project.workspace import Workspace

ROWS_PER_BLOCK = 2_000

DifferenceKind = Literal["node gone", "not projected", "set differs", "stray", "key changed"]
KINDS: dict[DifferenceKind, str] = {
    "node gone": "evaluated, but no longer in the graph",
    "not projected": "in SQL, but the node lacks its EVALUATED relationship",
    "set differs": "the node's EVALUATED or MAY_BE relationships are not those that were decided",
    "stray": "EVALUATED in the graph without a prediction in SQL",
    "key changed": "the evaluated node has another key now",
}


@dataclass(frozen=True, slots=True)
class ProjectionDifference:
    """One node for which the two stores differ."""

    kind: DifferenceKind
    seq: int
    node_key: str


def find_differences(
    workspace: Workspace, seqs: Collection[int] | None = None, turn: RunTurn | None = None
) -> Iterator[ProjectionDifference]:
    """Yield every difference, run by run; both sides are read in blocks.

    With `seqs` these runs alone are compared; `turn` has those that need not be compared again.
    """
    applied = {
        run.seq: run
        for run in runs.applied_runs(workspace.store, workspace.project)
        if seqs is None or run.seq in seqs
    }
    for seq in applied if turn is None else turn.left(applied):
        clean = True
        for difference in _differences_of(workspace, applied[seq]):
            clean = False
            yield difference
        if turn is not None:
            turn.end(seq, clean=clean)


def _differences_of(workspace: Workspace, run: Run) -> Iterator[ProjectionDifference]:
    store, graph, mapping, project = (
        workspace.store, workspace.graph, workspace.mapping, workspace.project,
    )  # fmt: skip
    classes = json.loads(manifest_of(store, project, run.model))["classes"]
    shown = read_shown_sets(graph, mapping, project, run.seq, ROWS_PER_BLOCK)
    for block in predictions.payload(store, project, run.seq, ROWS_PER_BLOCK):
        absent = [stored for stored in block if stored.node_key not in shown]
        gone = find_gone(graph, mapping, absent)
        for stored in block:
            shown_set = shown.pop(stored.node_key, None)
            decided = decided_set(run, stored, classes)
            kind = _kind(stored, decided, shown_set, stored.node_key in gone)
            if kind is not None:
                yield ProjectionDifference(kind, run.seq, stored.node_key)
    moved = _moved(workspace, [*shown])
    for orphaned in shown:
        moved_kind: DifferenceKind = "key changed" if orphaned in moved else "stray"
        yield ProjectionDifference(moved_kind, run.seq, orphaned)


def _moved(workspace: Workspace, orphaned: Sequence[str]) -> set[str]:
    """Nodes whose key changed and that kept their EVALUATED, which prevents a second set.

    A prediction stands behind it, and its node does not have the old key any more; where it has,
    this is a copy.
    """
    marked = [key for key in orphaned if key.endswith(ON_ANOTHER_NODE)]
    keys = [key.removesuffix(ON_ANOTHER_NODE) for key in marked]
    gone: set[str] = set()
    for part in range(0, len(keys), ROWS_PER_BLOCK):
        block = keys[part : part + ROWS_PER_BLOCK]
        stored = predictions.some_predictions(workspace.store, workspace.project, block)
        gone |= find_gone(workspace.graph, workspace.mapping, stored)
    return {key for key in marked if key.removesuffix(ON_ANOTHER_NODE) in gone}


def decided_p_values(
    stored: StoredPrediction, run: Run, classes: Sequence[str]
) -> dict[str, float]:
    """Return the p-values of the classes that the graph shows of a prediction, by name."""
    places = shown_places(stored, classes, run.lowest_level)
    return {classes[place]: stored.p_values[place] for place in places}


def decided_set(run: Run, stored: StoredPrediction, classes: Sequence[str]) -> ShownSet:
    """Return a prediction as its relationships must show it."""
    p_values = decided_p_values(stored, run, classes)
    shown = [(name, p, name in stored.classes) for name, p in p_values.items()]
    facts = stored.size, run.alpha, run.level, stored.band, stored.sampled or None
    return ShownSet(*facts, sorted(stored.lists) or None, ordered(shown))


def _kind(
    stored: StoredPrediction, decided: ShownSet, shown: ShownSet | None, gone: bool
) -> DifferenceKind | None:
    if gone:
        return "node gone" if stored.in_graph else None
    if shown is None:
        return "not projected"
    return None if _is_shown(shown, decided) else "set differs"


def _is_shown(shown: ShownSet, decided: ShownSet) -> bool:
    """Whether a set is shown as it was decided, in the types that queries rely on."""
    return shown == decided and is_identical(_values(shown), _values(decided))


def _values(set_: ShownSet) -> tuple[object, ...]:
    return set_.size, set_.alpha, set_.level, set_.band, set_.sampled, set_.classes
