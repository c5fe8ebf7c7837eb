"""Why this set: which neighbours, relationship types and columns keep a class in it or out of it.

Each answer is exact: the network runs on the graph without that neighbour, or with that column at
the training nodes' mean (one label) or as if the node had never had it (several labels), and the
node's scores are ranked among the same calibration scores, within the same stratum, as without the
change. Everything is computed on the mirror as the last run left it; nothing is written, and no set
changes. Equal inputs give equal answers, unless a time limit ends the questions early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.times import format_time
from ringfence.jobs.explanation.asked_node import AskedNode, find_node
from ringfence.jobs.explanation.attributions import attribute, refuse_method
from ringfence.jobs.explanation.deadline import Deadline
from ringfence.jobs.explanation.reasons import EXACT, NEIGHBOUR, Part, Reason, Reasons
from ringfence.jobs.explanation.smallest import Asked, find_smallest
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import uniforms_of
from ringfence.jobs.project.promise import PromiseTerms, terms_in_force
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.living_set import living_set
from ringfence.jobs.scoring.evaluate import evaluate_rows
from ringfence.jobs.scoring.scored_rows import ScoredRows
from ringfence.jobs.scoring.stopwatch import Stopwatch
from ringfence.models.explanation.counterfactuals import Counterfactual
from ringfence.models.explanation.question import Question
from ringfence.models.inference import InferenceGraph, neighbourhood
from ringfence.models.scores import softmax64
from ringfence.models.scores.node_scores import needs_neighbours, node_scores

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]
MAX_NEIGHBOURS = 200
"""Neighbours that are asked about, those with the smallest rows first; the answer says how many."""


def find_reasons(
    workspace: Workspace,
    typed_key: str,
    version: str,
    levels: Mapping[str, float | None],
    *,
    method: str | None = None,
    seconds: float | None = None,
    progress: Progress = lambda _what, _done, _all: None,
) -> Reasons:
    """Return why the node with this key has its set, by the model version that evaluated it.

    Args:
        workspace: an open project.
        typed_key: key of the node.
        version: of the model that evaluated it.
        levels: by class, what its run compared p-values with; None where that is not on record.
        method: "exact", or the name of one of PyG's explainers; without one, exact where the
            network has kernels and GNNExplainer where it is a user's own module.
        seconds: no step is begun after so many, counted from the call, loading included. The
            answer says what was not looked at then.
        progress: told after each question.
    """
    deadline = Deadline(seconds)
    node = find_node(workspace, typed_key, version)
    chosen = method or (EXACT if node.what_if is not None else "GNNExplainer")
    if chosen != EXACT:
        return attribute(node, chosen, describe_graph(node.mirror), deadline)
    if node.what_if is None:
        refuse_method(node.model.network)
    if deadline.over():
        return _nothing_asked(node, deadline.describe("loading the graph"))
    return _answer(node, levels, deadline, progress)


def describe_graph(mirror: Mirror) -> str:
    """Say on which graph an answer is computed."""
    return (
        f"the graph as it was read up to {format_time(mirror.watermark_ns)}: "
        f"{mirror.node_count:,} nodes, {mirror.edge_count:,} relationships"
    )


class _Ranks:
    """p-values of a node if something were otherwise, among calibration scores as they are."""

    def __init__(self, node: AskedNode, deadline: Deadline, progress: Progress) -> None:
        workspace, model = node.workspace, node.model
        self.node, self.deadline, self.progress, self.questions = node, deadline, progress, 0
        self.terms = terms_in_force(workspace.settings.conformal, model.manifest)
        base = calibration_members(workspace.store, workspace.project, model.version, model.classes)
        self.known = list(living_set(workspace, model, self.terms, base).members)
        self.calibration: Floats | None = None
        self.levels: Floats = np.empty(0)

    def now(self) -> Floats:
        """p-values of the node as it is [classes]; the calibration nodes are scored here, once."""
        found: Floats = self._ranked([np.empty((1, 0))])[0]
        return found

    def ask(self, questions: Sequence[Question]) -> Floats:
        """p-values [m, classes]; fewer rows than questions where the time was over before."""
        rows = []
        for question in questions:
            if self.deadline.over():
                break
            rows.append(self._scores(question, np.array([self.node.row])))
            self.questions += 1
            self.progress("questions", self.questions, 0)
        if not rows:
            return np.empty((0, len(self.node.model.classes)))
        return self._ranked(rows)

    def _ranked(self, asked: list[Floats]) -> Floats:
        node, many = self.node, len(asked)

        def score(
            _workspace: Workspace,
            _model: SavedModel,
            _mirror: Mirror,
            _graph: InferenceGraph,
            wanted: Ints,
            _terms: PromiseTerms,
        ) -> ScoredRows:
            if self.calibration is None:
                near = np.append(wanted[: len(wanted) - many], node.row)
                self.calibration = self._scores(None, near)
            own = [self.calibration[-1:] if not one.size else one for one in asked]
            scores = np.concatenate([self.calibration[:-1], *own])
            nothing = np.zeros(len(scores))
            return ScoredRows(scores, "", nothing, nothing)

        rows = np.full(many, node.row, np.int64)
        result = evaluate_rows(
            node.workspace, node.model, node.mirror, self.known, node.graph, rows, Stopwatch(),
            score=score,
        ).result  # fmt: skip
        self.levels = np.asarray(result.levels[0], np.float64)
        return np.asarray(result.p_values)

    def _scores(self, question: Question | None, wanted: Ints) -> Floats:
        """Scores of all classes at `wanted`, if it were so."""
        what_if: Counterfactual | None = self.node.what_if
        if what_if is None:
            raise ValueError("a user's own module has no exact passes")
        graph = what_if.ask(question)
        near = neighbourhood(graph, wanted) if needs_neighbours(self.terms.score) else None
        rows = wanted if near is None else near.rows
        probabilities = softmax64(what_if.outputs_now(rows))
        u = uniforms_of(self.node.mirror, rows, self.node.model.manifest["seed"])
        options = self.terms.score_options()
        return np.asarray(node_scores(self.terms.score, probabilities, u, options, near))


def _answer(
    node: AskedNode,
    recorded: Mapping[str, float | None],
    deadline: Deadline,
    progress: Progress,
) -> Reasons:
    ranks = _Ranks(node, deadline, progress)
    classes, now = node.model.classes, ranks.now()
    levels = np.array(
        [
            in_force if (own := recorded.get(name)) is None else own
            for name, in_force in zip(classes, ranks.levels.tolist(), strict=True)
        ]
    )
    questions = node.questions(MAX_NEIGHBOURS)
    without = ranks.ask([question for question, _ in questions])
    answered = questions[: len(without)]
    smallest = find_smallest(Asked(classes, levels, now, answered, without), ranks.ask)
    stopped = ""
    if len(answered) < len(questions):
        done = f"{len(answered):,} of {len(questions):,} questions"
        stopped = f"{deadline.describe(done)}; smallest changes were not searched among all"
    elif deadline.over():
        stopped = deadline.describe("all single questions; smaller changes may exist")
    reasons = [
        _reason(classes, levels, part, now, p)
        for (_, part), p in zip(answered, without, strict=True)
    ]
    reasons.sort(key=lambda one: (-one.flips, -one.moved, one.part.kind, one.part.describe()))
    return Reasons(
        graph=describe_graph(node.mirror),
        model=node.model.version,
        classes=tuple(classes),
        p_values=tuple(now.tolist()),
        levels=tuple(levels.tolist()),
        classes_in_set=tuple(np.array(classes)[now > levels].tolist()),
        neighbours=len(node.heard),
        asked=sum(part.kind == NEIGHBOUR for _, part in answered),
        reasons=tuple(reasons),
        smallest=tuple(smallest),
        left_unasked=len(questions) - len(answered),
        stopped=stopped,
    )


def _nothing_asked(node: AskedNode, stopped: str) -> Reasons:
    """The answer where the time was over before anything was asked: what was not looked at."""
    open_ = node.questions(MAX_NEIGHBOURS)
    return Reasons(
        graph=describe_graph(node.mirror),
        model=node.model.version,
        classes=tuple(node.model.classes),
        p_values=(),
        levels=(),
        classes_in_set=(),
        neighbours=len(node.heard),
        asked=0,
        reasons=(),
        left_unasked=len(open_),
        stopped=stopped,
    )


def _reason(
    classes: Sequence[str], levels: Floats, part: Part, now: Floats, without: Floats
) -> Reason:
    inside, then = now > levels, without > levels
    return Reason(
        part,
        tuple(without.tolist()),
        tuple(name for name, comes in zip(classes, then & ~inside, strict=True) if comes),
        tuple(name for name, goes in zip(classes, ~then & inside, strict=True) if goes),
        float(np.abs(without - now).max()),
    )
