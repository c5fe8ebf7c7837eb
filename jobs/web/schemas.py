"""What the JSON API returns, as types: made from the SQL tables, so that they can't drift apart."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, create_model
from sqlalchemy import Table

from ringfence.connector.tables import alarm, coverage, run

JSON_COLUMNS: dict[str, Any] = {
    "notes": list[str] | None,
    "timings": dict[str, float] | None,
    "calibration_scores": list[float] | None,
    "watch": dict[str, Any] | None,
}


def _model(name: str, table: Table, without: tuple[str, ...] = ()) -> Any:
    fields: dict[str, Any] = {}
    for column in table.columns:
        if column.name in without:
            continue
        kind: Any = column.type.python_type
        fields[column.name] = (kind | None if column.nullable else kind, ...)
    for column_name in JSON_COLUMNS.keys() & fields.keys():
        fields[column_name] = (JSON_COLUMNS[column_name], ...)
    return create_model(name, **fields)


Coverage: Any = _model("Coverage", coverage)
Run: Any = _model("Run", run)
RunSummary: Any = _model("RunSummary", run, tuple(JSON_COLUMNS))
Alarm: Any = _model("Alarm", alarm)


class Status(BaseModel):
    """A project at a glance."""

    project: str
    verdict: str
    words: str
    evaluated: int
    known: int
    unknown: int
    quarantined: int
    last_run: int | None
    chain_entries: int
    alarms_firing: list[str]


class PValue(BaseModel):
    """The p-value of one class of a node."""

    name: str
    p: float
    in_set: bool


class Node(BaseModel):
    """One evaluated node."""

    key: str
    typed_key: str
    words: str
    classes: list[str]
    p_values: list[PValue]
    alpha: float
    degree: int
    run: int
    label: str | None
    covered: bool | None
    chain_entry: int | None
    groups: dict[str, str]


class Chain(BaseModel):
    """State of the audit chain."""

    entries: int
    words: str
    sound: bool | None


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str
