"""The registry of networks: each line names a module and inference layers that fit together."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from ringfence.models.inference import plan_named, plan_of
from ringfence.models.inference.layers import base
from ringfence.models.networks import GCN, NETWORKS, build
from ringfence.models.networks.registry import NetworkEntry, inference_class, network_class

LAYERS = Path(base.__file__).parent


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_has_inference_layers_in_a_file_of_its_name(name):
    network = build(name, in_features=5, classes=3, hidden=16)
    plan = plan_of(network, torch.zeros(5), torch.ones(5))
    assert type(plan).__module__ == f"ringfence.models.inference.layers.{name}"
    assert type(plan) is inference_class(name)
    assert plan.classes == 3


def test_every_file_of_inference_layers_belongs_to_a_network():
    files = {path.stem for path in LAYERS.glob("*.py")} - {"__init__", "base"}
    assert files == set(NETWORKS)


def test_a_network_without_inference_layers_has_no_plan(monkeypatch):
    monkeypatch.setitem(NETWORKS, "gcn", NetworkEntry("gcn:GCN"))
    assert plan_of(GCN(5, 3), torch.zeros(5), torch.ones(5)) is None


def test_a_subclass_of_our_networks_may_compute_something_else_and_has_no_plan():
    class Deeper(GCN):
        pass

    assert plan_of(Deeper(5, 3), torch.zeros(5), torch.ones(5)) is None


@pytest.mark.parametrize("name", NETWORKS)
def test_a_plan_from_names_and_arrays_is_that_of_the_module(name):
    """What a manifest and a file of weights give, without torch, is what the module would give."""
    network = build(name, in_features=5, classes=3, hidden=16, seed=4)
    weights = {key: value.numpy() for key, value in network.state_dict().items()}
    mean, spread = np.zeros(5, np.float32), np.ones(5, np.float32)
    named = plan_named(name, weights, mean, spread, {"hidden": 16, "dropout": 0.5})
    of_module = plan_of(network, torch.zeros(5), torch.ones(5))
    for field in fields(named):
        assert np.array_equal(getattr(named, field.name), getattr(of_module, field.name))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_plan_knows_the_options_that_weights_do_not_show_with_the_same_defaults(name):
    plan_class = inference_class(name)
    defaults = inspect.signature(network_class(name)).parameters
    for option in plan_class.option_names:
        assert inspect.signature(plan_class).parameters[option].default == defaults[option].default
