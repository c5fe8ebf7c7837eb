"""PyG's explainers on users' own modules of one label."""

import sys
import types

import numpy as np
import pytest
import torch

from ringfence.models.networks.attribution import ModuleInputs, attribute_output
from ringfence.models.networks.pyg import GCNConv


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


@pytest.fixture(autouse=True)
def own(monkeypatch):
    module = types.ModuleType("own_modules")
    module.Plain, module.Dense = Plain, Dense
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
