"""A model version on the graph as it is now: its terms, calibration nodes and levels.

Runs, shadow sets, `ringfence rescore`, comparisons of versions, explanations and what `ringfence
advise` measures all evaluate nodes through this object. So the same version at the same levels on
the same graph gives the same p-values and sets in all of them, bit by bit.

    version = calibrate_version(workspace, model, mirror)                  # as the next run
    version = calibrate_version(workspace, model, mirror, at_alpha=True)   # without adaptive levels
    evaluate_nodes(version, rows).result.sets
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.mirror import Mirror
from ringfence.connector.records import Member
from ringfence.connector.store.audit_chain.basis_check import Basis
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.store.models import find_active_manifest
from ringfence.jobs.config.conformal import terms_of
from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.inference import inference_graph
from ringfence.jobs.inference.network_packages import require_network_packages
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.promise import PromiseTerms, terms_in_force
from ringfence.jobs.project.promise_check import require_promise
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.calibration_set import (
    CalibrationSet,
    read_calibration_set,
)
from ringfence.jobs.scoring.levels import RunLevels, levels_of_run
from ringfence.jobs.scoring.scored_rows import ScoredRows, score_rows
from ringfence.models.conformal.evaluate import Promise
from ringfence.models.inference import InferenceGraph
from ringfence.models.promise.base import name_some
from ringfence.models.promise.class_alphas import class_alphas


@dataclass(frozen=True, slots=True)
class VersionOnGraph:
    """A model version, ready to evaluate nodes of the mirror.

    graph: the mirror's relationships as the networks' kernels take them.
    terms: rule, score, promise and calibration set in force.
    training_members: calibration nodes of the training, with the classes that count now.
    calibration: the calibration nodes.
    levels: adaptive levels; None where p-values are compared with the alphas themselves.
    tables: folder of what the forward pass keeps between two passes.
    """

    workspace: Workspace
    model: SavedModel
    mirror: Mirror
    graph: InferenceGraph
    terms: PromiseTerms
    training_members: tuple[Member, ...]
    calibration: CalibrationSet
    levels: RunLevels | None
    tables: Path

    @property
    def settings(self) -> ConformalSettings:
        """The table `[conformal]`."""
        return self.workspace.settings.conformal

    @property
    def node_seed(self) -> int:
        """What the random numbers of nodes are keyed with in this version's runs."""
        return node_seed(self.workspace.settings, self.model.manifest)

    @property
    def promise(self) -> Promise:
        """Rule, alphas and levels, as `models.conformal` takes them."""
        settings, terms = self.settings, self.terms
        return Promise(
            settings.alphas,
            terms.rule_kind,
            self._alpha_table() if self.levels is None else self.levels.used,
            exact_test_weight=settings.edge_test_weight == "exact",
            band_nodes=terms.calibration_kind.band_nodes,
            shift=terms.weights == "shift",
        )

    @property
    def listed_classes(self) -> tuple[int, ...]:
        """The class that each list is about, by its place in the model's order."""
        classes = self.model.classes
        return tuple(
            classes.index(terms.class_) for terms in terms_of(self.workspace.settings.lists)
        )

    def score_rows(self, rows: NDArray[np.int64]) -> ScoredRows:
        """Score all classes at some rows of the mirror."""
        return score_rows(
            self.workspace,
            self.model,
            self.mirror,
            self.graph,
            rows,
            self.terms,
            self.tables,
            self.listed_classes,
        )

    def _alpha_table(self) -> NDArray[np.float64]:
        """The configured alphas [alphas, classes]; single classes may have one of their own."""
        classes, settings = self.model.classes, self.settings
        return np.stack([class_alphas(classes, a, settings.classes) for a in settings.alphas])


def calibrate_version(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    *,
    graph: InferenceGraph | None = None,
    terms: PromiseTerms | None = None,
    at_alpha: bool = False,
    consulted: frozenset[int] | None = None,
    tables: Path | None = None,
) -> VersionOnGraph:
    """Return a version on the mirror's graph, calibrated as the next run would be.

    Args:
        workspace: an open project.
        model: the version.
        mirror: the graph.
        graph: `inference_graph` of the same mirror, where the caller has made it already.
        terms: those of a promise that is thought of; those in force where none are given.
        at_alpha: compare p-values with the alphas, also where the level adapts.
        consulted: runs that helped to choose the version; those on record where none are given.
        tables: folder of what the forward pass keeps; that of the runs where none is given.
    """
    terms = terms or terms_in_force(workspace.settings.conformal, model.manifest)
    base = calibration_members(workspace.store, workspace.project, model.version, model.classes)
    calibration = read_calibration_set(workspace, model, terms, base, consulted)
    return VersionOnGraph(
        workspace,
        model,
        mirror,
        inference_graph(mirror, workspace.mapping) if graph is None else graph,
        terms,
        tuple(base),
        calibration,
        None if at_alpha else levels_of_run(workspace, model, terms, calibration),
        workspace.tables if tables is None else tables,
    )


def calibrate_on_record(
    held: Workspace, basis: Basis, model: SavedModel, mirror: Mirror, **options: Any
) -> VersionOnGraph:
    """Return a version calibrated from a snapshot of SQL, whose rows are compared with their seals.

    A difference raises `StoreError` before anything rests on it.

    Args:
        held: the project reading from the snapshot, as `on_record` yields it.
        basis: of the same snapshot.
        model: the version.
        mirror: the graph.
        options: those of `calibrate_version`.
    """
    basis.require_runs()
    basis.require_labels()
    basis.require_model(model.version)
    basis.require_consulted()
    version = calibrate_version(held, model, mirror, **options)
    calibration = version.calibration
    joining = {node.evaluated_in for node in calibration.joining}
    basis.require_predictions({*calibration.answered, *joining})
    return version


def require_active_network(workspace: Workspace) -> None:
    """Refuse a version in use whose network can't be run by this installation.

    It is asked before the lease is taken; without a version in use nothing is refused here.
    """
    manifest = find_active_manifest(workspace.store, workspace.project)
    if manifest is not None:
        require_network_packages(json.loads(manifest)["network"])


def require_runnable(workspace: Workspace, model: SavedModel, mirror: Mirror) -> None:
    """Refuse a model of other features, a lost seed key, and a promise that can't be kept."""
    node_seed(workspace.settings, model.manifest)
    if mirror.width != model.manifest["in_features"]:
        raise ModelError(
            found=f"nodes have {mirror.width} features, the model {model.version} was trained "
            f"with {model.manifest['in_features']}",
            needed="the same features",
            next_step="check [graph] features, or: ringfence train",
        )
    require_listed_classes(workspace, model)
    settings = workspace.settings.conformal
    terms = terms_in_force(settings, model.manifest)
    require_promise(settings, terms, model.manifest, workspace.mapping.class_property)


def require_listed_classes(workspace: Workspace, model: SavedModel) -> None:
    """Refuse lists about classes that the version does not know."""
    for terms in terms_of(workspace.settings.lists):
        if terms.class_ not in model.classes:
            raise ConfigError(
                found=f"the list {terms.name!r} is about the class {terms.class_!r}, which the "
                f"model {model.version} does not know",
                needed=f"one of its classes: {name_some(model.classes)}",
                next_step="correct [[lists]], then: ringfence score",
            )
