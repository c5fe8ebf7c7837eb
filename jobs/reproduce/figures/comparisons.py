"""Comparisons of the appendix: NAPS's empty calibrations, and sets from sampled subgraphs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ringfence.jobs.reproduce.columns import chosen_steps, run_of
from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.figures.curves import TARGET
from ringfence.jobs.reproduce.finished import full_logits, induced_logits
from ringfence.jobs.reproduce.protocol import Run
from ringfence.jobs.reproduce.published import ALPHA
from ringfence.jobs.reproduce.scores import PARTS, SUBGRAPHS
from ringfence.jobs.reproduce.sequence_runs import GROUP, Plan
from ringfence.jobs.reproduce.splits import Model
from ringfence.jobs.views.charts.model import COLOURS, Bars, Figure, Line, Panel
from ringfence.models.conformal.row_thresholds import row_thresholds
from ringfence.models.conformal.sets import p_values, sets_from_p_values
from ringfence.models.hashing import uniforms
from ringfence.models.sequences.subgraphs import (
    averaged_scores,
    bernoulli_vote,
    draw_groups,
    votes,
)

__all__ = ["naps_figure", "subgraph_sets", "subgraphs_figure"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
HOPS = {1: "#d99a00", 2: "#c8452f"}


def naps_figure(plan: Plan, name: str) -> Figure:
    """Calibration within k hops leaves many nodes with none (NAPS)."""
    data = plan.load(name)
    model = plan.model(data, 0)
    runs = [run_of(plan, data, model, "node", i) for i in range(GROUP["node"])]
    steps = chosen_steps(runs[0], 20)
    empty: dict[int, list[Floats]] = {k: [] for k in HOPS}
    sizes: dict[int, list[Floats]] = {k: [] for k in HOPS}
    covered: dict[str, list[float]] = {"NodeEx": [], **{f"NAPS, k = {k}": [] for k in HOPS}}
    for run in runs:
        shares_by_hop = {k: [_near(run, int(step), k) for step in steps] for k in HOPS}
        for k in HOPS:
            counts = [near.sum(axis=1) for near in shares_by_hop[k]]
            empty[k].append(np.array([(count == 0).mean() for count in counts]))
            sizes[k].append(np.array([count[count > 0].mean() for count in counts]))
        scores = _true_scores(data, model, run)
        for k in HOPS:
            covered[f"NAPS, k = {k}"].append(_naps_coverage(run, scores, shares_by_hop[k][-1]))
        within = np.asarray(shares_by_hop[2][-1].any(axis=1))
        covered["NodeEx"].append(
            _naps_coverage(run, scores, np.ones_like(shares_by_hop[2][-1]), within)
        )
    x = steps.astype(float)
    colours = {"NodeEx": COLOURS["NodeEx"], **{f"NAPS, k = {k}": HOPS[k] for k in HOPS}}
    number = np.arange(1.0, len(runs) + 1)
    return Figure(
        "naps",
        f"NAPS: calibration within k hops, {data.title}, GCN",
        "Left: share of nodes with no calibration node within k hops, hence without a set. Middle: "
        "calibration nodes of the others. Right: coverage at the last step, of the nodes that have "
        "a NAPS calibration at all (NodeEx: of those within 2 hops). Fewer than 9 calibration "
        "nodes can't give 90 % but by the full set, which is why NAPS covers nearly everything. "
        f"{len(runs)} node sequences.",
        (
            Panel(
                "nodes without calibration", "step", "share of nodes",
                lines=_means(x, empty), y_range=(0.0, 1.0),
            ),
            Panel("calibration of the others", "step", "calibration nodes", lines=_means(x, sizes)),
            Panel(
                "coverage at the last step", "sequence", "share covered",
                lines=tuple(
                    Line(number, np.array(values), label, colours[label])
                    for label, values in covered.items()
                ),
                levels=(TARGET,), y_range=(0.8, 1.01),
            ),
        ),
        columns=3,
    )  # fmt: skip


def _means(x: Floats, values_by_hop: Mapping[int, list[Floats]]) -> tuple[Line, ...]:
    return tuple(
        Line(x, np.mean(values, axis=0), f"k = {k}", HOPS[k]) for k, values in values_by_hop.items()
    )


def _near(run: Run, step: int, hops: int) -> Bools:
    """Which calibration nodes are within ``hops`` of each node that is there: bool [m, n]."""
    sequence = run.sequence
    nodes = len(sequence.node_step)
    ends = sequence.edges[:, sequence.edge_step <= step]
    both = np.concatenate([ends, ends[::-1]], axis=1)
    adjacency = csr_array((np.ones(both.shape[1]), (both[0], both[1])), shape=(nodes, nodes))
    reach = adjacency[:, sequence.calibration]
    for _ in range(hops - 1):
        reach = reach + adjacency @ reach
    there = run.arriving[sequence.node_step[run.arriving] <= step]
    return np.asarray(reach[there].toarray() > 0)


def _true_scores(data: Dataset, model: Model, run: Run) -> Floats:
    everyone = np.arange(data.nodes)
    return run.score.true(full_logits(data, model), everyone, data.y)


def _naps_coverage(run: Run, scores: Floats, near: Bools, only: Bools | None = None) -> float:
    """Coverage of the nodes with calibration, each judged by its own calibration nodes."""
    usable = near.any(axis=1) if only is None else only
    known = np.broadcast_to(scores[run.sequence.calibration], near.shape)[usable]
    limits = row_thresholds(np.ascontiguousarray(known), ALPHA, near[usable].astype(float))
    return float((scores[run.arriving][usable] >= limits).mean())


def subgraphs_figure(plan: Plan, name: str) -> Figure:
    """Sets from random subgraphs of the finished graph: which ways to join them are valid."""
    data = plan.load(name)
    model = plan.model(data, 0)
    rounds = [subgraph_sets(plan, data, model, i) for i in range(GROUP["node"])]
    labels = list(rounds[0])
    x = np.arange(float(len(labels)))
    ticks = tuple(zip(x.tolist(), labels, strict=True))

    def panel(title: str, y_label: str, place: int) -> Panel:
        values = np.array([[record[label][place] for label in labels] for record in rounds])
        spread = tuple(
            Line(np.array([i, i]), values[:, i][[low, high]], "", COLOURS["theory"])
            for i in range(len(labels))
            for low, high in ((int(values[:, i].argmin()), int(values[:, i].argmax())),)
        )
        bars = (Bars(x, values.mean(axis=0), 0.6, "", COLOURS["NodeEx"]),)
        level = (TARGET,) if place == 0 else ()
        span = (0.6, 1.0) if place == 0 else None
        return Panel(title, "", y_label, spread, (), bars, None, level, span, ticks)

    return Figure(
        "subgraphs",
        f"Sets from {SUBGRAPHS} sampled subgraphs of the finished graph, {data.title}, GCN",
        f"Means of {len(rounds)} calibration sets, with the smallest and the largest. `whole` is "
        "ordinary conformal prediction on the whole graph; `vote` takes a class with probability "
        "votes / K; `average` averages the scores. All three are valid. The union of the K sets "
        "covers too much and their intersection too little: ringfence offers neither.",
        (panel("coverage", "share covered", 0), panel("mean set size", "classes", 1)),
    )


def subgraph_sets(
    plan: Plan, data: Dataset, model: Model, number: int
) -> dict[str, tuple[float, float]]:
    """Coverage and mean set size of one calibration set, by how the subgraphs' sets are joined."""
    run = run_of(plan, data, model, "node", number)
    known, test = run.sequence.calibration, run.arriving

    def score(nodes: Ints) -> Floats:
        return run.score.all(induced_logits(data, model, nodes), nodes)

    groups = draw_groups(test, count=SUBGRAPHS, size=max(1, len(test) // PARTS), seed=run.seed)
    told = (groups, known, data.y[known])
    counted = votes(score, *told, ALPHA, model.context)
    keys = [f"i:{node}:{kind}" for node in test for kind in range(data.classes)]
    u = uniforms(keys, run.seed, "vote").reshape(len(test), data.classes)
    whole = score(np.arange(data.nodes))
    averaged = averaged_scores(score, *told, model.context).p_values()
    sets = {
        "whole": p_values(whole[known, data.y[known]], whole[test]) > ALPHA,
        "vote": bernoulli_vote(counted, SUBGRAPHS, u),
        "average": sets_from_p_values(averaged, ALPHA),
        "union": counted > 0,
        "intersection": counted == SUBGRAPHS,
    }
    truth = data.y[test]
    return {
        label: (float(inside[np.arange(len(test)), truth].mean()), float(inside.sum(axis=1).mean()))
        for label, inside in sets.items()
    }
