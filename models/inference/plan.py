"""From trained weights to an inference plan, through the registry of networks; without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringfence.models.inference.layers.base import InferencePlan
from ringfence.models.networks.registry import inference_class, name_of

__all__ = ["plan_named", "plan_of"]


def plan_named(
    name: str, weights: Mapping[str, Any], mean: Any, spread: Any, options: Mapping[str, Any]
) -> InferencePlan | None:
    """Return the plan of the network called ``name``; None where it has no inference layers.

    Args:
        name: as in a model's manifest.
        weights: float32 arrays by the names that the network's file lists.
        mean: [d], taken off the features first.
        spread: [d], divides them then.
        options: of the network's constructor, as in the manifest.

    >>> import numpy as np
    >>> layers = {"lin1.weight": np.ones((4, 2)), "lin1.bias": np.ones(4)}
    >>> layers |= {"lin2.weight": np.ones((3, 4)), "lin2.bias": np.ones(3)}
    >>> plan_named("mlp", layers, np.zeros(2), np.ones(2), {"hidden": 4}).classes
    3
    """
    plan_class = inference_class(name)
    return None if plan_class is None else plan_class.of(weights, mean, spread, options)


def plan_of(network: Any, mean: Any, spread: Any) -> InferencePlan | None:
    """Library only: the plan of a torch module that ringfence has layers for; None for any other.

    >>> import torch
    >>> from ringfence.models.networks import SAGE
    >>> type(plan_of(SAGE(5, 3), torch.zeros(5), torch.ones(5))).__name__
    'SAGEPlan'
    >>> plan_of(torch.nn.Linear(5, 3), torch.zeros(5), torch.ones(5)) is None
    True
    """
    name = name_of(network)
    plan_class = inference_class(name)
    if plan_class is None:
        return None
    options = {option: getattr(network, option) for option in plan_class.option_names}
    return plan_named(name, network.state_dict(), mean, spread, options)
