"""Settings whose value is the name of a kind: a score, rule, promise, calibration set, engine.

The allowed names are those of the registry, read when a value is checked: there is no second list.
A wrong name gets the same error message as a `Literal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema


@dataclass(frozen=True, slots=True)
class RegisteredNames:
    """Values of a setting: the names that `names` returns."""

    names: Callable[[], Iterable[str]]

    def check(self, value: Any) -> str:
        """Return the value; refuse one that is no registered name."""
        known = list(self.names())
        if isinstance(value, str) and value in known:
            return value
        quoted = [f"'{name}'" for name in known]
        expected = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)
        raise PydanticKnownError("literal_error", {"expected": expected})

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)


def _scores() -> list[str]:
    from ringfence.models.scores.registry import SCORES

    return [CHOSEN_AT_TRAINING, *SCORES]


def _rules() -> list[str]:
    from ringfence.models.rules.registry import RULES

    return list(RULES)


def _promises() -> list[str]:
    from ringfence.models.promise.registry import PROMISES

    return list(PROMISES)


def _calibration_sets() -> list[str]:
    from ringfence.models.calibration.sets.registry import CALIBRATION_SETS

    return list(CALIBRATION_SETS)


def _scopes() -> list[str]:
    from ringfence.models.selection.registry import SCOPES

    return list(SCOPES)


CHOSEN_AT_TRAINING = "auto"
"""In place of a score: the training chooses one (`models.scores.choice`)."""

ScoreName = Annotated[str, RegisteredNames(_scores)]
RuleName = Annotated[str, RegisteredNames(_rules)]
PromiseName = Annotated[str, RegisteredNames(_promises)]
CalibrationSetName = Annotated[str, RegisteredNames(_calibration_sets)]
ScopeName = Annotated[str, RegisteredNames(_scopes)]
