"""`ringfence models`: every version with its state, its data, how good it is, and what it did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from ringfence.connector.errors import ModelError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import StoredCoverage
from ringfence.connector.store import migrate
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.activations import Activation
from ringfence.connector.store.lifecycle.comparisons import StoredComparison, comparisons_of
from ringfence.connector.store.models import class_names
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import ModelRecord, as_row
from ringfence.connector.times import format_time
from ringfence.jobs.lifecycle.comparison import (
    HoldoutReport,
    holdout_metric,
    holdout_report,
    warnings_of,
)
from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary, read_shadows


@dataclass(frozen=True, slots=True)
class VersionSummary:
    """One model version at a glance.

    `coverage` is over the nodes of known class that it evaluated, at its runs' first alpha, and
    `verdict` its worst verdict; both None before an audit. `accuracy` is that on calibration nodes
    at the training, None where an older version did not keep it; `on_holdout` says how it did in
    its newest comparison, empty if it was never compared. `shadow` is what its shadow sets show,
    None if it made none.
    """

    version: str
    state: str
    trained: str
    network: str
    classes: int
    train: int
    validation: int
    calibration: int
    holdout: int
    accuracy: float | None
    on_holdout: str
    runs: int
    evaluated: int
    known: int
    coverage: float | None
    verdict: str | None
    in_use_since: str | None
    reason: str | None
    shadow: ShadowSummary | None = None

    def as_json(self) -> JsonObject:
        """Return the values under the keys of `ringfence models --json`."""
        shadow = None if self.shadow is None else self.shadow.as_json()
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "shadow": shadow
        }


@dataclass(frozen=True, slots=True)
class ModelVersions:
    """A project's model versions, oldest first, and every change of the one in use.

    `warnings` say what the version in use, or the newest candidate, does not beat.
    """

    project: str
    active: str | None
    versions: tuple[VersionSummary, ...]
    activations: tuple[Activation, ...]
    warnings: tuple[str, ...] = ()

    def as_json(self) -> JsonObject:
        """Return what `ringfence models --json` prints."""
        return {
            "project": self.project,
            "active": self.active,
            "versions": [version.as_json() for version in self.versions],
            "warnings": list(self.warnings),
            "activations": [
                as_row(activation) | {"at": format_time(activation.at_ns)}
                for activation in self.activations
            ],
        }


def read_versions(store: Store, project: str) -> ModelVersions:
    """Return the model versions of a project, only from the audit store."""
    migrate.require_sql(store)
    queries = ProjectQueries(store, project)
    activations, totals, done = queries.activations(), queries.totals(), queries.runs_by_model()
    compared, shadows = comparisons_of(store, project), read_shadows(store, project)
    versions = tuple(
        replace(
            summarise(model, activations, totals, done.get(model.version, (0, 0)), compared),
            shadow=shadows.get(model.version),
        )
        for model in queries.models()
    )
    active = activations[-1].version if activations else None
    warnings = warnings_of(compared, [(version.version, version.state) for version in versions])
    return ModelVersions(project, active, versions, tuple(activations), tuple(warnings))


def choose_version(versions: list[str], text: str) -> str:
    """Return the version of this name, or the only one that begins so, or that ends after a dash.

    Pages show the end of a name alone.

    >>> choose_version(["20260101-ab", "20260102-cd"], "20260102")
    '20260102-cd'
    >>> choose_version(["20260101-ab", "20260102-cd"], "ab")
    '20260101-ab'
    """
    fitting = [
        version for version in versions if version.startswith(text) or version.endswith(f"-{text}")
    ]
    if text in versions:
        return text
    if len(fitting) == 1 and text:
        return fitting[0]
    known = ", ".join(fitting if text and fitting else versions) or "none"
    raise ModelError(
        found=f"{len(fitting) if text else 0} model versions begin with {text!r}, or end with it",
        needed=f"one of: {known}",
        next_step="ringfence models",
    )


def stored_report(
    store: Store, project: str, version: str, against: str | None = None
) -> HoldoutReport:
    """Return the newest comparison on record of a version, or of two versions."""
    migrate.require_sql(store)
    versions = list(class_names(store, project))
    wanted = {choose_version(versions, name) for name in (version, against) if name is not None}
    for comparison in reversed(comparisons_of(store, project)):
        if wanted <= {comparison.version, comparison.against}:
            return holdout_report(comparison)
    raise ModelError(
        found=f"no comparison of {' and '.join(sorted(wanted))} is on record",
        needed="one that was made",
        next_step=f"ringfence models compare {version}{f' {against}' if against else ''}",
    )


def summarise(
    model: ModelRecord,
    activations: list[Activation],
    totals: list[StoredCoverage],
    done: tuple[int, int],
    compared: Sequence[StoredComparison] = (),
) -> VersionSummary:
    """Return one version at a glance."""
    counted = [total for total in totals if total.model == model.version and total.first_alpha]
    known, covered = (
        sum(total.known for total in counted),
        sum(total.covered for total in counted),
    )
    taken = [activation for activation in activations if activation.version == model.version]
    counts = model.counts
    return VersionSummary(
        version=model.version,
        state=model.state,
        trained=format_time(model.trained_ns),
        network=model.network,
        classes=len(model.classes),
        train=counts["train"],
        validation=counts["validation"],
        calibration=counts["calibration"],
        holdout=counts.get("holdout", 0),
        accuracy=_finite(model.manifest.get("metrics", {}).get("calibration_accuracy")),
        on_holdout=holdout_metric(compared, model.version),
        runs=done[0],
        evaluated=done[1],
        known=known,
        coverage=covered / known if known else None,
        verdict=_worst(counted),
        in_use_since=format_time(taken[-1].at_ns) if model.state == "active" else None,
        reason=taken[-1].reason if taken else None,
    )


def _worst(totals: list[StoredCoverage]) -> str | None:
    order = {"broken": 2, "watch": 1}
    worst = max(totals, key=lambda total: (order.get(total.verdict, 0), total.seq), default=None)
    return None if worst is None else worst.verdict


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
