"""The realised false share of each list, from sealed rows: who was listed, which class came.

A list is its terms: a list whose promise was changed in the configuration is another one from then
on, and the audit of the old one goes on with the nodes that it holds. Nothing is stored here:
the nodes of a list, its terms and the classes are sealed already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ringfence.connector.list_terms import MEASURED, THEOREM, ListTerms
from ringfence.connector.store.engine import Store
from ringfence.connector.store.worklist.listed_nodes import (
    ListedNode,
    ListedRun,
    listed_nodes,
    listed_runs,
)
from ringfence.connector.times import NANOSECONDS
from ringfence.models.guarantee.list_verdict import judge_list

WINDOW_DAYS = 90
DAY_NS = 86_400 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class ListAudit:
    """A list over some runs: what it promised, what came true, and the verdict in words.

    `slice` is `run`, `window` (the last 90 days) or `total`. `mean_of_runs` counts an empty list as
    0, `pooled` is the share of all listed nodes of known class; `low` and `high` are the pooled
    share with every unknown node counted as right, and as wrong. A run has no verdict of its own:
    the promise is about many.
    """

    terms: ListTerms
    slice: str
    seq: int
    runs: int
    empty: int
    evaluated: int
    listed: int
    known: int
    false: int
    mean_of_runs: float | None
    pooled: float | None
    low: float
    high: float
    p_value: float
    verdict: str
    status: str
    words: str

    def as_json(self) -> dict[str, Any]:
        """Return the values of `--json` and the API."""
        values = asdict(self)
        return {**values.pop("terms"), **values}


def audit_lists(store: Store, project: str) -> list[ListAudit]:
    """Return the rows of every list, total first, then the last 90 days, then its newest run."""
    with store.reading() as connection:
        runs = listed_runs(connection, project)
        nodes = list(listed_nodes(connection, project)) if runs else []
    return audit_runs(runs, nodes)


def audit_runs(runs: Sequence[ListedRun], nodes: Sequence[ListedNode]) -> list[ListAudit]:
    """Return what `audit_lists` does, of runs and listed nodes that are read already."""
    if not runs:
        return []
    terms_seen = dict.fromkeys(facts.terms for run in runs for facts in run.lists)
    newest = runs[-1].decided_ns - WINDOW_DAYS * DAY_NS
    rows = []
    for terms in terms_seen:
        those = [run for run in runs if any(facts.terms == terms for facts in run.lists)]
        recent = [run for run in those if run.decided_ns >= newest]
        rows.append(_audit(terms, "total", those, nodes))
        rows += [_audit(terms, "window", recent, nodes)] if recent else []
        rows.append(_audit(terms, "run", those[-1:], nodes))
    return rows


def _audit(
    terms: ListTerms, slice_: str, runs: Sequence[ListedRun], nodes: Sequence[ListedNode]
) -> ListAudit:
    of_run: dict[int, list[ListedNode]] = {run.seq: [] for run in runs}
    for node in nodes:
        if node.name == terms.name and node.seq in of_run:
            of_run[node.seq].append(node)
    listed = sum(len(held) for held in of_run.values())
    labels = {seq: [node.label for node in held if node.label] for seq, held in of_run.items()}
    known = [len(held) for held in labels.values() if held]
    false = [sum(map(terms.is_wrong, held)) for held in labels.values() if held]
    empty = sum(not held for held in of_run.values())
    judged = judge_list(false, known, empty, terms.may_be_wrong, pooled=terms.per == "stream")
    wrong, unknown = sum(false), listed - sum(known)
    verdict = "no verdict" if slice_ == "run" else judged.verdict
    facts = [item for run in runs for item in run.lists if item.terms == terms]
    proved = all(item.status == THEOREM for item in facts)
    return ListAudit(
        terms,
        slice_,
        runs[-1].seq,
        len(runs),
        empty,
        sum(run.evaluated for run in runs),
        listed,
        sum(known),
        wrong,
        judged.mean_of_runs,
        judged.pooled,
        wrong / listed if listed else 0.0,
        (wrong + unknown) / listed if listed else 0.0,
        judged.p_value,
        verdict,
        THEOREM if proved else MEASURED,
        _describe(terms, len(runs), listed, sum(known), wrong, judged.mean_of_runs, verdict),
    )


def _describe(
    terms: ListTerms,
    runs: int,
    listed: int,
    known: int,
    false: int,
    mean: float | None,
    verdict: str,
) -> str:
    head = f"list {terms.name}: {verdict}; {listed:,} nodes listed in {runs:,} runs"
    if not known:
        return f"{head}, none of known class"
    share = f"{false:,} of {known:,} of known class are {terms.wrong} ({100 * false / known:.1f} %)"
    promise = f"at most {100 * terms.may_be_wrong:g} % promised"
    if terms.per == "stream":
        return f"{head}, {share}; {promise} of all together"
    average = f"{100 * (mean or 0):.1f} % on average over runs, empty lists as 0"
    return f"{head}, {share}; {average}; {promise} on that average"
