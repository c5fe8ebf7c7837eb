"""What every table of `ringfence.toml` is: typed, closed, frozen."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Fraction01 = Annotated[float, Field(gt=0, lt=1)]
"""A share that is neither nothing nor everything."""


class Section(BaseModel):
    """A table of the file: unknown keys are errors, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)
