"""After how many days a class is usually known, where a property tells when it was set."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

import numpy as np

from ringfence.connector.neo4j.sample import LabelSample, SampledProperty
from ringfence.jobs.setup.proposal.arrival import KINDS, Arrival
from ringfence.jobs.setup.proposal.choice import Choice

SAYS_LABELLED = re.compile(
    r"label|class|confirm|decid|review|verdict|resolv|settle|closed|known", re.IGNORECASE
)
MIN_NODES = 20
KNOWN_BY_THEN = 0.95
MIN_SHARE_WITH_CLASS = 0.95
DAY_SECONDS = 86_400.0
NOT_TOLD = Choice("", "after how many days a class is usually known; no property tells", sure=False)


def propose_label_delay(sample: LabelSample, class_property: str, arrival: Arrival) -> Choice:
    """Return the days by which 95 % of the known classes were set; NOT_TOLD where none says it."""
    created = arrival.created_at or next(iter(arrival.business_dates), None)
    if created is None:
        return NOT_TOLD
    classes = sample.properties[class_property].values
    for name, property_ in sorted(sample.properties.items()):
        if name in {created, class_property} or not _tells_when_known(property_, classes):
            continue
        days = _days_between(sample.properties[created].values, property_.values)
        if len(days) >= MIN_NODES:
            usual = max(1, int(np.ceil(np.quantile(days, KNOWN_BY_THEN))))
            why = f"95 % of the classes were set within {usual} days of {created}, by {name}"
            return Choice(usual, why)
    return NOT_TOLD


def _tells_when_known(property_: SampledProperty, classes: Sequence[object]) -> bool:
    """Whether a property is a time, named like it, that hardly any node has without a class."""
    if property_.type not in {*KINDS, "DATE"} or not SAYS_LABELLED.search(property_.name):
        return False
    with_class = [c is not None for c, v in zip(classes, property_.values, strict=True) if v]
    return sum(with_class) >= MIN_SHARE_WITH_CLASS * max(1, len(with_class))


def _days_between(created: Sequence[object], labelled: Sequence[object]) -> list[float]:
    pairs = zip(map(_seconds, created), map(_seconds, labelled), strict=True)
    days = [(end - start) / DAY_SECONDS for start, end in pairs if start and end]
    return [day for day in days if day >= 0]


def _seconds(value: object) -> float | None:
    """Seconds since 1970 of a date, a time or milliseconds; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value / 1_000
    if not isinstance(value, dt.date):
        return None
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp()
