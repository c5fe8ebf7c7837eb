"""The forward pass over typed graphs, at a cost that follows the change."""

from ringfence.models.inference.several_labels.forward import TypedOutputs, forward_typed
from ringfence.models.inference.several_labels.graph import TypedGraph, typed_graph
from ringfence.models.inference.several_labels.layer_cache import LayerCache
from ringfence.models.inference.several_labels.plan import TypedPlan

__all__ = [
    "LayerCache",
    "TypedGraph",
    "TypedOutputs",
    "TypedPlan",
    "forward_typed",
    "typed_graph",
]
