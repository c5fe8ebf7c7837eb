"""The level in use derived again, from the levels of the run before and the runs answered since.

The state after a run follows from the state after the version's run before, from the p-values of
the answered runs and from the classes that were known when it was decided. Where retention removed
p-values since, they are only known to have been at most the levels of their run: enough for the
rule `then`, not for `today`, which compares them with a later level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ringfence.connector.store.queries import derivation_rows as rows
from ringfence.connector.store.retention.kept_detail import BEYOND_EXCLUSION, p_values_of
from ringfence.jobs.integrity.derivation.derived_joined import Came
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.derivation.history import Body, DecidedRun, History
from ringfence.jobs.scoring.levels import KnownPValue, LevelPlan, RunLevels, next_levels
from ringfence.jobs.scoring.run_record import used_levels
from ringfence.models.calibration.adaptive_level import THEN

SUBJECT = "levels of runs"
NO_LEVELS = "of runs whose version kept no levels"
NO_MODEL = "of versions whose classes can't be read"
REMOVED_MARK = "{"  # of p-values as retention leaves them
PRUNED = "of runs that answer others whose p-values retention removed since"


def derive_levels(history: History, run: DecidedRun, came: Came | None, findings: Findings) -> None:
    """Compare the levels that a run used, and the state that it left, with what they follow from.

    `came` says which runs it answers; None where that can't be derived: those that it says, then.
    """
    classes, recorded = history.classes(run.version), run.levels
    if "used" not in recorded:
        findings.leave(SUBJECT, NO_LEVELS)
        return
    if not classes:
        findings.leave(SUBJECT, NO_MODEL)
        return
    answered = came.answered if came is not None else _said_answered(recorded)
    known, complete = _known_p_values(history, answered if run.terms.adapt else ())
    if not complete and run.terms.adapt_rule != THEN:
        findings.leave(SUBJECT, PRUNED)
        return
    waiting = came.waiting if came is not None else _said_waiting(recorded)
    expected = _expected(history, run, classes, answered, known, waiting)
    findings.compare(SUBJECT, *_problems(run, classes, expected, exact=came is not None))


def _expected(
    history: History,
    run: DecidedRun,
    classes: Sequence[str],
    answered: Sequence[int],
    known: Sequence[KnownPValue],
    waiting: int,
) -> RunLevels:
    terms = run.terms
    own_alphas = run.options.get("classes") or {}
    plan = LevelPlan(
        run.alphas,
        own_alphas,
        terms.promise_kind.per_class,
        terms.adapt,
        terms.adapt_step,
        terms.adapt_rule,
    )
    of_version = (other for other in history.earlier(run) if other.version == run.version)
    last = next(of_version, None)
    used_by = {seq: history.runs[seq].levels for seq in answered if seq in history.runs}
    before = None if last is None else last.levels
    return next_levels(plan, classes, before, used_by, known, waiting)


def _problems(
    run: DecidedRun, classes: Sequence[str], expected: RunLevels, *, exact: bool
) -> Iterator[str]:
    recorded, used = run.levels, used_levels(expected.used, classes)
    if recorded["used"] != used:
        yield _differs(run, "used", recorded["used"], used)
    for name in ("adaptive", "answered") if exact else ("adaptive",):
        state = expected.record.get(name, [])
        if recorded.get(name, []) != state:
            yield _differs(run, name, recorded.get(name, []), state)


def _differs(run: DecidedRun, name: str, recorded: Any, expected: Any) -> str:
    return (
        f"run {run.seq}: levels ({name}) is {recorded}, but the runs before it and the known "
        f"classes give {expected}"
    )


def _said_answered(levels: Body) -> tuple[int, ...]:
    return tuple(int(answer["run"]) for answer in levels.get("answered", []))


def _said_waiting(levels: Body) -> int:
    states: Sequence[Mapping[str, Any]] = levels.get("adaptive", [])
    return max((int(state["waiting"]) for state in states), default=0)


def _known_p_values(history: History, seqs: Sequence[int]) -> tuple[Sequence[KnownPValue], bool]:
    """Run, class and p-values of the known nodes of some runs; whether all p-values are there."""
    reader, complete = history.reader, True
    values: list[KnownPValue] = []
    for row in rows.p_value_texts(reader.connection, reader.project, seqs):
        known = history.known[history.place[row.node_key]]
        if known is not None:
            complete = complete and not row.p_values.startswith(REMOVED_MARK)
            values.append((row.seq, known.label, p_values_of(row.p_values, BEYOND_EXCLUSION)))
    return values, complete
