"""`[conformal]`: the promise of the sets."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, model_validator

from ringfence.jobs.config.section import Fraction01, Section


class ConformalSettings(Section):
    """The promise."""

    alpha: Fraction01 = Field(
        0.1, description="Miscoverage: sets hold the true class with probability >= 1 - alpha."
    )
    rule: Literal["NodeEx", "EdgeEx"] = Field(
        "NodeEx",
        description="NodeEx where nodes arrive in an exchangeable order, EdgeEx where edges do.",
    )
    score: Literal["APS", "TPS"] = Field("APS", description="Conformity score.")
    evaluate: Literal["arrival", "delay", "date"] = Field(
        "arrival",
        description="When a node gets its set: in the first run that finds it, once it is "
        "`delay_hours` old (so that a neighbourhood can form), or at `date`. Fixed when a model is "
        "trained: a time chosen after seeing sets would void the promise.",
    )
    delay_hours: float = Field(0.0, ge=0, description="Age at which `delay` evaluates a node.")
    date: datetime | None = Field(
        None, description="Moment of `date`, with time zone; nodes created later: on arrival."
    )
    drift_half_life_days: float | None = Field(
        None,
        gt=0,
        description="Let calibration nodes count less with age, half after this many days (Barber "
        "et al. 2023). Choose it before looking at scores; the guarantee then loses a bounded "
        "amount, and runs say so. Without it all ages count alike.",
    )
    edge_test_weight: Literal["one", "exact"] = Field(
        "one",
        description="EdgeEx only: weight of the evaluated node, the paper's 1 (safe) or its own "
        "1/degree (what the lemma proves).",
    )
    nonempty: bool = Field(
        False,
        description="Put the likeliest class into a set that would be empty, and say so. Can only "
        "raise coverage.",
    )

    @model_validator(mode="after")
    def _date_is_given(self) -> ConformalSettings:
        if self.evaluate == "date" and (self.date is None or self.date.tzinfo is None):
            raise ValueError('evaluate = "date" needs date with a time zone, 2027-01-31T00:00:00Z')
        return self
