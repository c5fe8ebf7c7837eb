"""What the notes of a run and `status` say of late classes: which runs wait, and for how long."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ringfence.connector.records import RunFacts
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.scoring.calibration.calibration_set import CalibrationSet
from ringfence.jobs.scoring.calibration.settled_runs import SettledRecord
from ringfence.models.calibration.cohort import MAX_MISSING_SHARE, NEVER

UNTIL_THEN = "the promise rests on the calibration nodes of the training until then"
NEVER_SEEN = "never seen since the training"
NOTHING_KNOWN_YET = "no class of an evaluated node is known yet"
SETTLED_KEY = "settled"
"""Of the column `levels` of a run: what is written here."""


def describe_settled(settled: SettledRecord, answered: Collection[int], adapt: bool) -> list[str]:
    """Return the notes of a run on classes that come late.

    Args:
        settled: the settled runs.
        answered: runs of the version that have joined or answered, this time included.
        adapt: whether they answer for a level.
    """
    runs = settled.runs
    if runs.delay is None:
        return [f"{NOTHING_KNOWN_YET}: {UNTIL_THEN}"]
    return [
        _describe_delay(runs.delay, answered, adapt),
        *_describe_waiting(settled, bool(answered)),
        *_describe_left_out(settled),
        *describe_unseen(settled),
        *describe_held(settled),
    ]


def describe_unseen(settled: SettledRecord) -> list[str]:
    """Return the note on classes of the training that were clearly never seen since."""
    runs = settled.runs
    if not runs.unseen:
        return []
    waits = float(runs.usual[list(runs.unseen)].sum()) > MAX_MISSING_SHARE
    meaning = (
        f"a run that is known in part waits {_at_most(runs.limit)}, then it counts without them"
        if waits
        else "no run waits for them any more; level, newest calibration nodes and verdicts speak "
        "of the other classes"
    )
    return [f"{NEVER_SEEN}: {settled.named(runs.unseen)}; {meaning}"]


def describe_held(settled: SettledRecord) -> list[str]:
    """Return the note on runs whose known classes are a choice of listed nodes."""
    if not settled.held:
        return []
    sampled = len(settled.of_sample)
    return [
        f"{len(settled.held)} runs are held: hardly any class of theirs is known but of nodes that "
        "were listed or worked on, and these alone would speak of suspects"
        + (f"; of {sampled} of them the audit sample calibrates" if sampled else "")
    ]


def describe_frozen(settled: SettledRecord) -> list[str]:
    """Return the notes where calibration and level stand still: what late classes mean for them."""
    delay = settled.runs.delay
    if delay is None:
        return [f"{NOTHING_KNOWN_YET}: nothing can be judged"]
    early = len(settled.find_early())
    return [
        f"{_how_late(delay)}; calibration is frozen and waits for none, verdicts are about runs "
        "whose classes have come",
        *describe_unseen(settled),
        *describe_held(settled),
        *([f"{early} runs are judged by no verdict yet: only early classes of theirs are known"]
          if early else []),
    ]  # fmt: skip


def describe_late_classes(calibration: CalibrationSet, terms: PromiseTerms) -> list[str]:
    """Return the notes of a run on classes that come late, and on what waits for them."""
    if calibration.settled is None:
        return []
    if not terms.uses_recent_labels:
        return describe_frozen(calibration.settled)
    return describe_settled(calibration.settled, calibration.own_settled, terms.adapt)


def with_settled(facts: RunFacts, calibration: CalibrationSet, terms: PromiseTerms) -> RunFacts:
    """Return the facts of a run with the usual delay, the longest wait and the notes on them."""
    if calibration.settled is None:
        return facts
    runs = calibration.settled.runs
    record = {
        "delay": runs.delay,
        "limit": None if runs.limit == NEVER else runs.limit,
        "words": describe_late_classes(calibration, terms),
    }
    return replace(facts, levels={**(facts.levels or {}), SETTLED_KEY: record})


def _describe_delay(delay: int, answered: Collection[int], adapt: bool) -> str:
    late = _how_late(delay)
    if not answered:
        return f"{late}; no run of this version is settled yet: {UNTIL_THEN}"
    subject = "the level answers" if adapt else "calibration nodes are of"
    return f"{late}; {subject} runs up to run {max(answered)}"


def _how_late(delay: int) -> str:
    return f"classes usually come {delay} {'run' if delay == 1 else 'runs'} late"


def _describe_waiting(settled: SettledRecord, some_answered: bool) -> list[str]:
    runs, notes = settled.runs, []
    if runs.short:
        waiting = int((~runs.ready).sum())
        notes.append(
            f"{waiting} runs wait for classes that have hardly come: {settled.named(runs.short)}; "
            f"a run waits {_at_most(runs.limit)}" + ("" if some_answered else f", and {UNTIL_THEN}")
        )
    if settled.overdue and runs.missing:
        notes.append(
            f"{len(settled.overdue)} runs count although they lack {settled.named(runs.missing)}: "
            f"they waited {runs.limit} runs; what is said of them holds for the other classes"
        )
    return notes


def _at_most(limit: int) -> str:
    return "as long as it takes" if limit == NEVER else f"{limit} runs at most"


def _describe_left_out(settled: SettledRecord) -> list[str]:
    runs = settled.runs
    late = [(c, int(runs.delays[c])) for c in runs.left_out if runs.delays[c] < NEVER]
    return [
        f"{settled.named([c])} comes {delay} runs late and is not waited for: the level and the "
        "newest calibration nodes speak of the other classes"
        for c, delay in late
    ]
