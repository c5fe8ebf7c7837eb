"""PyG's explainers on users' own modules of one label and of several."""

import sys
import types

import numpy as np
import pytest
import torch

from ringfence.models.networks import pyg
from ringfence.models.networks.attribution import (
    ModuleInputs,
    TypedInputs,
    _WithAllMasks,
    attribute_output,
)
from ringfence.models.networks.pyg import GCNConv
from ringfence.models.schema import Relation, TypedSchema
from ringfence.models.training.typed_data import TypedData

SCHEMA = TypedSchema(
    ("Order", "Shop", "Device"),
    (Relation(0, "AT", 1), Relation(2, "PLACED", 0), Relation(0, "NEXT", 0)),
)
SIZES, WIDTHS = (12, 5, 4), (3, 2, 2)


class Plain(torch.nn.Module):
    """One label; the answer is the sum of the neighbours' first column."""

    def __init__(self, in_features, classes):
        super().__init__()
        self.conv = GCNConv(in_features, classes)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class Dense(torch.nn.Module):
    """A module without a layer that PyG's explainers know."""

    def __init__(self, in_features, classes):
        super().__init__()
        self.linear = torch.nn.Linear(in_features, classes)

    def forward(self, x, edge_index):
        return self.linear(x)


class Typed(torch.nn.Module):
    """Several labels, two layers; the last hears the classified label's neighbours alone."""

    def __init__(self, metadata, in_features, classes, hidden=8):
        super().__init__()
        (self.label, *_), kinds = metadata
        last = [kind for kind in kinds if kind[2] == self.label]
        first = {k: pyg.SAGEConv((in_features[k[0]], in_features[k[2]]), hidden) for k in kinds}
        self.first = pyg.HeteroConv(first, aggr="sum")
        second = {kind: pyg.SAGEConv((hidden, hidden), classes) for kind in last}
        self.second = pyg.HeteroConv(second, aggr="sum")

    def forward(self, x_dict, edge_index_dict):
        rows = {name: one.relu() for name, one in self.first(x_dict, edge_index_dict).items()}
        return self.second(rows, edge_index_dict)[self.label]


class Attentive(torch.nn.Module):
    """Several labels; hears shops alone, by one layer with attention."""

    def __init__(self, metadata, in_features, classes):
        super().__init__()
        widths = in_features["Shop"], in_features["Order"]
        layer = pyg.GATConv(widths, classes, add_self_loops=False)
        self.layer = pyg.HeteroConv({("Shop", "rev_AT", "Order"): layer}, aggr="sum")

    def forward(self, x_dict, edge_index_dict):
        return self.layer(x_dict, edge_index_dict)["Order"]


class Bare(torch.nn.Module):
    """Several labels, by a layer that does not say which relationship type it hears."""

    def __init__(self, metadata, in_features, classes):
        super().__init__()
        self.layer = pyg.SAGEConv((in_features["Shop"], in_features["Order"]), classes)

    def forward(self, x_dict, edge_index_dict):
        pair = x_dict["Shop"], x_dict["Order"]
        return self.layer(pair, edge_index_dict["Shop", "rev_AT", "Order"])


@pytest.fixture(autouse=True)
def own(monkeypatch):
    module = types.ModuleType("own_modules")
    for one in (Plain, Dense, Typed, Attentive, Bare):
        setattr(module, one.__name__, one)
    monkeypatch.setitem(sys.modules, "own_modules", module)


def weights_of(module):
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def plain_inputs():
    rng = np.random.default_rng(0)
    edges = np.array([[1, 2, 3, 0, 4], [0, 0, 0, 4, 5]])
    return ModuleInputs(rng.normal(size=(6, 4)).astype(np.float32), edges)


def ask(method, name, module, inputs, node=0):
    return attribute_output(method, name, weights_of(module), 3, {}, inputs, node, seed=7)


def test_neighbours_and_columns_of_a_node_are_weighed_the_same_each_time():
    module = Plain(4, 3)
    found = ask("GNNExplainer", "own_modules:Plain", module, plain_inputs())
    assert [source for _, source, _ in found.edges] == [1, 2, 3]
    assert len(found.columns) == 4
    assert all(0 <= weight <= 1 for _, _, weight in found.edges)
    assert len({round(weight, 6) for _, _, weight in found.edges}) > 1
    assert ask("GNNExplainer", "own_modules:Plain", module, plain_inputs()) == found


def test_what_can_t_be_explained_is_an_error():
    with pytest.raises(ValueError, match="there are GNNExplainer, AttentionExplainer"):
        ask("Oracle", "own_modules:Plain", Plain(4, 3), plain_inputs())
    with pytest.raises(ValueError, match=r"gradient|message"):
        ask("GNNExplainer", "own_modules:Dense", Dense(4, 3), plain_inputs())


def typed_inputs():
    rng = np.random.default_rng(0)
    place = {label: at for at, label in enumerate(SCHEMA.labels)}
    sizes = [(SIZES[place[kind[0]]], SIZES[place[kind[2]]]) for kind in SCHEMA.edge_types]
    pairs = [np.stack([rng.integers(n, size=20) for n in ends]) for ends in sizes]
    rows = zip(SIZES, WIDTHS, strict=True)
    features = tuple(rng.normal(size=(n, width)).astype(np.float32) for n, width in rows)
    edges = tuple(np.unique(pair, axis=1) for pair in pairs)
    return TypedInputs(TypedData(SCHEMA, features, edges, None))


@pytest.fixture
def typed():
    """Make a module of several labels, untrained."""

    def make(kind):
        torch.manual_seed(0)
        widths = dict(zip(SCHEMA.labels, WIDTHS, strict=True))
        return kind((list(SCHEMA.labels), list(SCHEMA.edge_types)), widths, 3)

    return make


pytestmark = pytest.mark.filterwarnings("ignore:There exist node types")


def test_a_module_of_several_labels_is_explained_by_its_relationship_types(typed):
    module, inputs = typed(Typed), typed_inputs()
    found = ask("GNNExplainer", "own_modules:Typed", module, inputs)
    heard = {
        (channel, int(source))
        for channel, (kind, pair) in enumerate(
            zip(SCHEMA.edge_types, inputs.data.edges, strict=True)
        )
        for source in pair[0, pair[1] == 0]
        if kind[2] == "Order"
    }
    assert {(channel, source) for channel, source, _ in found.edges} == heard
    assert {channel for channel, _ in heard} == {1, 2, 4}
    assert len(found.columns) == WIDTHS[0]
    assert ask("GNNExplainer", "own_modules:Typed", module, inputs) == found


def test_what_a_module_does_not_hear_has_no_weight(typed):
    found = ask("GNNExplainer", "own_modules:Attentive", typed(Attentive), typed_inputs())
    by_channel = {channel: [w for c, _, w in found.edges if c == channel] for channel in (1, 2, 4)}
    assert max(by_channel[1]) > 0.1
    assert set(by_channel[2] + by_channel[4]) == {0.0}


def test_attention_is_shown_as_it_is_where_there_is_some(typed):
    inputs = typed_inputs()
    with pytest.raises(ValueError, match="attention"):
        ask("AttentionExplainer", "own_modules:Typed", typed(Typed), inputs)
    found = ask("AttentionExplainer", "own_modules:Attentive", typed(Attentive), inputs)
    assert {channel for channel, _, _ in found.edges} == {1}
    assert sum(weight for _, _, weight in found.edges) == pytest.approx(1.0)


def test_layers_that_pyg_can_t_tell_apart_are_refused(typed):
    with pytest.raises(ValueError, match="SAGEConv outside HeteroConv"):
        ask("GNNExplainer", "own_modules:Bare", typed(Bare), typed_inputs())


def test_the_part_that_gives_masks_a_gradient_changes_no_output(typed):
    module, (x, edges) = typed(Typed).eval(), typed_inputs().data.tensors()
    with torch.no_grad():
        assert torch.equal(_WithAllMasks(module, SCHEMA.edge_types)(x, edges), module(x, edges))


def test_no_pass_is_begun_after_the_time():
    module, passes = Plain(4, 3), iter([False] * 3)
    with pytest.raises(TimeoutError):
        attribute_output(
            "GNNExplainer", "own_modules:Plain", weights_of(module), 3, {}, plain_inputs(), 0, 7,
            lambda: next(passes, True),
        )  # fmt: skip
