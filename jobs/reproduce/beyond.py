"""Beyond the paper: the rank at small n, growing calibration, and the exchangeability monitor."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.reproduce.columns import chosen_steps, run_of
from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.figures.curves import TARGET
from ringfence.jobs.reproduce.finished import full_logits
from ringfence.jobs.reproduce.protocol import Run, sequence_seed
from ringfence.jobs.reproduce.published import ALPHA
from ringfence.jobs.reproduce.sequence_runs import GROUP, Plan
from ringfence.jobs.reproduce.splits import Model
from ringfence.jobs.reproduce.tables import TextTable
from ringfence.jobs.views.charts.model import COLOURS, Figure, Level, Line, Panel
from ringfence.models.conformal.rank import rank
from ringfence.models.conformal.sets import threshold
from ringfence.models.exchangeability.martingales import Martingale
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor
from ringfence.models.exchangeability.smoothed_pvalues import smoothed_p_values
from ringfence.models.hashing import SCORE, uniforms
from ringfence.models.sequences.replay import replay
from ringfence.models.sequences.sequence import GraphSequence, ordered_sequence
from ringfence.models.sequences.timeline import NodeScore, true_scores_over_time

__all__ = ["growing_figure", "monitor_figure", "small_n_table"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
DRAWS = 2_000
DELAY = 200
RUNS = 40
SHUFFLES = 30
DELTA = 0.01


def small_n_table(plan: Plan, name: str) -> TextTable:
    """The valid rank beside the printed formula and beside clamping, for few calibration nodes."""
    data = plan.load(name)
    model = plan.model(data, 0)
    u = uniforms(data.key_strings, f"reproduce:{data.name}:small", SCORE)
    everyone = np.arange(data.nodes)
    scores = NodeScore(u).true(full_logits(data, model), everyone, data.y)
    pool = np.sort(np.delete(scores, model.context))
    rows = [_small_n(pool, n) for n in (1, 2, 5, 8, 9, 10, 15, 20, 40, 60, 120)]
    return TextTable(
        f"The rank at small n, {data.title}",
        f"Coverage at alpha = {ALPHA:g}, exact / measured in {DRAWS:,} draws of n calibration "
        "nodes on the finished graph. Valid: rank floor(alpha (n + 1)), the full set where that is "
        "0. Printed: the paper's formula, rank ceil(alpha (n + 1)). Clamped: the smallest score "
        "where the valid rank is 0, as the authors' code does. Both fall below 0.9 where n is "
        "small.",
        ("n", "valid", "printed", "clamped"),
        tuple(rows),
    )


def _small_n(pool: Floats, n: int) -> tuple[str, ...]:
    rng = np.random.default_rng(n)
    drawn = np.sort(rng.random((DRAWS, len(pool))).argpartition(n, axis=1)[:, :n], axis=1)
    valid = rank(n, ALPHA)
    printed = math.ceil(round(ALPHA * (n + 1), 9))
    cells = []
    for chosen in (valid, printed, max(valid, 1)):
        exact = 1.0 - chosen / (n + 1)
        if chosen == 0:
            measured = 1.0
        else:  # of the pool's nodes from the threshold on, those that do not calibrate
            above = len(pool) - drawn[:, chosen - 1] - (n - chosen + 1)
            measured = float((above / (len(pool) - n)).mean())
        cells.append(f"{exact:.3f} / {measured:.3f}")
    return (str(n), *cells)


def growing_figure(plan: Plan, name: str) -> Figure:
    """Nodes whose class became known join the calibration: the same promise, less scatter."""
    data = plan.load(name)
    model = plan.model(data, 0)
    lines: list[Line] = []
    ends: dict[str, list[float]] = {"fixed": [], "growing": []}
    means: dict[str, list[Floats]] = {"fixed": [], "growing": []}
    colours = {"fixed": COLOURS["NodeEx"], "growing": COLOURS["EdgeEx, exact"]}
    for number in range(GROUP["node"]):
        run = run_of(plan, data, model, "node", number)
        steps, running = _on_arrival_both_ways(data, model, run)
        for label, values in running.items():
            lines.append(Line(steps, values, label, colours[label], faint=True))
            means[label].append(values)
            ends[label].append(float(values[-1]))
    solid = [
        Line(steps, np.mean(values, axis=0), f"{label} calibration", colours[label])
        for label, values in means.items()
    ]
    spread = {label: 100 * float(np.std(values, ddof=1)) for label, values in ends.items()}
    return Figure(
        "growing",
        f"Growing calibration, {data.title}, GCN",
        f"On arrival, {GROUP['node']} node sequences. Fixed: the first {model.calibration} nodes "
        f"calibrate for ever. Growing: each node joins {DELAY} steps after it was evaluated, when "
        "its class is known. Standard deviation of a whole sequence's coverage: fixed "
        f"{spread['fixed']:.2f} %, growing {spread['growing']:.2f} %.",
        (
            Panel(
                "coverage on arrival", "step", "share covered", lines=(*lines, *solid),
                levels=(TARGET,), y_range=(0.82, 0.98),
            ),
        ),
    )  # fmt: skip


def _on_arrival_both_ways(
    data: Dataset, model: Model, run: Run
) -> tuple[Floats, dict[str, Floats]]:
    sequence = run.sequence
    rows = replay(model.state, data.x, sequence, watched=np.arange(data.nodes))
    scores = true_scores_over_time(rows, sequence, data.y, run.score)
    order = run.arriving[np.argsort(sequence.node_step[run.arriving])]
    covered: dict[str, list[bool]] = {"fixed": [], "growing": []}
    for place, node in enumerate(order):
        column = scores[:, sequence.node_step[node]]
        known = sequence.calibration
        joined = np.concatenate([known, order[: max(place - DELAY, 0)]])
        for label, nodes in (("fixed", known), ("growing", joined)):
            covered[label].append(bool(column[node] >= threshold(column[nodes], ALPHA)))
    at = chosen_steps(run, 80)
    return at.astype(float), {
        label: np.cumsum(values)[at - 1] / at for label, values in covered.items()
    }


def monitor_figure(plan: Plan, name: str) -> Figure:
    """Martingales on shuffled arrival, and on arrival in a meaningful order."""
    data = plan.load(name)
    model = plan.model(data, 0)
    others = np.setdiff1d(np.arange(data.nodes), model.context)
    rng = np.random.default_rng(sequence_seed(plan.seed, 0, "node"))
    watched = [_watch(data, model, rng.permutation(others), i) for i in range(SHUFFLES)]
    false = sum(watch.alarm(DELTA) for watch, _ in watched)
    by_run = {
        label: _watch(data, model, order, 0)
        for label, order in _meaningful_orders(data, others, rng).items()
    }
    shades = ("#c8452f", "#d99a00", "#8b5fbf")
    ordered = tuple(
        Line(np.arange(1.0, len(capital) + 1), capital, label, shade)
        for (label, (_, capital)), shade in zip(by_run.items(), shades, strict=False)
    )
    shuffled = tuple(
        Line(np.arange(1.0, len(c) + 1), c, "shuffled", COLOURS["NodeEx"], faint=i > 0)
        for i, (_, c) in enumerate(watched)
    )
    words = "; ".join(f"{label}: {watch.describe(DELTA)}" for label, (watch, _) in by_run.items())
    times = (
        "" if data.time is not None else f" {data.title} has no dates: these orders are made up."
    )
    return Figure(
        "monitor",
        f"The exchangeability monitor, {data.title}, GCN",
        f"Mixture martingale over labels that become known run by run ({RUNS} runs, each compared "
        f"with all nodes known before). Shuffled arrival: {false} of {SHUFFLES} sequences raised "
        f"an alarm (at most {DELTA:.0%} would by Ville's bound). {words}.{times}",
        (
            Panel(
                "log10 of the martingale's capital", "labels", "log10 capital",
                lines=(*shuffled, *ordered),
                levels=(Level(math.log10(2 / DELTA), "alarm"),),
            ),
        ),
    )  # fmt: skip


def _meaningful_orders(data: Dataset, nodes: Ints, rng: np.random.Generator) -> dict[str, Ints]:
    mixed = rng.permutation(nodes)
    degrees = np.bincount(data.edges.ravel(), minlength=data.nodes)
    orders = {
        "class by class": mixed[np.argsort(data.y[mixed], kind="stable")],
        "hubs first": mixed[np.argsort(-degrees[mixed], kind="stable")],
    }
    if data.time is not None:
        orders["by date"] = mixed[np.argsort(data.time[mixed], kind="stable")]
    return orders


def _watch(
    data: Dataset, model: Model, order: Ints, number: int
) -> tuple[ExchangeabilityMonitor, Floats]:
    """The watch after all labels, and log10 of the mixture's capital after each."""
    sequence = ordered_sequence(
        data.edges, data.nodes, model.context, order, calibration=model.calibration, steps=RUNS
    )
    seed = f"reproduce:{data.name}:watch:{number}"
    score = NodeScore(uniforms(data.key_strings, seed, SCORE))
    smoothing = np.maximum(uniforms(data.key_strings, seed, "watch"), 2.0**-53)
    p = _run_by_run(data, model, sequence, score, smoothing, order)
    _, capital = Martingale.start("mixture").update_all(p)
    return ExchangeabilityMonitor.start().after(p), capital / math.log(10)


def _run_by_run(
    data: Dataset,
    model: Model,
    sequence: GraphSequence,
    score: NodeScore,
    smoothing: Floats,
    order: Ints,
) -> Floats:
    rows = replay(model.state, data.x, sequence, watched=np.arange(data.nodes))
    scores = true_scores_over_time(rows, sequence, data.y, score)
    p_values = []
    for step in range(1, sequence.steps + 1):
        known = order[sequence.node_step[order] < step]
        new = order[sequence.node_step[order] == step]
        column = scores[:, step]
        p_values.append(smoothed_p_values(column[known], column[new], smoothing[new]))
    return np.concatenate(p_values)
