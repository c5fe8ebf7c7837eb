"""What a promise to miss at most a share of a class would cost, before one chooses the share.

The rates are measured on validation nodes, on the graph as it is now. Calibration nodes are left
alone: a share that is chosen by looking at them would no longer be promised by them. Only how many
of them the class has counts, since that decides whether a promise can be kept at all. Validation
nodes told training when to stop, so rates may be a little better there than on new nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.neo4j.read.sync import Progress
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.store.models import active_manifest, members
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.model_inputs import require_mapping
from ringfence.jobs.project.promise import PromiseTerms, default_score, terms_in_force
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring import inference
from ringfence.jobs.scoring.scored_rows import score_rows
from ringfence.models.guarantee.law import smallest_n
from ringfence.models.promise.trade_off import ALPHAS, TradeOff, trade_off


@dataclass(frozen=True, slots=True)
class ClassTradeOff:
    """What promises of one class cost: a row per share that may be missed.

    validation, of_class: validation nodes that rates were measured on, and those of the class.
    calibration: calibration nodes of the class, which a promise of it rests on.
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
        """Return what a person should know beside the rows."""
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
    progress: Progress = lambda _what, _done, _all: None,
) -> ClassTradeOff:
    """Measure miss rate, alert rate and precision of a class for several alphas."""
    with write_session(workspace, progress) as session:
        recorded = active_manifest(workspace.store, workspace.project)
        require_mapping(workspace.mapping, recorded)
        model = model_files.load_model(workspace.models, recorded)
        engine_of(workspace.settings.engine).require_network(model.network)
        place = _place(model, class_)
        mirror = read_graph(workspace, session.writer, progress).mirror
        labelled = members(workspace.store, workspace.project, model.version)
        calibration = calibration_members(
            workspace.store, workspace.project, model.version, model.classes
        )
        known = [one for one in labelled if one.role == "validation"]
        rows = mirror.find([one.node_key for one in known])
        truth = np.array([one.class_index for one in known], np.int64)[rows >= 0]
        rows = rows[rows >= 0]
        _require_some(class_, truth == place)
        terms = _terms(workspace, model)
        graph = inference.inference_graph(mirror, workspace.mapping)
        scores = score_rows(workspace, model, mirror, graph, rows, terms).scores
        save_graph(workspace, mirror)
        engine_of(workspace.settings.engine).close_tables(workspace.tables, model, mirror)
    of_class = np.array([one.class_index for one in labelled], np.int64)
    priors = np.bincount(of_class, minlength=len(model.classes)) / len(of_class)
    many = sum(one.class_index == place for one in calibration)
    table = trade_off(scores[:, place], truth, place, priors, alphas, many)
    own = int((truth == place).sum())
    return ClassTradeOff(
        class_, model.version, terms.score, len(rows), own, many, float(priors[place]), tuple(table)
    )


def _terms(workspace: Workspace, model: SavedModel) -> PromiseTerms:
    """The terms under which the class would be promised something, by the score that this has."""
    settings = workspace.settings.conformal
    terms = terms_in_force(settings, model.manifest)
    if terms.promise == "class" or settings.score not in {None, "auto"}:
        return terms
    return replace(terms, score=default_score(terms.rule, "class"))


def _place(model: SavedModel, class_: str) -> int:
    if class_ not in model.classes:
        raise ConfigError(
            found=f"--class is {class_!r}, which is no class of the model",
            needed=f"one of its classes: {', '.join(map(repr, model.classes))}",
        )
    return model.classes.index(class_)


def _require_some(class_: str, own: NDArray[np.bool_]) -> None:
    if not own.any():
        raise ModelError(
            found=f"no validation node of class {class_!r} is in the graph",
            needed="some, to measure its alerts on",
            next_step="label more nodes of the class, then: ringfence train",
        )
