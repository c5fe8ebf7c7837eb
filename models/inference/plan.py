"""From a trained network to its inference plan, through the registry of networks."""

from __future__ import annotations

import torch

from ringfence.models.inference.layers.base import InferencePlan
from ringfence.models.networks.registry import inference_class

__all__ = ["plan_of"]


def plan_of(
    network: torch.nn.Module, mean: torch.Tensor, spread: torch.Tensor
) -> InferencePlan | None:
    """Return the plan of a network that has inference layers; None for any other module.

    Args:
        network: trained, with float32 weights.
        mean: [d], taken off the features first.
        spread: [d], divides them then.

    >>> from ringfence.models.networks import SAGE
    >>> type(plan_of(SAGE(5, 3), torch.zeros(5), torch.ones(5))).__name__
    'SAGEPlan'
    >>> plan_of(torch.nn.Linear(5, 3), torch.zeros(5), torch.ones(5)) is None
    True
    """
    plan_class = inference_class(network)
    return None if plan_class is None else plan_class.of(network, mean, spread)
