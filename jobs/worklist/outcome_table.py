"""Outcomes as rows for people, CSV files and `--json`, and as classes under the user's rules.

A rule says which class a node gets for an outcome: `false alarm=retail`. Without rules a node that
was *confirmed* gets the class that it was confirmed to be, and no other node gets any.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import Key, decode_key
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.worklist.marks import OUTCOMES, outcome_of
from ringfence.connector.store.worklist.outcomes import StandingOutcome
from ringfence.connector.times import format_time
from ringfence.jobs.views.tables.model import Cells, csv_cell
from ringfence.jobs.worklist.table import require_class

OUTCOME_COLUMNS = (
    "node", "outcome", "about", "who", "at", "note", "run", "lists", "in_sample", "known_class",
)  # fmt: skip
Rules = Mapping[str, str]
"""By outcome: the class that is written; empty for none."""


def outcome_row(outcome: StandingOutcome) -> Cells:
    """Return an outcome's values by column; `outcome` is None for marks of older versions."""
    values = (
        outcome.key, outcome.outcome, outcome.about, outcome.who, format_time(outcome.at_ns),
        outcome.note, outcome.seq, ", ".join(outcome.lists), outcome.sampled, outcome.label,
    )  # fmt: skip
    return dict(zip(OUTCOME_COLUMNS, values, strict=True))


def outcomes_csv(outcomes: Sequence[StandingOutcome]) -> Iterator[str]:
    """Yield outcomes as lines of CSV; text that a spreadsheet would run is escaped."""
    yield _line(list(OUTCOME_COLUMNS))
    for outcome in outcomes:
        yield _line([csv_cell(value) for value in outcome_row(outcome).values()])


def parse_rules(queries: ProjectQueries, given: Sequence[str]) -> Rules:
    """Return rules such as `false alarm=retail`; refuse unknown outcomes and classes."""
    rules: dict[str, str] = {}
    for text in given:
        name, is_, class_ = text.partition("=")
        outcome = outcome_of(name)
        if not is_ or outcome not in OUTCOMES:
            raise ConfigError(
                found=f"the rule {text!r}",
                needed=f"an outcome ({', '.join(OUTCOMES)}), = and a class, or nothing for none",
                next_step='ringfence outcomes --cypher --rule "false alarm=CLASS"',
            )
        if class_:
            require_class(queries, class_)
        rules[outcome] = class_
    return rules


def classes_to_write(outcomes: Sequence[StandingOutcome], rules: Rules) -> list[tuple[Key, str]]:
    """Return keys and classes of the nodes in the graph that the rules give a class."""
    chosen = []
    for outcome in outcomes:
        of_its_own = outcome.about if outcome.outcome == "confirmed" else None
        class_ = rules.get(outcome.outcome or "", of_its_own)
        if class_ and outcome.in_graph:
            chosen.append((decode_key(outcome.node_key), class_))
    return chosen


def _line(values: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(values)
    return out.getvalue()
