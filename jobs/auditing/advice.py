"""Which rule the order of arrival supports, and what to do about it.

The audit updates the advice now and then, since it changes slowly; `ringfence advise` forms it at
once. The advisor needs every relationship with its time: a graph with more than
`MAX_RELATIONSHIPS` is not read for it, and the advice says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ringfence.connector.neo4j.arrivals import MIN_EDGES, MIN_NODES, read_arrivals
from ringfence.connector.neo4j.read.watermark import count_nodes, count_relationships
from ringfence.connector.records import AuditMark
from ringfence.connector.store import coverage
from ringfence.connector.store.models import find_active_manifest
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.promise import terms_for_training, terms_in_force
from ringfence.jobs.project.workspace import Workspace
from ringfence.models.exchangeability.advisor import advise
from ringfence.models.rules.registry import rule_named

MAX_RELATIONSHIPS = 300_000
GROWTH = 1.1  # advise again when the graph has grown by a tenth
USE_AUTO = 'set [conformal] rule = "auto", then: ringfence train'


@dataclass(frozen=True, slots=True)
class RuleAdvice:
    """What the order of arrival shows about the rules, and what to do.

    rule: node, edge, neither, undecided, or "not asked" where the graph is too large or too small;
    node_p and edge_p are None there. in_force: the rule of the model in use, or of the next one.
    """

    nodes: int
    rule: str
    node_p: float | None
    edge_p: float | None
    words: str
    in_force: str
    next_step: str


def form_advice(workspace: Workspace) -> RuleAdvice:
    """Run the advisor on the graph as it is now; nothing is written."""
    graph, mapping = workspace.graph, workspace.mapping
    nodes, relationships = count_nodes(graph, mapping), count_relationships(graph, mapping)
    in_force = _rule_in_force(workspace)
    if relationships > MAX_RELATIONSHIPS:
        words = (
            f"Not asked: {relationships:,} relationships are more than the {MAX_RELATIONSHIPS:,} "
            "that the advisor reads."
        )
        return _not_asked(nodes, words, in_force)
    arrivals = None
    if relationships >= MIN_EDGES and nodes >= MIN_NODES:
        arrivals = read_arrivals(graph, mapping)
    if arrivals is None:
        words = "Not asked: too few nodes and relationships with a creation time."
        return _not_asked(nodes, words, in_force)
    opinion = advise(
        arrivals.node_time,
        arrivals.edges,
        arrivals.edge_time,
        classes=arrivals.classes,
        seed=workspace.settings.model.seed,
    )
    words, next_step = opinion.describe(), what_to_do(opinion.rule, in_force)
    measured = opinion.rule, opinion.node_p, opinion.edge_p
    return RuleAdvice(nodes, *measured, words, in_force, next_step)


def advise_now_and_then(workspace: Workspace, writer: Writer, mark: AuditMark | None) -> None:
    """Form an opinion where there is none yet or the graph has grown by a tenth since."""
    nodes = count_nodes(workspace.graph, workspace.mapping)
    if mark is not None and mark.advice and nodes < GROWTH * mark.advice["nodes"]:
        return
    advice = form_advice(workspace)
    if advice.rule != "not asked" or advice.nodes >= MIN_NODES:
        coverage.set_mark(writer, mark, advice=asdict(advice))


def what_to_do(supported: str, in_force: str) -> str:
    """Return what a person should do, given the rule that arrivals support and the one in force.

    >>> what_to_do("edge", "auto")
    'nothing: rule = "auto" holds for nodes and for edges in random order'
    >>> what_to_do("edge", "NodeEx")
    'set [conformal] rule = "auto", then: ringfence train'
    """
    assumed = rule_named(in_force).assumes
    if assumed is None:
        if supported == "neither":
            return f'nothing about the rule ("{in_force}" assumes least); watch coverage for drift'
        return f'nothing: rule = "{in_force}" holds for nodes and for edges in random order'
    if supported in {"undecided", assumed}:
        return "nothing: the rule in force is not contradicted"
    return USE_AUTO


def _not_asked(nodes: int, words: str, in_force: str) -> RuleAdvice:
    assumed = rule_named(in_force).assumes
    next_step = what_to_do("undecided" if assumed is None else "neither", in_force)
    return RuleAdvice(nodes, "not asked", None, None, words, in_force, next_step)


def _rule_in_force(workspace: Workspace) -> str:
    settings = workspace.settings.conformal
    recorded = find_active_manifest(workspace.store, workspace.project)
    if recorded is None:
        return terms_for_training(settings).rule
    manifest: Mapping[str, Any] = json.loads(recorded)
    return terms_in_force(settings, manifest).rule
