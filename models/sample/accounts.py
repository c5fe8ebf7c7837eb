"""The sample graph: payment accounts and the payments between them, growing over time.

A degree-corrected stochastic block model (Karrer and Newman 2011) with class-dependent features and
an arrival order that is node-exchangeable or edge-exchangeable by choice, so that a demo, a test or
a benchmark knows which promise must hold. Everything follows from the seed; classes, degrees,
edges, features and arrivals each have their own stream of random numbers, so that the same seed
gives the same graph under both kinds of arrival, with or without a planted drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ringfence.models.sample.block_model import degree_weights, draw_edges

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Arrival = Literal["node", "edge"]

#: Classes of the accounts and their shares. A mule account passes on what a fraud ring collected.
ACCOUNT_CLASSES = {"retail": 0.36, "merchant": 0.24, "payroll": 0.18, "savings": 0.14, "mule": 0.08}
#: 2026-01-01T00:00:00Z
START_NS = 1_767_225_600_000_000_000
DAY_NS = 86_400_000_000_000
#: Arrival time of a node that never arrives: isolated, in an edge-exchangeable sequence.
NEVER_NS = int(np.iinfo(np.int64).max)

_BLOCK_ROWS = 1 << 18  # rows of features per block: scratch memory stays small at any size


@dataclass(frozen=True, slots=True)
class Drift:
    """A break of exchangeability, planted for tests of alarms.

    From the fraction `at` of the arrivals on, new nodes' features have moved the fraction `shift`
    of the way to the next class's centre, and classes are drawn with shares `mix` where given.
    """

    at: float
    shift: float = 0.5
    mix: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class SampleGraph:
    """A whole grown graph with the time at which each part of it arrived.

    features float32 [n, d] · y int64 [n], index into `classes` · edges int64 [2, E], each
    undirected pair once as (smaller, larger), no loops · node_time, edge_time int64 nanoseconds.
    Node numbers say nothing about the time of arrival.
    """

    features: npt.NDArray[np.float32]
    y: Ints
    classes: tuple[str, ...]
    edges: Ints
    node_time: Ints
    edge_time: Ints

    @property
    def nodes(self) -> int:
        """Number of nodes, those that never arrive included."""
        return len(self.y)

    @property
    def arrived(self) -> npt.NDArray[np.bool_]:
        """Which nodes arrive at all, bool [n]: all but the isolated ones of an edge sequence."""
        return np.not_equal(self.node_time, NEVER_NS)

    def degrees(self) -> Ints:
        """Degrees in the whole graph, int64 [n]."""
        return np.bincount(self.edges.ravel(), minlength=self.nodes).astype(np.int64, copy=False)

    def arrivals(self, after_ns: int, until_ns: int) -> tuple[Ints, Ints]:
        """Indices of the nodes and of the edges with after < time <= until, in order of arrival.

        >>> graph = sample_graph(1_000, seed=1)
        >>> nodes, edges = graph.arrivals(START_NS, START_NS + 3 * DAY_NS)
        >>> len(nodes), bool(graph.node_time[nodes[0]] < graph.node_time[nodes[1]])
        (100, True)
        """
        nodes = _between(self.node_time, after_ns, until_ns)
        return nodes, _between(self.edge_time, after_ns, until_ns)


def sample_graph(
    nodes: int,
    *,
    seed: int,
    classes: dict[str, float] | None = None,
    features: int = 16,
    mean_degree: float = 20.0,
    homophily: float = 0.55,
    separation: float = 2.2,
    tail: float = 2.8,
    arrival: Arrival = "node",
    start_ns: int = START_NS,
    span_ns: int = 30 * DAY_NS,
    drift: Drift | None = None,
) -> SampleGraph:
    """A seeded graph of `nodes` accounts with about nodes * mean_degree / 2 edges.

    classes: name -> share. homophily: share of edges inside a class, as drawn (pairs drawn twice
    are drawn again, which takes a few points off in small graphs). separation: distance between any
    two class centres in standard deviations of the features' noise. tail: exponent of the power law
    of degrees, cut where two hubs would be joined for certain. With the defaults features alone
    tell the class of 6 nodes in 10, and a GCN that of 8 in 10 in the whole graph.

    arrival="node": nodes in uniformly random order; an edge comes with its later end.
    arrival="edge": edges in uniformly random order; a node comes with its first edge, and one that
    has none never comes (`NEVER_NS`). Times are evenly spaced over (start_ns, start_ns + span_ns].

    >>> graph = sample_graph(1_000, seed=7)
    >>> graph.features.shape, graph.edges.shape, graph.classes[-1]
    ((1000, 16), (2, 10000), 'mule')
    """
    shares = ACCOUNT_CLASSES if classes is None else classes
    _check(nodes, shares, features, mean_degree, homophily, tail, arrival, span_ns, drift)
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(5)]
    for_classes, for_degrees, for_edges, for_features, for_arrival = streams

    order = for_arrival.permutation(nodes)  # order[k] = the k-th node to arrive
    late = order[_late_from(nodes, drift) :] if arrival == "node" else order[:0]
    y = _draw_classes(for_classes, nodes, np.array(list(shares.values())), drift, late)
    weights = degree_weights(for_degrees, nodes, mean_degree, tail)
    wanted = round(nodes * mean_degree / 2)
    edges = draw_edges(for_edges, y, weights, wanted, homophily)
    if arrival == "node":
        node_time, edge_time = _node_arrivals(order, edges, start_ns, span_ns)
    else:
        node_time, edge_time = _edge_arrivals(for_arrival, nodes, edges, start_ns, span_ns)
        by_time = np.argsort(node_time, kind="stable")
        late = by_time[_late_from(int((node_time != NEVER_NS).sum()), drift) :]
    centres = _centres(for_features, len(shares), features, separation)
    x = _draw_features(for_features, y, centres)
    if drift is not None:
        step = np.roll(centres, -1, axis=0) - centres
        x[late] += np.float32(drift.shift) * step[y[late]]
    return SampleGraph(x, y, tuple(shares), edges, node_time, edge_time)


def _check(
    nodes: int,
    shares: dict[str, float],
    features: int,
    mean_degree: float,
    homophily: float,
    tail: float,
    arrival: str,
    span_ns: int,
    drift: Drift | None,
) -> None:
    mixes = [tuple(shares.values())] + ([drift.mix] if drift and drift.mix else [])
    bad_mix = any(min(m, default=0) <= 0 or len(m) != len(shares) for m in mixes)
    too_short = span_ns < nodes * max(1.0, mean_degree)
    mixed_edges = arrival == "edge" and drift is not None and drift.mix is not None
    needed = int(4 * mean_degree) + 2
    problems = (
        (nodes < needed, f"{nodes} nodes; mean_degree {mean_degree:g} needs at least {needed}"),
        (len(shares) < 2, f"{len(shares)} classes; 2 or more are needed"),
        (bad_mix, f"class shares {mixes}; one share above 0 per class is needed"),
        (features < len(shares), f"{features} features; at least one per class is needed"),
        (mean_degree <= 0, f"mean_degree {mean_degree:g}; it must be above 0"),
        (not 0 <= homophily <= 1, f"homophily {homophily:g}; it must be in [0, 1]"),
        (tail <= 2, f"tail {tail:g}; it must be above 2, or the mean degree is infinite"),
        (arrival not in ("node", "edge"), f"arrival {arrival!r}; give 'node' or 'edge'"),
        (too_short, f"span_ns {span_ns}; one nanosecond per arrival is needed"),
        (drift is not None and not 0 <= drift.at <= 1, "a drift whose `at` is outside [0, 1]"),
        (mixed_edges, "a drift of the class mix with arrival='edge'; use arrival='node' for it"),
    )
    reasons = [words for wrong, words in problems if wrong]
    if reasons:
        raise ValueError("the sample graph cannot be made: " + "; ".join(reasons))


def _late_from(arrivals: int, drift: Drift | None) -> int:
    return arrivals if drift is None else round(drift.at * arrivals)


def _draw_classes(
    rng: np.random.Generator, nodes: int, shares: Floats, drift: Drift | None, late: Ints
) -> Ints:
    u = rng.random(nodes)
    y = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], u, side="right")
    if drift is not None and drift.mix is not None:
        mix = np.array(drift.mix)
        y[late] = np.searchsorted(np.cumsum(mix / mix.sum())[:-1], u[late], side="right")
    return y.astype(np.int64, copy=False)


def _spaced(count: int, start_ns: int, span_ns: int) -> Ints:
    """`count` times in order, evenly spaced, all different, the last one at the end of the span."""
    whole, rest = divmod(span_ns, count)
    k = np.arange(1, count + 1, dtype=np.int64)
    return start_ns + k * whole + (k * rest) // count


def _node_arrivals(order: Ints, edges: Ints, start_ns: int, span_ns: int) -> tuple[Ints, Ints]:
    node_time = np.empty(len(order), dtype=np.int64)
    node_time[order] = _spaced(len(order), start_ns, span_ns)
    return node_time, np.maximum(node_time[edges[0]], node_time[edges[1]])


def _edge_arrivals(
    rng: np.random.Generator, nodes: int, edges: Ints, start_ns: int, span_ns: int
) -> tuple[Ints, Ints]:
    order = rng.permutation(edges.shape[1])
    edge_time = np.empty(len(order), dtype=np.int64)
    edge_time[order] = _spaced(len(order), start_ns, span_ns)
    node_time = np.full(nodes, NEVER_NS, dtype=np.int64)
    for ends in edges:
        np.minimum.at(node_time, ends, edge_time)
    return node_time, edge_time


def _centres(
    rng: np.random.Generator, classes: int, features: int, separation: float
) -> npt.NDArray[np.float32]:
    """Corners of a regular simplex, turned at random: every two classes are equally far apart."""
    axes, _ = np.linalg.qr(rng.standard_normal((features, classes)))
    centres: Floats = axes.T * (separation / np.sqrt(2.0))
    return centres.astype(np.float32)


def _draw_features(
    rng: np.random.Generator, y: Ints, centres: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    x = rng.standard_normal((len(y), centres.shape[1]), dtype=np.float32)
    for at in range(0, len(y), _BLOCK_ROWS):
        x[at : at + _BLOCK_ROWS] += centres[y[at : at + _BLOCK_ROWS]]
    return x


def _between(times: Ints, after_ns: int, until_ns: int) -> Ints:
    places = np.flatnonzero((times > after_ns) & (times <= until_ns) & (times != NEVER_NS))
    return places[np.argsort(times[places], kind="stable")]
