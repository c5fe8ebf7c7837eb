"""What stands above a worklist: its length, what is promised of it, what became known so far."""

from __future__ import annotations

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import count_worklist
from ringfence.connector.store.queries.worklist_counts import known_outcomes
from ringfence.connector.store.queries.worklist_filter import WorklistFilter
from ringfence.jobs.auditing.list_audit import audit_lists
from ringfence.jobs.views.doubts import find_doubts
from ringfence.jobs.views.listed import describe_promise
from ringfence.jobs.worklist.list_choice import ListChoice

MAX_COUNTED = 10_000  # nodes of a list, for its length
SHARES_OF_LIST = ("sample", "total")
"""The rows of a list's audit that stand above it; the sample's first, which nobody chose."""


def describe_worklist(queries: ProjectQueries, choice: ListChoice) -> list[str]:
    """Say how long a list is, what is promised of its nodes, and what came true."""
    told = describe_listed(queries, choice) if choice.is_list else _of_class(queries, choice.wanted)
    return [count_words(queries, choice.wanted), *told]


def describe_listed(queries: ProjectQueries, choice: ListChoice) -> list[str]:
    """Say what a list promises, unless doubts stand, and the share of it that turned out wrong."""
    facts = choice.facts
    if facts is None:
        return ["on no list: no promise about lists is made of these nodes, sorted by run, then by "
                f"their p-value of {choice.wanted.class_}"]  # fmt: skip
    run = queries.run(choice.seq)
    doubts = () if run is None else find_doubts(queries, run, {})
    audits = [
        row for row in audit_lists(queries.store, queries.project) if row.terms == facts.terms
    ]
    audits.sort(key=lambda row: row.slice not in SHARES_OF_LIST[:1])
    return [
        describe_promise(facts, doubts),
        *doubts[:1],
        *(row.words for row in audits if row.slice in SHARES_OF_LIST),
    ]


def count_words(queries: ProjectQueries, wanted: WorklistFilter) -> str:
    """Say how many nodes a list has; counting ends somewhere."""
    count = count_worklist(queries, wanted, MAX_COUNTED)
    stretches = 2 if wanted.list_ is None and wanted.known == "any" else 1
    length = f"{count:,} or more" if count >= stretches * MAX_COUNTED else f"{count:,}"
    return f"{length} node{'s' if count != 1 else ''} on this list"


def _of_class(queries: ProjectQueries, wanted: WorklistFilter) -> list[str]:
    """What share of such nodes was right, and what share of the class was on no such list."""
    known = known_outcomes(queries, wanted.class_)
    over = f"in the newest {known.runs:,} runs" if known.runs != 1 else "in one run"
    if known.in_sample:
        over = f"in the audit sample, {over}: no run is settled"
    lines = []
    if known.right_share is not None:
        lines.append(
            f"{100 * known.right_share:.1f} % of such nodes were right: {known.right:,} of "
            f"{known.listed:,} whose set held the class and whose class became known {over}"
        )
    if known.missed_share is not None:
        lines.append(
            f"{100 * known.missed_share:.1f} % of the class were on no such list: "
            f"{known.of_class - known.right:,} of {known.of_class:,} known nodes of it {over}"
        )
    return lines
