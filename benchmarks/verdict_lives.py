"""Lives of a model as an audit sees them: tallies and schedule (`benchmarks.verdicts`).

When all is well scores are exchangeable, so only their ranks matter: nodes are uniform numbers to a
power that their class has, judged and settled by the functions that scoring uses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import RunCount
from ringfence.connector.store.calibration.known import KnownCount
from ringfence.connector.store.calibration.schedule import CalibratedRun
from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.jobs.scoring.calibration.settled_runs import DAY_NS, UsualLabels, find_settled
from ringfence.models.calibration.adaptive_level import AdaptiveLevel
from ringfence.models.calibration.cohort import Labels, settle_runs
from ringfence.models.calibration.settled_by_age import settle_by_age

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mode = Literal["frozen", "window", "then", "today"]

ALPHA, STEP, TRAINED, WINDOW = 0.1, 0.05, 500, 5_000
SHARES, POWERS = np.array([0.1, 0.3, 0.3, 0.3]), np.array([6.0, 1.0, 1.0, 1.0])


@dataclass(frozen=True, slots=True)
class World:
    """A life: how it calibrates, how many runs late classes come, nodes per run, how many runs.

    early: a hard class of a tenth of the nodes is known at the next run, the others `delay` later.
    easy_first: the others are known at the next run, and the hard class `delay` later.
    by_age: runs settle by one delay for all classes, as they did before.
    drop_at, drop_to: from that run on a fixed level covers so much; None where nothing changes.
    """

    mode: Mode
    delay: int
    nodes: int
    runs: int = 400
    early: bool = False
    easy_first: bool = False
    by_age: bool = False
    drop_at: int | None = None
    drop_to: float = 0.85
    trained: int = TRAINED

    @property
    def divided(self) -> bool:
        """Whether classes come at different times."""
        return self.early or self.easy_first

    @property
    def name(self) -> str:
        return f"{self.mode}, {self.times}"

    @property
    def times(self) -> str:
        """How late classes come, and to how many nodes."""
        classes = ", early class" if self.early else ", easy first" if self.easy_first else ""
        return f"D = {self.delay}, {self.nodes} a run{classes}"


@dataclass(slots=True)
class Played:
    """A life: of each run classes, when they come, who was covered, scores, and its calibration.

    trained: scores of the calibration nodes of the training.
    """

    world: World
    seed: int = 0
    trained: Floats = field(default_factory=lambda: np.zeros(0))
    classes: list[Ints] = field(default_factory=list)
    known: list[Ints] = field(default_factory=list)
    covered: list[NDArray[np.bool_]] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)
    schedule: list[CalibratedRun] = field(default_factory=list)
    delivered: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def tallies(self, now: int) -> list[Tally]:
        """The runs before `now` with the classes that are known by then."""
        return [self._tally(run, now) for run in range(now)]

    def unsettled(self, now: int) -> set[int]:
        """Numbers of the runs of which only early classes are known, as an audit finds them."""
        runs = [RunCount(run + 1, run * DAY_NS, len(self.classes[run])) for run in range(now)]
        counts = [
            KnownCount(run + 1, str(class_), at * DAY_NS - 1, False, None, nodes)
            for run in range(now)
            for class_, at, nodes in self._deliveries(run)
            if at <= now
        ]
        usual = {str(i): round(share * self.world.trained) for i, share in enumerate(SHARES)}
        return set(find_settled(counts, runs, UsualLabels(usual), between=True).find_early())

    def _deliveries(self, run: int) -> list[tuple[int, int, int]]:
        """Class, time and number of the labels of a run."""
        if run not in self.delivered:
            pairs = np.stack([self.classes[run], self.known[run]])
            kinds, nodes = np.unique(pairs, axis=1, return_counts=True)
            self.delivered[run] = [
                (class_, at, count)
                for (class_, at), count in zip(kinds.T.tolist(), nodes.tolist(), strict=True)
            ]
        return self.delivered[run]

    def _tally(self, run: int, now: int) -> Tally:
        seen = self.known[run] <= now
        known, hits = int(seen.sum()), int((self.covered[run] & seen).sum())
        of_run = self.schedule[run]
        n, adapt = of_run.n_calibration, self.world.mode in {"then", "today"}
        counts = {"evaluated": len(seen), "known": known, "covered": hits}
        return Tally(
            seq=run + 1, model="m", rule="auto", score="APS", alpha=ALPHA, options="{}",
            n_calibration=n, effective_calibration=float(n), name="",
            counts=dict.fromkeys(COUNTS, 0) | counts, sums=dict.fromkeys(SUMS, 0.0),
            calibration_set=of_run.calibration_set, adapt=adapt,
            strata=((StratumCounts(n, float(n), ALPHA, known, hits),),),
        )  # fmt: skip


def play(world: World, seed: int) -> Played:
    """Play a life to its end."""
    rng = np.random.default_rng([seed, world.delay, world.nodes, 28])
    settled, answers = np.zeros(0, bool), set[int]()
    _, trained = _draw(world, world.trained, rng, changed=False)
    played = Played(world, seed, trained)
    scores = played.scores
    p_values: list[Floats] = []
    levels: list[float] = []
    level = AdaptiveLevel.start(ALPHA, STEP)
    adapts, lives = world.mode in {"then", "today"}, world.mode != "frozen"
    for t in range(world.runs):
        settled = _settled(played, t) if world.divided else np.arange(t) + world.delay <= t
        fresh = [s for s in range(t) if settled[s] and s not in answers]
        answers |= set(fresh)
        known_p = [p_values[s][played.known[s] <= t] for s in fresh]
        if world.mode == "today":
            level = level.after_runs(known_p)
        elif world.mode == "then":
            pairs = zip(fresh, known_p, strict=True)
            level = level.after([float(np.mean(p <= levels[s])) for s, p in pairs])
        joins = sorted(answers) if lives else []
        newest = joins[-(WINDOW // world.nodes + 1) :]
        joined = [scores[s][played.known[s] <= t] for s in newest]
        calibration = np.sort(np.concatenate([trained, *joined])[-WINDOW:])
        classes, own = _draw(
            world, world.nodes, rng, world.drop_at is not None and t >= world.drop_at
        )
        p = (1 + np.searchsorted(calibration, own, side="right")) / (len(calibration) + 1)
        used = level.level if adapts else ALPHA
        at_once = (classes == 0) if world.early else (classes > 0) & world.easy_first
        late = np.where(at_once, 1, world.delay)
        scores.append(own)
        p_values.append(p)
        levels.append(used)
        played.classes.append(classes)
        played.known.append(t + late)
        played.covered.append(p > used)
        played.schedule.append(
            CalibratedRun(
                t + 1, len(calibration), "window" if lives else "frozen",
                {s + 1: int((played.known[s] <= t).sum()) for s in joins},
                tuple(s + 1 for s in fresh) if adapts else (), STEP if adapts else 0.0,
                judged_today=world.mode == "today",
            )
        )  # fmt: skip
    return played


def _settled(played: Played, now: int) -> NDArray[np.bool_]:
    """Which runs are settled, by the functions that scoring uses."""
    masks = [known <= now for known in played.known[:now]]
    labels = Labels(
        np.repeat(np.arange(now), [int(mask.sum()) for mask in masks]),
        np.concatenate(
            [np.zeros(0, np.int64), *(c[m] for c, m in zip(played.classes, masks, strict=False))]
        ),
        np.concatenate(
            [
                np.zeros(0, np.int64),
                *(k[m] - i for i, (k, m) in enumerate(zip(played.known, masks, strict=False))),
            ]
        ),
    )
    if played.world.by_age:
        return settle_by_age(now, labels)[0]
    usual = SHARES * played.world.trained
    return settle_runs(np.full(now, played.world.nodes), labels, usual).ready


def _draw(world: World, nodes: int, rng: np.random.Generator, changed: bool) -> tuple[Ints, Floats]:
    """Classes and scores of some nodes; after a change they conform less."""
    classes = rng.choice(len(SHARES), nodes, p=SHARES)
    powers = POWERS[classes] if world.divided else np.ones(nodes)
    harder = math.log(ALPHA) / math.log(1.0 - world.drop_to) if changed else 1.0
    return classes, rng.random(nodes) ** (powers * harder)
