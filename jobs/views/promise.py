"""The promise that a run made, in words; pages, `status` and report show that of the last run."""

from __future__ import annotations

import json
from typing import cast

from ringfence.connector.records import RunFacts
from ringfence.models.promise.sentence import CalibrationSet, Kind, describe_promise


def shift_of_run(run: RunFacts) -> str:
    """Return in what a run's nodes differed from those it was calibrated with; empty where not."""
    return str((run.shift or {}).get("sentence", ""))


def promise_of_run(run: RunFacts) -> str:
    """Return what a run promised, to whom, and under which condition."""
    options = json.loads(run.options)
    return describe_promise(
        cast(Kind, run.promise),
        run.alpha,
        cast(CalibrationSet, run.calibration_set),
        run.adapt,
        options.get("classes"),
        options.get("group"),
    )
