"""Coverage and size of shadow sets and of those in force, run by run; only changes are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import Connection, and_, case, delete, func, insert, select

from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.basis.shadow_rows import KINDS, require_shadow_sets
from ringfence.connector.store.audit_chain.sealed_entries import require_sealed
from ringfence.connector.store.engine import Store
from ringfence.connector.store.shadow.tables import shadow_coverage, shadow_set
from ringfence.connector.store.tables import activation, prediction
from ringfence.connector.store.writer import Writer

KIND = "shadow audited"


@dataclass(frozen=True, slots=True)
class ShadowCoverage:
    """Counts of one run's shadow sets; the columns of the table `shadow_coverage`."""

    version: str
    seq: int
    evaluated: int
    known: int
    covered: int
    active_covered: int
    both_covered: int
    size: int
    active_size: int
    size_difference_squared: int


COUNTS = tuple(field.name for field in fields(ShadowCoverage))[2:]


def record_shadow_coverage(writer: Writer) -> list[ShadowCoverage]:
    """Count all shadow sets, write the rows that are new or different, and return these."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        before = {
            (counted.version, counted.seq): counted
            for counted in read_shadow_coverage(connection, project)
        }
        changed = [
            set_
            for set_ in count_shadow_sets(connection, project)
            if before.get((set_.version, set_.seq)) != set_
        ]
        if changed:
            sealed = require_sealed(connection, project, writer.key, KINDS)
            parts = {(counted.version, counted.seq) for counted in changed}
            require_shadow_sets(connection, project, sealed, parts)
        if changed:
            rows = [
                {"project": project, "audited_ns": now, **asdict(counted)} for counted in changed
            ]
            for counted in changed:
                connection.execute(
                    delete(shadow_coverage).where(
                        shadow_coverage.c.project == project,
                        shadow_coverage.c.version == counted.version,
                        shadow_coverage.c.seq == counted.seq,
                    )
                )
            connection.execute(insert(shadow_coverage), rows)
            chain.append(connection, project, writer.key, KIND, {"rows": rows})
    return changed


def count_shadow_sets(connection: Connection, project: str) -> list[ShadowCoverage]:
    """Return the counts of candidates' sets with the classes known now, by version and run.

    The rows of a version that was taken into use stay as they were when it was chosen.
    """
    same = and_(
        prediction.c.project == shadow_set.c.project,
        prediction.c.node_key == shadow_set.c.node_key,
    )
    hit, active_hit = shadow_set.c.covered.is_(True), prediction.c.covered.is_(True)
    known = shadow_set.c.covered.is_not(None)
    difference = shadow_set.c.size - prediction.c.size
    used = select(activation.c.version).where(activation.c.project == project)

    def count(condition: Any) -> Any:
        return func.sum(case((condition, 1), else_=0))

    query = (
        select(
            shadow_set.c.version,
            shadow_set.c.seq,
            func.count(),
            count(known),
            count(hit),
            count(and_(known, active_hit)),
            count(and_(hit, active_hit)),
            func.sum(shadow_set.c.size),
            func.sum(prediction.c.size),
            func.sum(difference * difference),
        )
        .join(prediction, same)
        .where(shadow_set.c.project == project, shadow_set.c.version.not_in(used))
        .group_by(shadow_set.c.version, shadow_set.c.seq)
        .order_by(shadow_set.c.version, shadow_set.c.seq)
    )
    return [ShadowCoverage(row[0], *map(int, row[1:])) for row in connection.execute(query)]


def read_shadow_coverage(connection: Connection, project: str) -> list[ShadowCoverage]:
    """Return the rows that audits wrote, by version and run."""
    columns = [shadow_coverage.c[field.name] for field in fields(ShadowCoverage)]
    query = (
        select(*columns)
        .where(shadow_coverage.c.project == project)
        .order_by(shadow_coverage.c.version, shadow_coverage.c.seq)
    )
    return [ShadowCoverage(*row) for row in connection.execute(query)]


def shadow_totals(store: Store, project: str) -> dict[str, ShadowCoverage]:
    """Return each version's counts over all its runs; `seq` is the number of runs."""
    with store.reading() as connection:
        return sum_by_version(read_shadow_coverage(connection, project))


def sum_by_version(rows: Iterable[ShadowCoverage]) -> dict[str, ShadowCoverage]:
    """Add up the rows of each version; `seq` of a sum is the number of runs.

    >>> first = ShadowCoverage("b", 4, 10, 5, 4, 5, 4, 12, 13, 3)
    >>> sum_by_version([first, first])["b"].known
    10
    """
    sums: dict[str, Mapping[str, int]] = {}
    runs: dict[str, int] = {}
    for row in rows:
        before = sums.get(row.version, dict.fromkeys(COUNTS, 0))
        sums[row.version] = {name: before[name] + getattr(row, name) for name in COUNTS}
        runs[row.version] = runs.get(row.version, 0) + 1
    return {version: ShadowCoverage(version, runs[version], **sums[version]) for version in sums}
