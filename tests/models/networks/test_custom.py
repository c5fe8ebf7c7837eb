"""A user's module is let in only when it behaves as the guarantee needs."""

from __future__ import annotations

import sys
import types

import pytest
import torch

from ringfence.models.networks import NETWORKS, build
from ringfence.models.networks.custom import ModuleRefused, check_module, load_module


class Plain(torch.nn.Module):
    """Mean of the neighbours, a linear layer; what a user might write."""

    def __init__(self, in_features, classes, width=16):
        super().__init__()
        self.first = torch.nn.Linear(2 * in_features, width)
        self.norm = torch.nn.BatchNorm1d(width)
        self.last = torch.nn.Linear(width, classes)

    def forward(self, x, edge_index):
        heard = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        count = torch.bincount(edge_index[1], minlength=len(x)).clamp(min=1)[:, None]
        hidden = self.norm(self.first(torch.cat([x, heard / count], dim=1))).relu()
        return self.last(torch.nn.functional.dropout(hidden, 0.5, self.training))


class NodeNumber(Plain):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + 0.01 * torch.arange(len(x))[:, None]


class WeightPerNode(Plain):
    """Starts as an equivariant network: only training would bring the positions out."""

    def __init__(self, in_features, classes):
        super().__init__(in_features, classes)
        self.place = torch.nn.Parameter(torch.zeros(1000, classes))

    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + self.place[: len(x)]


class FirstEdgesOnly(Plain):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index[:, : edge_index.size(1) // 2])


class BatchNormInTraining(Plain):
    def forward(self, x, edge_index):
        self.norm.train()
        return super().forward(x, edge_index)


class DropoutStaysOn(Plain):
    def forward(self, x, edge_index):
        return torch.nn.functional.dropout(super().forward(x, edge_index), 0.5)


class DividesByDegree(Plain):
    def forward(self, x, edge_index):
        degree = torch.bincount(edge_index[1], minlength=len(x))[:, None]
        return super().forward(x, edge_index) / degree


class OneGraphOnly(Plain):
    def __init__(self, in_features, classes):
        super().__init__(in_features, classes)
        self.place = torch.nn.Parameter(torch.zeros(40, classes))

    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + self.place


class OneColumn(Plain):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index)[:, :1]


class ClassNumbers(Plain):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).argmax(1)


class Pair(Plain):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index), None


class NeedsMore(Plain):
    def __init__(self, in_features, classes, depth):
        super().__init__(in_features, classes)


not_a_module = 3


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    package = types.ModuleType("users_nets")
    package.__dict__.update({k: v for k, v in globals().items() if not k.startswith("__")})
    monkeypatch.setitem(sys.modules, "users_nets", package)


def test_an_equivariant_module_is_built_from_its_path():
    module = build("users_nets:Plain", 5, 3, width=7)
    assert isinstance(module, Plain)
    assert module.first.out_features == 7


def test_loading_is_seeded_and_keeps_the_global_generator():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, two, other = (load_module("users_nets:Plain", 5, 3, seed=s).last.weight for s in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_ringfences_own_networks_pass_the_check(name):
    for seed in range(5):
        check_module(build(name, 5, 3, seed=seed), 5, 3, seed=seed)


def test_checking_leaves_the_module_as_it_was():
    module = Plain(5, 3)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    check_module(module, 5, 3)
    assert module.training
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NodeNumber", r"not permutation-equivariant.* changed a logit by \d"),
        ("WeightPerNode", r"not permutation-equivariant.* changed a logit by \d"),
        ("FirstEdgesOnly", r"not permutation-equivariant.* changed a logit by \d"),
        ("BatchNormInTraining", "changed its own norm.running_mean"),
        ("DropoutStaysOn", r"two results for the same graph, up to \d"),
        ("DividesByDegree", r"NaN or infinite logits for \d+ of \d+ nodes"),
        ("OneGraphOnly", "failed on a graph of 3 nodes"),
        ("OneColumn", r"returned torch.float32 \[3, 1\]; .*shape \[3, 3\]"),
        ("ClassNumbers", r"returned torch.int64 \[3\]"),
        ("Pair", "returned tuple; floating-point logits"),
    ],
)
def test_a_module_that_would_break_the_guarantee_is_refused(name, words, seed):
    with pytest.raises(ModuleRefused, match=words):
        load_module(f"users_nets:{name}", 5, 3, seed=seed)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("Plain", "is no dotted path"),
        ("users_nets:", "is no dotted path"),
        ("nowhere.nets:Net", "could not be imported: No module named 'nowhere'"),
        ("users_nets:Plane", "has nothing called Plane"),
        ("users_nets:not_a_module", "has int, no torch.nn.Module class, called not_a_module"),
        ("users_nets:NeedsMore", r"could not be constructed as NeedsMore\(5, 3\)"),
    ],
)
def test_a_path_that_leads_nowhere_is_answered_with_what_to_do(path, words):
    with pytest.raises(ModuleRefused, match=words):
        load_module(path, 5, 3)
