"""Drug-safety cases of one quarter as a graph of four labels with raw columns.

The files are those of neo4j-graph-examples/healthcare-analytics (US FDA, public domain). A case has
one or several outcome codes; its class is the most serious one, in the order of `SERIOUS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.real.load import index_keys, set_properties, write_nodes, write_relationships
from ringfence.connector.neo4j.driver import Graph

SERIOUS = ("DE", "LT", "HO", "DS", "CA", "RI", "OT")
"""Death, life-threatening, hospitalisation, disability, congenital anomaly, intervention, other."""
KEYS = {"Case": "primaryid", "Drug": "name", "Reaction": "description", "Source": "code"}
DATES = ("eventDate", "reportDate")


@dataclass(frozen=True, slots=True)
class Cases:
    """The tables; `outcome` has the class of each case."""

    demographics: pd.DataFrame
    drugs: pd.DataFrame
    reactions: pd.DataFrame
    sources: pd.DataFrame
    outcome: dict[int, str]


def read_cases(folder: Path) -> Cases:
    """Read the tables; a case without an outcome stays without a class."""
    outcome: dict[int, str] = {}
    codes = pd.read_csv(folder / "outcome.csv")
    for key, code in zip(codes["primaryid"].tolist(), codes["code"].tolist(), strict=True):
        before = outcome.get(key)
        if before is None or SERIOUS.index(code) < SERIOUS.index(before):
            outcome[key] = code
    return Cases(
        pd.read_csv(folder / "demographics.csv").drop_duplicates("primaryid"),
        pd.read_csv(folder / "drugs-indication.csv"),
        pd.read_csv(folder / "reaction.csv"),
        pd.read_csv(folder / "reportSources.csv"),
        outcome,
    )


def load_context(graph: Graph, data: Cases) -> None:
    """Write drugs, reactions and sources."""
    index_keys(graph, KEYS)
    drugs = data.drugs.dropna(subset=["name"]).drop_duplicates("name")
    names = drugs[["name", "primarySubstabce"]].rename(columns={"primarySubstabce": "substance"})
    write_nodes(graph, "Drug", [_row(one) for one in names.to_dict("records")])
    reactions = data.reactions["description"].dropna().unique().tolist()
    write_nodes(graph, "Reaction", [{"description": one} for one in reactions])
    sources = data.sources.drop_duplicates("code")[["code", "name"]]
    write_nodes(graph, "Source", [_row(one) for one in sources.to_dict("records")])


def load_cases(graph: Graph, data: Cases, keys: Iterable[int]) -> None:
    """Write cases without their class, joined to drugs, reactions and sources."""
    wanted = set(keys)
    table = data.demographics[data.demographics["primaryid"].isin(wanted)]
    write_nodes(graph, "Case", [_row(one) for one in table.to_dict("records")])
    case = ("Case", "primaryid")
    joins = (
        ("TAKES", ("Drug", "name"), data.drugs, "name"),
        ("SHOWS", ("Reaction", "description"), data.reactions, "description"),
        ("REPORTED_BY", ("Source", "code"), data.sources, "code"),
    )
    for type_, target, found, column in joins:
        rows = found[found["primaryid"].isin(wanted)].dropna(subset=[column])
        pairs = set(zip(rows["primaryid"].tolist(), rows[column].tolist(), strict=True))
        write_relationships(graph, case, type_, target, sorted(pairs))


def joined_tables(data: Cases) -> dict[str, pd.DataFrame]:
    """Pairs of case and neighbour, by the kind of neighbour."""
    return {
        "drug": data.drugs[["primaryid", "name"]].dropna().drop_duplicates(),
        "reaction": data.reactions[["primaryid", "description"]].dropna().drop_duplicates(),
        "source": data.sources[["primaryid", "code"]].dropna().drop_duplicates(),
    }


def reveal(graph: Graph, data: Cases, keys: Iterable[int]) -> None:
    """Write the class of those cases that have one."""
    rows = [{"primaryid": key, "outcome": data.outcome[key]} for key in keys if key in data.outcome]
    set_properties(graph, "Case", "primaryid", rows)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if value is not None and value == value}
    for name in DATES:
        if name in found:
            found[name] = _date(str(found[name]))
    return {name: value for name, value in found.items() if value is not None}


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
