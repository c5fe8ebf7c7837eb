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

from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.keys import decode_key
from ringfence.connector.mirror import Mirror
from ringfence.connector.mirror.typed import TypedMirror
from ringfence.connector.mirror.typed.mirror import plain_key
from ringfence.connector.store.models import find_active_manifest, members
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.network_inputs import edge_index
from ringfence.jobs.project.session import lease_session
from ringfence.jobs.project.typed_inputs import MANIFEST_KEY, TypedEncoders
from ringfence.jobs.project.workspace import Workspace
from ringfence.models.networks import pyg as pyg  # imports PyG without its warnings, first
from ringfence.models.schema import CLASSIFIED

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
        if mirror.typed is None:
            return _one_label(workspace, mirror)
        return _several_labels(workspace, mirror, mirror.typed)


def _one_label(workspace: Workspace, mirror: Mirror) -> Data:
    """`x` has the features as they stand in the graph, `edge_index` the edges a network sees."""
    from torch_geometric.data.data import Data

    rows = np.flatnonzero(mirror.present)
    place = _places(rows, mirror.size)
    ends = place[edge_index(mirror, workspace.mapping)]
    data = Data(
        x=torch.from_numpy(np.array(mirror.features[rows], np.float32)),
        edge_index=torch.from_numpy(ends[:, (ends >= 0).all(axis=0)]),
        **_node_facts(workspace, mirror, rows),
    )
    data.keys_of_nodes = [decode_key(key) for key in mirror.keys.take(rows.tolist())]
    data.class_names = list(mirror.class_names)
    return data


def _several_labels(workspace: Workspace, mirror: Mirror, typed: TypedMirror) -> HeteroData:
    """`x` by label is encoded as the model in use does it; relationships keep their direction."""
    from torch_geometric.data.hetero_data import HeteroData

    mapping = workspace.mapping.typed
    assert mapping is not None  # noqa: S101 - a typed mirror has one
    encoders = _encoders(workspace)
    data = HeteroData()
    place = np.full(mirror.size, -1, np.int64)
    for label, node in enumerate(mapping.nodes):
        rows = typed.rows_of_label(label)
        place[rows] = np.arange(len(rows))
        store = data[node.label]
        store.x = torch.from_numpy(encoders.encode(typed, label, rows))
        keys = mirror.keys.take(rows.tolist())
        store.keys_of_nodes = [decode_key(plain_key(key)) for key in keys]
        if label == CLASSIFIED:
            for name, value in _node_facts(workspace, mirror, rows).items():
                store[name] = value
    source, target, kind = mirror.edges
    for index, one in enumerate(mapping.relations):
        chosen = kind == index
        ends = np.stack([place[source[chosen]], place[target[chosen]]])
        names = (mapping.nodes[one.source].label, one.type, mapping.nodes[one.target].label)
        data[names].edge_index = torch.from_numpy(ends[:, (ends >= 0).all(axis=0)])
    data.class_names = list(mirror.class_names)
    return data


def _encoders(workspace: Workspace) -> TypedEncoders:
    recorded = find_active_manifest(workspace.store, workspace.project)
    if recorded is None:
        raise ConfigError(
            found="no model is in use, so no encoder was fitted to the columns of the labels",
            needed="a model: its encoders turn texts, dates and categories into numbers",
            next_step="ringfence train",
        )
    model = model_files.load_model(workspace.models, recorded)
    return TypedEncoders.restore(model.manifest[MANIFEST_KEY], model.weights)


def _node_facts(workspace: Workspace, mirror: Mirror, rows: Ints) -> Mapping[str, Any]:
    """Classes (-1: not known), creation times, who was evaluated, and the model's roles."""
    facts: dict[str, Any] = {
        "y": torch.from_numpy(mirror.classes[rows].astype(np.int64)),
        "created_ns": torch.from_numpy(np.array(mirror.created_ns[rows], np.int64)),
    }
    recorded = find_active_manifest(workspace.store, workspace.project)
    if recorded is None:
        return facts
    version = model_files.load_model(workspace.models, recorded).version
    by_role: dict[str, list[str]] = {}
    for member in members(workspace.store, workspace.project, version):
        by_role.setdefault(member.role, []).append(member.node_key)
    place = _places(rows, mirror.size)
    for role, name in MASKS.items():
        found = mirror.find(by_role.get(role, []))
        mask = np.zeros(len(rows), np.bool_)
        inside = place[found[found >= 0]]
        mask[inside[inside >= 0]] = True
        facts[name] = torch.from_numpy(mask)
    return facts


def _places(rows: Ints, size: int) -> Ints:
    """The place of each row among `rows`; -1 where it is not one of them [size]."""
    place = np.full(size, -1, np.int64)
    place[rows] = np.arange(len(rows))
    return place
