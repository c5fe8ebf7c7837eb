"""The advisor: does the order of arrival support the node rule, the edge rule, or neither?

NodeEx keeps its promise on node-exchangeable sequences, EdgeEx on edge-exchangeable ones. Both say
what the order of arrival must be like given the grown graph (see `arrival_tests`), and both can be
wrong. The advisor runs the tests of each, corrects each side for the number of its tests, and
rejects a side at `level`: a rule that holds is rejected with probability at most `level`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ringfence.models.exchangeability import arrival_tests
from ringfence.models.exchangeability.arrival_tests import Arrivals, Evidence

#: Share of edges that may come after both their ends before the node rule is given up.
MAX_LATE_EDGE_SHARE = 0.05
#: How late, as a share of all arrivals of nodes, an edge may come and still belong to its node.
LATE_EDGE_SLACK = 0.01

HEADLINES = {
    "node": "The node-exchangeable rule (NodeEx) is the better supported one.",
    "edge": "The edge-exchangeable rule (EdgeEx) is the better supported one.",
    "neither": "The order of arrival supports neither rule: whether coverage holds is for the "
    "audit to show.",
    "undecided": "Too little data to tell the rules apart.",
}
"""What is advised, by rule. It says nothing of changes: those are the monitor's to report."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Which rule the order of arrival supports, and why.

    rule: "node" or "edge" where exactly one of them is supported, "neither" where both are
    rejected, "undecided" where the data reject none. node_p and edge_p: the smallest p-value of
    each side, corrected for the number of its tests; 0 where it is impossible.
    """

    rule: Literal["node", "edge", "neither", "undecided"]
    node_p: float
    edge_p: float
    level: float
    evidence: tuple[Evidence, ...]

    def describe(self) -> str:
        """The advice for a person: one sentence, then one line per finding, the strongest first."""
        advice = HEADLINES[self.rule]
        ordered = sorted(
            self.evidence, key=lambda e: (e.rule, -1 if e.p_value is None else e.p_value)
        )
        return "\n".join([advice, *(f"- {e.rule}: {e.sentence}{_p_text(e)}" for e in ordered)])


def advise(
    node_time: npt.ArrayLike,
    edges: npt.ArrayLike,
    edge_time: npt.ArrayLike,
    *,
    seed: int,
    classes: npt.ArrayLike | None = None,
    level: float = 0.01,
    permutations: int = 499,
    cap: int = 20_000,
) -> Advice:
    """Compare the order of arrival with what each rule requires.

    node_time [n], edges [2, E] (each pair once) and edge_time [E] are integers; times of any unit,
    the largest int64 for a node that has not arrived. classes [n]: class numbers, -1 where not
    known; without them a change of the class mix shows only through the edges.

    >>> from ringfence.models.sample.accounts import sample_graph
    >>> graph = sample_graph(600, seed=1, arrival="edge")
    >>> advise(graph.node_time, graph.edges, graph.edge_time, seed=1).rule
    'edge'
    """
    graph = _arrivals(node_time, edges, edge_time, classes)
    rng = np.random.default_rng(seed)
    node_tests = (
        arrival_tests.degree_by_arrival,
        arrival_tests.distance_of_ends,
        arrival_tests.class_by_arrival,
    )
    edge_tests = (
        arrival_tests.bursts,
        arrival_tests.first_edges,
        arrival_tests.degree_by_edge,
        arrival_tests.class_by_edge,
    )
    results = [test(graph, rng, cap, permutations) for test in (*node_tests, *edge_tests)]
    evidence = [
        *(e for e in results if e is not None),
        arrival_tests.late_edges(graph, rng, cap, LATE_EDGE_SLACK),
    ]
    node_p, edge_p = _side(evidence, "node"), _side(evidence, "edge")
    return Advice(_rule(node_p, edge_p, level), node_p, edge_p, level, tuple(evidence))


def _side(evidence: list[Evidence], rule: str) -> float:
    """The smallest p-value of a side times the number of its tests; 0 if a count rules it out."""
    of_rule = [e for e in evidence if e.rule == rule]
    if any(e.p_value is None and e.observed > MAX_LATE_EDGE_SHARE for e in of_rule):
        return 0.0
    p_values = [e.p_value for e in of_rule if e.p_value is not None]
    return min(1.0, len(p_values) * min(p_values))


def _rule(
    node_p: float, edge_p: float, level: float
) -> Literal["node", "edge", "neither", "undecided"]:
    node, edge = node_p > level, edge_p > level
    if node and edge:
        return "undecided"
    if node:
        return "node"
    return "edge" if edge else "neither"


def _p_text(evidence: Evidence) -> str:
    return "" if evidence.p_value is None else f" (p = {evidence.p_value:.3g})"


def _arrivals(
    node_time: npt.ArrayLike,
    edges: npt.ArrayLike,
    edge_time: npt.ArrayLike,
    classes: npt.ArrayLike | None,
) -> Arrivals:
    nodes = np.asarray(node_time, dtype=np.int64)
    pairs = np.asarray(edges, dtype=np.int64)
    times = np.asarray(edge_time, dtype=np.int64)
    known = None if classes is None else np.asarray(classes, dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[0] != 2 or times.shape != pairs.shape[1:]:
        raise ValueError(
            f"edges of shape {pairs.shape} and {times.shape} times; [2, E] and [E] are needed"
        )
    if pairs.shape[1] < 2 or len(nodes) < 3:
        raise ValueError(
            f"{len(nodes)} nodes and {pairs.shape[1]} edges; an order of arrival needs at least 3 "
            "nodes and 2 edges. Let the graph grow first"
        )
    if pairs.min() < 0 or pairs.max() >= len(nodes):
        raise ValueError(f"edges to node {pairs.max()} of {len(nodes)}; ends are 0 to n - 1")
    if known is not None and known.shape != nodes.shape:
        raise ValueError(f"{known.shape} classes for {nodes.shape} nodes; one per node is needed")
    return Arrivals(nodes, pairs, times, known)
