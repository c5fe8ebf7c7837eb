"""How late classes come, by the project's own record, and whether the level can bear it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ringfence.connector.errors import ModelError
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.engine import Store
from ringfence.connector.store.models import active_manifest
from ringfence.connector.store.runs import newest_run_of_model
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.promise import PromiseTerms, terms_in_force
from ringfence.jobs.scoring.calibration.calibration_set import read_settled
from ringfence.jobs.scoring.calibration.settled_notes import (
    NEVER_SEEN,
    SETTLED_KEY,
    describe_frozen,
    describe_unseen,
)
from ringfence.jobs.scoring.calibration.settled_runs import DAY_NS, SettledRecord, runs_within
from ringfence.jobs.setup.finding import Finding
from ringfence.models.calibration.adaptive_level import THEN, largest_stable_step

WAITED_FOR = 2
"""A class that was never seen is waited for so many times as long as declared."""


def check_late_classes(store: Store, settings: Settings) -> Iterator[Finding]:
    """The last run's words on late classes; a warning where they make the level swing."""
    try:
        manifest = json.loads(active_manifest(store, settings.project))
    except ModelError:
        return
    terms = terms_in_force(settings.conformal, manifest)
    last = newest_run_of_model(store, settings.project, manifest["version"])
    if last is None:
        return
    settled = read_settled(store, settings, manifest)
    yield from _check_unseen(settled)
    yield from _check_declared(store, settings, settled)
    if not terms.uses_recent_labels:
        yield from _say("", describe_frozen(settled))
        return
    record = (last.levels or {}).get(SETTLED_KEY, {})
    yield from _say(f"run {last.seq}: ", record.get("words", []))
    yield from _check_swing(terms, _delay(record, last.levels or {}))


def _say(where: str, words: Iterable[str]) -> Iterator[Finding]:
    """Say what is as it is; classes that were never seen have a warning."""
    yield from (Finding("ok", where + said) for said in words if not said.startswith(NEVER_SEEN))


def _check_unseen(settled: SettledRecord) -> Iterator[Finding]:
    """Whether a class of more than 1 % at the training was never seen since."""
    for sentence in describe_unseen(settled):
        yield Finding(
            "warning",
            sentence,
            "set [graph] label_delay_days, if its classes come later than those seen so far; if "
            "there are none any more: ringfence train",
        )


def _check_declared(store: Store, settings: Settings, settled: SettledRecord) -> Iterator[Finding]:
    """Whether `label_delay_days` fits what is on record."""
    declared, delay = settings.graph.label_delay_days, settled.runs.delay
    decided = np.array([run.decided_ns for run in run_counts(store, settings.project)], np.int64)
    takes = runs_within(decided, declared)
    if declared is None or takes is None:
        return
    lived = float(decided[-1] - decided[0]) / DAY_NS
    if delay is not None and delay > WAITED_FOR * takes:
        days = math.ceil(declared * delay / takes)
        yield Finding(
            "warning",
            f"classes usually come {delay} runs late, about {days} days; [graph] label_delay_days "
            f"is {declared:g}: a class that nobody has seen yet is waited for twice that",
            f"set [graph] label_delay_days = {days}",
        )
    elif declared > lived:
        yield Finding(
            "ok",
            f"[graph] label_delay_days is {declared:g}, and the runs of the project are "
            f"{lived:.3g} days old: until classes have come, nothing of them calibrates",
        )


def _delay(record: Mapping[str, Any], levels: Mapping[str, Any]) -> int:
    """The usual delay in runs; of older runs the most that ever waited for their answer."""
    if record.get("delay") is not None:
        return int(record["delay"])
    return max((int(state["waiting"]) for state in levels.get("adaptive", [])), default=0)


def _check_swing(terms: PromiseTerms, delay: int) -> Iterator[Finding]:
    if not terms.adapt or terms.adapt_rule != THEN:
        return
    largest = largest_stable_step(delay)
    if terms.adapt_step >= largest:
        yield Finding(
            "warning",
            f"classes come {delay} runs late, and the level of this model counts misses at the "
            f"level that a run used: with adapt_step = {terms.adapt_step:g} it swings between full "
            f"and small sets (stable below {largest:.2g})",
            'set [conformal] adapt_rule = "today"; or: ringfence train',
        )
