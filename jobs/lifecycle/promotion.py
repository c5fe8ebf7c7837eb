"""`ringfence promote` and `ringfence rollback`: which model version is in use, from now on.

The change is one SQL transaction under the write session: a run is decided by the version before it
or by the one after it, and a crash leaves one of the two. Nodes that were evaluated stay evaluated:
no version gives a node a second set.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError, LeaseHeld, ModelError
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.audit_chain.preflight_check import (
    require_sound_model,
    require_sound_record,
)
from ringfence.connector.store.lifecycle.activations import (
    Activation,
    How,
    record_activation,
    version_before,
)
from ringfence.connector.store.models import class_names, manifest_of
from ringfence.jobs.inference.cache_state import remove_caches
from ringfence.jobs.lifecycle.mlflow_registry import set_aliases
from ringfence.jobs.lifecycle.versions import choose_version
from ringfence.jobs.project import model_files
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.promise import describe_changes, terms_in_force
from ringfence.jobs.project.promise_check import require_calibration
from ringfence.jobs.project.sealed_basis import activations_on_record, on_record
from ringfence.jobs.project.session import Session, write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.corrections import correct_all
from ringfence.jobs.scoring.due import recorded_policy

WAIT_SECONDS = 120.0
ASK_AGAIN_SECONDS = 0.5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PromotionReport:
    """What a promotion or a rollback did.

    `changed` is false where the version was in use already; `differences` says in what the version
    is not like the one before it, `corrected` counts its calibration nodes that now have another
    class than at its training. `tracking` says what MLflow's registry was told, if there is one.
    """

    version: str
    was: str | None
    how: str
    reason: str
    changed: bool
    differences: tuple[str, ...]
    corrected: int
    tracking: str | None = None


def run_promotion(
    workspace: Workspace,
    version: str,
    reason: str,
    progress: Progress = no_progress,
    wait_seconds: float = WAIT_SECONDS,
) -> PromotionReport:
    """Take `version`, or the only one whose name begins so, into use."""
    _require_reason(reason, "promote VERSION")

    def promote(session: Session) -> PromotionReport:
        return _take_into_use(
            workspace, session, find_version(workspace, version), "promoted", reason
        )

    return _tell_registry(workspace, in_session(workspace, progress, wait_seconds, promote))


def run_rollback(
    workspace: Workspace,
    reason: str,
    progress: Progress = no_progress,
    wait_seconds: float = WAIT_SECONDS,
) -> PromotionReport:
    """Take back the newest promotion that was not taken back yet."""
    _require_reason(reason, "rollback")

    def roll_back(session: Session) -> PromotionReport:
        before = version_before(activations_on_record(workspace))
        if before is None:
            raise ModelError(
                found="no model version was in use before the active one",
                needed="a promotion that can be taken back",
                next_step="ringfence models",
            )
        return _take_into_use(workspace, session, before, "rolled back", reason)

    return _tell_registry(workspace, in_session(workspace, progress, wait_seconds, roll_back))


def _tell_registry(workspace: Workspace, done: PromotionReport) -> PromotionReport:
    """Set MLflow's aliases once the change is on record and the lease is given back."""
    return replace(done, tracking=set_aliases(workspace)) if done.changed else done


def find_version(workspace: Workspace, text: str) -> str:
    """Return the version that a person named, whole or by its beginning."""
    return choose_version(list(class_names(workspace.store, workspace.project)), text)


def _require_reason(reason: str, verb: str) -> None:
    if not reason.strip():
        raise ConfigError(
            found="no reason was given",
            needed="a reason for the record",
            next_step=f'ringfence {verb} --reason "better on the holdout"',
        )


def in_session(
    workspace: Workspace,
    progress: Progress,
    wait_seconds: float,
    work: Callable[[Session], T],
) -> T:
    """Do the work in a write session; a schedule's run that is at work is waited for."""
    end = time.monotonic() + wait_seconds
    while True:
        try:
            with write_session(workspace, progress) as session:
                return work(session)
        except LeaseHeld:
            if time.monotonic() > end:
                raise
            progress("waiting for another process", 0, 0)
            time.sleep(ASK_AGAIN_SECONDS)


def _take_into_use(
    workspace: Workspace, session: Session, version: str, how: How, reason: str
) -> PromotionReport:
    require_sound_record(session.writer)
    active = activations_on_record(workspace)[-1]
    if active.version == version:
        return PromotionReport(version, active.was, active.how, active.reason, False, (), 0)
    manifest = require_usable(workspace, session, version)
    before = json.loads(manifest_of(workspace.store, workspace.project, active.version))
    corrected = correct_all(workspace, session.writer, version)
    with on_record(workspace) as (_, basis):
        basis.require_active(active.version)
        basis.require_labels()
        basis.require_shadow_counts(version)
    fault_points.reach("before promotion")
    done: Activation = record_activation(session.writer, version, how, reason)
    fault_points.reach("promoted")
    remove_caches(workspace.tables, version)
    remove_caches(workspace.shadow_tables)
    differences = (
        *describe_inputs(before, manifest),
        *describe_changes(
            workspace.settings.conformal,
            before,
            terms_in_force(workspace.settings.conformal, manifest),
        ),
    )
    return PromotionReport(version, done.was, how, reason, True, differences, corrected)


def require_usable(workspace: Workspace, session: Session, version: str) -> Mapping[str, Any]:
    """Return the manifest of a version that the next run could use; raise where it could not.

    Its record must be as it was sealed, its weights the file that was trained, its seed key must
    be here, and the configuration must not require another mapping, time of evaluation or
    calibration.
    """
    require_sound_model(session.writer, version)
    recorded = manifest_of(workspace.store, workspace.project, version)
    require_mapping(workspace.mapping, recorded)
    model = model_files.load_model(workspace.models, recorded)
    node_seed(workspace.settings, model.manifest)
    conformal = workspace.settings.conformal
    recorded_policy(conformal, model)
    require_calibration(conformal, terms_in_force(conformal, model.manifest))
    return model.manifest


def describe_inputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say in which classes and columns a version is not like another one.

    >>> describe_inputs({"classes": ["a", "b"]}, {"classes": ["a", "c"]})
    ['classes: c came, b went']
    """
    differences = []
    came = [name for name in after["classes"] if name not in before["classes"]]
    went = [name for name in before["classes"] if name not in after["classes"]]
    if came or went:
        parts = ([f"{', '.join(came)} came"] if came else []) + (
            [f"{', '.join(went)} went"] if went else []
        )
        differences.append(f"classes: {', '.join(parts)}")
    parts_before = before.get("mapping", {}).get("parts", {})
    parts_after = after.get("mapping", {}).get("parts", {})
    differences += [
        f"[graph] {name}: {json.dumps(parts_after[name])}, before "
        f"{json.dumps(parts_before.get(name))}"
        for name in parts_after
        if parts_before and parts_before.get(name) != parts_after[name]
    ]
    return differences
