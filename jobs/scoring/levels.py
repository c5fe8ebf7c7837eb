"""The levels that a run compares p-values with: alpha itself, or an adaptive one that follows it.

Under `adapt` there is one level per alpha, for all strata; under a promise per class one per alpha
and class. It moves once per answered run, by the version's rule
(`models.calibration.adaptive_level`); stored p-values stay as they are. The state stands in the
run's column `levels`, so that the next run goes on from there:

    {"used": [0.093], "nonempty": false,
     "adaptive": [{"alpha": 0.1, "class": "", "step": 0.05, "level": 0.093, "answered": 7,
                   "misses": 0.84, "waiting": 3, "rule": "today", "missed_then": 0.81}],
     "answered": [{"run": 12, "known": 70, "missed": [9]}]}

`misses` is the sum of the miss rates that moved the level, `missed_then` of those at the levels
that the runs used, as the counts `missed` are. States without `rule` are of the rule `then`, under
which the two sums are one.
"""

from __future__ import annotations

import math
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
from ringfence.jobs.scoring.calibration.calibration_set import CalibrationSet
from ringfence.models.calibration.adaptive_level import THEN, AdaptiveLevel, miss_rate_bound
from ringfence.models.promise.class_alphas import class_alphas

ALL = ""
"""Name under which a level stands that all classes share."""

USELESS_BOUND = 0.1
"""A bound on the mean miss rate that is no smaller says nothing that helps anybody."""

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
    rule: at which level the misses of an answered run count: today's, or the one it used then.
    """

    alphas: tuple[float, ...]
    class_alphas: Mapping[str, float]
    per_class: bool
    adapt: bool
    step: float
    rule: str = THEN


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
    targets = np.stack([class_alphas(classes, alpha, plan.class_alphas) for alpha in plan.alphas])
    if not plan.adapt:
        return RunLevels(targets, targets)
    nodes = _by_run(known, used_by, classes)
    names = list(classes) if plan.per_class else [ALL]
    states, used = [], np.empty_like(targets)
    for k, alpha in enumerate(plan.alphas):
        for name in names:
            column = classes.index(name) if name else 0
            target = float(targets[k, column])
            rates = _miss_rates(nodes, used_by, classes, k, alpha, name)
            state = _state(last, target, plan, name)
            level = (
                state.level.after(rates)
                if plan.rule == THEN
                else state.level.after_runs(_true_p_values(nodes, classes, name))
            )
            state = _State(
                level, max(state.waiting, waiting), math.fsum([state.missed_then, *rates])
            )
            states.append(_state_json(state, plan.rule, name))
            used[k, column if name else slice(None)] = level.in_force
    answered = [_answer_json(nodes[run], used_by[run], run, classes, plan) for run in nodes]
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
    at_alpha = used[place]
    return float(at_alpha[name] if isinstance(at_alpha, Mapping) else at_alpha)


def _by_run(
    known: Iterable[KnownPValue], runs: Iterable[int], classes: Sequence[str]
) -> dict[int, list[KnownPValue]]:
    """The nodes of each answered run, by its number.

    Nodes of a class that the model never saw are left out: no level can cover them, and the level
    would sink for ever.
    """
    of_runs: dict[int, list[KnownPValue]] = {run: [] for run in sorted(runs)}
    for node in known:
        if node[1] in classes:
            of_runs[node[0]].append(node)
    return of_runs


def _miss_rates(
    nodes: Mapping[int, Sequence[KnownPValue]],
    used_by: Mapping[int, Mapping[str, Any]],
    classes: Sequence[str],
    place: int,
    alpha: float,
    name: str,
) -> list[float]:
    """Share missed of each answered run, of one class where it has a level of its own."""
    rates = []
    for run, of_run in nodes.items():
        missed = [
            p[classes.index(label)] <= level_used(used_by[run], place, alpha, label)
            for _, label, p in of_run
            if name in (ALL, label)
        ]
        if missed:
            rates.append(sum(missed) / len(missed))
    return rates


def _true_p_values(
    nodes: Mapping[int, Sequence[KnownPValue]], classes: Sequence[str], name: str
) -> list[NDArray[np.float64]]:
    """p-values of the true classes of each answered run, of the nodes that `_miss_rates` counts."""
    return [
        np.array([p[classes.index(label)] for _, label, p in of_run if name in (ALL, label)])
        for of_run in nodes.values()
    ]


@dataclass(frozen=True, slots=True)
class _State:
    """A level, the most runs that ever waited, and the sum of miss rates at the levels used."""

    level: AdaptiveLevel
    waiting: int = 0
    missed_then: float = 0.0


def _state(last: Mapping[str, Any] | None, alpha: float, plan: LevelPlan, name: str) -> _State:
    """The level as the last run left it; a new one where alpha, step or rule have changed."""
    wanted = (name, alpha, plan.step, plan.rule)
    for entry in (last or {}).get("adaptive", []):
        if (entry["class"], entry["alpha"], entry["step"], entry.get("rule", THEN)) == wanted:
            misses = entry["misses"]
            level = AdaptiveLevel(alpha, plan.step, entry["level"], entry["answered"], misses)
            return _State(level, int(entry["waiting"]), entry.get("missed_then", misses))
    return _State(AdaptiveLevel.start(alpha, plan.step))


def _state_json(state: _State, rule: str, name: str) -> dict[str, Any]:
    level = state.level
    entry = {
        "alpha": level.alpha,
        "class": name,
        "step": level.step,
        "level": level.level,
        "answered": level.answered,
        "misses": level.misses,
        "waiting": state.waiting,
    }
    if rule == THEN:  # as older versions wrote it
        return entry
    return entry | {"rule": rule, "missed_then": state.missed_then}


def _answer_json(
    nodes: Sequence[KnownPValue],
    levels: Mapping[str, Any],
    run: int,
    classes: Sequence[str],
    plan: LevelPlan,
) -> dict[str, Any]:
    missed = [
        sum(p[classes.index(label)] <= level_used(levels, k, alpha, label) for _, label, p in nodes)
        for k, alpha in enumerate(plan.alphas)
    ]
    return {"run": run, "known": len(nodes), "missed": missed}


def levels_of_run(
    workspace: Workspace, model: SavedModel, terms: PromiseTerms, living: CalibrationSet
) -> RunLevels | None:
    """Return the levels of the next run; None where they are the alphas themselves."""
    if not terms.adapt:
        return None
    store, project, settings = workspace.store, workspace.project, workspace.settings.conformal
    last = newest_run_of_model(store, project, model.version)
    answered = {seq: one_run(store, project, seq).levels or {} for seq in living.answered}
    per_class = terms.promise_kind.per_class
    plan = LevelPlan(
        settings.alphas, settings.classes, per_class, True, terms.adapt_step, terms.adapt_rule
    )
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
    return [_describe_level(entry) for entry in levels.record["adaptive"]]


def _describe_level(entry: Mapping[str, Any]) -> str:
    whose = f" of class {entry['class']}" if entry["class"] else ""
    note = f"level {entry['level']:.4g} in force for alpha {entry['alpha']:g}{whose}: "
    answered = entry["answered"]
    if not answered:
        return note + "no run is answered yet"
    missed_then = entry.get("missed_then", entry["misses"])
    note += (
        f"{answered} runs answered, {100 * missed_then / answered:.1f} % of their known nodes "
        "missed on average over runs"
    )
    if "rule" in entry:
        note += f" ({100 * entry['misses'] / answered:.1f} % at the level in force at the answer)"
    return f"{note}; {_describe_bound(entry)}"


def _describe_bound(entry: Mapping[str, Any]) -> str:
    """What is proved of the mean miss rate, and whether it says anything."""
    then = "rule" not in entry
    waiting = entry["waiting"] if then else 0
    bound = miss_rate_bound(entry["alpha"], entry["step"], entry["answered"], waiting)
    mean = "this mean" if then else "the latter mean"
    if bound >= max(entry["alpha"], 1.0 - entry["alpha"]):  # every share is as near as that
        return f"nothing is proved of {mean} yet"
    points = f"within {100 * bound:.1f} points of {100 * entry['alpha']:g} %"
    useless = ", which is useless until more runs are answered" if bound >= USELESS_BOUND else ""
    return f"proved of {mean}: {points}{useless}"
