"""The forward pass over typed graphs, at a cost that follows the change."""

from ringfence.models.inference.typed.forward import TypedOutputs, forward_typed
from ringfence.models.inference.typed.graph import TypedGraph, typed_graph
from ringfence.models.inference.typed.kept import Kept
from ringfence.models.inference.typed.plan import TypedPlan

__all__ = [
    "Kept",
    "TypedGraph",
    "TypedOutputs",
    "TypedPlan",
    "forward_typed",
    "typed_graph",
]
