"""The cost of a promise to miss at most a share of a class, to help choose that share.

The rates are measured on validation nodes, on the graph as it is now. Calibration nodes are left
alone: a share that is chosen by looking at them would no longer be promised by them. Only how many
of them the class has in the next run counts, since that decides whether a promise can be kept at
all. Validation nodes decided when training stopped, so rates may be a little better there than on
new nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.mirror import find_recorded
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.models import active_manifest, members
from ringfence.jobs.config.names import CHOSEN_AT_TRAINING
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms, default_score, terms_in_force
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.version_on_graph import (
    calibrate_version,
    require_active_network,
    require_listed_classes,
)
from ringfence.models.guarantee.law import smallest_n
from ringfence.models.promise.per_class import PER_CLASS
from ringfence.models.promise.trade_off import ALPHAS, TradeOff, trade_off


@dataclass(frozen=True, slots=True)
class ClassTradeOff:
    """What promises of one class cost: a row per share that may be missed.

    validation, of_class: validation nodes that rates were measured on, and those of the class.
    calibration: nodes of the class that calibrate the next run, which a promise of it rests on.
    share: of the class among all labelled nodes.
    """

    class_: str
    model: str
    score: str
    validation: int
    of_class: int
    calibration: int
    share: float
    rows: tuple[TradeOff, ...]

    def sentences(self) -> list[str]:
        """Return what a person should know besides the rows."""
        said = [
            f"measured on {self.validation:,} validation nodes, {self.of_class} of them "
            f"{self.class_}, with the score {self.score}; {self.share:.1%} of the labelled nodes "
            f"are {self.class_}"
        ]
        too_small = [row.alpha for row in self.rows if row.in_every_set]
        if too_small:
            least = max(too_small)
            said.append(
                f"{self.calibration} calibration nodes of {self.class_} are too few to miss at "
                f"most {100 * least:g} %: {smallest_n(least)} are needed, "
                f"{smallest_n(least) - self.calibration} more, or every node is alerted"
            )
        return said


def run_trade_off(
    workspace: Workspace,
    class_: str,
    alphas: Sequence[float] = ALPHAS,
    progress: Progress = no_progress,
) -> ClassTradeOff:
    """Measure miss rate, alert rate and precision of a class for several alphas."""
    with write_session(workspace, progress, require_active_network) as session:
        recorded = active_manifest(workspace.store, workspace.project)
        require_mapping(workspace.mapping, recorded)
        model = model_files.load_model(workspace.models, recorded)
        engine_of(workspace.settings.engine).require_network(model.network)
        place = _place(model, class_)
        mirror = read_graph(workspace, session.writer, progress).mirror
        require_listed_classes(workspace, model)
        terms = _terms(workspace, model)
        version = calibrate_version(workspace, model, mirror, terms=terms, at_alpha=True)
        labelled = members(workspace.store, workspace.project, model.version)
        known = [member for member in labelled if member.role == "validation"]
        rows = find_recorded(mirror, [member.node_key for member in known])
        truth = np.array([member.class_index for member in known], np.int64)[rows >= 0]
        rows = rows[rows >= 0]
        _require_some(class_, truth == place)
        scores = version.score_rows(rows).scores
        save_graph(workspace, mirror)
        engine_of(workspace.settings.engine).close_tables(workspace.tables, model, mirror)
    of_class = np.array([member.class_index for member in labelled], np.int64)
    priors = np.bincount(of_class, minlength=len(model.classes)) / len(of_class)
    n_calibration = sum(member.class_index == place for member in version.calibration.members)
    table = trade_off(scores[:, place], truth, place, priors, alphas, n_calibration)
    return ClassTradeOff(
        class_,
        model.version,
        terms.score,
        validation=len(rows),
        of_class=int((truth == place).sum()),
        calibration=n_calibration,
        share=float(priors[place]),
        rows=tuple(table),
    )


def _terms(workspace: Workspace, model: SavedModel) -> PromiseTerms:
    """The terms of a promise per class, with the score that they have."""
    settings = workspace.settings.conformal
    terms = terms_in_force(settings, model.manifest)
    if terms.promise_kind.per_class or settings.score not in {None, CHOSEN_AT_TRAINING}:
        return terms
    return replace(terms, score=default_score(terms.rule, PER_CLASS.name))


def _place(model: SavedModel, class_: str) -> int:
    if class_ not in model.classes:
        raise ConfigError(
            found=f"--class is {class_!r}, which is no class of the model",
            needed=f"one of its classes: {', '.join(map(repr, model.classes))}",
        )
    return model.classes.index(class_)


def _require_some(class_: str, of_class: NDArray[np.bool_]) -> None:
    if not of_class.any():
        raise ModelError(
            found=f"no validation node of class {class_!r} is in the graph",
            needed="some, to measure its alerts on",
            next_step="label more nodes of the class, then: ringfence train",
        )
