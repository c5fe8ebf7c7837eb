"""What the JSON API returns, as types: made from the records, so that they can't drift apart."""

from __future__ import annotations

from typing import Any, get_type_hints

from pydantic import BaseModel, create_model

from ringfence.connector import records
from ringfence.connector.store.queries.records import StoredAlarm, columns_of

NOT_IN_SUMMARY = ("notes", "timings", "calibration_scores", "watch")


def _model(name: str, record: type, without: tuple[str, ...] = ()) -> Any:
    """A model with the fields of a record, under the names and in the order of `as_row`."""
    types = get_type_hints(record)
    fields: dict[str, Any] = {
        column: (types[column], ...) for column in columns_of(record) if column not in without
    }
    return create_model(name, **fields)


Coverage: Any = _model("Coverage", records.StoredCoverage)
Run: Any = _model("Run", records.Run)
RunSummary: Any = _model("RunSummary", records.Run, NOT_IN_SUMMARY)
Alarm: Any = _model("Alarm", StoredAlarm)


class Sample(BaseModel):
    """The audit sample: its verdict, and coverage with missing classes counted both ways."""

    verdict: str
    words: str
    nodes: int
    unknown: int
    coverage_low: float | None
    coverage_high: float | None


class List(BaseModel):
    """A list over some runs: its promise, what came true, and the verdict."""

    name: str
    class_: str
    is_clear: bool
    may_be_wrong: float
    per: str
    slice: str
    seq: int
    runs: int
    empty: int
    evaluated: int
    listed: int
    known: int
    false: int
    mean_of_runs: float | None
    pooled: float | None
    low: float
    high: float
    p_value: float
    verdict: str
    status: str
    words: str
    group: str
    early: int


class WorklistNode(BaseModel):
    """A node whose set holds a class; state, by and outcome are what people did with it.

    With the filter `list` it is on the list, and `share` the smallest promised share at which it
    would be.
    """

    node: str
    class_: str
    p: float | None
    size: int
    degree: int
    run: int
    decided: str
    known_class: str | None
    state: str
    by: str | None
    outcome: str | None
    about: str | None
    note: str | None
    share: float | None


class Worklist(BaseModel):
    """A page of the worklist; `after` gives the next one, and is None on the last."""

    class_: str
    nodes: list[WorklistNode]
    after: str | None


class PileNode(BaseModel):
    """A node of a pile; `share` is the smallest promised share at which it would be listed."""

    pile: str
    list: str
    node: str
    share: float | None
    set: str
    known_class: str | None
    run: int


class Piles(BaseModel):
    """The piles of a run: whom to investigate, whom to clear, who is on no list."""

    run: int
    words: list[str]
    piles: dict[str, int]
    nodes: list[PileNode]
    left_out: int


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
    sample: Sample | None


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
    details_removed_ns: int | None
    nodes_of_key: list[str]


class Chain(BaseModel):
    """State of the audit chain."""

    entries: int
    words: str
    sound: bool | None


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str
