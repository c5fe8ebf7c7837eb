"""Lives with late classes, played with the functions that scoring uses (`benchmarks.late_classes`).

Two kinds: p-values that are right from the start and whose classes come D runs later, under three
rules for the level; and nodes of several classes that calibrate later runs, under the rule of
settled runs and the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.calibration.adaptive_level import AdaptiveLevel
from ringfence.models.calibration.cohort import MAX_WAIT_DAYS, Labels, settle_runs
from ringfence.models.calibration.settled_by_age import settle_by_age

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LevelRule = Literal["then", "capped", "today"]

ALPHA, STEP = 0.1, 0.05
UNKNOWN_RUN = 10**9
WRONG_POWER = 20


@dataclass(frozen=True, slots=True)
class LevelWorld:
    """Runs with p-values u ** power(t / runs); classes come `delay` runs late.

    known: share of nodes whose class is ever known, after a geometric time of mean `delay` where it
    is below 1. lump: runs between two deliveries of labels, 0 where they come one by one.
    by_chance: whether a run has a Poisson number of nodes, as one class of a promise per class has.
    """

    name: str
    delay: int
    nodes: int = 100
    runs: int = 600
    power: Callable[[float], float] = lambda _time: 1.0
    known: float = 1.0
    lump: int = 0
    by_chance: bool = False

    @property
    def comes_whole(self) -> bool:
        """Whether the classes of a run come all at once, so that it settles with them."""
        return self.known >= 1.0 and not self.lump


@dataclass(slots=True)
class Life:
    """Coverage of all nodes of each run, and the level that it used."""

    covered: list[float] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)


def play_levels(world: LevelWorld, rule: LevelRule, seed: int) -> Life:
    """Play a life; p-values and delays are the same under every rule."""
    p_of, known = _draw_life(world, seed)
    answered_at = _answer_times(world, seed)
    step = min(STEP, 0.5 / (world.delay + 1)) if rule == "capped" else STEP
    level, life = AdaptiveLevel.start(ALPHA, step), Life()
    for t in range(world.runs):
        answered = [s for s in range(t) if answered_at[s] == t]
        p_known = [p_of[s][known[s] <= t] for s in answered]
        if rule == "today":
            level = level.after_runs(p_known)
        else:
            pairs = zip(answered, p_known, strict=True)
            level = level.after([float(np.mean(p <= life.levels[s])) for s, p in pairs if len(p)])
        life.levels.append(level.level)
        life.covered.append(float(np.mean(p_of[t] > level.level)) if len(p_of[t]) else np.nan)
    return life


def _draw_life(world: LevelWorld, seed: int) -> tuple[list[Floats], list[Ints]]:
    """The p-values of each run's nodes, and the runs from which on their classes are known."""
    rng = np.random.default_rng([seed, world.delay, world.nodes])
    sizes = [world.nodes] * world.runs
    if world.by_chance:
        sizes = [int(size) for size in rng.poisson(world.nodes, world.runs)]
    p_of = [rng.random(size) ** world.power(t / world.runs) for t, size in enumerate(sizes)]
    return p_of, [_times_known(world, t, size, rng) for t, size in enumerate(sizes)]


def _times_known(world: LevelWorld, run: int, nodes: int, rng: np.random.Generator) -> Ints:
    """The run from which on each class is known [nodes]."""
    if world.lump:
        return np.full(nodes, -(-(run + world.delay) // world.lump) * world.lump)
    if world.known >= 1.0:
        return np.full(nodes, run + world.delay)
    later = rng.geometric(1.0 / world.delay, nodes)
    return np.where(rng.random(nodes) < world.known, run + later, UNKNOWN_RUN)


@lru_cache(maxsize=64)
def _answer_times(world: LevelWorld, seed: int) -> tuple[int, ...]:
    """Before which run each is answered: where classes don't come at once, by the product's rule.

    The nodes are of one class, so a run waits for nothing but the usual delay.
    """
    if world.comes_whole:
        return tuple(t + world.delay for t in range(world.runs))
    _, known = _draw_life(world, seed)
    evaluated = np.array([len(times) for times in known])
    of_run, times = np.repeat(np.arange(world.runs), evaluated), np.concatenate(known)
    answered = np.full(world.runs, UNKNOWN_RUN)
    for now in range(1, world.runs):
        seen = (of_run < now) & (times <= now)
        labels = Labels(of_run[seen], np.zeros(int(seen.sum()), np.int64), (times - of_run)[seen])
        ready = settle_runs(evaluated[:now], labels, np.ones(1)).ready
        answered[:now][ready & (answered[:now] == UNKNOWN_RUN)] = now
    return tuple(answered.tolist())


@dataclass(frozen=True, slots=True)
class ClassWorld:
    """Nodes of several classes, whose scores are u ** powers[class]; larger powers conform less.

    delay(classes, run): after how many runs each class comes [nodes], UNKNOWN_RUN for never.
    uncounted, uncounted_from: a class that is left out of coverage from a run on, since it does not
    become known within the life.
    harder, harder_from: from a run on, scores of its nodes are taken to this power: they conform
    less than the calibration nodes of the training.
    declared: after how many runs classes are known, as the configuration may say.
    wrong, corrected_after: share of nodes whose class is first known as another one, which conforms
    badly (u ** WRONG_POWER), and after how many runs more it is corrected.
    """

    name: str
    shares: tuple[float, ...]
    powers: tuple[float, ...]
    delay: Callable[[Ints, int], Ints]
    runs: int = 120
    nodes: int = 100
    known: float = 1.0
    trained: int = 500
    window: int = 5_000
    uncounted: int | None = None
    uncounted_from: int = 0
    harder: float = 1.0
    harder_from: int = 0
    declared: int | None = None
    wrong: float = 0.0
    corrected_after: int = 30


@dataclass(frozen=True, slots=True)
class _First:
    """The classes of a run's nodes as known first, and from which run on the true ones are."""

    classes: Ints
    scores: Floats
    p_values: Floats
    right_from: Ints


@dataclass(slots=True)
class _Played:
    """What a life has by now: of each run classes, scores, p-values and when classes come."""

    classes: list[Ints] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)
    p_values: list[Floats] = field(default_factory=list)
    known: list[Ints] = field(default_factory=list)
    first: list[_First] = field(default_factory=list)

    def scores_at(self, run: int, now: int) -> Floats:
        """The scores of a run's known nodes, by their classes as they are known to run `now`."""
        first = self.first[run]
        scores = np.where(first.right_from <= now, self.scores[run], first.scores)
        return np.asarray(scores[self.known[run] <= now])

    def p_values_at(self, run: int, now: int) -> Floats:
        """The p-values of the same classes of the same nodes."""
        first = self.first[run]
        p_values = np.where(first.right_from <= now, self.p_values[run], first.p_values)
        return np.asarray(p_values[self.known[run] <= now])

    def labels(self, now: int) -> Labels:
        """The classes that are known to run `now`."""
        masks = [known <= now for known in self.known]
        classes = [
            np.where(first.right_from <= now, true, first.classes)
            for true, first in zip(self.classes, self.first, strict=True)
        ]
        return Labels(
            np.repeat(np.arange(len(masks)), [int(mask.sum()) for mask in masks]),
            _joined(c[mask] for c, mask in zip(classes, masks, strict=True)),
            _joined(k[m] - i for i, (k, m) in enumerate(zip(self.known, masks, strict=True))),
        )


def play_classes(
    world: ClassWorld, seed: int, settled_now: bool = True, wait: int = MAX_WAIT_DAYS
) -> Life:
    """Play a life with a growing window and an adaptive level.

    With `settled_now` off runs settle as they did before, and the level is judged `then`. `wait` is
    how many runs a class that was never seen is waited for.
    """
    rng, life, played = np.random.default_rng([seed, 28]), Life(), _Played()
    classes, scores = _draw_nodes(world, world.trained, rng)
    usual = np.bincount(classes, minlength=len(world.shares)).astype(np.float64)
    level, done = AdaptiveLevel.start(ALPHA, STEP), set[int]()
    for t in range(world.runs):
        ready = _ready(played, world, t, usual, wait if settled_now else None)
        new = [run for run in ready if run not in done]
        done |= set(new)
        p_known = [played.p_values_at(s, t) for s in new]
        if settled_now:
            level = level.after_runs(p_known)
        else:
            then = zip(new, p_known, strict=True)
            level = level.after([float(np.mean(p <= life.levels[s])) for s, p in then])
        joined = [played.scores_at(s, t) for s in sorted(done)]
        calibration = np.sort(np.concatenate([scores, *joined])[-world.window :])
        _add_run(played, world, t, calibration, rng)
        life.levels.append(level.level)
        counted = (played.classes[t] != world.uncounted) | (t < world.uncounted_from)
        life.covered.append(float(np.mean(played.p_values[t][counted] > level.level)))
    return life


def _ready(
    played: _Played, world: ClassWorld, now: int, usual: Floats, wait: int | None
) -> list[int]:
    if not now:
        return []
    labels = played.labels(now)
    if wait is not None:
        nodes = np.full(now, world.nodes)
        ready = settle_runs(nodes, labels, usual, world.declared, wait).ready
    else:
        ready, _ = settle_by_age(now, labels)
    return [int(run) for run in np.flatnonzero(ready)]


def _draw_nodes(world: ClassWorld, nodes: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    classes = rng.choice(len(world.shares), nodes, p=world.shares)
    return classes, rng.random(nodes) ** np.array(world.powers)[classes]


def _add_run(
    played: _Played, world: ClassWorld, run: int, calibration: Floats, rng: np.random.Generator
) -> None:
    classes, scores = _draw_nodes(world, world.nodes, rng)
    scores = scores**world.harder if run >= world.harder_from else scores
    played.classes.append(classes)
    played.scores.append(scores)
    played.p_values.append(_p_values(calibration, scores))
    ever = rng.random(world.nodes) < world.known
    known = np.where(ever, run + world.delay(classes, run), UNKNOWN_RUN)
    played.known.append(known)
    played.first.append(_first_classes(world, classes, known, calibration, rng))


def _first_classes(
    world: ClassWorld, classes: Ints, known: Ints, calibration: Floats, rng: np.random.Generator
) -> _First:
    """Draw which classes are known wrongly at first; nothing is drawn where none are."""
    if not world.wrong:
        return _First(classes, np.zeros(len(classes)), np.zeros(len(classes)), known)
    others = (classes + rng.integers(1, len(world.shares), len(classes))) % len(world.shares)
    scores = rng.random(len(classes)) ** WRONG_POWER
    is_wrong = rng.random(len(classes)) < world.wrong
    right_from = np.where(is_wrong, known + world.corrected_after, known)
    return _First(others, scores, _p_values(calibration, scores), right_from)


def _p_values(calibration: Floats, scores: Floats) -> Floats:
    rank = np.searchsorted(calibration, scores, side="right")
    return np.asarray((1 + rank) / (len(calibration) + 1))


def _joined(parts: object) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])  # type: ignore[misc]
