"""Whether each list of the configuration has the calibration nodes without which it stays empty."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.list_terms import ListTerms
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.activations import active_version
from ringfence.connector.store.models import class_names, members
from ringfence.connector.store.worklist.listed_nodes import read_listed_runs
from ringfence.jobs.config.conformal import terms_of
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.scoring.node_lists import describe_needed
from ringfence.jobs.setup.finding import Finding
from ringfence.models.selection.registry import scope_named


def check_lists(store: Store, settings: Settings) -> Iterator[Finding]:
    """How many calibration nodes each list needs, and how many there are.

    Counted in the last run that decided the list; before there is one, in the training.
    """
    if not settings.lists:
        return
    counted = {
        facts.terms: (facts.references, facts.wrong_references)
        for run in read_listed_runs(store, settings.project)
        for facts in run.lists
    }
    labels = None
    for terms in terms_of(settings.lists):
        if terms not in counted:
            labels = _calibration_labels(store, settings.project) if labels is None else labels
            if not labels:
                continue
            counted[terms] = len(labels), sum(map(terms.is_wrong, labels))
        yield _compare(terms, *counted[terms])


def _compare(terms: ListTerms, references: int, wrong: int) -> Finding:
    scope = scope_named(terms.per)
    needed = scope.references_needed((1 + wrong) / (1 + references), terms.may_be_wrong)
    given = references - wrong if scope.needs_right else wrong
    text = f"list {terms.name}: {describe_needed(terms, given, needed)}"
    if given >= needed:
        return Finding("ok", text)
    return Finding(
        "warning",
        text,
        f"label more nodes that are {terms.right if scope.needs_right else terms.wrong}, then: "
        f"ringfence train; or a larger may_be_wrong for {terms.name} (ringfence advise --list "
        f"{terms.name})",
    )


def _calibration_labels(store: Store, project: str) -> list[str]:
    """The classes of the calibration nodes of the training; none before there is a model."""
    with store.reading() as connection:
        version = active_version(connection, project)
    if version is None:
        return []
    classes = class_names(store, project)[version]
    return [classes[item.class_index] for item in members(store, project, version, "calibration")]
