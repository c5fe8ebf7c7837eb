"""Which nodes of a run are on the lists of `[[lists]]`, and what each list promises.

The references are the run's calibration nodes with their outputs on the graph of the run, in the
strata of its rule (bands of degree, groups). Under a promise per class, which takes more of a rare
class for calibration, they weigh as the classes of all nodes that were labelled at the training
stand to each other. Calibration nodes of settled runs alone join (`jobs.scoring.calibration`), so
classes that become known early don't fill the references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.list_terms import HOPED, MEASURED, THEOREM, ListFacts, ListTerms
from ringfence.connector.mirror import record_keys_at
from ringfence.models.conformal.strata import Stratum
from ringfence.models.hashing import uniforms
from ringfence.models.selection.references import (
    References,
    ScoredNodes,
    fair_weights,
    rank_among,
)
from ringfence.models.selection.registry import scope_named

if TYPE_CHECKING:
    from ringfence.jobs.scoring.version_on_graph import VersionOnGraph

CONDITIONS = {
    THEOREM: "proved if new nodes are exchangeable with the calibration nodes",
    MEASURED: "measured, not proved",
    HOPED: "neither proved nor measured",
}
TIES = "ties of lists"  # purpose of the hashed uniforms that order equal scores
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NodeList:
    """A list of a run: its facts, and the smallest share at which each node would be listed [m]."""

    facts: ListFacts
    shares: Floats

    @property
    def is_listed(self) -> NDArray[np.bool_]:
        """Whether each evaluated node is on the list [m]."""
        return np.asarray(self.shares <= self.facts.terms.may_be_wrong, np.bool_)


def decide_lists(
    version: VersionOnGraph,
    lists: Sequence[ListTerms],
    log_odds: Floats | None,
    rows: tuple[Ints, Ints],
    classes: Ints,
    strata: Sequence[Stratum],
) -> tuple[NodeList, ...]:
    """Return the lists of the evaluated nodes.

    Args:
        version: a version on the graph as it is now.
        lists: their terms; none where no lists are wanted.
        log_odds: of each list's class at calibration and then at evaluated nodes [>= n + m, lists].
        rows: of calibration nodes [n] and of evaluated nodes [m] in the mirror.
        classes: true classes of the calibration nodes [n].
        strata: which calibration nodes each evaluated node is compared with, for all classes.
    """
    if not lists or log_odds is None:
        return ()
    calibration, due = rows
    keys = record_keys_at(version.mirror, np.concatenate(rows))
    ties = uniforms(keys, version.node_seed, TIES)
    n, m = len(calibration), len(due)
    decided = []
    for place, terms in enumerate(lists):
        odds = -log_odds[:, place] if terms.is_clear else log_odds[:, place]
        known = ScoredNodes(odds[:n], ties[:n])
        new = ScoredNodes(odds[n : n + m], ties[n:])
        decided.append(_decide_list(version, terms, known, new, classes, strata))
    return tuple(decided)


def listed_nodes(lists: Sequence[NodeList], keys: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the nodes on lists by key, each with its lists and shares."""
    listed: dict[str, dict[str, float]] = {}
    for item in lists:
        for row in np.flatnonzero(item.is_listed).tolist():
            listed.setdefault(keys[row], {})[item.facts.terms.name] = float(item.shares[row])
    return listed


def _decide_list(
    version: VersionOnGraph,
    terms: ListTerms,
    known: ScoredNodes,
    new: ScoredNodes,
    classes: Ints,
    strata: Sequence[Stratum],
) -> NodeList:
    names = version.model.classes
    wrong_classes = np.array([terms.is_wrong(name) for name in names], np.bool_)
    fair = fair_counts(version)
    weight = fair_weights(classes, wrong_classes, fair)
    weighted = np.concatenate([_by_place(part, weight) for part in strata]) if strata else weight
    wrong = wrong_classes[classes]
    tails = rank_among(References(known, wrong, weight), new, strata)
    scope = scope_named(terms.per)
    n_wrong = int(wrong.sum())
    nodes = len(new.score)
    shares = scope.shares(tails, nodes, terms.may_be_wrong) if n_wrong else np.ones(nodes)
    wrong_share = float((1 + weight[wrong].sum()) / (1 + weight.sum()))
    needed = scope.references_needed(wrong_share, terms.may_be_wrong)
    listed = int((shares <= terms.may_be_wrong).sum())
    status = _status(
        version, terms.per, scope.is_proved, weighted, wrong_classes[np.unique(classes)].sum()
    )
    words = _describe(terms, scope.sentence(terms.may_be_wrong, terms.wrong), status, listed)
    given = n_wrong
    if scope.needs_right:
        given = max((int((~wrong[part.calibration]).sum()) for part in strata), default=0)
    words += describe_shortage(terms, given, needed)
    facts = ListFacts(terms, len(classes), n_wrong, wrong_share, needed, listed, status, words)
    return NodeList(facts, shares)


def describe_shortage(terms: ListTerms, given: int, needed: int) -> str:
    """Return a clause where a list has fewer references than it needs of a kind; else nothing.

    Per run these are wrong ones; for a stream right ones, of the stratum that has most.

    >>> describe_shortage(ListTerms("clear", "mule", True, 0.01, "run"), 3, 6)
    '. 3 calibration nodes are mule, and 6 are needed before a list of all right nodes can hold'
    >>> describe_shortage(ListTerms("look", "mule", False, 0.2, "stream"), 12, 17)
    '. 12 calibration nodes are mule, and 17 are needed before it can hold anybody'
    >>> describe_shortage(ListTerms("clear", "mule", True, 0.01, "run"), 6, 6)
    ''
    """
    if given >= needed:
        return ""
    return f". {describe_needed(terms, given, needed)}"


def describe_needed(terms: ListTerms, given: int, needed: int) -> str:
    """Say how many references of which kind a list has, and how many it needs for what."""
    scope = scope_named(terms.per)
    kind = terms.right if scope.needs_right else terms.wrong
    return (
        f"{given:,} calibration nodes are {kind}, and {needed:,} are needed before {scope.can_hold}"
    )


def describe_overlap(lists: Sequence[NodeList]) -> list[str]:
    """Return the note of a run on nodes that lists of both kinds hold; none where there are none.

    They stay on both: whether a node is taken off one for being on the other depends on its scores,
    and the rest of that list would no longer be what was promised.
    """
    by_kind = [
        [item.is_listed for item in lists if item.facts.terms.is_clear is clear]
        for clear in (False, True)
    ]
    if not all(by_kind):
        return []
    both = int((np.any(by_kind[0], axis=0) & np.any(by_kind[1], axis=0)).sum())
    if not both:
        return []
    nodes = "1 node is" if both == 1 else f"{both:,} nodes are"
    return [
        f"{nodes} on a list to investigate and on one to clear: both promises count them, and "
        "triage shows them among those to investigate"
    ]


def _by_place(stratum: Stratum, weight: Floats) -> Floats:
    """Weights of a stratum's references by class, with those of its rule."""
    plain = weight[stratum.calibration]
    return plain if stratum.weights is None else plain * stratum.weights


def fair_counts(version: VersionOnGraph) -> Floats | None:
    """Labelled nodes of each class at the training, where the split took more of rare classes."""
    if not version.terms.promise_kind.per_class:
        return None
    counts = version.model.manifest.get("data", {}).get("classes", {})
    named = np.array([counts.get(name, 0) for name in version.model.classes], np.float64)
    return named if named.sum() > 0 else None


def _status(
    version: VersionOnGraph, per: str, is_proved: bool, weights: Floats, wrong_classes: int
) -> str:
    """Return what stands behind a promise if new nodes are exchangeable with the references.

    Lists use none of the weights of a rule, a half-life or a shift; nothing of them was measured.
    """
    frozen = not version.terms.uses_recent_labels
    even = len(np.unique(weights)) <= 1 or (
        version.terms.promise_kind.per_class and wrong_classes == 1
    )
    plain = version.settings.drift_half_life_days is None and version.terms.weights != "shift"
    rule = not version.terms.rule_kind.weighs_nodes
    if not (plain and rule):
        return HOPED
    if is_proved and frozen and even:
        return THEOREM
    return MEASURED if per == "run" else HOPED


def _describe(terms: ListTerms, promise: str, status: str, listed: int) -> str:
    return f"list {terms.name}: {listed:,} nodes; {promise} ({CONDITIONS[status]})"
