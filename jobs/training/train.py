"""`ringfence train`: split the labelled nodes, train as the paper does, set calibration aside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import numpy as np

from ringfence import __version__
from ringfence.connector.errors import ModelError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.mirror import Mirror
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.records import Member
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.lifecycle.activations import State
from ringfence.connector.store.lifecycle.comparisons import StoredComparison
from ringfence.connector.store.models import record_model
from ringfence.connector.store.writer import Writer
from ringfence.jobs.config.settings import ModelSettings, Settings
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.inference.cache_state import remove_caches
from ringfence.jobs.lifecycle.comparison import HoldoutReport, holdout_report
from ringfence.jobs.lifecycle.graph_benefit import GraphBenefit
from ringfence.jobs.lifecycle.mlflow_registry import set_aliases
from ringfence.jobs.lifecycle.mlflow_run import track_training
from ringfence.jobs.lifecycle.retrain_need import BEGAN_KEY
from ringfence.jobs.project import model_files
from ringfence.jobs.project.ancestors import WARM_START_KEY
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.holdout import HOLDOUT_KEY, configured_holdout
from ringfence.jobs.project.mapping_digest import bind_mapping
from ringfence.jobs.project.model_files import (
    GRAPH_CHECK_KEY,
    SCORER_CHOICE_KEY,
    STOPPED_BY_KEY,
)
from ringfence.jobs.project.node_seed import SEED_KEY, key_for_training
from ringfence.jobs.project.promise import PROMISE_KEY, PromiseTerms, describe_changes
from ringfence.jobs.project.sealed_basis import active_on_record
from ringfence.jobs.project.seed_key import SeedKey
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.signing_keys import make_first_key
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.calibration_set import SHARES_KEY
from ringfence.jobs.scoring.due import policy_of
from ringfence.jobs.scoring.evaluation_flags import mark_evaluated
from ringfence.jobs.telemetry.traced_run import note_step, traced
from ringfence.jobs.training.chosen_fit import choose_scorer
from ringfence.jobs.training.class_promise import describe_guarantee, plan_promise
from ringfence.jobs.training.comparison import compare_and_record
from ringfence.jobs.training.fit import NaiveCalibration, calibrate_naively
from ringfence.jobs.training.fitted import FittedNetwork
from ringfence.jobs.training.graph_check import check_graph_benefit
from ringfence.jobs.training.immature_runs import calibrate_settled
from ringfence.jobs.training.score_choice import (
    TrainedPromise,
    check_promise,
    describe_trained_promise,
    settle_promise,
)
from ringfence.jobs.training.split import (
    DrawnHoldout,
    Split,
    count_labelled,
    draw_holdout,
    list_members,
    recorded_shares,
    same_validation,
    split_labelled,
    stop_by_latest,
)
from ringfence.jobs.training.warm_start import plan_warm_start
from ringfence.models.networks.registry import least_scorer
from ringfence.models.training.loop import Epoch

Compared = tuple[HoldoutReport | None, str]
"""A comparison, or why there is none."""


@dataclass(frozen=True, slots=True)
class TrainReport:
    """What `ringfence train` did.

    `graph` says what the relationships bring, `promise` by which rule and score sets will be made,
    `differences` in what that is not as with the model in use; `announced` was said before
    training: classes with too few labels, …
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
    graph: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    announced: tuple[str, ...] = ()
    state: str = "active"
    comparison: HoldoutReport | None = None
    not_compared: str = ""
    tracking: str | None = None


@traced("train")
def run_training(
    workspace: Workspace,
    progress: Progress = no_progress,
    on_epoch: Callable[[Epoch], None] | None = None,
    announce: Callable[[str], None] = lambda _sentence: None,
    promote: str | None = None,
    new_seed_key: bool = False,
) -> TrainReport:
    """Read the whole graph, train a new model version and record it.

    It is a candidate, unless it is the first one, or there is a reason to `promote` it at once.
    `announce` is called with what a person should know of the promise before training.
    `new_seed_key` gives the version another seed key than those before it.
    """
    check_promise(workspace)
    engine_of(workspace.settings.engine).require_network(least_scorer(workspace.settings.network))
    with write_session(workspace, progress) as session:
        before = active_on_record(workspace)
        began = database_time(workspace)
        key, made = key_for_training(workspace, new_seed_key)
        mirror = read_graph(workspace, session.writer, progress, whole=True).mirror
        mark_evaluated(workspace, mirror, session.writer)
        note_step("read")
        fresh = train_on(
            workspace, mirror, on_epoch, announce, {BEGAN_KEY: began}, progress, key, made
        )
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
        key = make_first_key(self.workspace)
        state = record_model(
            writer, self.version, self.manifest, digest, self.members, promote, key
        )
        self.workspace.settle_signing_key()
        if state == "active":
            remove_caches(self.workspace.tables, self.version)
        return state

    def report(self, state: str, before: str | None, compared: Compared) -> TrainReport:
        """Return what the training did, and track it; `before` is the active model's manifest."""
        tracked = track_training(self.workspace, self.version, json.loads(self.manifest))
        sentences = [] if tracked is None else [tracked.sentence]
        if tracked is not None and tracked.run_id is not None:
            sentences.append(set_aliases(self.workspace) or "")
        changes = (
            describe_changes(self.workspace.settings.conformal, json.loads(before), self.terms)
            if before
            else ()
        )
        return replace(
            self.trained,
            state=state,
            tracking="; ".join(filter(None, sentences)) or None,
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
    more_facts: JsonObject,
    progress: Progress,
    seed_key: SeedKey,
    key_sentence: str = "",
) -> FreshModel:
    """Split the labelled nodes, fit the network and save its files; nothing goes on record.

    `key_sentence` is announced: that the seed key was made now.
    """
    settings = workspace.settings
    drawn = draw_holdout(mirror, configured_holdout(settings))
    plan = plan_promise(settings, count_labelled(mirror, drawn.rows))
    said = (*plan.sentences, drawn.sentence, key_sentence)
    announced = tuple(sentence for sentence in said if sentence)
    for sentence in announced:
        announce(sentence)
    split = split_labelled(mirror, settings.model, plan.calibration_shares, drawn.rows)
    split, unsettled = calibrate_settled(workspace, mirror, split)
    start, split = plan_warm_start(workspace, mirror, split)
    drawn_split, split = split, stop_by_latest(mirror, split)
    chosen, scorers = choose_scorer(
        workspace, mirror, split, on_epoch, plan.class_weights, progress, start
    )
    fitted, workspace = chosen.fitted, chosen.workspace
    settings = workspace.settings
    note_step("fit")
    naive = calibrate_naively(workspace, mirror, split, fitted, seed_key.value)
    benefit = _check_graph(settings.model, mirror.size, split, fitted, on_epoch, progress)
    version = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{fitted.digest()[:8]}"
    promise = settle_promise(workspace, mirror, split, fitted, seed_key.value)
    facts = _manifest_facts(settings, mirror, split, fitted, promise, naive)
    facts |= {"calibration_shares": dict(plan.calibration_shares), "training": chosen.facts()}
    facts |= {} if scorers is None else {SCORER_CHOICE_KEY: scorers.facts()}
    facts |= {} if benefit is None else {GRAPH_CHECK_KEY: benefit.as_json()}
    facts |= {STOPPED_BY_KEY: "drawn" if same_validation(drawn_split, split) else "latest"}
    facts |= {SHARES_KEY: recorded_shares(settings.model, plan.calibration_shares)}
    facts |= {} if fitted.start is None else {WARM_START_KEY: fitted.start.facts()}
    facts |= {SEED_KEY: seed_key.digest}
    facts |= {HOLDOUT_KEY: drawn.holdout.as_manifest() if drawn.holdout else None}
    manifest = dumps(
        model_files.save_model(
            workspace.models,
            version,
            fitted.weights,
            fitted.inputs.scaling,
            naive.scores,
            facts | more_facts,
        )
    )
    report = replace(
        _report(settings, version, mirror.size, split, fitted, naive),
        promise=(
            *describe_trained_promise(promise, mirror.edge_count, len(split.calibration)),
            *chosen.describe(),
            *([] if scorers is None else [scorers.describe()]),
        ),
        graph=() if benefit is None else tuple(benefit.sentences()),
        announced=(*announced, *([unsettled] if unsettled else [])),
    )
    members = list_members(mirror, split)
    return FreshModel(version, workspace, manifest, members, drawn, report, promise.terms)


def _check_graph(
    settings: ModelSettings,
    mirror_size: int,
    split: Split,
    fitted: FittedNetwork,
    on_epoch: Callable[[Epoch], None] | None,
    progress: Progress,
) -> GraphBenefit | None:
    """What the relationships bring; None where the settings leave the check out."""
    if not settings.graph_check:
        return None
    benefit = check_graph_benefit(mirror_size, split, fitted, on_epoch, progress)
    note_step("graph check")
    return benefit


def compare_fresh(
    fresh: FreshModel, before: str | None, compare: Callable[[str | None], StoredComparison]
) -> Compared:
    """Compare the new version with the one in use; if that fails, the version is kept."""
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
) -> JsonObject:
    """What a manifest holds besides the hash of its weights: all that a later run must know."""
    policy = policy_of(settings.conformal)
    return {
        **fitted.manifest_facts(),
        "in_features": mirror.width,
        "mapping": bind_mapping(settings.mapping()),
        "classes": list(split.classes),
        "seed": settings.model.seed,
        PROMISE_KEY: promise.terms.as_manifest(),
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
            "validation_accuracy": fitted.validation_accuracy,
            "calibration_accuracy": naive.accuracy,
        },
        "data": _data_facts(mirror, split),
    }


def _data_facts(mirror: Mirror, split: Split) -> JsonObject:
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


def _report(
    settings: Settings,
    version: str,
    nodes: int,
    split: Split,
    fitted: FittedNetwork,
    naive: NaiveCalibration,
) -> TrainReport:
    return TrainReport(
        version=version,
        network=str(fitted.manifest_facts()["network"]),
        classes=split.classes,
        nodes=nodes,
        train=len(split.train),
        validation=len(split.validation),
        calibration=len(split.calibration),
        holdout=len(split.holdout),
        epochs=fitted.trained.epochs,
        validation_accuracy=fitted.validation_accuracy,
        calibration_accuracy=naive.accuracy,
        guarantee=describe_guarantee(settings.conformal, split),
    )
