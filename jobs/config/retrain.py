"""`[retrain]`: when a scheduled training is needed, and what becomes of the new version."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ringfence.jobs.config.alarms import Rule
from ringfence.jobs.config.section import Section


class RetrainSettings(Section):
    """When the job `[schedule] retrain` trains a new version, and whether that one is promoted."""

    when: list[Literal["time", "alarm", "classes"]] = Field(
        ["time"],
        min_length=1,
        description="What makes a training due, each time `[schedule] retrain` asks: `time` "
        "always; `alarm` one of `alarms` fires since the newest version's training began; "
        "`classes` at least `new_classes` classes of evaluated nodes became known since then.",
    )
    alarms: list[Rule] = Field(
        ["drift"], description="Rules whose firing alarm makes a training due."
    )
    new_classes: int = Field(500, ge=1, description="For `classes`.")
    promote: Literal["manual", "if better"] = Field(
        "manual",
        description="`if better`: the new version is taken into use if it is better than the one "
        "in use on the holdout in `[model] compare_by`, beyond the difference's 95 % interval, and "
        "finds no class with at least 10 nodes there less often by more than `worst_class`. "
        "Otherwise it stays a candidate.",
    )
    worst_class: float = Field(
        0.05, ge=0, le=1, description="By how much the recall of a class may be lower."
    )
