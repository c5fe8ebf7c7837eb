"""Why this set: which neighbours and columns keep a class in it or out of it.

Each answer is exact: the network runs on the graph without that neighbour, or with that column at
the training nodes' mean, and the node's scores are ranked among the same calibration scores, within
the same stratum, as without the change. Everything is computed on the mirror as the last run left
it; nothing is written, and no set changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import decode_key
from ringfence.connector.mirror import UNKNOWN, Mirror
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.store.models import manifest_of
from ringfence.connector.times import format_time
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.model_inputs import require_mapping
from ringfence.jobs.project.network_inputs import edge_index, uniforms_of
from ringfence.jobs.project.promise import PromiseTerms, terms_in_force
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration import living_set
from ringfence.jobs.scoring.evaluate import evaluate_rows
from ringfence.jobs.scoring.scored_rows import ScoredRows
from ringfence.jobs.scoring.stopwatch import Stopwatch
from ringfence.models.explanation.counterfactuals import Question, WhatIf, neighbours_of
from ringfence.models.inference import InferenceGraph, neighbourhood
from ringfence.models.scores import softmax64
from ringfence.models.scores.node_scores import needs_neighbours, node_scores

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MAX_NEIGHBOURS = 200
"""Neighbours that are asked about, those with the smallest rows first; the answer says how many."""


@dataclass(frozen=True, slots=True)
class Reason:
    """What a neighbour or a column does: p-values by class without it, and what changes.

    kind: "neighbour" or "column". class_: the neighbour's class, where it is known. enters, leaves:
    classes that would come into the set, or go out of it. moved: the largest change of a p-value.
    """

    kind: str
    name: str
    class_: str | None
    p_values: tuple[float, ...]
    enters: tuple[str, ...]
    leaves: tuple[str, ...]
    moved: float

    def as_json(self) -> dict[str, Any]:
        """Return the values under the keys of `ringfence explain --why --json`."""
        return {
            "kind": self.kind,
            "name": self.name,
            "class": self.class_,
            "p_values": self.p_values,
            "enters": self.enters,
            "leaves": self.leaves,
            "moved": self.moved,
        }


@dataclass(frozen=True, slots=True)
class Reasons:
    """Everything that was asked about a node, the strongest first.

    `p_values` are those on the graph that `graph` names in words, `sets` the classes above their
    levels there; `asked` and `neighbours` count the neighbours that were asked about and all.
    """

    graph: str
    model: str
    classes: tuple[str, ...]
    p_values: tuple[float, ...]
    classes_in_set: tuple[str, ...]
    neighbours: int
    asked: int
    reasons: tuple[Reason, ...]

    def as_json(self) -> dict[str, Any]:
        """Return what `ringfence explain --why --json` prints."""
        return {
            "graph": self.graph,
            "model": self.model,
            "classes": self.classes,
            "p_values": self.p_values,
            "set": self.classes_in_set,
            "neighbours": self.neighbours,
            "asked": self.asked,
            "reasons": [reason.as_json() for reason in self.reasons],
        }


def find_reasons(workspace: Workspace, typed_key: str, version: str) -> Reasons:
    """Return why the node with this key has its set, by the model version that evaluated it."""
    recorded = manifest_of(workspace.store, workspace.project, version)
    require_mapping(workspace.mapping, recorded)
    model = model_files.load_model(workspace.models, recorded)
    mirror = load_graph(workspace)
    plan = None if mirror is None or mirror.typed is not None else model.plan()
    if mirror is None or plan is None:
        raise ConfigError(
            found="there is no mirror of the graph on this machine"
            if mirror is None
            else f"the network {model.network} on this graph has no incremental kernel",
            needed="one label and one of GCN, SAGE, GAT, APPNP, MLP, with the mirror of a run",
            next_step="ringfence score" if mirror is None else "",
        )
    (row,) = mirror.find([typed_key]).tolist()
    if row < 0:
        raise ConfigError(
            found=f"the node {typed_key} is not in the mirror any more",
            needed="a node of the graph as the last run read it",
            next_step="ringfence explain KEY   (without --why: what is on record)",
        )
    features = mirror.features
    edges = edge_index(mirror, workspace.mapping)
    what_if = WhatIf(plan, edges, mirror.size, features, model.scaling.mean)
    near = neighbours_of(what_if.graph, row)
    questions: list[Question | None] = [None]
    questions += [Question(row, (other,)) for other in near[:MAX_NEIGHBOURS].tolist()]
    questions += [Question(row, blank=(column,)) for column in range(mirror.width)]
    return _answer(workspace, model, mirror, what_if, row, near, questions)


def _answer(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    what_if: WhatIf,
    row: int,
    near: Ints,
    questions: Sequence[Question | None],
) -> Reasons:
    terms = terms_in_force(workspace.settings.conformal, model.manifest)
    base = calibration_members(workspace.store, workspace.project, model.version, model.classes)
    known = list(living_set(workspace, model, terms, base).members)
    many = len(questions)

    def score(
        _workspace: Workspace,
        _model: SavedModel,
        _mirror: Mirror,
        _graph: InferenceGraph,
        wanted: Ints,
        _terms: PromiseTerms,
    ) -> ScoredRows:
        calibration = wanted[: len(wanted) - many]
        first = _scores(model, mirror, what_if, None, np.append(calibration, row), terms)
        asked = [
            _scores(model, mirror, what_if, question, np.array([row]), terms)
            for question in questions[1:]
        ]
        scores = np.concatenate([first, *asked])
        nothing = np.zeros(len(scores))
        return ScoredRows(scores, "", nothing, nothing)

    rows = np.full(many, row, np.int64)
    result = evaluate_rows(
        workspace, model, mirror, known, what_if.graph_for(None), rows, Stopwatch(), score=score
    ).result
    return _describe(workspace, model, mirror, near, questions, result.p_values, result.levels[0])


def _scores(
    model: SavedModel,
    mirror: Mirror,
    what_if: WhatIf,
    question: Question | None,
    wanted: Ints,
    terms: PromiseTerms,
) -> Floats:
    """Scores of all classes at `wanted`, if it were so."""
    graph = what_if.graph_for(question)
    near = neighbourhood(graph, wanted) if needs_neighbours(terms.score) else None
    rows = wanted if near is None else near.rows
    probabilities = softmax64(what_if.outputs_on(graph, rows))
    u = uniforms_of(mirror, rows, model.manifest["seed"])
    return np.asarray(node_scores(terms.score, probabilities, u, terms.score_options(), near))


def _describe(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    near: Ints,
    questions: Sequence[Question | None],
    p: Floats,
    levels: Floats,
) -> Reasons:
    inside = p > levels
    classes, names = model.classes, _column_names(workspace, mirror.width)
    reasons = []
    for place, question in enumerate(questions):
        if question is None:
            continue
        if question.without:
            (other,) = question.without
            kind, name = "neighbour", str(decode_key(mirror.keys[other]))
            index = int(mirror.classes[other])
            class_ = None if index == UNKNOWN else mirror.class_names[index]
        else:
            kind, name, class_ = "column", names[question.blank[0]], None
        reasons.append(
            Reason(
                kind=kind,
                name=name,
                class_=class_,
                p_values=tuple(p[place].tolist()),
                enters=tuple(np.array(classes)[inside[place] & ~inside[0]].tolist()),
                leaves=tuple(np.array(classes)[~inside[place] & inside[0]].tolist()),
                moved=float(np.abs(p[place] - p[0]).max()),
            )
        )
    reasons.sort(key=lambda one: (-bool(one.enters or one.leaves), -one.moved, one.kind, one.name))
    return Reasons(
        graph=f"the graph as it was read up to {format_time(mirror.watermark_ns)}: "
        f"{mirror.node_count:,} nodes, {mirror.edge_count:,} relationships",
        model=model.version,
        classes=tuple(classes),
        p_values=tuple(p[0].tolist()),
        classes_in_set=tuple(np.array(classes)[inside[0]].tolist()),
        neighbours=len(near),
        asked=sum(question is not None and bool(question.without) for question in questions),
        reasons=tuple(reasons),
    )


def _column_names(workspace: Workspace, width: int) -> list[str]:
    mapping = workspace.mapping
    if mapping.features_are_list:
        return [f"{mapping.features[0]}[{place}]" for place in range(width)]
    return list(mapping.features)
