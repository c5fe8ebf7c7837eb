"""The score of a new model: the configured one, or the one that validation nodes favour."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from ringfence.connector.json_types import JsonObject
from ringfence.connector.mirror import Mirror
from ringfence.jobs.config.names import CHOSEN_AT_TRAINING
from ringfence.jobs.project.network_inputs import uniforms_of
from ringfence.jobs.project.promise import (
    PromiseTerms,
    require_bands_for_score,
    terms_for_training,
)
from ringfence.jobs.project.promise_check import calibration_warnings, require_calibration
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.fit import all_scores, outputs_inside
from ringfence.jobs.training.fitted import FittedNetwork
from ringfence.jobs.training.split import Split
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.scores.choice import ScoreChoice, choose_score
from ringfence.models.scores.registry import score_named


@dataclass(frozen=True, slots=True)
class TrainedPromise:
    """The promise that a new model is trained with, and how its score was chosen, if it was."""

    terms: PromiseTerms
    choice: ScoreChoice | None

    def choice_record(self) -> JsonObject | None:
        """Return the choice as the manifest keeps it."""
        return None if self.choice is None else asdict(self.choice)


def check_promise(workspace: Workspace) -> None:
    """Refuse, before anything is trained, a score that would not keep its promise."""
    settings = workspace.settings.conformal
    require_bands_for_score(settings, terms_for_training(settings))
    require_calibration(settings, terms_for_training(settings))


def settle_promise(
    workspace: Workspace, mirror: Mirror, split: Split, fitted: FittedNetwork, seed: int
) -> TrainedPromise:
    """Return the promise of a model that was just fitted; `score = "auto"` is decided here.

    `seed` is what the nodes' u is keyed with.
    """
    settings = workspace.settings.conformal
    terms = terms_for_training(settings)
    if terms.score != CHOSEN_AT_TRAINING:
        return TrainedPromise(terms, None)
    rows = np.concatenate([split.validation, split.train])
    u = uniforms_of(mirror, rows, seed)
    every = all_scores(workspace, outputs_inside(split, fitted, rows), u)
    n = len(split.validation)
    candidates = {
        name: scores[:n]
        for name, scores in every.items()
        if terms.rule_kind.uses_bands
        or settings.score_without_bands
        or score_named(name).safe_without_bands
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
    who = terms.calibration_kind.describe_training(terms.window_nodes, calibration)
    how = "the level follows their misses" if terms.adapt else "the level stays alpha"
    return f"{who}; {how}"


def describe_trained_promise(
    promise: TrainedPromise, relationships: int, calibration: int
) -> list[str]:
    """Say by which rule and score a new model promises, and what its score can't do here."""
    terms = promise.terms
    inside = terms.promise_kind.within(PromiseOptions(group=terms.group))
    sentences = [
        f"calibrated {terms.rule_kind.within}{inside} with the score {terms.score}",
        describe_mode(terms, calibration),
    ]
    if promise.choice is not None:
        sentences.append(f"score: {promise.choice.sentence}")
    score = score_named(terms.score)
    if score.needs_edges and relationships == 0:
        sentences.append(
            f"no node of this label has a relationship to another one: {terms.score} is the same "
            f"as {score.base} here"
        )
    return [*sentences, *(warning for warning, _ in calibration_warnings(terms))]
