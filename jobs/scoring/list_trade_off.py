"""How long a list is and what it finds at several promised shares, to help choose one.

Measured on validation nodes, as if they were one run, on the graph as it is now. Calibration nodes
only judge them, as they will judge new nodes: a share chosen by counting wrong calibration nodes
would no longer be promised by them. Validation nodes decided when training stopped, so a list may
do a little better on them than on new nodes. Where the split took more of a rare class, its nodes
weigh less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.list_terms import ListTerms
from ringfence.connector.mirror import find_recorded
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.models import active_manifest, members
from ringfence.jobs.config.conformal import terms_of
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.node_evaluation import evaluate_nodes
from ringfence.jobs.scoring.node_lists import NodeList, fair_counts
from ringfence.jobs.scoring.version_on_graph import calibrate_version, require_runnable

SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)


@dataclass(frozen=True, slots=True)
class ListAtShare:
    """A list at one promised share: its length, the share of right nodes it finds, wrong ones.

    The three are shares of all nodes, of the right nodes, and of the listed nodes. `needed` are the
    calibration nodes that it takes (`ListFacts`).
    """

    may_be_wrong: float
    nodes: int
    listed: float
    found: float
    wrong: float | None
    needed: int = 0


@dataclass(frozen=True, slots=True)
class ListTradeOff:
    """What a list costs and finds at several promised shares.

    `references` are the calibration nodes, `wrong_references` those that are wrong for the list.
    """

    terms: ListTerms
    model: str
    validation: int
    right: int
    words: str
    rows: tuple[ListAtShare, ...]
    references: int = 0
    wrong_references: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return what `ringfence advise --list --json` prints."""
        values = asdict(self)
        return {**values.pop("terms"), **values}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ListTradeOff:
        """Return what `as_json` gave."""
        terms = ListTerms(**{item.name: values[item.name] for item in fields(ListTerms)})
        rows = tuple(ListAtShare(**row) for row in values["rows"])
        named = {name: values[name] for name in ("model", "validation", "right", "words")}
        named |= {name: values.get(name, 0) for name in ("references", "wrong_references")}
        return cls(terms=terms, rows=rows, **named)


def run_list_trade_off(
    workspace: Workspace,
    name: str,
    shares: Sequence[float] = SHARES,
    progress: Progress = no_progress,
) -> ListTradeOff:
    """Measure a list of the configuration at several promised shares."""
    terms = _terms(workspace, name)
    with write_session(workspace, progress) as session:
        recorded = active_manifest(workspace.store, workspace.project)
        require_mapping(workspace.mapping, recorded)
        model = model_files.load_model(workspace.models, recorded)
        engine_of(workspace.settings.engine).require_network(model.network)
        mirror = read_graph(workspace, session.writer, progress).mirror
        require_runnable(workspace, model, mirror)
        version = calibrate_version(workspace, model, mirror)
        labelled = members(workspace.store, workspace.project, model.version)
        known = [member for member in labelled if member.role == "validation"]
        rows = find_recorded(mirror, [member.node_key for member in known])
        truth = np.array([member.class_index for member in known], np.int64)[rows >= 0]
        rows = rows[rows >= 0]
        if not len(rows):
            raise ModelError(
                found="no validation node is in the graph any more",
                needed="some, to measure the list on",
                next_step="ringfence train",
            )
        lists = terms_of(workspace.settings.lists)
        place = lists.index(terms)
        asked = sorted({*shares, terms.may_be_wrong})
        each = [[*lists[:place], replace(terms, may_be_wrong=share), *lists[place + 1 :]]
                for share in asked]  # fmt: skip
        held = [evaluate_nodes(version, rows, lists=at_share).lists[place] for at_share in each]
        save_graph(workspace, mirror)
        engine_of(workspace.settings.engine).close_tables(workspace.tables, model, mirror)
    right = np.array([not terms.is_wrong(model.classes[c]) for c in truth], np.bool_)
    weight = np.ones(len(truth))
    fair = fair_counts(version)
    if fair is not None:
        weight = (fair / np.maximum(np.bincount(truth, minlength=len(fair)), 1))[truth]
    table = [_at_share(item, right, weight) for item in held]
    facts = held[asked.index(terms.may_be_wrong)].facts
    return ListTradeOff(
        terms, model.version, len(rows), int(right.sum()), facts.words, tuple(table),
        facts.references, facts.wrong_references,
    )  # fmt: skip


def _at_share(item: NodeList, right: Any, weight: Any) -> ListAtShare:
    listed = item.is_listed
    total, good = float(weight[listed].sum()), float(weight[listed & right].sum())
    of_right = float(weight[right].sum())
    return ListAtShare(
        item.facts.terms.may_be_wrong,
        int(listed.sum()),
        total / float(weight.sum()),
        good / of_right if of_right else 0.0,
        1 - good / total if total else None,
        item.facts.needed,
    )


def _terms(workspace: Workspace, name: str) -> ListTerms:
    lists = {terms.name: terms for terms in terms_of(workspace.settings.lists)}
    if name not in lists:
        named = ", ".join(lists) or "none yet: add a [[lists]] table"
        raise ConfigError(
            found=f"--list is {name!r}, which is no list of the configuration",
            needed=f"one of its lists ({named})",
        )
    return lists[name]
