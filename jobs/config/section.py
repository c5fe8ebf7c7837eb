"""What every table of `ringfence.toml` is: typed, closed, frozen."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

Fraction01 = Annotated[float, Field(gt=0, lt=1)]
"""A share that is neither nothing nor everything."""
MAX_COUNT = 1_000_000_000
"""Of rows, nodes, megabytes: more than one machine has."""
HUNDRED_YEARS = {
    "days": 36_500, "hours": 876_000, "minutes": 52_560_000, "seconds": 3_153_600_000
}  # fmt: skip
"""By unit. As nanoseconds after today such a time still fits a column of 64 bits."""
ANY_INTEGER = frozenset({"seed"})
MAX_STORED_INTEGER = 2**63 - 1


class Section(BaseModel):
    """A table of the file: unknown keys are errors, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="after")
    @classmethod
    def _has_room(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse a number that no clock, column or array has room for."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        limit = largest_number(str(info.field_name))
        if number and not -limit <= value <= limit:
            raise ValueError(f"input should be at most {limit:,}")
        return value


def largest_number(setting: str) -> int:
    """Return the largest number that a setting may have: of times a hundred years.

    >>> largest_number("keep_days"), largest_number("read_rows")
    (36500, 1000000000)
    """
    if setting in ANY_INTEGER:
        return MAX_STORED_INTEGER
    unit = setting.rpartition("_")[2]
    return HUNDRED_YEARS.get(unit, MAX_COUNT)
