"""How new nodes are found: by a creation time near the server's clock, or as keys not yet known.

A time whose newest values lie near the server's clock is when nodes are written: a watermark. An
older one is a business date: an order and a feature. Without either, new keys are new nodes.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ringfence.connector.mapping import TimeKind
from ringfence.connector.neo4j.sample import SampledProperty
from ringfence.jobs.setup.proposal.choice import Choice

NEAR_SECONDS = 7 * 86_400  # a graph that had no newcomer for a week may still be one
AHEAD_SECONDS = 3_600  # clocks differ; a later time is a plan, not a creation
SAYS_CREATED = re.compile(r"creat|insert|ingest|written|load|import|added|record", re.IGNORECASE)
KINDS: dict[str, TimeKind] = {
    "ZONED DATETIME": "zoned",
    "LOCAL DATETIME": "local",
    "INTEGER": "milliseconds",
}


@dataclass(frozen=True, slots=True)
class Arrival:
    """The creation time (None: keys not yet known) with its kind, and what was found, in words."""

    created_at: str | None
    time_kind: TimeKind
    choice: Choice
    business_dates: tuple[str, ...]


def propose_arrival(properties: Iterable[SampledProperty], now_seconds: int) -> Arrival:
    """Return how new nodes of a label are found."""
    ages = {
        property_.name: age
        for property_ in properties
        if (age := _age(property_, now_seconds)) is not None
    }
    by_name = {property_.name: property_ for property_ in properties}
    near = [name for name, age in ages.items() if _is_near(age) and by_name[name].share == 1]
    business = tuple(sorted(name for name in ages if name not in near))
    if not near:
        words = "new nodes are keys not yet known, and a node's time is that of its first run"
        if business:
            years = ages[business[0]] / 86_400
            when = f"newest {years:,.0f} days before" if years > 0 else "later than"
            reason = f"{business[0]} is a business date ({when} the server's clock)"
            return Arrival(None, "zoned", Choice("", f"{reason}: {words}"), business)
        return Arrival(None, "zoned", Choice("", f"no creation time: {words}"), business)
    best = min(near, key=lambda name: (not SAYS_CREATED.search(name), ages[name], name))
    sure = bool(SAYS_CREATED.search(best))
    why = f"{by_name[best].type}, its newest value is near the server's clock"
    return Arrival(best, KINDS[by_name[best].type], Choice(best, why, sure), business)


def is_creation_time(property_: SampledProperty, now_seconds: int) -> bool:
    """Whether the newest values of a property lie near the server's clock."""
    return _is_near(_age(property_, now_seconds, whatever_name=True))


def find_relationship_time(
    properties: Mapping[str, SampledProperty], kind: TimeKind, now_seconds: int
) -> str | None:
    """Return the creation time of a relationship type: near the clock, of the kind, on each."""
    fitting = [
        property_
        for property_ in properties.values()
        if KINDS.get(property_.type) == kind and len(property_.types) == 1 and property_.share == 1
    ]
    near = [candidate for candidate in fitting if _is_near(_age(candidate, now_seconds))]
    named = sorted(
        near, key=lambda candidate: (not SAYS_CREATED.search(candidate.name), candidate.name)
    )
    return named[0].name if named else None


def _is_near(age: float | None) -> bool:
    return age is not None and -AHEAD_SECONDS <= age <= NEAR_SECONDS


def _age(
    property_: SampledProperty, now_seconds: int, *, whatever_name: bool = False
) -> float | None:
    """Seconds between the newest value and the clock; None for what is no time."""
    if property_.type == "INTEGER":
        if not whatever_name and not SAYS_CREATED.search(property_.name):
            return None
        numbers = [value for value in property_.values if isinstance(value, int)]
        newest = max(numbers, default=0) / 1000
        return now_seconds - newest if newest > 1e8 else None
    if property_.type not in KINDS and property_.type != "DATE":
        return None
    seconds = [_seconds(value) for value in property_.values if isinstance(value, dt.date)]
    return now_seconds - max(seconds) if seconds else None


def _seconds(value: dt.date) -> float:
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).total_seconds()
