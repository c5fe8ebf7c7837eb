"""Forward passes in this process: the graph as kernels take it, passes, and their cache on disk."""

from ringfence.jobs.inference.base import Pass, PassOutputs, run_pass
from ringfence.jobs.inference.graph import inference_graph, inner_graph, inner_types
from ringfence.jobs.inference.local_pass import close_tables, outputs_at
from ringfence.jobs.inference.typed_pass import read_encoded

__all__ = [
    "Pass",
    "PassOutputs",
    "close_tables",
    "inference_graph",
    "inner_graph",
    "inner_types",
    "outputs_at",
    "read_encoded",
    "run_pass",
]
