"""`ringfence train`: split the labelled nodes, train on the paper's terms, keep what calibrates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ringfence import __version__
from ringfence.connector.errors import ModelError
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.sync import Progress as ReadProgress
from ringfence.connector.records import Member
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.lifecycle.activations import State
from ringfence.connector.store.lifecycle.comparisons import StoredComparison
from ringfence.connector.store.models import find_active_manifest, record_model
from ringfence.connector.store.writer import Writer
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.lifecycle.comparison import HoldoutReport, holdout_report
from ringfence.jobs.lifecycle.retrain_need import BEGAN_KEY
from ringfence.jobs.project import model_files
from ringfence.jobs.project.ancestors import MANIFEST_KEY as MANIFEST_KEY_WARM
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.holdout import MANIFEST_KEY as MANIFEST_KEY_HOLDOUT
from ringfence.jobs.project.holdout import configured_holdout
from ringfence.jobs.project.model_inputs import bind_mapping
from ringfence.jobs.project.promise import MANIFEST_KEY, PromiseTerms, describe_changes
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.typed_inputs import MANIFEST_KEY as MANIFEST_KEY_TYPED
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.living_set import SHARES_KEY
from ringfence.jobs.scoring.due import policy_of
from ringfence.jobs.scoring.table_state import drop_tables
from ringfence.jobs.telemetry.traced_run import note_step, traced
from ringfence.jobs.training.chosen_fit import choose_fit
from ringfence.jobs.training.class_promise import describe_guarantee, plan_promise
from ringfence.jobs.training.comparison import compare_and_record
from ringfence.jobs.training.fit import (
    FittedNetwork,
    NaiveCalibration,
    calibrate_naively,
    network_options,
)
from ringfence.jobs.training.mlflow_run import track_training
from ringfence.jobs.training.score_choice import (
    TrainedPromise,
    check_promise,
    describe_promise,
    settle_promise,
)
from ringfence.jobs.training.split import (
    DrawnHoldout,
    Split,
    count_labelled,
    draw_holdout,
    list_members,
    recorded_shares,
    split_labelled,
)
from ringfence.jobs.training.typed_fit import typed_options
from ringfence.jobs.training.unsettled import calibrate_settled
from ringfence.jobs.training.warm_start import plan_warm_start
from ringfence.models.guarantee.law import guarantee
from ringfence.models.training.loop import Epoch

Compared = tuple[HoldoutReport | None, str]
"""A comparison, or why there is none."""


@dataclass(frozen=True, slots=True)
class TrainReport:
    """What `ringfence train` did.

    `promise` says by which rule and score sets will be made, `differences` in what that is not as
    with the model in use; `announced` was said before training: classes with too few labels, …
    `comparison` is that with the model in use and the baselines; where there is none,
    `not_compared` says why.
    """

    version: str
    network: str
    classes: tuple[str, ...]
    nodes: int
    train: int
    validation: int
    calibration: int
    holdout: int
    epochs: int
    validation_accuracy: float
    calibration_accuracy: float
    guarantee: str
    promise: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    announced: tuple[str, ...] = ()
    state: str = "active"
    comparison: HoldoutReport | None = None
    not_compared: str = ""
    tracking: str | None = None


@traced("train")
def run_training(
    workspace: Workspace,
    progress: ReadProgress = lambda _what, _done, _all: None,
    on_epoch: Callable[[Epoch], None] | None = None,
    announce: Callable[[str], None] = lambda _sentence: None,
    promote: str | None = None,
) -> TrainReport:
    """Read the whole graph, train a new model version and record it.

    It is a candidate, unless it is the first one, or there is a reason to `promote` it at once.
    `announce` gets what a person should know of the promise before anything is trained.
    """
    check_promise(workspace)
    engine_of(workspace.settings.engine).require_network(workspace.settings.network)
    with write_session(workspace, progress) as session:
        before = find_active_manifest(workspace.store, workspace.project)
        began = database_time(workspace)
        mirror = read_graph(workspace, session.writer, progress, whole=True).mirror
        note_step("read")
        fresh = train_on(workspace, mirror, on_epoch, announce, {BEGAN_KEY: began}, progress)
        state = fresh.record(session.writer, promote)
        save_graph(workspace, mirror)
        note_step("record")
        compared = compare_fresh(
            fresh,
            before,
            lambda active: compare_and_record(
                workspace, session.writer, mirror, fresh.version, active, progress
            ),
        )
        note_step("compare")
    return fresh.report(state, before, compared)


@dataclass(frozen=True, slots=True)
class FreshModel:
    """A version that was trained and saved, and is not on record yet.

    `workspace` has the settings that it was trained with: a search may have chosen some.
    """

    version: str
    workspace: Workspace
    manifest: str
    members: list[Member]
    holdout: DrawnHoldout
    trained: TrainReport
    terms: PromiseTerms

    def record(self, writer: Writer, promote: str | None = None) -> State:
        """Put it on record; return its state."""
        digest = hashlib.sha256(self.manifest.encode()).hexdigest()
        state = record_model(writer, self.version, self.manifest, digest, self.members, promote)
        if state == "active":
            drop_tables(self.workspace.tables, self.version)
        return state

    def report(self, state: str, before: str | None, compared: Compared) -> TrainReport:
        """Return what the training did, and track it; `before` is the active model's manifest."""
        tracked = track_training(self.workspace, self.version, json.loads(self.manifest))
        changes = (
            describe_changes(self.workspace.settings.conformal, json.loads(before), self.terms)
            if before
            else ()
        )
        return replace(
            self.trained,
            state=state,
            tracking=None if tracked is None else tracked.sentence,
            comparison=compared[0],
            not_compared=compared[1],
            differences=tuple(changes),
        )


def database_time(workspace: Workspace) -> int:
    """Return the audit store's time: what became known after it was not trained on."""
    with workspace.store.reading() as connection:
        return workspace.store.now_ns(connection)


def train_on(
    workspace: Workspace,
    mirror: Mirror,
    on_epoch: Callable[[Epoch], None] | None,
    announce: Callable[[str], None],
    more_facts: dict[str, Any],
    progress: ReadProgress,
) -> FreshModel:
    """Split the labelled nodes, fit the network and save its files; nothing goes on record."""
    settings = workspace.settings
    drawn = draw_holdout(mirror, configured_holdout(settings))
    plan = plan_promise(settings, count_labelled(mirror, drawn.rows))
    announced = (*plan.sentences, *([drawn.sentence] if drawn.sentence else []))
    for sentence in announced:
        announce(sentence)
    split = split_labelled(mirror, settings.model, plan.calibration_shares, drawn.rows)
    split, unsettled = calibrate_settled(workspace, mirror, split)
    start, split = plan_warm_start(workspace, mirror, split)
    chosen = choose_fit(workspace, mirror, split, on_epoch, plan.class_weights, progress, start)
    fitted, workspace = chosen.fitted, chosen.workspace
    settings = workspace.settings
    note_step("fit")
    naive = calibrate_naively(workspace, mirror, split, fitted)
    version = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{fitted.digest()[:8]}"
    promise = settle_promise(workspace, mirror, split, fitted)
    facts = _manifest_facts(settings, mirror, split, fitted, promise, naive)
    facts |= {"calibration_shares": dict(plan.calibration_shares), "training": chosen.facts()}
    facts |= {SHARES_KEY: recorded_shares(settings.model, plan.calibration_shares)}
    facts |= {} if fitted.start is None else {MANIFEST_KEY_WARM: fitted.start.facts()}
    facts |= {MANIFEST_KEY_HOLDOUT: drawn.holdout and drawn.holdout.as_manifest()}
    manifest = dumps(
        model_files.save_model(
            workspace.models,
            version,
            fitted.weights,
            fitted.scaling,
            naive.scores,
            facts | more_facts,
        )
    )
    report = replace(
        _report(settings, version, mirror.size, split, fitted, naive),
        promise=(
            *describe_promise(promise, mirror.edge_count, len(split.calibration)),
            *chosen.describe(),
        ),
        announced=(*announced, *([unsettled] if unsettled else [])),
    )
    members = list_members(mirror, split)
    return FreshModel(version, workspace, manifest, members, drawn, report, promise.terms)


def compare_fresh(
    fresh: FreshModel, before: str | None, compare: Callable[[str | None], StoredComparison]
) -> Compared:
    """Compare the new version with the one in use; where that fails, the version is there still."""
    if fresh.holdout.holdout is None:
        return None, fresh.holdout.sentence or "no holdout ([model] holdout = 0)"
    active = None if before is None else str(json.loads(before)["version"])
    try:
        return holdout_report(compare(active)), ""
    except ModelError as error:
        return None, error.found


def _manifest_facts(
    settings: Settings,
    mirror: Mirror,
    split: Split,
    fitted: FittedNetwork,
    promise: TrainedPromise,
    naive: NaiveCalibration,
) -> dict[str, Any]:
    """What a manifest holds besides the hash of its weights: all that a later run must know."""
    policy = policy_of(settings.conformal)
    return {
        **_network_facts(settings, fitted),
        "in_features": mirror.width,
        "mapping": bind_mapping(settings.mapping()),
        "classes": list(split.classes),
        "seed": settings.model.seed,
        MANIFEST_KEY: promise.terms.as_manifest(),
        "score_choice": promise.choice_record(),
        "evaluation": {
            "digest": policy.digest(),
            "words": policy.describe(),
            "kind": policy.kind,
            "ns": policy.ns,
        },
        "software": __version__,
        "recipe": asdict(fitted.trained.recipe),
        "curves": asdict(fitted.trained.curves),
        "best_epoch": fitted.trained.best_epoch,
        "counts": {role: len(rows) for role, rows in split.roles.items()},
        "metrics": {
            "validation_accuracy": fitted.trained.validation_accuracy,
            "calibration_accuracy": naive.accuracy,
        },
        "data": _data_facts(mirror, split),
    }


def _data_facts(mirror: Mirror, split: Split) -> dict[str, Any]:
    """What a model was trained on: the graph's size, the time span of the labelled nodes."""
    labelled = np.concatenate(list(split.roles.values()))
    times = mirror.created_ns[labelled]
    counts = np.bincount(split.class_indices[labelled], minlength=len(split.classes))
    return {
        "nodes": mirror.node_count,
        "relationships": mirror.edge_count,
        "first_ns": int(times.min()),
        "last_ns": int(times.max()),
        "classes": dict(zip(split.classes, counts.tolist(), strict=True)),
    }


def _network_facts(settings: Settings, fitted: FittedNetwork) -> dict[str, Any]:
    """The network's name and options; with several labels their schema and encoders too."""
    if fitted.typed is None:
        return {"network": settings.model.network, "options": network_options(settings.model)}
    return {
        "network": settings.model.typed_network,
        "options": typed_options(settings.model),
        MANIFEST_KEY_TYPED: fitted.typed.facts(),
    }


def _report(
    settings: Settings,
    version: str,
    nodes: int,
    split: Split,
    fitted: FittedNetwork,
    naive: NaiveCalibration,
) -> TrainReport:
    promise = guarantee(len(split.calibration), settings.conformal.first_alpha).sentence
    if settings.conformal.promise == "class":
        promise = describe_guarantee(settings.conformal, split)
    return TrainReport(
        version=version,
        network=_network_facts(settings, fitted)["network"],
        classes=split.classes,
        nodes=nodes,
        train=len(split.train),
        validation=len(split.validation),
        calibration=len(split.calibration),
        holdout=len(split.holdout),
        epochs=fitted.trained.epochs,
        validation_accuracy=fitted.trained.validation_accuracy,
        calibration_accuracy=naive.accuracy,
        guarantee=promise,
    )
