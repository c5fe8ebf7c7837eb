"""The networks: GCN, GAT, APPNP, GraphSAGE and MLP with the paper's sizes as defaults."""

from ringfence.models.networks.appnp import APPNP
from ringfence.models.networks.edges import canonical_edges
from ringfence.models.networks.gat import GAT
from ringfence.models.networks.gcn import GCN
from ringfence.models.networks.mlp import MLP
from ringfence.models.networks.registry import NETWORKS, build
from ringfence.models.networks.sage import SAGE

__all__ = ["APPNP", "GAT", "GCN", "MLP", "NETWORKS", "SAGE", "build", "canonical_edges"]
