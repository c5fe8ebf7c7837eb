"""Projects that are made once per process and copied for every test that wants one.

A copy has all three places of a project: the graph (`tests/graph_copy.py`), the SQL store and the
folder with the key, the models and the mirror (`tests/store_copies.py`). The stages build on each
other: `migrated` is an empty project, `trained` has the sample's first accounts and a model of
them, `scored` one run more. A test file can have a stage of its own, whose work and whose
assertions then run once per process:

    two_versions = starts_from(Stage("two versions", "trained", train_again))

    @two_versions
    def test_a_candidate_is_promoted(trained): ...

The mirror keeps no element ids but those of quarantined nodes, and none of the sample's is; the
database's id is that of the server, which all tests of a process share. So a copy goes on like the
project that it was taken from; `tests/test_project_copies.py` compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import URL, make_url

from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.samples.accounts import Batch, batches, reveal
from ringfence.jobs.samples.accounts import load as load_batch
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.models.sample.accounts import SampleGraph
from tests.graph_copy import Graph, GraphCopy, delete_nodes, empty_graph, read_graph, write_graph
from tests.store_copies import StoreCopies, StoreCopy, clear_store

SIZES = [300, 100, 100]


@dataclass(frozen=True, slots=True)
class Grown:
    """A workspace whose graph holds the sample's first part, and the parts still to come."""

    workspace: Workspace
    sample: SampleGraph
    first: Batch
    later: list[Batch]
    labelled: NDArray[np.bool_]

    def arrive(self, batch: Batch) -> None:
        nobody = np.zeros(self.sample.nodes, np.bool_)
        load_batch(self.workspace.graph, self.sample, batch, nobody, lambda *_: None)

    def reveal(self, nodes: NDArray[np.int64]) -> None:
        reveal(self.workspace.graph, self.sample, nodes)


def sample_parts(workspace: Workspace, sample: SampleGraph) -> Grown:
    """Divide the sample: 300 accounts, half of them of known kind, then two batches of 100."""
    first, *later = batches(sample, SIZES)
    labelled = np.random.default_rng(0).random(sample.nodes) < 0.5
    return Grown(workspace, sample, first, later, labelled)


def load_first(grown: Grown) -> None:
    """Write the first part of the sample to the graph."""
    load_batch(grown.workspace.graph, grown.sample, grown.first, grown.labelled, lambda *_: None)


def _train(workspace: Workspace, sample: SampleGraph) -> None:
    from ringfence.jobs.training.train import run_training  # torch: only where a model is wanted

    load_first(sample_parts(workspace, sample))
    run_training(workspace)


def _score(workspace: Workspace, _: SampleGraph) -> None:
    from ringfence.jobs.scoring.score import run_scoring

    run_scoring(workspace)


@dataclass(frozen=True, slots=True)
class Stage:
    """How far a copied project has come: the name of the stage before it, and what is done then.

    The name stands for the work: no two stages of a test run may share one.
    """

    name: str
    before: str | None
    work: Callable[[Workspace, SampleGraph], object]


STAGES = {
    stage.name: stage
    for stage in (
        Stage("migrated", None, lambda workspace, _: run_migrations(workspace)),
        Stage("trained", "migrated", _train),
        Stage("scored", "trained", _score),
    )
}


def starts_from(stage: Stage) -> pytest.MarkDecorator:
    """Mark a test whose project is a copy of this stage, not of one of `STAGES`."""
    return pytest.mark.parametrize("stage", [stage], indirect=True, ids=[stage.name])


@dataclass(frozen=True, slots=True)
class ProjectCopy:
    """A project at rest."""

    graph: GraphCopy
    store: StoreCopy


@dataclass(slots=True)
class ProjectCopies:
    """The copies of one process, each made when the first test asks for it."""

    stores: StoreCopies
    sample: SampleGraph
    _copies: dict[tuple[str, ...], ProjectCopy] = field(default_factory=dict)

    def restore(self, stage: Stage, settings: Settings, graph: Graph) -> None:
        """Put a copy of the project into the places that `settings` name, which are cleared."""
        copy = self._copy(stage, settings, graph)
        delete_nodes(graph)
        write_graph(graph, copy.graph)
        self.stores.restore(copy.store, audit_address(settings), settings.engine.folder)

    def _copy(self, stage: Stage, settings: Settings, graph: Graph) -> ProjectCopy:
        address = audit_address(settings)
        places = {"neo4j", "audit", "engine"}
        name = (stage.name, address.get_backend_name(), settings.model_dump_json(exclude=places))
        if name not in self._copies:
            if stage.before:
                self.restore(STAGES[stage.before], settings, graph)
            else:
                clear_project(settings, graph)
            with open_workspace(settings) as workspace:
                stage.work(workspace, self.sample)
            store = self.stores.take(address, settings.engine.folder)
            self._copies[name] = ProjectCopy(read_graph(graph), store)
        return self._copies[name]


def clear_project(settings: Settings, graph: Graph) -> None:
    """Empty the graph and the SQL database, and delete the folder."""
    empty_graph(graph)
    clear_store(audit_address(settings), settings.engine.folder)


def audit_address(settings: Settings) -> URL:
    """Return the address of the SQL store, with its password."""
    address = make_url(settings.audit.url)
    password = settings.audit.password
    return address if password is None else address.set(password=password.get_secret_value())
