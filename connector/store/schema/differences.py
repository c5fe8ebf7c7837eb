"""The tables, views, indexes and triggers of a store, compared with what the migrations make.

Whoever may change the schema needs no row: a view that says something else, a trigger that swallows
alarm events, a chain that may be edited again. `ringfence verify` names each.

    with store.reading() as connection:
        problems = list(find_schema_differences(connection))
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import CheckConstraint, Column, Connection, Index, Inspector, Table, inspect

from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.schema.views import VIEWS, view_query
from ringfence.connector.store.tables import metadata

MISSING = re.compile(r"the (table \w+|column \w+) is gone$")


def find_schema_differences(connection: Connection) -> Iterator[str]:
    """Yield every part of the schema that is not as the migrations make it.

    Views are compared only where all tables are whole: else their queries may not run.
    """
    inspector = inspect(connection)
    tables = list(_find_table_differences(inspector, connection))
    yield from tables
    standing = set(inspector.get_view_names())
    for name in VIEWS:
        if name not in standing:
            yield f"the schema: the view {name} is gone"
        elif not tables and not _is_same_view(connection, name):
            yield f"the schema: the view {name} is not the one that the migrations make"
    yield from _find_guard_differences(connection)


def find_missing_parts(connection: Connection) -> list[str]:
    """Return the tables and columns that are gone: without them no row can be compared."""
    differences = _find_table_differences(inspect(connection), connection)
    return [text for text in differences if MISSING.search(text)]


def _is_same_view(connection: Connection, name: str) -> bool:
    dialect = DIALECTS[connection.dialect.name]
    return dialect.is_same_view(connection, name, view_query(name, dialect.time_of_ns))


def _find_guard_differences(connection: Connection) -> Iterator[str]:
    """Compare triggers, rules and row policies on our tables and views with those we make."""
    dialect = DIALECTS[connection.dialect.name]
    relations = [*metadata.tables, *VIEWS]
    standing = dialect.guards(connection, relations)
    for name, definition in dialect.own_guards.items():
        if name not in standing:
            yield f"the schema: {name}, which keeps the chain append-only, is gone"
        elif standing[name] != definition:
            yield f"the schema: {name}, which keeps the chain append-only, was changed"
    for name in sorted(standing.keys() - dialect.own_guards.keys()):
        yield f"the schema: {name} is not ringfence's: it may change or swallow what is written"


def _find_table_differences(inspector: Inspector, connection: Connection) -> Iterator[str]:
    reflected: dict[str, Mapping[Any, Any]] = {
        "columns": inspector.get_multi_columns(),
        "key": inspector.get_multi_pk_constraint(),
        "references": inspector.get_multi_foreign_keys(),
        "indexes": inspector.get_multi_indexes(),
        "checks": inspector.get_multi_check_constraints(),
    }
    facts: dict[str, dict[str, Any]] = {}
    for subject, by_table in reflected.items():
        for (_, table), value in by_table.items():
            facts.setdefault(table, {})[subject] = value
    for table in metadata.sorted_tables:
        if table.name not in facts:
            yield f"the schema: the table {table.name} is gone"
            continue
        for difference in _find_differences(table, facts[table.name], connection):
            yield f"the schema: {table.name}: {difference}"


def _find_differences(
    table: Table, facts: Mapping[str, Any], connection: Connection
) -> Iterator[str]:
    yield from _find_column_differences(table, facts["columns"], connection)
    if list(facts["key"]["constrained_columns"]) != [c.name for c in table.primary_key.columns]:
        yield "the primary key is another one"
    references = {_reference(standing) for standing in facts["references"]}
    for key in table.foreign_key_constraints:
        columns = tuple(key.column_keys), tuple(e.column.name for e in key.elements)
        if (key.referred_table.name, *columns) not in references:
            yield f"the reference to {key.referred_table.name} is gone"
    yield from _find_check_differences(table, facts["checks"])
    yield from _find_index_differences(table, facts["indexes"])


def _find_check_differences(table: Table, checks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Compare checks by name and by the values that they name: engines write them differently."""
    standing = {str(check["name"]): _literals(check["sqltext"]) for check in checks}
    for constraint in table.constraints:
        if not isinstance(constraint, CheckConstraint) or not constraint.name:
            continue
        values = standing.pop(str(constraint.name), None)
        if values is None:
            yield f"the check {constraint.name} is gone"
        elif values != _literals(str(constraint.sqltext)):
            yield f"the check {constraint.name} allows other values"
    for name in sorted(standing):
        yield f"the check {name} is not ringfence's"


def _literals(condition: str) -> set[str]:
    return set(re.findall(r"'([^']*)'", condition))


def _find_column_differences(
    table: Table, columns: Sequence[Mapping[str, Any]], connection: Connection
) -> Iterator[str]:
    standing = {reflected["name"]: reflected for reflected in columns}
    for column in table.columns:
        facts = standing.pop(column.name, None)
        if facts is None:
            yield f"the column {column.name} is gone"
        elif _type_name(facts["type"], connection) != _type_name(column.type, connection):
            yield f"the column {column.name} has another type"
        elif _may_be_null(facts["nullable"], column) != bool(column.nullable):
            yield f"the column {column.name} may be NULL, or may not, against what it should"
        elif _default(facts["default"]) != _default(_own_default(column)):
            yield f"the column {column.name} has another default"
    for name in sorted(standing):
        yield f"the column {name} is not ringfence's"


def _may_be_null(is_nullable: bool, column: Column[Any]) -> bool:
    """SQLite lets columns of a primary key be NULL unless they say otherwise; they count as not."""
    return bool(is_nullable) and not column.primary_key


def _own_default(column: Column[Any]) -> Any:
    return None if column.server_default is None else getattr(column.server_default, "arg", None)


def _default(value: Any) -> str | None:
    """Return a default without quotes, brackets and a type that the engine wrote behind it.

    >>> _default("'{}'::text"), _default("{}"), _default("0"), _default("false"), _default(None)
    ('{}', '{}', 'false', 'false', None)
    """
    if value is None:
        return None
    bare = str(value).partition("::")[0].strip("'\"()").lower()
    return {"0": "false", "1": "true"}.get(bare, bare)


def _type_name(kind: Any, connection: Connection) -> str:
    return str(kind.compile(connection.dialect)).upper()


def _reference(key: Mapping[str, Any]) -> tuple[Any, ...]:
    columns = tuple(key["constrained_columns"]), tuple(key["referred_columns"])
    return (key["referred_table"], *columns)


def _find_index_differences(table: Table, indexes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    standing = {reflected["name"]: reflected for reflected in indexes}
    for index in table.indexes:
        facts = standing.pop(str(index.name), None)
        if facts is None:
            yield f"the index {index.name} is gone"
        elif list(facts["column_names"]) != [column.name for column in index.columns]:
            yield f"the index {index.name} has other columns"
        elif _is_partial(facts) != _should_be_partial(index):
            yield f"the index {index.name} has another condition"
    for name, facts in sorted(standing.items(), key=str):
        if facts["unique"] and "duplicates_constraint" not in facts:
            yield f"the unique index {name} is not ringfence's"


def _is_partial(index: Mapping[str, Any]) -> bool:
    return any(name.endswith("_where") for name in index.get("dialect_options", {}))


def _should_be_partial(index: Index) -> bool:
    return any(options.get("where") is not None for options in index.dialect_options.values())


def find_odd_values(connection: Connection, left_out: Collection[str] = ()) -> Iterator[str]:
    """Yield columns with values of another type than theirs, which comparisons may take for equal.

    Tables that are `left_out` by name are not read.
    SQLite keeps 2 in a column of truth values; Python reads it as true, and SQL counts it as none.
    """
    dialect = DIALECTS[connection.dialect.name]
    for table in metadata.sorted_tables:
        if table.name not in left_out:
            for column, count in dialect.find_odd_values(connection, table).items():
                yield describe_odd_values(table.name, column, count)


def describe_odd_values(table: str, column: str, count: int) -> str:
    """Say that values of a column are of another type."""
    return f"{table}: {column} of {count} rows is of another type than the column"
