"""Fit a network, and choose on validation nodes what the configuration leaves open.

Left open may be whether rare classes are weighed up (`[model] class_weights = "auto"`), and width
and learning rate (`[model] search`). Every trial trains on the same nodes from the same seed and is
judged by its mean log loss on validation nodes, a proper score; calibration and holdout nodes are
never looked at. The configured values are the first trial and win a tie. What was tried and chosen
stands in the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.sync import Progress
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.fit import FittedNetwork, fit_network, outputs_inside
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.warm_start import WarmStart
from ringfence.models.scores import softmax64
from ringfence.models.training.loop import Epoch

IMBALANCED = 10.0
"""Training nodes of the largest class per one of the smallest from which on weights are tried."""
FACTORS = ((1, 1), (1, 3), (1, 1 / 3), (2, 1), (0.5, 1), (2, 3), (2, 1 / 3), (0.5, 3), (0.5, 1 / 3))
"""Width and learning rate of each trial, as multiples of the configured ones, in this order."""

OnEpoch = Callable[[Epoch], None] | None


@dataclass(frozen=True, slots=True)
class Trial:
    """One fit: what was tried, and its mean log loss on validation nodes."""

    hidden: int
    learning_rate: float
    class_weights: bool
    epochs: int
    validation_log_loss: float


@dataclass(frozen=True, slots=True)
class ChosenFit:
    """The network that was chosen, the project with the values in force, and what was tried.

    `configured` are the settings as they were before anything was chosen.
    """

    workspace: Workspace
    fitted: FittedNetwork
    configured: ModelSettings
    trials: tuple[Trial, ...]

    def facts(self) -> dict[str, Any]:
        """Return what the manifest keeps of it: everything that repeats the training."""
        return {
            "configured": self.configured.model_dump(mode="json"),
            "named": sorted(self.configured.model_fields_set),
            "trials": [asdict(trial) for trial in self.trials],
        }

    def describe(self) -> list[str]:
        """Say what was chosen; nothing where nothing was left open."""
        begun = [] if self.fitted.start is None else [self.fitted.start.describe()]
        if len(self.trials) < 2:
            return begun
        best = min(self.trials, key=lambda trial: trial.validation_log_loss)
        weighed = "with" if best.class_weights else "without"
        return [
            *begun,
            f"{len(self.trials)} trials on validation nodes: hidden {best.hidden}, learning rate "
            f"{best.learning_rate:.3g}, {weighed} class weights, log loss "
            f"{best.validation_log_loss:.4f} (configured: "
            f"{self.trials[0].validation_log_loss:.4f})",
        ]


def choose_fit(
    workspace: Workspace,
    mirror: Mirror,
    split: Split,
    on_epoch: OnEpoch,
    class_weights: bool,
    progress: Progress = lambda _what, _done, _all: None,
    start: WarmStart | None = None,
) -> ChosenFit:
    """Fit the configured network; try what is left open, and keep the best on validation nodes.

    Every trial whose shapes fit begins with the weights of `start`, where one is given.
    """
    configured = workspace.settings.model
    plans = list(_plans(configured, split, class_weights))
    best: tuple[float, Workspace, FittedNetwork] | None = None
    trials: list[Trial] = []
    for number, (factors, weighed) in enumerate(plans):
        if len(plans) > 1:
            progress("trials on validation nodes", number, len(plans))
        tried = _with_factors(workspace, factors, trials[0].learning_rate if trials else None)
        fitted = fit_network(tried, mirror, split, on_epoch, weighed, start)
        loss = validation_log_loss(tried, mirror, split, fitted) if len(plans) > 1 else 0.0
        recipe = fitted.trained.recipe
        trials.append(
            Trial(
                tried.settings.model.hidden,
                recipe.learning_rate,
                weighed,
                fitted.trained.epochs,
                loss,
            )
        )
        if best is None or loss < best[0]:
            best = loss, tried, fitted
    if best is None:
        raise ValueError("nothing was tried")
    _, chosen, network = best
    kept = tuple(trials) if len(trials) > 1 else ()
    return ChosenFit(chosen, network, configured, kept)


def validation_log_loss(
    workspace: Workspace, mirror: Mirror, split: Split, fitted: FittedNetwork
) -> float:
    """Return the mean log loss on validation nodes, unweighted, on the subgraph of training."""
    rows = np.concatenate([split.validation, split.train])
    logits = outputs_inside(workspace, mirror, split, fitted, rows).logits
    n = len(split.validation)
    chances = softmax64(logits[:n])[np.arange(n), split.class_indices[split.validation]]
    return float(-np.log(np.maximum(chances, np.finfo(np.float64).tiny)).mean())


def _plans(
    settings: ModelSettings, split: Split, class_weights: bool
) -> Iterator[tuple[tuple[float, float], bool]]:
    """What is tried: factors of width and learning rate, and whether classes are weighed."""
    yield FACTORS[0], class_weights
    if settings.class_weights == "auto" and not class_weights and _is_imbalanced(split):
        yield FACTORS[0], True
    for factors in FACTORS[1 : settings.search]:
        yield factors, class_weights


def _is_imbalanced(split: Split) -> bool:
    counts = np.bincount(split.class_indices[split.train], minlength=len(split.classes))
    return bool(counts.max() >= IMBALANCED * max(counts.min(), 1))


def _with_factors(
    workspace: Workspace, factors: tuple[float, float], learning_rate: float | None
) -> Workspace:
    """The project with another width and learning rate; unchanged for the first trial.

    `learning_rate` is that of the first trial, which may be the network's default.
    """
    if factors == FACTORS[0] or learning_rate is None:
        return workspace
    model = workspace.settings.model
    values = {
        "hidden": max(1, round(model.hidden * factors[0])),
        "learning_rate": learning_rate * factors[1],
    }
    changed = model.model_copy(update=values)
    return replace(workspace, settings=workspace.settings.model_copy(update={"model": changed}))
