"""`ringfence explain KEY`: all that is known of one node's set, as the Node page shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ringfence.connector.errors import ConfigError, RingfenceError, StoreError
from ringfence.connector.keys import decode_key, typed_candidates
from ringfence.connector.neo4j.neighbours import neighbours_of
from ringfence.connector.neo4j.read.example_queries import EVALUATED_NODES
from ringfence.connector.records import NoticedLabel, Run, StoredPrediction, Threshold
from ringfence.connector.store.lifecycle.activations import states_of
from ringfence.connector.store.models import class_names
from ringfence.connector.store.queries.nodes import (
    chain_entry_of,
    find_prediction,
    groups_of,
    noticed_labels,
    roles_of,
    sets_of,
)
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import ChainSeal, as_row
from ringfence.connector.store.retention.removals import removal_of
from ringfence.connector.store.thresholds.recorded import thresholds_of
from ringfence.connector.times import format_time

if TYPE_CHECKING:
    from ringfence.connector.mapping import GraphMapping
    from ringfence.connector.neo4j.driver import Graph
    from ringfence.jobs.explanation.reasons import Reasons
    from ringfence.jobs.project.workspace import Workspace

MAX_NEIGHBOURS = 24


@dataclass(frozen=True, slots=True)
class ClassPValue:
    """The p-value of one class of a node, and whether the class is in the set.

    `level` is what p was compared with, `calibration` how many nodes judged the class; both are
    None in runs of versions that did not record them.
    """

    class_: str
    p: float
    in_set: bool
    level: float | None = None
    calibration: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values under the keys of `ringfence explain --json`."""
        return {
            "class": self.class_,
            "p": self.p,
            "in_set": self.in_set,
            "level": self.level,
            "calibration": self.calibration,
        }


@dataclass(frozen=True, slots=True)
class ExplainedNeighbour:
    """A neighbour with its class in the graph, its set, and its role in training, where any."""

    key: str
    class_: str | None
    set: tuple[str, ...] | None
    role: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the values under the keys of `ringfence explain --json`."""
        return {"key": self.key, "class": self.class_, "set": self.set, "role": self.role}


@dataclass(frozen=True, slots=True)
class Explanation:
    """One evaluated node: its set and p-values, its run, its class when known, its neighbours.

    `neighbours` is None where the graph was not asked. `removed_ns` says when retention removed
    details: `p_values` then has the classes alone whose p-value stayed.
    """

    key: str
    typed_key: str
    sentence: str
    classes: tuple[str, ...]
    p_values: tuple[ClassPValue, ...]
    alpha: float
    threshold: str
    degree: int
    in_graph: bool
    run: Run
    chain: ChainSeal | None
    history: tuple[NoticedLabel, ...]
    groups: dict[str, str]
    neighbours: tuple[ExplainedNeighbour, ...] | None
    model_state: str = "active"
    reasons: Reasons | None = None
    removed_ns: int | None = None
    levels: Mapping[str, float | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return what `ringfence explain --json` prints."""
        around = self.neighbours
        return {
            "key": self.key,
            "typed_key": self.typed_key,
            "words": self.sentence,
            "classes": self.classes,
            "p_values": [value.as_json() for value in self.p_values],
            "alpha": self.alpha,
            "degree": self.degree,
            "in_graph": self.in_graph,
            "run": as_row(self.run),
            "model_state": self.model_state,
            "details_removed": None if self.removed_ns is None else format_time(self.removed_ns),
            "chain": as_row(self.chain) if self.chain else None,
            "history": [as_row(noticed) for noticed in self.history],
            "groups": self.groups,
            "neighbours": None if around is None else [one.as_json() for one in around],
            **({} if self.reasons is None else {"why": self.reasons.as_json()}),
        }


def run_explain(
    workspace: Workspace,
    key: str,
    why: bool = False,
    explainer: str | None = None,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
    seconds: float | None = None,
) -> Explanation:
    """Return what is known of a node, with its neighbours from the graph; asked, why it is so.

    `explainer` is "exact" or the name of one of PyG's; without one the network decides. After so
    many `seconds` no further step of asking why is begun.
    """
    workspace.require_migrated()
    queries = ProjectQueries(workspace.store, workspace.project)
    explanation = explain(queries, key, workspace.graph, workspace.mapping)
    if explanation is None:
        raise ConfigError(
            found=f"no node with the key {key!r} was evaluated in project {workspace.project!r}",
            needed="the key of a node that has a set; s:12 for the text 12, i:12 for the number",
            next_step=f"ringfence query '{EVALUATED_NODES}'",
        )
    if why:
        from ringfence.jobs.explanation.find import find_reasons

        reasons = find_reasons(
            workspace,
            explanation.typed_key,
            explanation.run.model,
            levels_of(explanation),
            method=explainer,
            seconds=seconds,
            progress=progress,
        )
        explanation = replace(explanation, reasons=reasons)
    return explanation


def levels_of(explanation: Explanation) -> dict[str, float | None]:
    """Return by class what its run compared p-values with; None where that is not on record."""
    return dict(explanation.levels)


def explain(
    queries: ProjectQueries,
    text: str,
    graph: Graph | None = None,
    mapping: GraphMapping | None = None,
) -> Explanation | None:
    """Return what is known of the node with this key; None where it was never evaluated."""
    prediction = find_prediction(queries, typed_candidates(text))
    run = queries.run(prediction.seq) if prediction else None
    if prediction is None or run is None:
        return None
    names = class_names(queries.store, queries.project)[run.model]
    p = _p_on_record(names, prediction)
    removed = removal_of(queries.store, queries.project, run.seq)
    judges = _judges(queries, run, prediction.band)
    bars = [
        ClassPValue(name, value, name in prediction.classes, *_judge_of(judges, name))
        for name, value in p.items()
    ]
    typed_key = prediction.node_key
    return Explanation(
        key=str(decode_key(typed_key)),
        typed_key=typed_key,
        sentence=describe_set(
            prediction.classes, len(names), p, run.alpha, per_class=run.promise == "class"
        ),
        classes=prediction.classes,
        p_values=tuple(sorted(bars, key=lambda bar: -bar.p)),
        alpha=run.alpha,
        threshold=_describe_threshold(run, judges, prediction.band),
        degree=prediction.degree,
        in_graph=prediction.in_graph,
        run=run,
        chain=chain_entry_of(queries, run.seq),
        history=tuple(noticed_labels(queries, typed_key)),
        groups=groups_of(queries, typed_key),
        neighbours=_explain_neighbours(queries, graph, mapping, typed_key),
        model_state=states_of([run.model], queries.activations())[run.model],
        removed_ns=None if removed is None else removed.at_ns,
        levels={name: _judge_of(judges, name)[0] for name in names},
    )


def _p_on_record(names: Sequence[str], stored: StoredPrediction) -> dict[str, float]:
    """P-values by class, without those that retention removed; an edited row is an error."""
    p = {name: value for name, value in zip(names, stored.p_values, strict=False) if value == value}
    if len(names) != len(stored.p_values) or not set(stored.classes) <= set(p):
        raise StoreError(
            found=f"the row of node {stored.node_key} in the audit store is not as it was decided",
            needed="a p-value for every class of its set",
            next_step="ringfence verify",
        )
    return p


def _judges(queries: ProjectQueries, run: Run, band: str | None) -> list[Threshold]:
    """The thresholds that judged a node at the run's first alpha: one, or one per class."""
    return [
        one
        for one in thresholds_of(queries.store, queries.project, run.seq)
        if one.alpha == run.alpha and one.band == (band or "")
    ]


def _judge_of(judges: Sequence[Threshold], name: str) -> tuple[float | None, int | None]:
    """Level and number of calibration nodes behind the threshold that judged a class."""
    for one in judges:
        if one.class_ in {"", name}:
            return one.level, one.n_calibration
    return None, None


def _describe_threshold(run: Run, own: Sequence[Threshold], band: str | None) -> str:
    """The threshold that judged a node: the run's only one, or that of its band or group."""
    if len(own) != 1:  # several: one per class
        where = f", of nodes of degree {band}" if band else ""
        return format_column("threshold", run.threshold) if not own else f"one per class{where}"
    where = f" (of {own[0].n_calibration:,} calibration nodes of degree {band})" if band else ""
    if band and run.promise == "group":
        where = f" (of {own[0].n_calibration:,} calibration nodes of {band})"
    return format_column("threshold", own[0].threshold) + where


def describe_set(
    inside: Sequence[str],
    classes: int,
    p: Mapping[str, float],
    alpha: float,
    *,
    per_class: bool = False,
) -> str:
    """Return a set as a sentence; `per_class` where each class is promised something of its own.

    >>> describe_set([], 3, {}, 0.1)
    'no class conforms: none of the 3 classes reaches a p-value above 0.1'
    >>> describe_set(["a", "b"], 2, {"a": 0.5, "b": 0.3}, 0.1)
    'nothing can be excluded: all 2 classes are in the set'
    >>> describe_set(["a"], 3, {"a": 0.04}, 0.1)
    'a, put into an empty set as the likeliest class (p = 0.04): no class conforms at 0.1'
    >>> describe_set(["a", "b"], 3, {"a": 0.5, "b": 0.3}, 0.1)
    'may be a or b; the other 1 of 3 classes is excluded with at most 10 % error'
    >>> describe_set(["a"], 3, {"a": 0.5}, 0.1, per_class=True)
    'may be a; each of the other 2 of 3 classes is excluded with at most the error promised to it'
    """
    if not inside and per_class:
        return f"no class conforms: none of the {classes} classes has a p-value above its own level"
    if not inside:
        return f"no class conforms: none of the {classes} classes reaches a p-value above {alpha:g}"
    if not per_class and len(inside) == 1 and p[inside[0]] <= alpha:
        return (
            f"{inside[0]}, put into an empty set as the likeliest class "
            f"(p = {p[inside[0]]:.3g}): no class conforms at {alpha:g}"
        )
    if len(inside) == classes:
        return f"nothing can be excluded: all {classes} classes are in the set"
    others = classes - len(inside)
    if per_class:
        return (
            f"may be {' or '.join(inside)}; each of the other {others} of {classes} classes is "
            "excluded with at most the error promised to it"
        )
    return (
        f"may be {' or '.join(inside)}; the other {others} of {classes} classes "
        f"{'is' if others == 1 else 'are'} excluded with "
        f"at most {100 * alpha:g} % error"
    )


def record_of(explanation: Explanation) -> list[tuple[str, str]]:
    """Return names and values of what is on record about a node, for the page and the terminal."""
    run, seal = explanation.run, explanation.chain
    return [
        ("key", explanation.typed_key),
        ("run", f"{run.seq}, decided {format_time(run.decided_ns)}"),
        ("rule", f"{run.rule}, score {run.score}, alpha {run.alpha:g}"),
        ("threshold", explanation.threshold),
        ("model", f"{run.model} ({explanation.model_state} now)"),
        ("degree when evaluated", str(explanation.degree)),
        ("chain entry", f"{seal.n}, hash {seal.hash}" if seal else "none"),
        *(
            [("details", describe_removal(explanation.removed_ns))]
            if explanation.removed_ns is not None
            else []
        ),
        *(
            ("class noticed", f"{noticed.label}, {format_time(noticed.noticed_ns)}")
            for noticed in explanation.history
        ),
        *((f"group {name}", value) for name, value in explanation.groups.items()),
    ]


def describe_removal(removed_ns: int) -> str:
    """Say what retention removed of a node, and when.

    >>> describe_removal(0)
    'scores and p-values not shown in the graph were removed by retention, 1970-01-01 00:00:00Z'
    """
    return (
        "scores and p-values not shown in the graph were removed by retention, "
        f"{format_time(removed_ns)}"
    )


def describe_class(explanation: Explanation) -> str:
    """Return what became of a node since it got its set, as a sentence."""
    gone = "" if explanation.in_graph else " The node had left the graph before its set reached it."
    if not explanation.history:
        return f"Its class is not known yet.{gone}"
    last = explanation.history[-1]
    held = "in the set" if last.covered else "missed by the set"
    unseen = ", a class that the model never saw" if last.unseen else ""
    return f"Its class is known: {last.label}, {held}{unseen}.{gone}"


def format_column(name: str, value: Any) -> str:
    """Return a column of a run for a person.

    >>> format_column("threshold", None), format_column("n_nodes", 12345)
    ('−∞ (the full set)', '12,345')
    >>> format_column("decided_ns", 0)
    '1970-01-01 00:00:00Z'
    """
    if name.startswith("threshold") and value is None:
        return "−∞ (the full set)"
    if name.endswith("_ns"):
        return format_time(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _explain_neighbours(
    queries: ProjectQueries, graph: Graph | None, mapping: GraphMapping | None, typed_key: str
) -> tuple[ExplainedNeighbour, ...] | None:
    """Neighbours from the graph, with what SQL knows of them; None where it can't be asked."""
    if graph is None or mapping is None:
        return None
    try:
        neighbours = neighbours_of(graph, mapping, typed_key, MAX_NEIGHBOURS)
    except RingfenceError:
        return None
    typed_keys = [neighbour.typed_key for neighbour in neighbours]
    sets, roles = sets_of(queries, typed_keys), roles_of(queries, typed_keys)
    return tuple(
        ExplainedNeighbour(
            neighbour.key,
            neighbour.class_,
            sets.get(neighbour.typed_key),
            roles.get(neighbour.typed_key),
        )
        for neighbour in neighbours
    )
