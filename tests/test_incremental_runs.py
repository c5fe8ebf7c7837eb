"""From the mirror's files to logits: what is kept between runs never changes what comes out."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from ringfence.connector.changes import RelationshipBlock
from ringfence.connector.mapping import GraphMapping, RelationshipMapping
from ringfence.connector.mirror import create, load, save
from ringfence.connector.rows import NodeBlock
from ringfence.jobs import forwarding
from ringfence.jobs.model_files import SavedModel
from ringfence.jobs.tensors import Scaling, edge_index
from ringfence.models.networks import NETWORKS, build

WIDTH, CLASSES = 6, 3
MAPPING = GraphMapping(
    "Thing", "id", ("x",), True, "class", "created_at", "zoned",
    (RelationshipMapping("LINKS"), RelationshipMapping("POINTS", undirected=False)),
)  # fmt: skip


class Line:
    """A mirror that grows run by run, and a model that looks at it."""

    def __init__(self, folder, network="sage"):
        self.folder, self.rng = folder, np.random.default_rng(1)
        self.mirror = create(folder / "mirror", "graph", WIDTH)
        self.model = model_of(network)
        self.grow(300, 900)

    def grow(self, nodes, relationships):
        first = self.mirror.size
        keys = [f"i:{i}" for i in range(first, first + nodes)]
        features = self.rng.standard_normal((nodes, WIDTH), dtype=np.float32) * 3 + 100
        self.mirror.advance()
        block = NodeBlock(keys, features, [None] * nodes, np.arange(nodes), [])
        self.mirror.add_nodes([block])
        ends = self.rng.integers(0, self.mirror.size, (2, relationships))
        for kind in (0, 1):
            part = ends[:, kind::2]
            names = [[f"i:{i}" for i in side] for side in part.tolist()]
            self.mirror.add_block(RelationshipBlock(kind, names[0], names[1]))
        self.mirror.add_relationships([])

    def score(self, wanted=None):
        rows = np.arange(0, self.mirror.size, 9) if wanted is None else wanted
        graph = forwarding.incidence(self.mirror, MAPPING)
        return rows, forwarding.outputs_at(
            self.folder / "forward", self.model, self.mirror, MAPPING, graph, rows
        )

    def finish(self):
        save(self.mirror, self.folder / "mirror")
        forwarding.keep(self.folder / "forward", self.model, self.mirror)
        self.mirror = load(self.folder / "mirror", "graph")

    def truth(self, rows):
        x = self.model.scaling(np.array(self.mirror.features))
        with torch.inference_mode():
            return self.model.network(x, edge_index(self.mirror, MAPPING))[torch.from_numpy(rows)]

    def check(self, way):
        rows, passed = self.score()
        torch.testing.assert_close(passed.logits, self.truth(rows), atol=1e-5, rtol=1e-5)
        assert passed.words.startswith(way)
        return passed


def model_of(name, version="v1"):
    network = build(name, WIDTH, CLASSES, hidden=8, seed=1).eval()
    scaling = Scaling(torch.full((WIDTH,), 100.0), torch.full((WIDTH,), 3.0))
    return SavedModel(version, network, scaling, torch.zeros(1), {"classes": ["a", "b", "c"]})


@pytest.mark.parametrize("name", NETWORKS)
def test_a_run_pays_for_what_changed_and_gets_the_same_outputs(tmp_path, name):
    line = Line(tmp_path, name)
    line.check("full")
    line.finish()
    for nodes in (3, 1, 0, 4):
        line.grow(nodes, 4)
        line.check("full" if name == "appnp" else "incremental")
        line.finish()


def test_tables_grow_with_the_graph(tmp_path):
    line = Line(tmp_path)
    line.check("full")
    line.finish()
    line.grow(2_000, 10)  # more than the room that was left
    line.check("incremental")
    line.finish()
    line.check("incremental")


def test_tables_that_a_crash_left_open_are_made_again(tmp_path):
    line = Line(tmp_path)
    line.check("full")
    line.finish()
    line.grow(3, 5)
    line.score()  # and here the run dies: nothing is saved
    line.mirror = load(tmp_path / "mirror", "graph")
    line.grow(2, 4)  # other nodes take the same rows
    line.check("full")
    line.finish()
    line.grow(2, 4)
    line.check("incremental")


def test_without_the_mark_the_crashed_runs_rows_would_be_taken_for_good(tmp_path):
    """The control of the test before: close the tables although the run died."""
    line = Line(tmp_path, "mlp")
    line.check("full")
    line.finish()
    line.grow(3, 5)
    line.score(np.arange(line.mirror.size))
    (state,) = (tmp_path / "forward").glob("*/state.json")
    state.write_text(json.dumps({**json.loads(state.read_text()), "open": False}))
    line.mirror = load(tmp_path / "mirror", "graph")
    line.grow(3, 5)
    rows, passed = line.score(np.arange(line.mirror.size))
    assert not torch.allclose(passed.logits, line.truth(rows), atol=1e-3)


@pytest.mark.parametrize("what", ["another model", "another numbering", "a restart", "a lost file"])
def test_tables_are_never_used_for_something_else(tmp_path, monkeypatch, what):
    line = Line(tmp_path)
    line.check("full")
    line.finish()
    if what == "another model":
        line.model = model_of("sage", "v2")
    elif what == "another numbering":
        line.mirror = create(tmp_path / "mirror", "graph", WIDTH)
        line.grow(50, 90)
    elif what == "a restart":
        monkeypatch.setattr(forwarding, "_boot", lambda: "another")
    else:
        (lost,) = (tmp_path / "forward").glob("*/scale")
        lost.unlink()
    line.check("full")


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.linear(x).index_add(0, edge_index[1], self.linear(x)[edge_index[0]])


def test_a_users_own_module_runs_in_full_and_the_run_says_so(tmp_path):
    line = Line(tmp_path)
    known = line.model
    line.model = SavedModel("v", Own().eval(), known.scaling, known.naive_scores, known.manifest)
    assert "the module is your own" in line.check("full").words
    assert not (tmp_path / "forward").exists()
