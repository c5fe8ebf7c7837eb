"""The promise that a run made, in words; pages, `status` and report show that of the last run."""

from __future__ import annotations

import json

from ringfence.connector.records import RunFacts
from ringfence.models.calibration.sets.registry import calibration_set_named
from ringfence.models.guarantee.drift_gap import GAP_WORDS
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.registry import promise_named
from ringfence.models.promise.sentence import describe_promise


def shift_of_run(run: RunFacts) -> str:
    """Return in what a run's nodes differed from those it was calibrated with; empty where not."""
    return str((run.shift or {}).get("sentence", ""))


def late_classes_of_run(run: RunFacts) -> list[str]:
    """Return how late classes usually come and which runs wait for them, as the run had it."""
    return list((run.levels or {}).get("settled", {}).get("words", []))


def promise_of_run(run: RunFacts) -> str:
    """Return what a run promised, for which nodes, under which condition, and what drift costs."""
    gaps = [note for note in run.notes if note.startswith(GAP_WORDS)]
    promise = describe_promise(
        promise_named(run.promise),
        run.alpha,
        calibration_set_named(run.calibration_set),
        run.adapt,
        PromiseOptions.recorded(json.loads(run.options)),
    )
    return "; ".join([promise, *gaps])
