"""The mirror as PyG takes it: `Data` for one label, `HeteroData` for several.

Everything is copied: nothing of it is bound to the mirror's files, which the next run changes. The
lease is held meanwhile, so that no run is under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.errors import GraphError
from ringfence.connector.mirror import Mirror, find_recorded
from ringfence.connector.store.models import find_active_manifest, members
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.session import lease_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.network_family import family_of

if TYPE_CHECKING:
    from torch_geometric.data.data import Data
    from torch_geometric.data.hetero_data import HeteroData

Ints = NDArray[np.int64]
MASKS = {"train": "train_mask", "validation": "val_mask", "calibration": "calibration_mask"}


def load_pyg(workspace: Workspace) -> Data | HeteroData:
    """Return the graph as the newest run or training left it in the mirror."""
    workspace.require_migrated()
    with lease_session(workspace):
        mirror = load_graph(workspace)
        if mirror is None:
            raise GraphError(
                found="the project has no mirror of its graph yet",
                needed="a graph that was read once",
                next_step="ringfence train",
            )
        recorded = find_active_manifest(workspace.store, workspace.project)
        model = None if recorded is None else model_files.load_model(workspace.models, recorded)
        return family_of(workspace.mapping, mirror).to_pyg(
            model, lambda rows: _describe_nodes(workspace, mirror, model, rows)
        )


def _describe_nodes(
    workspace: Workspace, mirror: Mirror, model: SavedModel | None, rows: Ints
) -> Mapping[str, Any]:
    """Classes (-1: not known), creation times, evaluated flags, and the model's roles."""
    facts: dict[str, Any] = {
        "y": torch.from_numpy(mirror.classes[rows].astype(np.int64)),
        "created_ns": torch.from_numpy(np.array(mirror.created_ns[rows], np.int64)),
    }
    if model is None:
        return facts
    by_role: dict[str, list[str]] = {}
    for member in members(workspace.store, workspace.project, model.version):
        by_role.setdefault(member.role, []).append(member.node_key)
    place = np.full(mirror.size, -1, np.int64)
    place[rows] = np.arange(len(rows))
    for role, name in MASKS.items():
        members_of_role = find_recorded(mirror, by_role.get(role, []))
        mask = np.zeros(len(rows), np.bool_)
        inside = place[members_of_role[members_of_role >= 0]]
        mask[inside[inside >= 0]] = True
        facts[name] = torch.from_numpy(mask)
    return facts
