"""Fit a network, and choose on validation nodes what the configuration leaves open.

Left open may be whether rare classes are weighed up (`[model] class_weights = "auto"`), and width
and learning rate (`[model] search`). Every trial trains on the same nodes from the same seed and is
judged by its mean log loss on validation nodes, a proper score; calibration and holdout nodes are
never looked at. The configured values are the first trial and win a tie. What was tried and chosen
stands in the manifest.

`[model] network = "auto"` and `"blend"` fit typed_sage and trees. auto takes, of these and their
mean, the one with the lowest loss, with its standard error and that of each distance from it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.mirror import Mirror
from ringfence.connector.progress import Progress, no_progress
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.fit import fit_network, outputs_inside
from ringfence.jobs.training.fitted import FittedNetwork
from ringfence.jobs.training.fitted_trees import blend
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.warm_start import WarmStart
from ringfence.models.networks.registry import AUTO, BLEND, TREES, TYPED_SAGE, is_trees
from ringfence.models.scores import softmax64
from ringfence.models.training.loop import Epoch

IMBALANCED = 10.0
"""Training nodes of the largest class per one of the smallest from which on weights are tried."""
FACTORS = ((1, 1), (1, 3), (1, 1 / 3), (2, 1), (0.5, 1), (2, 3), (2, 1 / 3), (0.5, 3), (0.5, 1 / 3))
"""Width and learning rate of each trial, as multiples of the configured ones, in this order."""

Floats = NDArray[np.float64]
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

    def facts(self) -> JsonObject:
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
    progress: Progress = no_progress,
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
        loss = validation_log_loss(split, fitted) if len(plans) > 1 else 0.0
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


def validation_log_loss(split: Split, fitted: FittedNetwork) -> float:
    """Return the mean log loss on validation nodes, unweighted, on the subgraph of training."""
    return float(validation_losses(split, fitted).mean())


def validation_losses(split: Split, fitted: FittedNetwork) -> NDArray[np.float64]:
    """Return the log loss of each validation node [n]."""
    rows = np.concatenate([split.validation, split.train])
    logits = outputs_inside(split, fitted, rows).logits
    n = len(split.validation)
    chances = softmax64(logits[:n])[np.arange(n), split.class_indices[split.validation]]
    return np.asarray(-np.log(np.maximum(chances, np.finfo(np.float64).tiny)), np.float64)


def _plans(
    settings: ModelSettings, split: Split, class_weights: bool
) -> Iterator[tuple[tuple[float, float], bool]]:
    """What is tried: factors of width and learning rate, and whether classes are weighed."""
    yield FACTORS[0], class_weights
    if settings.class_weights == "auto" and not class_weights and _is_imbalanced(split):
        yield FACTORS[0], True
    if not is_trees(settings.typed_network):  # trees have no width
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


def with_network(workspace: Workspace, settings: ModelSettings) -> Workspace:
    """Return the project with other settings of `[model]`."""
    changed = workspace.settings.model_copy(update={"model": settings})
    return replace(workspace, settings=changed)


def half_settings(settings: ModelSettings, name: str) -> ModelSettings:
    """Return the settings of a half: what names a step or a patience is meant for the network."""
    if name != TREES:
        return settings.model_copy(update={"network": name})
    named = settings.model_dump(
        exclude_unset=True, exclude={"learning_rate", "weight_decay", "patience"}
    )
    return ModelSettings.model_validate(named | {"network": TREES})


@dataclass(frozen=True, slots=True)
class TriedScorer:
    """A scorer, its mean log loss on validation nodes with standard error, and its seconds.

    `behind` is how much larger its loss is than that of the chosen one, node by node.
    """

    name: str
    log_loss: float
    standard_error: float
    behind: float
    behind_error: float
    seconds: float

    def describe(self) -> str:
        """Return it in words."""
        return f"{self.name} {self.log_loss:.4f} ± {self.standard_error:.4f}"


@dataclass(frozen=True, slots=True)
class ScorerChoice:
    """What was tried on how many validation nodes, what was taken, and what could not be tried."""

    chosen: str
    nodes: int
    tried: tuple[TriedScorer, ...]
    left_out: Mapping[str, str]

    def facts(self) -> JsonObject:
        """Return what the manifest keeps of it."""
        return asdict(self) | {"left_out": dict(self.left_out)}

    def describe(self) -> str:
        """Return it in words."""
        tried = ", ".join(scorer.describe() for scorer in self.tried)
        missing = "".join(f"; {name} was left out: {why}" for name, why in self.left_out.items())
        return (
            f"network: {self.chosen} of auto, by the log loss on {self.nodes:,} validation nodes "
            f"({tried}; ± is one standard error){missing}"
        )


def choose_scorer(
    workspace: Workspace,
    mirror: Mirror,
    split: Split,
    on_epoch: OnEpoch,
    class_weights: bool,
    progress: Progress = no_progress,
    start: WarmStart | None = None,
) -> tuple[ChosenFit, ScorerChoice | None]:
    """Fit what the settings name; for auto and blend both halves, and choose."""
    wanted = workspace.settings.network.lower()
    if wanted not in (AUTO, BLEND):
        return choose_fit(workspace, mirror, split, on_epoch, class_weights, progress, start), None
    fits: dict[str, ChosenFit] = {}
    seconds: dict[str, float] = {}
    left_out: dict[str, str] = {}
    for number, name in enumerate((TYPED_SAGE, TREES)):
        progress(f"fitting {name}, scorers", number, 2)
        half = with_network(workspace, half_settings(workspace.settings.model, name))
        begun = time.perf_counter()
        try:
            engine_of(workspace.settings.engine).require_network(name)
            fits[name] = choose_fit(half, mirror, split, on_epoch, class_weights, progress, start)
        except (ConfigError, ModelError) as error:
            if wanted == BLEND or (number == 1 and not fits):
                raise
            left_out[name] = error.found
        seconds[name] = time.perf_counter() - begun
    configured = workspace.settings.model
    fits = {name: replace(fit, configured=configured) for name, fit in fits.items()}
    if len(fits) == 2:
        fits[BLEND] = _blend(fits[TYPED_SAGE], fits[TREES], split)
        seconds[BLEND] = sum(seconds.values())
    if wanted == BLEND:
        return fits[BLEND], None
    choice = _choose(fits, seconds, left_out, split)
    return fits[choice.chosen], choice


def _blend(network: ChosenFit, trees: ChosenFit, split: Split) -> ChosenFit:
    fitted = blend(network.fitted, trees.fitted, split)
    settings = network.workspace.settings.model.model_copy(update={"network": BLEND})
    return ChosenFit(
        with_network(network.workspace, settings),
        fitted,
        network.configured,
        network.trials,
    )


def _choose(
    fits: Mapping[str, ChosenFit],
    seconds: Mapping[str, float],
    left_out: Mapping[str, str],
    split: Split,
) -> ScorerChoice:
    losses = {name: validation_losses(split, fit.fitted) for name, fit in fits.items()}
    chosen = min(losses, key=lambda name: float(losses[name].mean()))
    tried = tuple(
        TriedScorer(
            name,
            float(values.mean()),
            standard_error(values),
            float((values - losses[chosen]).mean()),
            standard_error(values - losses[chosen]),
            seconds[name],
        )
        for name, values in losses.items()
    )
    return ScorerChoice(chosen, len(split.validation), tried, left_out)


def standard_error(values: Floats) -> float:
    """Return the standard error of a mean; 0 where one value has none.

    >>> round(standard_error(np.array([0.0, 1.0, 0.0, 1.0])), 3)
    0.289
    """
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
