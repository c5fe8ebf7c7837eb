"""Entries of the audit chain in one line each, for pages and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ringfence.connector.records import UNREADABLE, ChainEntry
from ringfence.connector.store.audit_chain import configuration, signature
from ringfence.connector.store.audit_chain.keyless import FIELD
from ringfence.connector.store.chain import REKEYED
from ringfence.connector.store.checkpoint import entries as checkpoints
from ringfence.connector.store.lifecycle import activations
from ringfence.connector.store.retention import removals
from ringfence.connector.store.shadow import coverage as shadow_coverage
from ringfence.connector.store.shadow import sets
from ringfence.connector.store.worklist import marks

Facts = Mapping[str, Any]
ENTRY_NAMES = {"n", "project", "kind", "at_ns", "actor", "lease", FIELD}  # of every chain entry


def describe_entry(entry: ChainEntry) -> str:
    """Describe an entry in one line; a damaged one is no error here."""
    describe = DESCRIPTIONS.get(entry.kind)
    try:
        if describe is not None:
            return describe(entry.facts)
    except (KeyError, TypeError, ValueError, AttributeError):
        return "its facts can't be read"
    return ", ".join(name for name in entry.facts if name not in ENTRY_NAMES)


def _decided(facts: Facts) -> str:
    run = facts["run"]
    return f"run {run['seq']}: {run['n_evaluated']} sets by {run['rule']}"


def _audited(facts: Facts) -> str:
    rows = facts["coverage"]
    return f"coverage of {len({row['seq'] for row in rows})} runs, {len(rows)} rows"


def _alarms(facts: Facts) -> str:
    firing = sum(state == "firing" for state, *_ in facts["states"].values())
    return f"{len(facts['states'])} alarm rules, {firing} firing"


def _trained(facts: Facts) -> str:
    state = "" if "state" not in facts else f", {facts['state']}"
    return f"model {facts['version']} with {facts['members']} labelled nodes{state}"


def _activated(facts: Facts) -> str:
    use = facts["activation"]
    was = f" in place of {use['was']}" if use["was"] else ""
    return f"model {use['version']} is in use{was} ({use['how']}): {use['reason']}"


def _shadowed(facts: Facts) -> str:
    shadow = facts["shadow"]
    what = "failed" if shadow["failed"] else f"{shadow['n_sets']} shadow sets"
    return f"model {shadow['version']} beside run {shadow['seq']}: {what}"


def _marked(facts: Facts) -> str:
    mark = facts["mark"]
    outcome = f" ({mark['outcome']})" if mark.get("outcome") else ""
    whom = f" for {mark['assignee']}" if mark.get("assignee") else ""
    return f"{mark['who']}: {mark['action']}{outcome} of node {mark['node_key']}{whom}"


def _removed(facts: Facts) -> str:
    runs = facts["runs"]
    nodes = sum(run["nodes"] for run in runs)
    which = f"run {runs[0]['seq']}" if len(runs) == 1 else f"{len(runs)} runs"
    return f"details of {nodes} nodes of {which}, kept for {facts['keep_days']:g} days"


DESCRIPTIONS: dict[str, Callable[[Facts], str]] = {
    "decided": _decided,
    "audited": _audited,
    "alarms": _alarms,
    "classes": lambda facts: f"{facts['nodes']} classes became known",
    "corrections": lambda facts: (
        f"{facts['nodes']} calibration nodes of model {facts['version']} were corrected"
    ),
    "trained": _trained,
    activations.KIND: _activated,
    sets.KIND: _shadowed,
    shadow_coverage.KIND: lambda facts: f"coverage of shadow sets, {len(facts['rows'])} rows",
    "applied": lambda facts: f"run {facts['seq']} is in the graph",
    "grouped": lambda facts: f"{facts['rows']} groups of the nodes of run {facts['seq']}",
    "marked": lambda facts: f"groups are known up to run {facts['grouped_seq']}",
    "seen": lambda facts: f"{facts['nodes']} nodes without a creation time were first seen",
    "gone": lambda facts: f"{len(facts['gone'])} evaluated nodes have left the graph",
    "alarm": lambda facts: f"alarm {facts['rule']}: {facts['was']} to {facts['state']}",
    marks.KIND: _marked,
    removals.KIND: _removed,
    REKEYED: lambda facts: f"the chain's key was rotated after {facts['entries']} entries",
    checkpoints.KIND: checkpoints.describe,
    signature.KIND: lambda facts: (
        f"packs are signed with key {facts[signature.FIELD]['public_key'][:16]}…"
    ),
    configuration.KIND: configuration.describe_change,
    UNREADABLE: lambda _facts: "its body is no JSON object any more",
}
