"""The registry of networks: each line names a module and inference layers that fit together."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ringfence.models.inference import plan_of
from ringfence.models.inference.layers import base
from ringfence.models.networks import GCN, NETWORKS, build
from ringfence.models.networks.registry import NetworkEntry, inference_class

LAYERS = Path(base.__file__).parent


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_has_inference_layers_in_a_file_of_its_name(name):
    network = build(name, in_features=5, classes=3, hidden=16)
    plan = plan_of(network, torch.zeros(5), torch.ones(5))
    assert type(plan).__module__ == f"ringfence.models.inference.layers.{name}"
    assert type(plan) is inference_class(network)
    assert plan.classes == 3


def test_every_file_of_inference_layers_belongs_to_a_network():
    files = {path.stem for path in LAYERS.glob("*.py")} - {"__init__", "base"}
    assert files == set(NETWORKS)


def test_a_network_without_inference_layers_has_no_plan(monkeypatch):
    monkeypatch.setitem(NETWORKS, "gcn", NetworkEntry(GCN))
    assert plan_of(GCN(5, 3), torch.zeros(5), torch.ones(5)) is None


def test_a_subclass_of_our_networks_may_compute_something_else_and_has_no_plan():
    class Deeper(GCN):
        pass

    assert plan_of(Deeper(5, 3), torch.zeros(5), torch.ones(5)) is None
