"""Why this set: which neighbours, relationship types and columns keep a class in it or out of it.

Each answer is exact: the network runs on the graph without that neighbour, or with that column at
the training nodes' mean (one label) or as if the node had never had it (several labels), and the
node's scores are ranked among the same calibration scores, within the same stratum, as without the
change. Everything is computed on the mirror as the last run left it; nothing is written, and no set
changes. Equal inputs give equal answers, unless a time limit ends the questions early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.times import format_time
from ringfence.jobs.explanation.attributions import attribute, refuse_method
from ringfence.jobs.explanation.deadline import Deadline
from ringfence.jobs.explanation.explained_node import ExplainedNode, find_node
from ringfence.jobs.explanation.minimal_change import Asked, find_smallest
from ringfence.jobs.explanation.part_values import tell_values
from ringfence.jobs.explanation.reasons import EXACT, MAX_LOG_ODDS, NEIGHBOUR, Part, Reason, Reasons
from ringfence.jobs.project.network_inputs import uniforms_of
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.node_evaluation import evaluate_nodes
from ringfence.jobs.scoring.scored_rows import ScoredRows
from ringfence.jobs.scoring.version_on_graph import VersionOnGraph, calibrate_version
from ringfence.models.conformal.evaluate import Evaluation
from ringfence.models.conformal.sets import fill_empty
from ringfence.models.explanation.counterfactual_query import Question
from ringfence.models.explanation.counterfactuals import Counterfactual
from ringfence.models.inference import neighbourhood
from ringfence.models.scores import softmax64
from ringfence.models.scores.node_scores import needs_neighbours, node_scores

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_NEIGHBOURS = 200
"""The most neighbours that are tried, smallest rows first; the answer says how many."""


def find_reasons(
    workspace: Workspace,
    typed_key: str,
    version: str,
    levels: Mapping[str, float | None],
    *,
    method: str | None = None,
    seconds: float | None = None,
    progress: Progress = no_progress,
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
        progress: called after each question.
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


def log_odds_of(outputs: Floats) -> Floats:
    """Return the log odds of each class from a node's outputs [classes], before any softmax.

    A probability of nearly 1 can't move any more in its digits; its log odds can.

    >>> log_odds_of(np.array([40.0, 0.0])).tolist()
    [40.0, -40.0]
    """
    odds = [
        value - np.logaddexp.reduce(np.delete(outputs, place))
        for place, value in enumerate(outputs)
    ]
    return np.asarray(np.clip(np.nan_to_num(np.array(odds)), -MAX_LOG_ODDS, MAX_LOG_ODDS))


def describe_graph(mirror: Mirror) -> str:
    """Say on which graph an answer is computed."""
    return (
        f"the graph as it was read up to {format_time(mirror.watermark_ns)}: "
        f"{mirror.node_count:,} nodes, {mirror.edge_count:,} relationships"
    )


class _Ranks:
    """p-values of a node under a question, among unchanged calibration scores."""

    def __init__(self, node: ExplainedNode, deadline: Deadline, progress: Progress) -> None:
        self.node, self.deadline, self.progress, self.questions = node, deadline, progress, 0
        self.version = calibrate_version(
            node.workspace, node.model, node.mirror, graph=node.graph, at_alpha=True
        )
        self.calibration: Floats | None = None
        self.log_odds_now: Floats = np.zeros(len(node.model.classes))
        self.log_odds: list[Floats] = []
        self._newest = self.log_odds_now

    def now(self) -> Evaluation:
        """Evaluate the node as it is; the calibration nodes are scored here, once."""
        return self._evaluate([np.empty((1, 0))])

    def ask(self, questions: Sequence[Question]) -> Floats:
        """p-values [m, classes]; fewer rows than questions where the time was over before."""
        rows = []
        for question in questions:
            if self.deadline.over():
                break
            rows.append(self._scores(question, np.array([self.node.row])))
            self.log_odds.append(self._newest)
            self.questions += 1
            self.progress("questions", self.questions, 0)
        if not rows:
            return np.empty((0, len(self.node.model.classes)))
        return np.asarray(self._evaluate(rows).p_values)

    def _evaluate(self, asked: list[Floats]) -> Evaluation:
        """Rank scores of the node [1, classes] each; empty ones stand for the node as it is."""
        node, many = self.node, len(asked)

        def score(wanted: Ints) -> ScoredRows:
            if self.calibration is None:
                near = np.append(wanted[: len(wanted) - many], node.row)
                self.calibration = self._scores(None, near)
                self.log_odds_now = self._newest
            as_it_is = self.calibration[-1:]
            of_node = [scores if scores.size else as_it_is for scores in asked]
            scores = np.concatenate([self.calibration[:-1], *of_node])
            nothing = np.zeros(len(scores))
            return ScoredRows(scores, "", nothing, nothing)

        rows = np.full(many, node.row, np.int64)
        return evaluate_nodes(self.version, rows, score=score).result

    def _scores(self, question: Question | None, wanted: Ints) -> Floats:
        """Scores of all classes at `wanted` under a question."""
        what_if: Counterfactual | None = self.node.what_if
        if what_if is None:
            raise ValueError("a user's own module has no exact passes")
        graph = what_if.ask(question)
        terms = self.version.terms
        near = neighbourhood(graph, wanted) if needs_neighbours(terms.score) else None
        rows = wanted if near is None else near.rows
        outputs = what_if.outputs_now(rows)
        place = int(np.flatnonzero(rows == self.node.row)[-1])
        self._newest = log_odds_of(np.asarray(outputs[place], np.float64))
        probabilities = softmax64(outputs)
        seed = node_seed(self.node.workspace.settings, self.node.model.manifest)
        u = uniforms_of(self.node.mirror, rows, seed)
        return np.asarray(node_scores(terms.score, probabilities, u, terms.score_options(), near))


def _answer(
    node: ExplainedNode,
    recorded: Mapping[str, float | None],
    deadline: Deadline,
    progress: Progress,
) -> Reasons:
    ranks = _Ranks(node, deadline, progress)
    classes, evaluation = node.model.classes, ranks.now()
    now = np.asarray(evaluation.p_values[0])
    levels = _levels(classes, recorded, evaluation)
    questions = node.questions(MAX_NEIGHBOURS)
    without = ranks.ask([question for question, _ in questions])
    answered, odds = questions[: len(without)], ranks.log_odds[: len(without)]
    smallest = find_smallest(Asked(classes, levels, now, answered, without), ranks.ask)
    reasons = [
        _reason(classes, levels, part, now, p, ranks.log_odds_now - log_odds)
        for (_, part), p, log_odds in zip(answered, without, odds, strict=True)
    ]
    reasons.sort(
        key=lambda why: (
            -why.flips, -why.moved, -why.strength, why.part.kind, why.part.describe()
        )
    )  # fmt: skip
    likeliest = classes[int(np.argmax(ranks.log_odds_now))]
    told = tell_values(node, [why.part for why in reasons], likeliest)
    reasons = [replace(why, value=told.get(why.part, "")) for why in reasons]
    return Reasons(
        graph=describe_graph(node.mirror),
        model=node.model.version,
        classes=tuple(classes),
        p_values=tuple(now.tolist()),
        levels=tuple(levels.tolist()),
        classes_in_set=_classes_in_set(ranks.version, evaluation, levels),
        neighbours=len(node.heard),
        asked=sum(part.kind == NEIGHBOUR for _, part in answered),
        reasons=tuple(reasons),
        smallest=tuple(smallest),
        left_unasked=len(questions) - len(answered),
        stopped=_describe_stop(deadline, len(answered), len(questions)),
        log_odds=tuple(ranks.log_odds_now.tolist()),
    )


def _describe_stop(deadline: Deadline, answered: int, questions: int) -> str:
    """Say what the time limit ended; nothing where all was asked in time."""
    if answered < questions:
        done = deadline.describe(f"{answered:,} of {questions:,} questions")
        return f"{done}; smallest changes were not searched among all"
    if deadline.over():
        return deadline.describe("all single questions; smaller changes may exist")
    return ""


def _levels(
    classes: Sequence[str], recorded: Mapping[str, float | None], evaluation: Evaluation
) -> Floats:
    """What p-values are compared with [classes]: as on record, at alpha where nothing is."""
    levels = []
    for name, alpha in zip(classes, evaluation.levels[0].tolist(), strict=True):
        level = recorded.get(name)
        levels.append(alpha if level is None else level)
    return np.array(levels)


def _classes_in_set(
    version: VersionOnGraph, evaluation: Evaluation, levels: Floats
) -> tuple[str, ...]:
    """The node's set at these levels; an empty one is filled where runs fill theirs."""
    sets = evaluation.p_values[:1] > levels
    if version.settings.nonempty:
        sets = np.asarray(fill_empty(sets, evaluation.scores[:1]))
    return tuple(np.array(version.model.classes)[sets[0]].tolist())


def _nothing_asked(node: ExplainedNode, stopped: str) -> Reasons:
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
    classes: Sequence[str],
    levels: Floats,
    part: Part,
    now: Floats,
    without: Floats,
    evidence: Floats,
) -> Reason:
    inside, then = now > levels, without > levels
    return Reason(
        part,
        tuple(without.tolist()),
        tuple(name for name, comes in zip(classes, then & ~inside, strict=True) if comes),
        tuple(name for name, goes in zip(classes, ~then & inside, strict=True) if goes),
        float(np.abs(without - now).max()),
        evidence=tuple(evidence.tolist()),
    )
