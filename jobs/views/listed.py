"""On which lists a node is, in a sentence worded as strongly as the list is proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringfence.connector.list_terms import HOPED, MEASURED, ListFacts
from ringfence.connector.records import Run
from ringfence.connector.store.queries.nodes import find_prediction
from ringfence.connector.store.queries.project import ProjectQueries

HEDGES = {MEASURED: " (measured, not proved)", HOPED: " (neither proved nor measured)"}
"""What stands behind the promise of a list, where no theorem does."""


def describe_lists(
    queries: ProjectQueries, run: Run, typed_key: str, doubts: Sequence[str]
) -> list[str]:
    """Return a sentence for each list that a node is on; without the promise while doubts stand."""
    stored = find_prediction(queries, [typed_key])
    lists: Mapping[str, float] = {} if stored is None else stored.lists
    facts = [ListFacts.from_json(values) for values in run.lists or ()]
    return [describe_list(of_list, doubts) for of_list in facts if of_list.terms.name in lists]


def describe_list(facts: ListFacts, doubts: Sequence[str] = ()) -> str:
    """Say that a node is on a list, and what the list promises.

    >>> from ringfence.connector.list_terms import THEOREM, ListTerms
    >>> terms = ListTerms("investigate", "mule", False, 0.2, "run")
    >>> listed = ListFacts(terms, 400, 90, 0.2, 4, 26, THEOREM, "")
    >>> describe_list(listed)
    'on list investigate: on average over runs, at most 20 % of its nodes are not mule'
    >>> describe_list(listed, ["the alarm drift is firing"])
    'on list investigate'
    """
    return f"on {describe_promise(facts, doubts)}"


def describe_promise(facts: ListFacts, doubts: Sequence[str] = ()) -> str:
    """Say what a list promises; its name alone while doubts stand."""
    terms = facts.terms
    if doubts:
        return f"list {terms.name}"
    over = "on average over runs" if terms.per == "run" else "of all runs together"
    hedge = HEDGES.get(facts.status, "")
    return (
        f"list {terms.name}: {over}, at most {100 * terms.may_be_wrong:g} % of its nodes are "
        f"{terms.wrong}{hedge}"
    )
