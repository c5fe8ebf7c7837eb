"""Calibration nodes of a class or group that is calibrated on its own, by run of a model.

`schedule` counts the calibration nodes of all nodes together. Under a promise per class or group
each of them has calibration nodes of its own, and so a law of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, and_, func, select

from ringfence.connector.store.calibration.schedule import (
    CalibratedRun,
    calibration_schedule,
    drawn_at_training,
    joined_until,
)
from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import grouping, joined, run, threshold
from ringfence.connector.store.thresholds.recorded import band_place

NodesByBand = dict[tuple[str, int], dict[str, int]]
"""Class ("" for all) and run -> band -> calibration nodes behind its threshold."""

Joins = dict[str, list[tuple[int, int, int]]]
"""Part -> run by which nodes joined, run that had evaluated them, how many."""

Drawn = dict[str, dict[int, int]]
"""Part -> run -> calibration nodes of the training that this run had evaluated."""


def class_schedules(
    store: Store, project: str, version: str, classes: Sequence[str], calibrating: float = 1.0
) -> dict[str, list[CalibratedRun]]:
    """Return the schedule of each class: `calibration_schedule` of its own calibration nodes.

    `classes` are those of the version, in the order of its outputs. A run that has no threshold of
    a class on record is not one of the class's own runs.
    """
    of = joined.c
    joins = (
        select(of.label, of.seq, of.evaluated_seq, func.count())
        .where(of.project == project, of.version == version)
        .group_by(of.label, of.seq, of.evaluated_seq)
    )
    drawn: Drawn = {}
    with store.reading() as connection:
        came = _by_part(connection.execute(joins))
        bands = _nodes_by_band(connection, project, version)
        if (some := drawn_at_training(connection, project, version)) is not None:
            columns = some.c.class_index, some.c.seq
            for index, seq, n in connection.execute(
                select(*columns, func.count()).group_by(*columns)
            ):
                drawn.setdefault(classes[int(index)], {})[int(seq)] = int(n)
    held = {of_run: count_class_calibration(by_band) for of_run, by_band in bands.items()}
    whole = calibration_schedule(store, project, version, calibrating)
    return {name: _of_part(name, whole, held, came, drawn, calibrating) for name in classes}


def group_schedules(
    store: Store, project: str, version: str, property_: str, calibrating: float = 1.0
) -> dict[str, list[CalibratedRun]]:
    """Return the schedule of each group by a property; nodes without it are "no PROPERTY".

    Groups are named as thresholds and coverage rows name them. The group of an evaluated node is on
    record from the first audit after its run on.
    """
    of = joined.c
    joins = (
        select(grouping.c.value, of.seq, of.evaluated_seq, func.count())
        .select_from(joined)
        .outerjoin(grouping, _group_of(joined.c.node_key, project, property_))
        .where(of.project == project, of.version == version)
        .group_by(grouping.c.value, of.seq, of.evaluated_seq)
    )
    drawn: Drawn = {}
    with store.reading() as connection:
        came = _by_part(
            (_name(property_, value), *rest) for value, *rest in connection.execute(joins)
        )
        bands = _nodes_by_band(connection, project, version)
        if (some := drawn_at_training(connection, project, version)) is not None:
            columns = grouping.c.value, some.c.seq
            query = select(*columns, func.count()).select_from(some)
            query = query.outerjoin(grouping, _group_of(some.c.node_key, project, property_))
            for value, seq, n in connection.execute(query.group_by(*columns)):
                drawn.setdefault(_name(property_, value), {})[int(seq)] = int(n)
    by_group: NodesByBand = {}
    for (class_, seq), by_band in bands.items():
        for band, n in by_band.items() if class_ == "" else ():
            degrees, group = split_band(property_, band)
            by_group.setdefault((group, seq), {})[degrees] = n
    held = {of_run: count_in_bands(by_band) for of_run, by_band in by_group.items()}
    whole = calibration_schedule(store, project, version, calibrating)
    names = sorted({name for name, _ in held})
    return {name: _of_part(name, whole, held, came, drawn, calibrating) for name in names}


def count_class_calibration(by_band: Mapping[str, int]) -> int:
    """Return how many calibration nodes of one class are in use, from those of each band.

    Bands are cut so that they serve all classes. Neighbouring bands that one class does not tell
    apart have the same calibration nodes of it, and so the same number of them, which counts once.
    (Bands that differ and have equally many count once too: the law then is a little too wide.)

    >>> count_class_calibration({"0-4": 40, "5-9": 40, "10+": 60})
    100
    """
    sizes = [by_band[band] for band in sorted(by_band, key=band_place)]
    return sum(n for n, before in zip(sizes, [None, *sizes], strict=False) if n != before)


def count_in_bands(by_degrees: Mapping[str, int]) -> int:
    """Return how many calibration nodes of one group are in use, from those of each band.

    Bands of a group are its own. A union of bands can hold another band, whose nodes are then among
    its own; they count once.

    >>> count_in_bands({"0-1": 30, "2-4": 20, "5+": 40}), count_in_bands({"0-4": 50, "2-4": 20})
    (90, 50)
    """
    ends = {_ends(degrees): n for degrees, n in by_degrees.items()}
    return sum(
        n
        for (low, high), n in ends.items()
        if not any(
            first <= low and high <= last for first, last in ends if (first, last) != (low, high)
        )
    )


def split_band(property_: str, band: str) -> tuple[str, str]:
    """Return degrees and group from the name of a stratum under a promise per group.

    >>> split_band("region", "2-4 in region=a=b"), split_band("region", "region=north")
    (('2-4', 'region=a=b'), ('', 'region=north'))
    >>> split_band("region", "5+ in no region")
    ('5+', 'no region')
    """
    degrees, separator, value = band.partition(f"{property_}=")
    none = _name(property_, None)
    group = f"{property_}={value}" if separator else none
    return (degrees if separator else band.removesuffix(none)).removesuffix(" in "), group


def _name(property_: str, value: str | None) -> str:
    return f"no {property_}" if value is None else f"{property_}={value}"


def _ends(degrees: str) -> tuple[float, float]:
    """Lowest and highest degree of a band; all of them where it has no name."""
    if degrees == "":
        return 0.0, math.inf
    low, _, high = degrees.partition("-")
    if low.endswith("+"):
        return float(low[:-1]), math.inf
    return float(low), float(high or low)


def _group_of(node_key: Any, project: str, property_: str) -> Any:
    of = grouping.c
    return and_(of.project == project, of.node_key == node_key, of.property == property_)


def _by_part(rows: Iterable[Sequence[Any]]) -> Joins:
    joins: Joins = {}
    for name, seq, origin, n in rows:
        joins.setdefault(name, []).append((int(seq), int(origin), int(n)))
    return joins


def _nodes_by_band(connection: Connection, project: str, version: str) -> NodesByBand:
    """The calibration nodes of every threshold of a version's runs, at one alpha of each run."""
    of = threshold.c
    query = (
        select(of["class"], of.seq, of.alpha, of.band, of.n_calibration)
        .join(run, and_(run.c.project == of.project, run.c.seq == of.seq))
        .where(of.project == project, run.c.model == version)
    )
    bands: dict[tuple[str, int], dict[float, dict[str, int]]] = {}
    for name, seq, alpha, band, n in connection.execute(query):
        bands.setdefault((name, int(seq)), {}).setdefault(alpha, {})[band] = int(n)
    return {of_run: next(iter(by_band.values())) for of_run, by_band in bands.items()}


def _of_part(
    name: str,
    whole: Sequence[CalibratedRun],
    held: Mapping[tuple[str, int], int],
    came: Joins,
    drawn: Drawn,
    calibrating: float,
) -> list[CalibratedRun]:
    """The schedule of all nodes with the counts of one part."""
    joins, at_training = came.get(name, []), drawn.get(name, {})
    return [
        replace(
            run_,
            n_calibration=held.get((name, run_.seq), 0),
            joined=joined_until(run_.seq, joins, at_training, calibrating) if run_.is_own else {},
            is_own=run_.is_own and (name, run_.seq) in held,
        )
        for run_ in whole
    ]
