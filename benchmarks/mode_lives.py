"""Lives of every way to calibrate as an audit sees them (`benchmarks.verdicts`).

Like `verdict_lives`, but for what can be configured besides: calibration sets that grow, levels
over a frozen set, bands of degree, promises per class and per group, and rules with weights. Scores
are uniform whatever the part, degree or age of a node: nothing changes in any of these worlds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import RunCount
from ringfence.connector.store.calibration.known import KnownCount
from ringfence.connector.store.calibration.schedule import CalibratedRun
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.jobs.scoring.calibration.settled_runs import DAY_NS, UsualLabels, find_settled
from ringfence.models.calibration.adaptive_level import AdaptiveLevel
from ringfence.models.conformal.weights import drift_weights, edge_weights
from ringfence.models.guarantee.law import effective_sample_size

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Kind = Literal["frozen", "growing", "window"]
Weights = Literal["", "EdgeEx", "half-life", "shift"]

HARD, OTHERS = "hard", "others"
HARD_SHARE, HARD_POWER = 0.1, 6.0
STEP, TRAINED, WINDOW, HALF_LIFE_RUNS = 0.05, 500, 3_000, 20.0
PARTS = {
    "": (("", 1.0, 0.1),),
    "class": (("mule", 0.2, 0.05), ("normal", 0.8, 0.1)),
    "group": (("region=north", 0.3, 0.1), ("region=south", 0.7, 0.1)),
}
"""Promise -> name of each part, its share of the nodes and the share of it that may be missed."""


@dataclass(frozen=True, slots=True)
class ModeWorld:
    """A way to calibrate, how many runs late classes come, nodes per run, how many runs.

    rule: of the level, empty where it is fixed. named: whether classes are counted although the
    promise is for all nodes. early: a hard class of a tenth of the nodes, or the first class that
    has a promise, is known at the next run, the others `delay` later.
    """

    kind: Kind
    rule: Literal["", "then", "today"] = ""
    delay: int = 7
    nodes: int = 200
    runs: int = 120
    bands: int = 1
    promise: Literal["", "class", "group"] = ""
    weights: Weights = ""
    alpha: float = 0.1
    step: float = STEP
    trained: int = TRAINED
    named: bool = False
    early: bool = False

    @property
    def name(self) -> str:
        return f"{self.mode}, {self.times}"

    @property
    def mode(self) -> str:
        """How it calibrates."""
        parts = [
            self.kind,
            f"level {self.rule}" if self.rule else "",
            f"{self.bands} bands" if self.bands > 1 else "",
            f"promise per {self.promise}" if self.promise else "",
            f"weights {self.weights}" if self.weights else "",
            f"alpha = {self.alpha:g}" if self.alpha != 0.1 else "",
        ]
        return ", ".join(part for part in parts if part)

    @property
    def times(self) -> str:
        """How late classes come, and to how many nodes."""
        early = ", early class" if self.early else ""
        return f"D = {self.delay}, {self.nodes} a run{early}"

    @property
    def parts(self) -> tuple[tuple[str, float, float], ...]:
        """Name, share and alpha of the parts that calibrate, or count, for themselves."""
        if self.promise:
            return PARTS[self.promise]
        share = 1.0 / self.bands
        return tuple((str(band), share, self.alpha) for band in range(self.bands))


@dataclass(slots=True)
class _Nodes:
    """Nodes of one run, or of the training: part, score, degree, and whether of the early class."""

    part: Ints
    score: Floats
    degree: Floats
    hard: NDArray[np.bool_]
    p: Floats = field(default_factory=lambda: np.zeros(0))
    missed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))


@dataclass(slots=True)
class ModeLife:
    """A life: counts of all nodes and of parts, and who calibrated them.

    early, early_named: the same counts while nodes of the early class alone are known.
    """

    world: ModeWorld
    tallies: list[Tally] = field(default_factory=list)
    named: list[Tally] = field(default_factory=list)
    early: list[Tally] = field(default_factory=list)
    early_named: list[Tally] = field(default_factory=list)
    whole: list[CalibratedRun] = field(default_factory=list)
    of_parts: dict[tuple[str, str], list[CalibratedRun]] = field(default_factory=dict)

    def until(self, now: int) -> ModeLife:
        """The same as an audit after `now` runs has it.

        All classes of these are known; with an early class, of the newest runs that class alone.
        """
        whole = now - self.world.delay if self.world.early else now
        return ModeLife(
            self.world,
            [*self.tallies[: max(0, whole)], *self.early[max(0, whole) : now]],
            [tally for tally in self.named if tally.seq <= whole]
            + [tally for tally in self.early_named if whole < tally.seq <= now],
            whole=self.whole[:now],
            of_parts={name: runs[:now] for name, runs in self.of_parts.items()},
        )

    def unsettled(self, now: int) -> frozenset[int]:
        """The runs of which only the early class is known, as an audit finds them."""
        if not self.world.early:
            return frozenset()
        runs = [RunCount(t, t * DAY_NS, self.world.nodes) for t in range(1, now + 1)]
        counts = [
            KnownCount(t, name, (t + late) * DAY_NS - 1, False, None, nodes)
            for t in range(1, now + 1)
            for name, late, nodes in (
                (HARD, 1, self.early[t - 1].counts["known"]),
                (OTHERS, self.world.delay,
                 self.world.nodes - self.early[t - 1].counts["known"]),
            )
            if nodes and t + late <= now
        ]  # fmt: skip
        share = self.world.parts[0][1] if self.world.promise == "class" else HARD_SHARE
        trained = {HARD: round(share * TRAINED), OTHERS: round((1 - share) * TRAINED)}
        settled = find_settled(counts, runs, UsualLabels(trained), between=True)
        return frozenset(settled.find_early())


def play_mode(world: ModeWorld, seed: int) -> ModeLife:
    """Play a life to its end; classes of a run are known `delay` runs later, all at once."""
    rng = np.random.default_rng([seed, world.delay, world.nodes, 29])
    trained, past, life = _draw(world, world.trained, rng), list[_Nodes](), ModeLife(world)
    levels = {name: AdaptiveLevel.start(alpha, world.step) for name, _, alpha in world.parts}
    for t in range(1, world.runs + 1):
        answered = (t - world.delay,) if t > world.delay and world.rule else ()
        for s in answered:
            levels = _answer(world, levels, past[s - 1])
        first, sources = _sources(world, t, len(past))
        _score(world, life, levels, t, answered, (trained, past, first, sources), rng)
    return life


def _sources(world: ModeWorld, t: int, made: int) -> tuple[int, list[int]]:
    """The oldest run whose nodes still calibrate, and all runs that have joined."""
    if world.kind == "frozen":
        return 1, []
    joined = list(range(1, min(made, t - world.delay) + 1))
    first = max(1, len(joined) - WINDOW // world.nodes + 1) if world.kind == "window" else 1
    return first, joined


def _score(
    world: ModeWorld,
    life: ModeLife,
    levels: dict[str, AdaptiveLevel],
    t: int,
    answered: tuple[int, ...],
    held: tuple[_Nodes, list[_Nodes], int, list[int]],
    rng: np.random.Generator,
) -> None:
    """Give the nodes of a run their sets, and count them."""
    trained, past, first, joined = held
    full = world.kind == "window" and len(joined) * world.nodes >= WINDOW
    used = [*([] if full else [(0, trained)]), *((s, past[s - 1]) for s in joined if s >= first)]
    ages = np.concatenate([np.full(len(nodes.score), t - s) for s, nodes in used])
    known = _Nodes(
        *(np.concatenate([getattr(nodes, name) for _, nodes in used])
          for name in ("part", "score", "degree", "hard"))
    )  # fmt: skip
    due = _draw(world, world.nodes, rng)
    due.p, due.missed = np.zeros(world.nodes), np.zeros(world.nodes, bool)
    weights = _weights(world, known, ages)
    strata: list[StratumCounts] = []
    of_early: list[StratumCounts] = []
    for place, (name, _, alpha) in enumerate(world.parts):
        of_part, own = due.part == place, known.part == place
        level = levels[name].in_force if world.rule else alpha
        p = _p_values(world, known.score[own], due.score[of_part], weights[own], due, of_part)
        due.p[of_part], due.missed[of_part] = p, p <= level
        n, m = int(own.sum()), int(of_part.sum())
        worth = float(effective_sample_size(weights[own])) if world.weights and n else float(n)
        of_class = name if world.promise == "class" else ""
        strata.append(StratumCounts(n, worth, level, m, int((p > level).sum()), of_class))
        hard = due.hard[of_part]
        hits = int((hard & (p > level)).sum())
        of_early.append(StratumCounts(n, worth, level, int(hard.sum()), hits, of_class))
        if world.promise:
            step = world.step if world.rule else 0.0
            gave = {s: int((past[s - 1].part == place).sum()) for s in joined}
            life.of_parts.setdefault(("m", name), []).append(
                CalibratedRun(t, n, world.kind, gave, answered, step,
                              judged_today=world.rule == "today")
            )  # fmt: skip
            if m:
                life.named.append(_tally(world, t, n, worth, name, (strata[-1],), m))
                life.early_named.append(_tally(world, t, n, worth, name, (of_early[-1],), m))
    worth = float(effective_sample_size(weights)) if world.weights else float(len(weights))
    life.tallies.append(_tally(world, t, len(weights), worth, "", tuple(strata), world.nodes))
    life.early.append(_tally(world, t, len(weights), worth, "", tuple(of_early), world.nodes))
    if world.named:
        _count_classes(life, due, t, len(weights), rng)
    life.whole.append(
        CalibratedRun(t, len(weights), world.kind, dict.fromkeys(joined, world.nodes), answered,
                      world.step if world.rule else 0.0, judged_today=world.rule == "today")
    )  # fmt: skip
    past.append(due)


def _count_classes(life: ModeLife, due: _Nodes, t: int, n: int, rng: np.random.Generator) -> None:
    """Count three classes that nothing is promised to; they are covered as all nodes are."""
    classes = rng.choice(3, len(due.p), p=(0.1, 0.3, 0.6))
    for place, name in enumerate(("mule", "shop", "person")):
        missed = due.missed[classes == place]
        if len(missed):
            part = StratumCounts(n, float(n), life.world.alpha, len(missed), int((~missed).sum()))
            life.named.append(_tally(life.world, t, n, float(n), name, (part,), len(missed)))


def _answer(
    world: ModeWorld, levels: dict[str, AdaptiveLevel], run: _Nodes
) -> dict[str, AdaptiveLevel]:
    """Take in a run: by classes under a promise per class, else with all of its nodes."""
    answered = {}
    for place, (name, _, _) in enumerate(world.parts):
        own = run.part == place if world.promise == "class" else np.ones(len(run.p), bool)
        level = levels[name]
        if world.rule == "today":
            answered[name] = level.after_runs([run.p[own]])
        else:
            answered[name] = level.after([float(run.missed[own].mean())] if own.any() else [])
    return answered


def _weights(world: ModeWorld, known: _Nodes, ages: Ints) -> Floats:
    """Weights of the calibration nodes."""
    if world.weights == "EdgeEx":
        return np.asarray(edge_weights(known.degree))
    if world.weights == "half-life":
        return np.asarray(drift_weights(ages.astype(float), HALF_LIFE_RUNS))
    if world.weights == "shift":
        return _density_ratio(known.degree)
    return np.ones(len(known.score))


def _density_ratio(degree: Floats) -> Floats:
    """What a logistic regression of degrees gives, clipped as the product clips it."""
    return np.clip((degree / 4.0) ** 0.7, 1 / 20, 20)


def _p_values(
    world: ModeWorld,
    known: Floats,
    scores: Floats,
    weights: Floats,
    due: _Nodes,
    of_part: NDArray[np.bool_],
) -> Floats:
    order = np.argsort(known)
    below = np.concatenate([[0.0], np.cumsum(weights[order])])
    rank = np.searchsorted(known[order], scores, side="right")
    own = _density_ratio(due.degree[of_part]) if world.weights == "shift" else 1.0
    return np.asarray((below[rank] + own) / (below[-1] + own))


def _draw(world: ModeWorld, nodes: int, rng: np.random.Generator) -> _Nodes:
    """Nodes with scores that depend on nothing; degrees have a heavy tail."""
    part = rng.choice(len(world.parts), nodes, p=[share for _, share, _ in world.parts])
    scores, degrees = rng.random(nodes), np.floor(2.0 * (1.0 - rng.random(nodes)) ** -0.6)
    hard = (rng.random(nodes) if world.early else np.ones(nodes)) < HARD_SHARE
    if world.early and world.promise == "class":
        hard = part == 0  # classes are known early, not some nodes of a class
    return _Nodes(part, np.where(hard, scores**HARD_POWER, scores), degrees, hard)


def _tally(
    world: ModeWorld,
    run: int,
    n: int,
    worth: float,
    name: str,
    strata: tuple[StratumCounts, ...],
    evaluated: int,
) -> Tally:
    known, covered = (sum(getattr(part, of) for part in strata) for of in ("known", "covered"))
    alphas = {part: alpha for part, _, alpha in world.parts if alpha != world.alpha}
    options = {"promise": world.promise, "group": "region", "classes": alphas}
    rule = {"EdgeEx": "EdgeEx", "half-life": "NodeEx", "shift": "NodeEx"}
    counts = {"evaluated": evaluated, "known": known, "covered": covered}
    return Tally(
        seq=run, model="m", rule=rule.get(world.weights, "auto"), score="APS", alpha=world.alpha,
        options=dumps(options) if world.promise else "{}", n_calibration=n,
        effective_calibration=worth, name=name, counts=dict.fromkeys(COUNTS, 0) | counts,
        sums=dict.fromkeys(SUMS, 0.0), promise=world.promise or "marginal",
        calibration_set=world.kind, adapt=bool(world.rule), strata=(strata,),
    )  # fmt: skip
