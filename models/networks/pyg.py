"""PyG's convolutions, imported once and without a warning that no user can act on.

PyG 2.8 compiles a pooling class with ``torch.jit.script`` at import, which newer torch announces as
deprecated. ringfence uses none of it. The names are ``Any`` because PyG leaves hooks unwritten that
a type checker takes for abstract methods.
"""

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message=".*torch.jit.* is deprecated")
    from torch_geometric import nn

__all__ = ["GATConv", "GCNConv", "Propagation", "SAGEConv"]

GCNConv: Any = nn.GCNConv
GATConv: Any = nn.GATConv
SAGEConv: Any = nn.SAGEConv
Propagation: Any = nn.APPNP
