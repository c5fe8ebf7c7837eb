"""The score of a new model: the configured one, or the one that validation nodes favour."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ringfence.connector.mirror import Mirror
from ringfence.jobs.project.promise import (
    PromiseTerms,
    require_bands_for_score,
    terms_for_training,
)
from ringfence.jobs.project.promise_check import calibration_warnings, require_calibration
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.fit import FittedNetwork, all_scores, outputs_inside
from ringfence.jobs.training.split import Split
from ringfence.models.scores.choice import ScoreChoice, choose_score
from ringfence.models.scores.node_scores import needs_neighbours

AUTO = "auto"
WITHOUT_BANDS = ("APS", "RAPS")
"""What may be chosen under a rule without bands of degree."""


@dataclass(frozen=True, slots=True)
class TrainedPromise:
    """The promise that a new model is trained with, and how its score was chosen, if it was."""

    terms: PromiseTerms
    choice: ScoreChoice | None

    def choice_record(self) -> dict[str, Any] | None:
        """Return the choice as the manifest keeps it."""
        return None if self.choice is None else asdict(self.choice)


def check_promise(workspace: Workspace) -> None:
    """Refuse, before anything is trained, a score that would not keep its promise."""
    settings = workspace.settings.conformal
    require_bands_for_score(settings, terms_for_training(settings))
    require_calibration(settings, terms_for_training(settings))


def settle_promise(
    workspace: Workspace, mirror: Mirror, split: Split, fitted: FittedNetwork
) -> TrainedPromise:
    """Return the promise of a model that was just fitted; `score = "auto"` is decided here."""
    settings = workspace.settings.conformal
    terms = terms_for_training(settings)
    if terms.score != AUTO:
        return TrainedPromise(terms, None)
    rows = np.concatenate([split.validation, split.train])
    every = all_scores(workspace, outputs_inside(workspace, mirror, split, fitted, rows))
    n = len(split.validation)
    candidates = {
        name: scores[:n]
        for name, scores in every.items()
        if terms.rule == AUTO or settings.score_without_bands or name in WITHOUT_BANDS
    }
    truth = split.class_indices[split.validation]
    choice = choose_score(candidates, truth, settings.first_alpha, workspace.settings.model.seed)
    return TrainedPromise(terms_for_training(settings, choice.score), choice)


def describe_mode(terms: PromiseTerms, calibration: int) -> str:
    """Say which nodes calibrate later runs, how many of a window there are, how the level moves.

    Args:
        terms: the promise.
        calibration: how many calibration nodes the training set aside.
    """
    so_far = f" ({calibration:,} so far)" if calibration < terms.window_nodes else ""
    who = {
        "frozen": "the calibration nodes stay those of this training",
        "growing": "nodes whose class becomes known join the calibration",
        "window": f"the newest {terms.window_nodes:,} nodes of known class calibrate{so_far}",
    }[terms.calibration_set]
    how = "the level follows their misses" if terms.adapt else "the level stays alpha"
    return f"{who}; {how}"


def describe_promise(promise: TrainedPromise, relationships: int, calibration: int) -> list[str]:
    """Say what a new model promises by, and what its score can't do on this graph."""
    terms = promise.terms
    rule = "within bands of degree" if terms.rule == AUTO else f"by {terms.rule}"
    whom = {"class": ", inside each class", "group": f", inside each value of {terms.group}"}
    sentences = [
        f"calibrated {rule}{whom.get(terms.promise, '')} with the score {terms.score}",
        describe_mode(terms, calibration),
    ]
    if promise.choice is not None:
        sentences.append(f"score: {promise.choice.sentence}")
    if needs_neighbours(terms.score) and relationships == 0:
        plain = terms.score.removeprefix("D")
        sentences.append(
            f"no node of this label has a relationship to another one: {terms.score} is the same "
            f"as {plain} here"
        )
    return [*sentences, *(found for found, _ in calibration_warnings(terms))]
