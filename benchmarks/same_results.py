"""Do two projects hold the same results? Thresholds, p-values, sets, levels, coverage, weights.

A refactoring must change none of them, to the last bit. Make one project with the code before it
and one with the code after it, from the same graph and the same seed, each in an empty folder:

    python -m benchmarks.same_results BEFORE AFTER

BEFORE and AFTER are folders with an `audit.db` (such as those of `ringfence demo --folder`) or URLs
of audit stores. The stores are read by plain SQL, so that those of earlier versions can be compared
too: a table or column that only one of the two has is not compared. Rows are matched by node key,
run number and the other columns that name them. Times, sentences, software and the random names of
model versions are left out; a version is known by its place in the order of training.
Exit 0: all equal; 1: something differs, and it is named.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy
from safetensors.numpy import load_file

KEY_COLUMNS = {
    "run": ("seq",),
    "prediction": ("node_key",),
    "further_set": ("node_key", "alpha"),
    "threshold": ("seq", "alpha", "band", "class"),
    "coverage": ("seq", "slice", "name", "alpha"),
    "member": ("version", "node_key"),
    "joined": ("version", "node_key"),
    "shadow_run": ("version", "seq"),
    "shadow_set": ("version", "node_key"),
    "shadow_coverage": ("version", "seq"),
    "quarantine": ("node_key", "kind"),
    "grouping": ("node_key", "property"),
}
"""The tables that are compared, with the columns that name a row."""

VERSION_COLUMNS = ("version", "model")
IGNORED_COLUMNS = frozenset({
    "project", "token", "owner",  # who ran it
    "software", "config", "timings",  # with what, where, how long
    "words", "bias_words", "notes", "reason",  # sentences
    "element_id",  # Neo4j's own
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Results:
    """A project's rows by table and key, and its models' weights in the order of training."""

    tables: dict[str, dict[tuple[Any, ...], dict[str, Any]]]
    weights: list[dict[str, np.ndarray]]


def differences(before: Results, after: Results) -> list[str]:
    """Name everything that differs between two projects."""
    lines: list[str] = []
    for name in before.tables.keys() & after.tables.keys():
        lines += compare_tables(name, before.tables[name], after.tables[name])
    return sorted(lines) + compare_weights(before.weights, after.weights)


def compare_tables(
    name: str,
    before: dict[tuple[Any, ...], dict[str, Any]],
    after: dict[tuple[Any, ...], dict[str, Any]],
) -> list[str]:
    """Name rows that only one side has, and columns whose values differ, with some examples."""
    lines = []
    for side, rows in (("before", before.keys() - after.keys()), ("after", after.keys() - before)):
        if rows:
            lines.append(f"{name}: {len(rows)} rows only {side}, such as {_first(rows)}")
    changed: dict[str, list[tuple[Any, ...]]] = {}
    for key in before.keys() & after.keys():
        for column in before[key].keys() & after[key].keys():
            if before[key][column] != after[key][column]:
                changed.setdefault(column, []).append(key)
    for column, keys in changed.items():
        key = _first(keys)
        lines.append(
            f"{name}.{column}: differs in {len(keys)} of {len(before)} rows, such as {key}: "
            f"{before[key][column]!r} before, {after[key][column]!r} after"
        )
    return lines


def _first(keys: Any) -> tuple[Any, ...]:
    return min(keys, key=repr)


def compare_weights(
    before: list[dict[str, np.ndarray]], after: list[dict[str, np.ndarray]]
) -> list[str]:
    """Name the weights that differ; models are matched in the order of their training."""
    if len(before) != len(after):
        return [f"weights: {len(before)} models before, {len(after)} after"]
    lines = []
    for number, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        if old.keys() != new.keys():
            lines.append(f"weights of model {number}: {sorted(old)} before, {sorted(new)} after")
            continue
        lines += [
            f"weights of model {number}: {name} differs"
            for name in old
            if not np.array_equal(old[name], new[name])
        ]
    return lines


def read_results(place: str) -> Results:
    """Return the results of a project, given as a folder or as the URL of its audit store."""
    folder = None if "://" in place else Path(place)
    engine = sqlalchemy.create_engine(place if folder is None else _sqlite_url(folder))
    try:
        with engine.connect() as connection:
            versions = _versions(connection)
            tables = read_tables(connection, versions)
    finally:
        engine.dispose()
    return Results(tables, [] if folder is None else _weights(folder, versions))


def _sqlite_url(folder: Path) -> str:
    (path,) = folder.rglob("audit.db")
    return f"sqlite:///file:{path.absolute()}?mode=ro&uri=true"


def _versions(connection: sqlalchemy.Connection) -> dict[str, str]:
    """Return `model 1`, `model 2`, … for the versions in the order of their training."""
    rows = connection.exec_driver_sql("SELECT version FROM model ORDER BY trained_ns, version")
    return {version: f"model {n}" for n, (version,) in enumerate(rows, start=1)}


def read_tables(
    connection: sqlalchemy.Connection, versions: dict[str, str]
) -> dict[str, dict[tuple[Any, ...], dict[str, Any]]]:
    """Return the rows of the compared tables by their keys."""
    there = set(sqlalchemy.inspect(connection).get_table_names())
    tables = {}
    for name, key_columns in KEY_COLUMNS.items():
        if name in there:
            rows = connection.exec_driver_sql(f'SELECT * FROM "{name}"').mappings()
            named = [_with_named_versions(dict(row), versions) for row in rows]
            tables[name] = {
                tuple(row[column] for column in key_columns): _compared(row) for row in named
            }
    return tables


def _with_named_versions(row: dict[str, Any], versions: dict[str, str]) -> dict[str, Any]:
    return row | {
        column: versions.get(row[column], row[column])
        for column in VERSION_COLUMNS
        if column in row
    }


def _compared(row: dict[str, Any]) -> dict[str, Any]:
    return {
        column: _without_times(value)
        for column, value in row.items()
        if column not in IGNORED_COLUMNS and not column.endswith("_ns")
    }


def _without_times(value: Any) -> Any:
    """Return a column's value; of a JSON object, what is no time."""
    text = json.dumps(value) if isinstance(value, dict) else value
    if isinstance(text, str) and text.startswith("{"):
        return json.loads(text, object_hook=_drop_times)
    return value


def _drop_times(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if not name.endswith("_ns")}


def _weights(folder: Path, versions: dict[str, str]) -> list[dict[str, np.ndarray]]:
    """Return the weights of the versions whose files lie in the folder."""
    paths = {path.parent.name: path for path in folder.rglob("weights.safetensors")}
    return [load_file(paths[version]) for version in versions if version in paths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="folder of a project, or URL of its audit store")
    parser.add_argument("after")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    before, after = read_results(given.before), read_results(given.after)
    lines = differences(before, after)
    compared = {name: len(rows) for name, rows in sorted(before.tables.items()) if rows}
    if given.json:
        print(json.dumps({"equal": not lines, "differences": lines, "compared": compared}))
    else:
        counts = ", ".join(f"{name} {count}" for name, count in compared.items())
        print("\n".join(lines) or f"equal: {len(before.weights)} models' weights; rows of {counts}")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
