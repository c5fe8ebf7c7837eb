"""`ringfence explain KEY`: all that is known of one node's set, as the Node page shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.keys import (
    decode_key,
    split_record_key,
    typed_candidates,
    typed_key_of,
)
from ringfence.connector.neo4j.read.example_queries import EVALUATED_NODES
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.records import NoticedLabel, Run, StoredPrediction, Threshold
from ringfence.connector.store.lifecycle.activations import states_of
from ringfence.connector.store.models import class_names
from ringfence.connector.store.queries.nodes import (
    NodeOfKey,
    chain_entry_of,
    find_prediction,
    groups_of,
    nodes_of_key,
    noticed_labels,
)
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import ChainSeal, as_row
from ringfence.connector.store.retention.removals import removal_of
from ringfence.connector.store.thresholds.recorded import thresholds_of
from ringfence.connector.times import format_time
from ringfence.jobs.views.class_misses import class_alphas_of, describe_classes
from ringfence.jobs.views.doubts import find_doubts
from ringfence.jobs.views.explained_neighbours import ExplainedNeighbour, neighbours_if_reached
from ringfence.models.promise.registry import promise_named

if TYPE_CHECKING:
    from ringfence.connector.mapping import GraphMapping
    from ringfence.connector.neo4j.driver import Graph
    from ringfence.jobs.explanation.reasons import Reasons
    from ringfence.jobs.project.workspace import Workspace


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

    def as_json(self) -> JsonObject:
        """Return the values under the keys of `ringfence explain --json`."""
        return {
            "class": self.class_,
            "p": self.p,
            "in_set": self.in_set,
            "level": self.level,
            "calibration": self.calibration,
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """One evaluated node: its set and p-values, its run, its class when known, its neighbours.

    `neighbours` is None if the graph was not queried. `removed_ns` says when retention removed
    details: `p_values` then has the classes alone whose p-value stayed. `doubts` say why the
    promise behind the set can't be relied on now: it is broken, or an alarm is firing.
    `nodes_of_key` are all evaluated nodes that had the key, one after the other; `typed_key` is
    the record's key.
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
    doubts: tuple[str, ...] = ()
    nodes_of_key: tuple[NodeOfKey, ...] = ()

    def as_json(self) -> JsonObject:
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
            "nodes_of_key": [asdict(node) for node in self.nodes_of_key],
            "neighbours": None if around is None else [neighbour.as_json() for neighbour in around],
            "doubts": self.doubts,
            **({} if self.reasons is None else {"why": self.reasons.as_json()}),
        }


def run_explain(
    workspace: Workspace,
    key: str,
    why: bool = False,
    explainer: str | None = None,
    progress: Progress = no_progress,
    seconds: float | None = None,
) -> Explanation:
    """Return what is known of a node, with its neighbours from the graph; with `why`, the reasons.

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
    thresholds = _thresholds_of_node(queries, run, prediction.band)
    bars = [
        ClassPValue(name, value, name in prediction.classes, *_level_of_class(thresholds, name))
        for name, value in p.items()
    ]
    typed_key = prediction.node_key
    groups = groups_of(queries, typed_key)
    doubts = find_doubts(queries, run, groups)
    same_key = nodes_of_key(queries, typed_key_of(typed_key))
    is_newest = same_key[-1].node_key == typed_key  # the graph knows nothing of earlier ones
    return Explanation(
        key=str(decode_key(typed_key)),
        typed_key=typed_key,
        sentence=describe_set(
            prediction.classes,
            len(names),
            p,
            run.alpha,
            class_alphas=class_alphas_of(run, names),
            doubts=doubts,
        ),
        classes=prediction.classes,
        p_values=tuple(sorted(bars, key=lambda bar: -bar.p)),
        alpha=run.alpha,
        threshold=_describe_threshold(run, thresholds, prediction.band),
        degree=prediction.degree,
        in_graph=prediction.in_graph,
        run=run,
        chain=chain_entry_of(queries, run.seq),
        history=tuple(noticed_labels(queries, typed_key)),
        groups=groups,
        neighbours=neighbours_if_reached(queries, graph, mapping, typed_key) if is_newest else (),
        model_state=states_of([run.model], queries.activations())[run.model],
        removed_ns=None if removed is None else removed.at_ns,
        levels={name: _level_of_class(thresholds, name)[0] for name in names},
        doubts=doubts,
        nodes_of_key=tuple(same_key),
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


def _thresholds_of_node(queries: ProjectQueries, run: Run, band: str | None) -> list[Threshold]:
    """The thresholds of a node's stratum at the run's first alpha: one, or one per class."""
    return [
        threshold
        for threshold in thresholds_of(queries.store, queries.project, run.seq)
        if threshold.alpha == run.alpha and threshold.band == (band or "")
    ]


def _level_of_class(thresholds: Sequence[Threshold], name: str) -> tuple[float | None, int | None]:
    """Level and number of calibration nodes behind the threshold of a class."""
    for threshold in thresholds:
        if threshold.class_ in {"", name}:
            return threshold.level, threshold.n_calibration
    return None, None


def _describe_threshold(run: Run, thresholds: Sequence[Threshold], band: str | None) -> str:
    """The threshold of a node: the run's only one, or that of its band or group."""
    if len(thresholds) != 1:  # several: one per class
        where = f", of nodes of degree {band}" if band else ""
        return (
            format_column("threshold", run.threshold) if not thresholds else f"one per class{where}"
        )
    whom = promise_named(run.promise).describe_band(band) if band else ""
    where = f" (of {thresholds[0].n_calibration:,} calibration nodes of {whom})" if band else ""
    return format_column("threshold", thresholds[0].threshold) + where


def describe_set(
    inside: Sequence[str],
    classes: int,
    p: Mapping[str, float],
    alpha: float,
    *,
    class_alphas: Mapping[str, float] | None = None,
    doubts: Sequence[str] = (),
) -> str:
    """Return a set as a sentence; `class_alphas` if each class has a promise of its own.

    What sets may miss is not said while `doubts` speak against it: these stand there instead.

    >>> describe_set([], 3, {}, 0.1)
    'no class conforms: none of the 3 classes reaches a p-value above 0.1'
    >>> describe_set(["a", "b"], 2, {"a": 0.5, "b": 0.3}, 0.1)
    'nothing can be excluded: all 2 classes are in the set'
    >>> describe_set(["a"], 3, {"a": 0.04}, 0.1)
    'a, put into an empty set as the likeliest class (p = 0.04): no class conforms at 0.1'
    >>> describe_set(["a", "b"], 3, {"a": 0.5, "b": 0.3}, 0.1)
    'may be a or b; sets may miss 10 % of nodes'
    >>> describe_set(["a"], 3, {"a": 0.5}, 0.1, class_alphas={"a": 0.05, "b": 0.1, "c": 0.1})
    'only a fits; of true a nodes sets may miss 5 %, of those of other classes 10 %'
    >>> describe_set(["a"], 3, {"a": 0.5}, 0.1, doubts=["the promise is broken: 80 % are covered"])
    'only a fits; but the promise is broken: 80 % are covered'
    >>> describe_set(["a", "b"], 2, {"a": 0.5, "b": 0.3}, 0.1, doubts=["the promise is broken"])
    'nothing can be excluded: all 2 classes are in the set; but the promise is broken'
    """
    fitting, may_miss = describe_classes(inside, classes, p, alpha, class_alphas)
    if doubts:
        return f"{fitting}; but {doubts[0]}"
    return f"{fitting}{may_miss}"


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
        *(
            ("another node of this key", f"evaluated in run {node.seq}: {_name_of(node.node_key)}")
            for node in explanation.nodes_of_key
            if node.node_key != explanation.typed_key
        ),
    ]


def _name_of(node_key: str) -> str:
    """A record's key that means one node, also the first of several that had the key.

    >>> _name_of("i:7"), _name_of("1@i:7")
    ('0@i:7', '1@i:7')
    """
    typed_key, number = split_record_key(node_key)
    return f"{number}@{typed_key}"


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
    gone = "" if explanation.in_graph else " The node has left the graph."
    if explanation.nodes_of_key and explanation.nodes_of_key[-1].node_key != explanation.typed_key:
        gone = " The node has left the graph; another one has its key now."
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
