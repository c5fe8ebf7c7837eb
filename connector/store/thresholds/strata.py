"""Nodes of known class by the threshold that judged them: the input of the coverage law.

A run under one rule has one threshold or, with bands of degree or promises per class, many; each
has calibration nodes of its own. The number covered in a run is then a sum of independent parts.
Under a promise per class neighbouring bands can share the calibration nodes of a small class; their
thresholds are then equal, and their nodes count as judged by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Subquery,
    Table,
    and_,
    case,
    func,
    literal,
    or_,
    select,
)

from ringfence.connector.store.tables import (
    further_set,
    grouping,
    label,
    prediction,
    run,
    threshold,
)
from ringfence.connector.store.worklist.sampled_nodes import IS_SAMPLED

By = Literal["run", "class", "group", "sample"]
WHOLE_RUN: tuple[By, ...] = ("run", "sample")
"""Counts without names: of all nodes of a run, or of those drawn for the audit sample."""


@dataclass(frozen=True, slots=True)
class StratumCounts:
    """Nodes that were judged by one threshold: the calibration nodes behind it, known, covered.

    `level` is what their p-values were compared with; `class_` is the class that the threshold is
    for, "" if it is for all.
    """

    n_calibration: int
    effective_calibration: float
    level: float
    known: int
    covered: int
    class_: str = ""


StrataById = dict[tuple[int, float, str], list[StratumCounts]]
"""Strata by run, alpha and name (of the class or group; "" for a whole run)."""


def known_strata(
    connection: Connection, project: str, version: str, by: By, as_of_ns: int | None
) -> StrataById:
    """Return the strata of every run of a model, of every class or of every group.

    `as_of_ns` counts the classes that were known then, as `tallies` does.
    """
    strata: StrataById = {}
    query = _query(project, version, by, as_of_ns)
    for row in connection.execute(query).mappings():
        key = int(row["seq"]), float(row["alpha"]), row["name"]
        size, effective = int(row["n_calibration"]), float(row["effective_calibration"])
        strata.setdefault(key, []).append(
            StratumCounts(
                size,
                effective,
                row["level"],
                int(row["known"]),
                int(row["covered"]),
                row["class"],
            )
        )
    return strata


def classes_as_of(project: str, ns: int) -> Subquery:
    """The newest class of each node among those noticed by then."""
    newest = (
        select(label.c.node_key, func.max(label.c.noticed_ns).label("at"))
        .where(label.c.project == project, label.c.noticed_ns <= ns)
        .group_by(label.c.node_key)
        .subquery()
    )
    same = and_(label.c.node_key == newest.c.node_key, label.c.noticed_ns == newest.c.at)
    return select(label).join(newest, same).where(label.c.project == project).subquery("known")


def group_name_column() -> Any:
    """The name of a node's group: property=value."""
    return grouping.c.property + "=" + grouping.c.value


def same_node(table: Table) -> ColumnElement[bool]:
    """Condition that joins a table of evaluated nodes to their predictions."""
    return and_(table.c.project == prediction.c.project, table.c.node_key == prediction.c.node_key)


def _query(project: str, version: str, by: By, as_of_ns: int | None) -> Select[Any]:
    known: Any = prediction if as_of_ns is None else classes_as_of(project, as_of_ns)
    whole = literal("")
    names = {"run": whole, "sample": whole, "class": known.c.label, "group": group_name_column()}
    name = names[by]
    # not by band: bands with the same threshold and as many nodes of a class share them
    terms = (
        threshold.c.seq, threshold.c.alpha, threshold.c["class"], threshold.c.threshold,
        threshold.c.n_calibration, threshold.c.effective_calibration, threshold.c.level,
    )  # fmt: skip
    first = threshold.c.alpha == run.c.alpha
    hit = case((first, known.c.covered), else_=further_set.c.covered)
    query = (
        select(
            *terms,
            name.label("name"),
            func.count().label("known"),
            func.sum(case((hit.is_(True), 1), else_=0)).label("covered"),
        )
        .select_from(prediction)
        .join(run, and_(run.c.project == prediction.c.project, run.c.seq == prediction.c.seq))
    )
    if as_of_ns is not None:
        query = query.join(known, known.c.node_key == prediction.c.node_key)
        query = query.where(run.c.decided_ns <= as_of_ns)
    query = query.join(threshold, _judged_by(known)).outerjoin(
        further_set, and_(same_node(further_set), further_set.c.alpha == threshold.c.alpha)
    )
    if by == "group":
        query = query.join(grouping, same_node(grouping))
    if by == "sample":
        query = query.where(IS_SAMPLED)
    return query.where(
        prediction.c.project == project, run.c.model == version, known.c.label.is_not(None)
    ).group_by(*terms, *(() if by in WHOLE_RUN else (name,)))


def _judged_by(known: Any) -> ColumnElement[bool]:
    """The threshold of a node's band for its class, or (class "") for all classes."""
    own_class = threshold.c["class"]
    return and_(
        threshold.c.project == prediction.c.project,
        threshold.c.seq == prediction.c.seq,
        threshold.c.band == prediction.c.band,
        or_(own_class == "", own_class == known.c.label),
    )
