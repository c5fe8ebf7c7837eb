"""How often each alarm fires in lives of 400 runs in which nothing changes (`benchmarks.verdicts`).

A look after every run, or after every tenth where one look is dear, with the functions that alarms
use. Beside each stands what docs/watching.md claims: a share of lives, or of looks where an alarm
is a plain test of the newest run. Alarms without a claim are printed for what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.mode_lives import ModeWorld, play_mode
from benchmarks.monitor_lives import ever_alarms
from benchmarks.verdict_lives import ALPHA, World, play
from benchmarks.verdicts import ALARM, ALARM_LIVES, CLEARLY, log_capitals
from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.jobs.auditing.shortfalls import FAR
from ringfence.jobs.auditing.summary import summarise
from ringfence.models.calibration.comparison import LEVEL, compare_nodes
from ringfence.models.guarantee.anytime import over_runs
from ringfence.models.guarantee.decline import decline, predict_frozen
from ringfence.models.guarantee.law import calibration_odds
from ringfence.models.guarantee.list_verdict import RunOfList, judge_list
from ringfence.models.guarantee.selection import LARGE_DIFFERENCE, selection_bias
from ringfence.models.guarantee.verdict import BROKEN_P

RUNS, EVERY = 400, 10
OF_LIVES, OF_LOOKS = "lives", "looks"
Fired = tuple[int, int, bool]
"""Looks at which an alarm fired, of how many, and whether it ever did."""


def measure_alarms(quick: bool, share: int = ALARM_LIVES) -> Iterator[dict[str, Any]]:
    """Yield a row for each alarm, of so many quarters of its lives."""
    for alarm, mode, claim, of, look, lives in _alarms():
        many = max(2, lives * share // ALARM_LIVES)
        fired = [look(seed) for seed in range(2 if quick else many)]
        yield _row(f"{alarm}, {mode}", claim, of, fired)


def _alarms() -> list[tuple[str, str, float | None, str, Callable[[int], Fired], int]]:
    """Name, world, what is claimed, of what, how a life is looked at, how many lives."""
    frozen, living = "frozen", "window, level today, D = 7"
    today = ModeWorld("window", "today", runs=RUNS)
    per_class = ModeWorld("window", "today", runs=RUNS, promise="class")
    per_group = ModeWorld("window", "today", runs=RUNS, promise="group")
    still = ModeWorld("frozen", runs=RUNS, nodes=100)
    return [
        ("total", frozen, 0.01, OF_LIVES, lambda s: _total(World("frozen", 1, 100, RUNS), s), 300),
        ("total", living, 0.01, OF_LIVES, lambda s: _total(World("today", 7, 100, RUNS), s), 60),
        ("decline", frozen, 0.01, OF_LIVES, lambda s: _decline(_world("frozen"), s), 300),
        ("decline", living, 0.01, OF_LIVES, lambda s: _decline(_world("today"), s), 40),
        ("decline", f"{frozen}, labels trickle in for 30 runs on average", 0.01, OF_LIVES,
         _decline_of_trickling_labels, 200),
        ("drift", "20 nodes a run", 0.01, OF_LIVES, _drift, 20),
        ("classes", f"{frozen}, promise per class", 0.01, OF_LIVES,
         lambda s: _parts(ModeWorld("frozen", runs=RUNS, nodes=100, promise="class"), s), 60),
        ("classes", living, 0.01, OF_LIVES, lambda s: _parts(per_class, s), 20),
        ("groups", f"{frozen}, promise per group", 0.01, OF_LIVES,
         lambda s: _parts(ModeWorld("frozen", runs=RUNS, nodes=100, promise="group"), s), 60),
        ("groups", living, 0.01, OF_LIVES, lambda s: _parts(per_group, s), 20),
        ("shortfall", f"{frozen}, classes alike", 0.01, OF_LIVES,
         lambda s: _shortfall(ModeWorld("frozen", runs=RUNS, nodes=100, named=True), s), 40),
        ("sample", f"{frozen}, 10 a run", 0.01, OF_LIVES, lambda s: _sample(still, s), 300),
        ("sample", f"{living}, 10 a run", 0.01, OF_LIVES, lambda s: _sample(today, s), 60),
        ("shift", "50 nodes a run", LEVEL, OF_LOOKS, _shift, 30),
        ("bias", "70 % known at random, 20 a run", None, OF_LIVES, lambda s: _bias(20, s), 60),
        ("bias", "70 % known at random, 100 a run", None, OF_LIVES, lambda s: _bias(100, s), 60),
        ("lists", "per run", 0.01, OF_LOOKS, lambda s: _lists(s, pooled=False), 300),
        ("lists", "per stream", 0.01, OF_LOOKS, lambda s: _lists(s, pooled=True), 300),
    ]  # fmt: skip


def _world(mode: Any) -> World:
    return World(mode, 1 if mode == "frozen" else 7, 100, RUNS)


def _row(alarm: str, claim: float | None, of: str, fired: list[Fired]) -> dict[str, Any]:
    looks, lives = sum(life[1] for life in fired), len(fired)
    at, ever = sum(life[0] for life in fired), sum(life[2] for life in fired)
    many, count = (lives, ever) if of == OF_LIVES else (looks, at)
    bad = claim is not None and count > binom.ppf(1 - CLEARLY, many, claim)
    return {
        "alarm": alarm,
        "lives": lives,
        "ever": ever / lives,
        "of looks": at / looks,
        "claimed": "none" if claim is None else f"{100 * claim:g} % of {of}",
        "verdict": "red" if bad else "green",
    }


def _fired(at: list[bool]) -> Fired:
    return sum(at), len(at), any(at)


def _total(world: World, seed: int) -> Fired:
    played = play(world, seed)
    known = np.full(world.runs, world.nodes)
    covered = np.array([int(of_run.sum()) for of_run in played.covered])
    n = min(run.n_calibration for run in played.schedule)
    at = [over_runs(n, known[:now], covered[:now], ALPHA).p_value < BROKEN_P
          for now in range(1, world.runs + 1)]  # fmt: skip
    return _fired(at)


def _decline(world: World, seed: int) -> Fired:
    played = play(world, seed)
    return _fired((log_capitals(played, world.runs - world.delay) >= ALARM).tolist())


def _decline_of_trickling_labels(seed: int) -> Fired:
    """200 runs of 20 nodes whose classes come one by one, so each look bets anew on all."""
    n, nodes, mean = 500, 20, 30.0
    rng = np.random.default_rng([seed, 39])
    runs = RUNS // 2
    missed = rng.random((runs, nodes)) < rng.beta(*calibration_odds(n, ALPHA)[::-1])
    known_at = np.arange(runs)[:, None] + rng.geometric(1.0 / mean, (runs, nodes))
    at = []
    for now in range(2, runs + 1):
        seen = known_at[:now] <= now
        known, of_known = seen.sum(axis=1), (seen & missed[:now]).sum(axis=1)
        known, of_known = known[known > 0], of_known[known > 0]
        bet = decline(known, of_known, predict_frozen(n, known, of_known, ALPHA), ALPHA)
        at.append(bet.alarm())
    return _fired(at)


def _drift(seed: int) -> Fired:
    fired = ever_alarms(play(World("frozen", 1, 20, RUNS), seed))
    return int(fired), 1, fired


def _named(world: ModeWorld, seed: int) -> Iterator[tuple[int, float, list[Tally], int]]:
    """Every tenth run: parts, alpha and counts so far, and how many parts are compared."""
    named = play_mode(world, seed).named
    of_name: dict[str, list[Tally]] = {}
    for tally in named:
        of_name.setdefault(tally.name, []).append(tally)
    alphas = {name: alpha for name, _, alpha in world.parts}
    for now in range(EVERY, world.runs + 1, EVERY):
        for name, tallies in of_name.items():
            so_far = [tally for tally in tallies if tally.seq <= now]
            yield now, alphas.get(name, world.alpha), so_far, len(of_name)


def _by_look(flags: Iterator[tuple[int, bool]]) -> Fired:
    """Looks at which any part fired."""
    at: dict[int, bool] = {}
    for now, flag in flags:
        at[now] = at.get(now, False) or flag
    return _fired(list(at.values()))


def _parts(world: ModeWorld, seed: int) -> Fired:
    def broken() -> Iterator[tuple[int, bool]]:
        for now, alpha, so_far, names in _named(world, seed):
            runs = summarise(so_far)
            p = over_runs(runs.size, runs.known, runs.covered, alpha).p_value
            yield now, names * p < BROKEN_P

    return _by_look(broken())


def _shortfall(world: ModeWorld, seed: int) -> Fired:
    def short() -> Iterator[tuple[int, bool]]:
        for now, alpha, so_far, names in _named(world, seed):
            runs = summarise(so_far)
            coverage = int(runs.covered.sum()) / int(runs.known.sum())
            p = over_runs(runs.size, runs.known, runs.covered, alpha).p_value
            yield now, coverage < 1 - FAR * alpha and names * p < BROKEN_P

    return _by_look(short())


def _sample(world: ModeWorld, seed: int) -> Fired:
    """Ten nodes of each run that a hash drew: their number covered is hypergeometric."""
    rng = np.random.default_rng([seed, 31])
    life = play_mode(world, seed)
    counts = [tally.counts for tally in life.tallies]
    covered = np.array(
        [rng.hypergeometric(c["covered"], c["known"] - c["covered"], 10) for c in counts]
    )
    known, n = np.full(len(covered), 10), min(run.n_calibration for run in life.whole)
    return _fired([over_runs(n, known[:now], covered[:now], world.alpha).p_value < BROKEN_P
                   for now in range(1, len(known) + 1)])  # fmt: skip


def _shift(seed: int) -> Fired:
    rng = np.random.default_rng([seed, 33])
    names = ("degree", "top probability", "entropy", "a", "b")
    at = []
    for run in range(60):
        ours, due = rng.normal(size=(5, 500)), rng.normal(size=(5, 50))
        found = compare_nodes(
            dict(zip(names, ours, strict=True)), dict(zip(names, due, strict=True)),
            np.zeros(500, np.int64), np.zeros(50, np.int64), seed=1_000 * seed + run,
        )  # fmt: skip
        at.append(any(column.differs for column in found))
    return _fired(at)


def _bias(nodes: int, seed: int) -> Fired:
    """Classes become known by chance; degree, size and top p of the nodes are as they are."""
    rng = np.random.default_rng([seed, 35])
    tallies: list[Tally] = []
    at = []
    for run in range(1, RUNS + 1):
        values = {"degree": 1 + rng.poisson(5, nodes), "size": rng.integers(1, 4, nodes),
                  "top_p": rng.random(nodes)}  # fmt: skip
        known = rng.random(nodes) < 0.7
        sums = dict.fromkeys(SUMS, 0.0)
        for name, of_nodes in values.items():
            for side, part in (("all", of_nodes), ("known", of_nodes[known])):
                sums[f"{name}_{side}"] = float(part.sum())
                sums[f"{name}_{side}_squared"] = float((part.astype(float) ** 2).sum())
        counts = {"evaluated": nodes, "known": int(known.sum()), "covered": int(known.sum())}
        tallies.append(
            Tally(run, "m", "auto", "APS", ALPHA, "{}", 500, 500.0, "",
                  dict.fromkeys(COUNTS, 0) | counts, sums)
        )  # fmt: skip
        if run % EVERY == 0:
            so_far = summarise(tallies)
            size, _ = selection_bias(*so_far.comparable, so_far.differences)
            at.append(size is not None and size > LARGE_DIFFERENCE)
    return _fired(at)


def _lists(seed: int, *, pooled: bool) -> Fired:
    """Lists of five nodes on average, of which exactly the promised share is wrong."""
    rng, share = np.random.default_rng([seed, 37]), 0.2
    sizes = rng.poisson(5, RUNS)
    wrong = rng.binomial(sizes, share)
    at = []
    for now in range(EVERY, RUNS + 1, EVERY):
        pairs = zip(sizes[:now].tolist(), wrong[:now].tolist(), strict=True)
        runs = [RunOfList(size, size, false) for size, false in pairs]
        judged = judge_list(runs, share, pooled=pooled)
        at.append(judged.verdict == "broken")
    return _fired(at)
