"""Tests of the order of arrival: what each kind of exchangeability forbids, as permutation tests.

Node-exchangeable: given the grown graph, the nodes came in uniformly random order, each with its
edges to those already there. Edge-exchangeable: given the grown graph, the edges came in uniformly
random order, and a node exists from its first edge on. So each test reshuffles the order of nodes
(or of edges), keeps the graph, and asks how often a statistic is as extreme as the observed one:
p = (1 + #) / (B + 1), exact at every size.

At most `cap` nodes or edges are looked at, drawn without regard to their times, which leaves the
tests exact, bounds their cost, and keeps differences that are too small to matter from counting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

#: Time of a node that has not arrived.
NEVER_ARRIVED = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One finding about the order of arrival.

    rule: which kind of exchangeability it tests. observed, expected: the statistic and its mean
    under that rule. p_value: None if the rule rules the observation out, so no test is needed.
    """

    rule: Literal["node", "edge"]
    name: str
    observed: float
    expected: float
    p_value: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A grown graph with times: node_time [n], edges [2, E], edge_time [E], classes [n] or None.

    Times are integers of any unit; a node that never arrived has the largest int64. A class that is
    not known is -1.
    """

    node_time: Ints
    edges: Ints
    edge_time: Ints
    classes: Ints | None = None

    def degrees(self) -> Ints:
        """Degrees in the grown graph, int64 [n]."""
        return np.bincount(self.edges.ravel(), minlength=len(self.node_time)).astype(np.int64)


# Nodes in random order ----------------------------------------------------------------------------


def degree_by_arrival(graph: Arrivals, rng: Rng, cap: int, permutations: int) -> Evidence:
    """Early nodes must not have other degrees than late ones (rank correlation)."""
    nodes = _some(rng, np.flatnonzero(graph.node_time != NEVER_ARRIVED), cap)
    degree = _centred(_ranks(graph.degrees()[nodes]))
    place = _centred(_ranks(graph.node_time[nodes]))
    observed, p = _permuted(rng, place, lambda r: float(degree @ r), 0.0, permutations)
    kind = "similar" if p > 0.05 else "higher" if observed < 0 else "lower"
    sentence = (
        f"nodes that came early have {kind} degrees (rank correlation {observed:.3f} with arrival)"
    )
    return Evidence("node", "degree by arrival", observed, 0.0, p, sentence)


def distance_of_ends(graph: Arrivals, rng: Rng, cap: int, permutations: int) -> Evidence:
    """The ends of an edge must be as far apart in the order as any two nodes: a third of it."""
    edges = graph.edges[:, _some(rng, np.arange(graph.edges.shape[1]), cap)]
    nodes, ends = np.unique(edges, return_inverse=True)
    u, v = ends.reshape(edges.shape)
    place = (_ranks(graph.node_time[nodes]) - 0.5) / len(nodes)
    expected = _mean_gap(place)
    observed, p = _permuted(
        rng, place, lambda r: float(np.abs(r[u] - r[v]).mean()), expected, permutations
    )
    sentence = (
        f"the ends of an edge are {observed:.3f} of the sequence apart, {expected:.3f} expected"
    )
    return Evidence("node", "distance of ends", observed, expected, p, sentence)


def late_edges(graph: Arrivals, rng: Rng, cap: int, slack: float) -> Evidence:
    """Edges must come with their later end; the share of those that come later than slack."""
    some = _some(rng, np.arange(graph.edges.shape[1]), cap)
    times = np.sort(graph.node_time[graph.node_time != NEVER_ARRIVED])
    complete = graph.node_time[graph.edges[:, some]].max(0)
    lag = np.searchsorted(times, graph.edge_time[some], side="right")
    lag = lag - np.searchsorted(times, complete, side="right")
    observed = float((lag > slack * len(times)).mean()) if len(some) else 0.0
    sentence = f"{observed:.0%} of the edges came after both their ends were there"
    return Evidence("node", "late edges", observed, 0.0, None, sentence)


def class_by_arrival(graph: Arrivals, rng: Rng, cap: int, permutations: int) -> Evidence | None:
    """Early nodes must not have other classes than late ones; None where classes are not known."""
    if graph.classes is None:
        return None
    known = np.flatnonzero((graph.classes >= 0) & (graph.node_time != NEVER_ARRIVED))
    if len(known) < 2:
        return None
    nodes = _some(rng, known, cap)
    marks = _one_hot(graph.classes[nodes])
    place = _centred(_ranks(graph.node_time[nodes]))
    observed, p = _permuted(rng, place, lambda r: _spread(marks, r), None, permutations)
    sentence = f"classes explain {observed:.1%} of the variance of the order of arrival"
    return Evidence("node", "class by arrival", observed, _expected_spread(marks), p, sentence)


# Edges in random order ----------------------------------------------------------------------------


def bursts(graph: Arrivals, rng: Rng, cap: int, permutations: int) -> Evidence:
    """Edges that follow each other must not share an end more often than any two do."""
    stars, _, _ = _stars(graph, rng, cap)
    ends = graph.edges[:, stars[_in_order(graph.edge_time[stars], rng)]]

    def shared(order: Ints) -> float:
        (a, b), (c, d) = ends[:, order[:-1]], ends[:, order[1:]]
        return float(((a == c) | (a == d) | (b == c) | (b == d)).sum()) / max(1, len(order) - 1)

    drawn = [shared(rng.permutation(len(stars))) for _ in range(permutations)]
    observed = shared(np.arange(len(stars)))
    p = (1 + sum(value >= observed for value in drawn)) / (permutations + 1)
    expected = float(np.mean(drawn))
    sentence = (
        f"{observed:.1%} of the edges share an end with the one before, {expected:.1%} expected"
    )
    return Evidence("edge", "bursts", observed, expected, p, sentence)


def first_edges(graph: Arrivals, rng: Rng, cap: int, permutations: int) -> Evidence:
    """A node's first edge must come as early as the first of d random ones: at 1 / (d + 1)."""
    stars, incident, starts = _stars(graph, rng, cap)
    place = _ranks(graph.edge_time[stars]) / (len(stars) + 1)
    degrees = np.diff(np.append(starts, len(incident)))
    expected = float((1 / (degrees + 1)).mean()) if len(starts) else 0.0

    def first(r: Floats) -> float:
        return float(np.minimum.reduceat(r[incident], starts).mean()) if len(starts) else 0.0

    observed, p = _permuted(rng, place, first, expected, permutations)
    sentence = (
        f"a node's first edge comes at {observed:.3f} of the sequence, {expected:.3f} expected"
    )
    return Evidence("edge", "first edges", observed, expected, p, sentence)


def degree_by_edge(graph: Arrivals, rng: Rng, cap: int, permutations: int) -> Evidence:
    """Early edges must not join nodes of other degrees than late ones (rank correlation)."""
    some = _some(rng, np.arange(graph.edges.shape[1]), cap)
    weight = np.log(graph.degrees()[graph.edges[:, some]]).sum(0)
    weight = _centred(_ranks(weight))
    place = _centred(_ranks(graph.edge_time[some]))
    observed, p = _permuted(rng, place, lambda r: float(weight @ r), 0.0, permutations)
    sentence = f"degrees at an edge's ends have rank correlation {observed:.3f} with its arrival"
    return Evidence("edge", "degree by edge", observed, 0.0, p, sentence)


def class_by_edge(graph: Arrivals, rng: Rng, cap: int, permutations: int) -> Evidence | None:
    """Early edges must not join other classes than late ones; None where classes are not known."""
    if graph.classes is None:
        return None
    known = np.flatnonzero((graph.classes[graph.edges] >= 0).all(0))
    if len(known) < 2:
        return None
    some = _some(rng, known, cap)
    u, v = np.sort(graph.classes[graph.edges[:, some]], axis=0)
    marks = _one_hot(u * (int(v.max()) + 1) + v)
    place = _centred(_ranks(graph.edge_time[some]))
    observed, p = _permuted(rng, place, lambda r: _spread(marks, r), None, permutations)
    sentence = f"classes at its ends explain {observed:.1%} of the variance of an edge's arrival"
    return Evidence("edge", "class by edge", observed, _expected_spread(marks), p, sentence)


# Shared steps -------------------------------------------------------------------------------------


def _some(rng: Rng, candidates: Ints, cap: int) -> Ints:
    if len(candidates) <= cap:
        return candidates
    return rng.choice(candidates, cap, replace=False)


def _permuted(
    rng: Rng,
    values: Floats,
    statistic: Callable[[Floats], float],
    centre: float | None,
    permutations: int,
) -> tuple[float, float]:
    """The statistic, and its p-value: two-sided around a centre, one-sided (large) without one."""
    observed = statistic(values)
    drawn = np.array([statistic(rng.permutation(values)) for _ in range(permutations)])
    far, as_far = (
        (observed, drawn) if centre is None else (abs(observed - centre), abs(drawn - centre))
    )
    return observed, (1 + int((as_far >= far - 1e-12).sum())) / (permutations + 1)


def _stars(graph: Arrivals, rng: Rng, cap: int) -> tuple[Ints, Ints, Ints]:
    """All edges of random nodes, about cap at most; their places by node, and where each begins."""
    degrees = graph.degrees()
    order = rng.permutation(np.flatnonzero(degrees > 0))
    fits = order[: max(1, int(np.searchsorted(np.cumsum(degrees[order]), cap, side="right")))]
    chosen = np.zeros(len(degrees), dtype=bool)
    chosen[fits] = True
    stars = np.flatnonzero(chosen[graph.edges[0]] | chosen[graph.edges[1]])
    ends = graph.edges[:, stars]
    place = np.tile(np.arange(len(stars)), 2)
    flat = ends.ravel()
    place, flat = place[chosen[flat]], flat[chosen[flat]]
    by_node = np.argsort(flat, kind="stable")
    starts = np.flatnonzero(np.diff(flat[by_node], prepend=-1))
    return stars, place[by_node], starts


def _in_order(times: Ints, rng: Rng) -> Ints:
    """Order in time; what came at the same time in random order."""
    return np.lexsort((rng.random(len(times)), times))


def _centred(values: Floats) -> Floats:
    centred: Floats = values - values.mean()
    size = float(np.sqrt((centred**2).sum()))
    return np.divide(centred, size) if size > 0 else centred


def _mean_gap(place: Floats) -> float:
    """Mean of |a - b| over all pairs of different nodes."""
    k = len(place)
    if k < 2:
        return 0.0
    return float((2 * np.arange(k) - k + 1) @ np.sort(place) * 2 / (k * (k - 1)))


def _one_hot(groups: Ints) -> Floats:
    _, group = np.unique(groups, return_inverse=True)
    marks: Floats = np.eye(int(group.max()) + 1)[group]
    marks /= np.sqrt(marks.sum(0))
    return marks


def _spread(marks: Floats, place: Floats) -> float:
    """Share of the variance of centred places of length 1 that lies between groups."""
    return float(((place @ marks) ** 2).sum())


def _expected_spread(marks: Floats) -> float:
    nodes, groups = marks.shape
    return float((groups - 1) / max(1, nodes - 1))


def _ranks(values: npt.NDArray[np.generic]) -> Floats:
    """Ranks from 1 on, equal values sharing their mean, as scipy.stats.rankdata gives them.

    scipy.stats takes two CPU seconds to import.
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], np.float64)
