"""The levels that a run compares p-values with: alpha itself, or an adaptive one that follows it.

Under `adapt` there is one level per alpha, for all strata; under a promise per class one per alpha
and class. It moves once per answered run
(`models.calibration.adaptive_level`); stored p-values stay as they are. The state stands in the
run's column `levels`, so that the next run goes on from there:

    {"used": [0.093], "nonempty": false,
     "adaptive": [{"alpha": 0.1, "class": "", "step": 0.05, "level": 0.093, "answered": 7,
                   "misses": 0.84, "waiting": 3}],
     "answered": [{"run": 12, "known": 70, "missed": [9]}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import RunFacts
from ringfence.connector.store.calibration.joined import p_values_of_runs
from ringfence.connector.store.runs import newest_run_of_model, one_run
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.living_set import LivingSet
from ringfence.models.calibration.adaptive_level import AdaptiveLevel, miss_rate_bound
from ringfence.models.promise.class_alphas import class_alphas

ALL = ""
"""Name under which a level stands that all classes share."""

KnownPValue = tuple[int, str, tuple[float, ...]]
"""Run, true class and p-values of an evaluated node."""


@dataclass(frozen=True, slots=True)
class RunLevels:
    """Levels of a run: `used` [alphas, classes], and what its record keeps of them.

    alphas: what each level follows [alphas, classes].
    """

    alphas: NDArray[np.float64]
    used: NDArray[np.float64]
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """What levels follow: the configured alphas, single classes' own ones, and whether they adapt.

    per_class: whether each class has a level of its own.
    """

    alphas: tuple[float, ...]
    own: Mapping[str, float]
    per_class: bool
    adapt: bool
    step: float


def next_levels(
    plan: LevelPlan,
    classes: Sequence[str],
    last: Mapping[str, Any] | None,
    used_by: Mapping[int, Mapping[str, Any]],
    known: Iterable[KnownPValue],
    waiting: int,
) -> RunLevels:
    """Return the levels of the next run.

    Args:
        plan: what is promised.
        classes: the model's classes in the order of its outputs.
        last: the column `levels` of the model's last run.
        used_by: run -> its column `levels`, of the runs that are answered now.
        known: the nodes of known class of those runs.
        waiting: earlier runs that are still open.
    """
    targets = np.stack([class_alphas(classes, alpha, plan.own) for alpha in plan.alphas])
    if not plan.adapt:
        return RunLevels(targets, targets)
    nodes = list(known)
    names = list(classes) if plan.per_class else [ALL]
    states, used = [], np.empty_like(targets)
    for k, alpha in enumerate(plan.alphas):
        for name in names:
            column = classes.index(name) if name else 0
            target = float(targets[k, column])
            rates = _miss_rates(nodes, used_by, classes, k, alpha, name)
            state, most = _state(last, target, plan.step, name)
            state = state.after(rates)
            states.append(_state_json(state, name, max(most, waiting)))
            used[k, column if name else slice(None)] = state.in_force
    answered = [_answer_json(nodes, used_by[run], run, classes, plan) for run in sorted(used_by)]
    return RunLevels(targets, used, {"adaptive": states, "answered": answered})


def level_used(levels: Mapping[str, Any] | None, place: int, alpha: float, name: str) -> float:
    """Return the level that a run used for its alpha at `place`; alpha where it says nothing.

    >>> level_used({"used": [0.08]}, 0, 0.1, "mule")
    0.08
    >>> level_used({"used": [{"mule": 0.03, "normal": 0.1}]}, 0, 0.1, "mule")
    0.03
    """
    used = (levels or {}).get("used", [])
    if place >= len(used):
        return alpha
    own = used[place]
    return float(own[name] if isinstance(own, Mapping) else own)


def _miss_rates(
    nodes: Sequence[KnownPValue],
    used_by: Mapping[int, Mapping[str, Any]],
    classes: Sequence[str],
    place: int,
    alpha: float,
    name: str,
) -> list[float]:
    """Share missed of each answered run, of one class where it has a level of its own.

    Nodes of a class that the model never saw are left out: no level can cover them, and the level
    would sink for ever.
    """
    rates = []
    for run in sorted(used_by):
        missed = [
            p[classes.index(label)] <= level_used(used_by[run], place, alpha, label)
            for seq, label, p in nodes
            if seq == run and label in classes and name in (ALL, label)
        ]
        if missed:
            rates.append(sum(missed) / len(missed))
    return rates


def _state(
    last: Mapping[str, Any] | None, alpha: float, step: float, name: str
) -> tuple[AdaptiveLevel, int]:
    """The level as the last run left it; a new one where alpha or step are others than then."""
    for one in (last or {}).get("adaptive", []):
        if (one["class"], one["alpha"], one["step"]) == (name, alpha, step):
            state = AdaptiveLevel(alpha, step, one["level"], one["answered"], one["misses"])
            return state, int(one["waiting"])
    return AdaptiveLevel.start(alpha, step), 0


def _state_json(state: AdaptiveLevel, name: str, waiting: int) -> dict[str, Any]:
    return {
        "alpha": state.alpha,
        "class": name,
        "step": state.step,
        "level": state.level,
        "answered": state.answered,
        "misses": state.misses,
        "waiting": waiting,
    }


def _answer_json(
    nodes: Sequence[KnownPValue],
    levels: Mapping[str, Any],
    run: int,
    classes: Sequence[str],
    plan: LevelPlan,
) -> dict[str, Any]:
    own = [(label, p) for seq, label, p in nodes if seq == run and label in classes]
    missed = [
        sum(p[classes.index(label)] <= level_used(levels, k, alpha, label) for label, p in own)
        for k, alpha in enumerate(plan.alphas)
    ]
    return {"run": run, "known": len(own), "missed": missed}


def levels_of_run(
    workspace: Workspace, model: SavedModel, terms: PromiseTerms, living: LivingSet
) -> RunLevels | None:
    """Return the levels of the next run; None where they are the alphas themselves."""
    if not terms.adapt:
        return None
    store, project, settings = workspace.store, workspace.project, workspace.settings.conformal
    last = newest_run_of_model(store, project, model.version)
    answered = {seq: one_run(store, project, seq).levels or {} for seq in living.answered}
    per_class = terms.promise == "class"
    plan = LevelPlan(settings.alphas, settings.classes, per_class, True, terms.adapt_step)
    known = p_values_of_runs(store, project, living.answered)
    levels = None if last is None else last.levels
    return next_levels(plan, model.classes, levels, answered, known, living.waiting)


def with_levels(facts: RunFacts, levels: RunLevels | None) -> RunFacts:
    """Return the facts of a run with the state of its adaptive levels."""
    if levels is None:
        return facts
    return replace(facts, levels={**(facts.levels or {}), **levels.record})


def describe_levels(levels: RunLevels) -> list[str]:
    """Return notes of the run: the level in force, and how far the long run may be from alpha."""
    return [
        f"level {one['level']:.4g} in force for alpha {one['alpha']:g}"
        + (f" of class {one['class']}" if one["class"] else "")
        + f": {one['answered']} runs answered"
        + (
            f", {100 * one['misses'] / one['answered']:.1f} % of their known nodes missed on "
            f"average over runs (proved: within {100 * _bound(one):.1f} points of "
            f"{100 * one['alpha']:g} %)"
            if one["answered"]
            else ""
        )
        for one in levels.record["adaptive"]
    ]


def _bound(one: Mapping[str, Any]) -> float:
    return miss_rate_bound(one["alpha"], one["step"], one["answered"], one["waiting"])
