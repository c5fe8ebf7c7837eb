"""The list that a worklist is narrowed to: whose nodes, about which class, with which promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ringfence.connector.errors import ConfigError
from ringfence.connector.list_terms import ListFacts, ListTerms
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist_filter import NO_LIST, WorklistFilter
from ringfence.connector.store.worklist.listed_nodes import ListedRun, read_listed_runs
from ringfence.jobs.worklist.table import require_class

OPEN = "open"
"""What an address and a command call the nodes on no list, unless a list has this name."""


@dataclass(frozen=True, slots=True)
class ListChoice:
    """A filter whose list is resolved, and the list in the newest run that it is about.

    `facts` is None without a list, and for the nodes on none; `seq` is that run.
    """

    wanted: WorklistFilter
    facts: ListFacts | None = None
    seq: int = 0

    @property
    def is_list(self) -> bool:
        """Whether nodes were asked for by their list, or by being on none."""
        return self.wanted.list_ is not None


def choose_list(
    queries: ProjectQueries, wanted: WorklistFilter, runs: Sequence[ListedRun] | None = None
) -> ListChoice:
    """Resolve the list of a filter, which says the class where none is given.

    A name that was used for another class, or for clearing, is another list: runs of that one are
    left out. `runs` are those that decided lists, where they are read already.
    """
    if wanted.list_ is None:
        require_class(queries, wanted.class_)
        return ListChoice(wanted)
    if runs is None:
        runs = read_listed_runs(queries.store, queries.project)
    _refuse_min_p(wanted)
    about = [run for run in runs if wanted.run in (None, run.seq)]
    decided = [
        (run.seq, item) for run in about for item in run.lists if item.terms.name == wanted.list_
    ]
    seq, facts = decided[-1] if decided else (0, None)
    if facts is None and wanted.list_ == OPEN and about:
        class_ = wanted.class_ or about[-1].lists[0].terms.class_
        require_class(queries, class_)
        return ListChoice(replace(wanted, class_=class_, list_=NO_LIST), None, about[-1].seq)
    if facts is None:
        raise _unknown_list(runs, wanted)
    if wanted.class_ not in ("", facts.terms.class_):
        raise ConfigError(
            found=f"the class {wanted.class_!r} with the list {wanted.list_!r}, which is about "
            f"{facts.terms.class_!r}",
            needed="the list without a class",
        )
    others = tuple(run.seq for run in runs if _is_other(run, facts.terms))
    return ListChoice(replace(wanted, class_=facts.terms.class_, not_runs=others), facts, seq)


def list_names(queries: ProjectQueries) -> list[str]:
    """Return the names of the lists that runs decided, those of the newest run first."""
    runs = read_listed_runs(queries.store, queries.project)
    return list(dict.fromkeys(facts.terms.name for run in runs[::-1] for facts in run.lists))


def _is_other(run: ListedRun, terms: ListTerms) -> bool:
    return any(
        facts.terms.name == terms.name
        and (facts.terms.class_, facts.terms.is_clear) != (terms.class_, terms.is_clear)
        for facts in run.lists
    )


def _refuse_min_p(wanted: WorklistFilter) -> None:
    if wanted.min_p is not None:
        raise ConfigError(
            found=f"the filters min_p and list {wanted.list_!r} together",
            needed="one of them: a list has chosen its nodes, whatever their p-value",
        )


def _unknown_list(runs: Sequence[ListedRun], wanted: WorklistFilter) -> ConfigError:
    names = dict.fromkeys(facts.terms.name for run in runs[::-1] for facts in run.lists)
    which = "no run" if wanted.run is None else f"run {wanted.run} is none that"
    return ConfigError(
        found=f"{which} decided a list {wanted.list_!r}",
        needed=f"one of: {', '.join([*names, OPEN])}" if names else "a [[lists]] table, and a run",
        next_step="ringfence triage" if names else "ringfence score",
    )
