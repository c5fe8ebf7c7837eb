"""A row of the table `run` against the entry that decided it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringfence.connector.records import NO_OPTIONS
from ringfence.connector.store.audit_chain.same_value import is_same

RUN_DEFAULTS: Mapping[str, Any] = {
    "options": NO_OPTIONS, "alphas": None, "lowest_level": None, "n_thresholds": 1,
    "promise": "marginal", "calibration_set": "frozen", "adapt": False,
    "levels": None, "weights": "none", "shift": None, "mean_size_naive": None,
    "lists": None,
}  # fmt: skip
"""What columns hold that runs of older versions neither had nor sealed, once they are migrated.

Their column `level` holds their alpha."""


def changed_run_columns(row: Mapping[str, Any], body: Mapping[str, Any]) -> list[str]:
    """Return the columns of a run that are not as its entry has them.

    Args:
        row: the columns of the table `run`, JSON as text.
        body: of the entry `decided`. Those of older versions seal no token.
    """
    decided = body["run"]
    sealed = {**RUN_DEFAULTS, "level": decided["alpha"], **decided}
    sealed.pop("timings", None)
    if "token" in body:
        sealed["token"] = body["token"]
    return [name for name, value in sealed.items() if not is_same(row[name], value)]
