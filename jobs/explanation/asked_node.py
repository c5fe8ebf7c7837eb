"""A node of the mirror with the network that judged it, ready to be asked about.

Everything is computed on the mirror as the last run left it, in memory; nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import TypedMapping
from ringfence.connector.mirror import UNKNOWN, Mirror
from ringfence.connector.mirror.typed import TypedMirror, plain_key
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.explanation.reasons import COLUMN, NEIGHBOUR, TYPE, Part
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.model_inputs import require_mapping
from ringfence.jobs.project.typed_inputs import ENCODER, MANIFEST_KEY, TypedEncoders
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.inference import inference_graph, inner_graph
from ringfence.jobs.scoring.typed_inference import read_encoded
from ringfence.models.explanation.counterfactuals import Counterfactual, WhatIf
from ringfence.models.explanation.question import ANY, Question
from ringfence.models.explanation.typed_counterfactuals import TypedWhatIf, neighbours_by_relation
from ringfence.models.inference import InferenceGraph
from ringfence.models.inference.graph import listed_through
from ringfence.models.inference.typed import typed_graph
from ringfence.models.networks.registry import typed_planner
from ringfence.models.schema import CLASSIFIED, TypedSchema

Float32s = NDArray[np.float32]
CODES = 256


@dataclass(frozen=True, slots=True)
class AskedNode:
    """A node, the graph around it, and what can be asked about it.

    what_if: None for a user's own module, which runs as a whole. heard: (neighbour, type) of all
    that the node hears. columns: names of its columns and their places.
    """

    workspace: Workspace
    model: SavedModel
    mirror: Mirror
    graph: InferenceGraph
    row: int
    what_if: Counterfactual | None
    heard: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, str], ...]

    def questions(self, max_neighbours: int) -> list[tuple[Question, Part]]:
        """Return all single questions: each neighbour, each type of several, each column."""
        kinds = _relation_names(self.workspace)
        several = len(kinds) > 1
        found = [
            (Question(self.row, ((other, kind if several else ANY),)), self._neighbour(other, kind))
            for other, kind in self.heard[:max_neighbours]
        ]
        for kind, name in enumerate(kinds):
            if sum(one == kind for _, one in self.heard) > 1:
                found.append((Question(self.row, ((ANY, kind),)), Part(TYPE, name)))
        found += [
            (Question(self.row, blank=(place,)), Part(COLUMN, name)) for place, name in self.columns
        ]
        return found

    def _neighbour(self, other: int, kind: int) -> Part:
        typed = self.workspace.mapping.typed
        kinds = _relation_names(self.workspace)
        index = int(self.mirror.classes[other])
        key = self.mirror.keys[other]
        label = None
        if typed is not None and self.mirror.typed is not None:
            label = typed.nodes[int(self.mirror.typed.labels[other])].label
            key = plain_key(key)
        return Part(
            NEIGHBOUR,
            str(decode_key(key)),
            kinds[kind] if len(kinds) > 1 else None,
            label,
            None if index == UNKNOWN else self.mirror.class_names[index],
        )


def find_node(workspace: Workspace, typed_key: str, version: str) -> AskedNode:
    """Return the node with this key, with the model version that evaluated it."""
    recorded = manifest_of(workspace.store, workspace.project, version)
    require_mapping(workspace.mapping, recorded)
    model = model_files.load_model(workspace.models, recorded)
    mirror = load_graph(workspace)
    if mirror is None:
        raise ConfigError(
            found="there is no mirror of the graph on this machine",
            needed="the mirror of a run, in the folder of [engine]",
            next_step="ringfence score",
        )
    (row,) = mirror.find([typed_key]).tolist()
    if row < 0:
        raise ConfigError(
            found=f"the node {typed_key} is not in the mirror any more",
            needed="a node of the graph as the last run read it",
            next_step="ringfence explain KEY   (without --why: what is on record)",
        )
    graph = inference_graph(mirror, workspace.mapping)
    if mirror.typed is not None and workspace.mapping.typed is not None:
        return _typed_node(workspace, workspace.mapping.typed, model, mirror, graph, row)
    plan = model.plan()
    neutral = model.scaling.mean
    what_if = None if plan is None else WhatIf(plan, graph, mirror.features, neutral)
    heard = _heard(graph, row, len(workspace.mapping.relationships))
    columns = tuple(enumerate(_column_names(workspace, mirror.width)))
    return AskedNode(workspace, model, mirror, graph, row, what_if, heard, columns)


def _typed_node(
    workspace: Workspace,
    mapping: TypedMapping,
    model: SavedModel,
    mirror: Mirror,
    relationships: InferenceGraph,
    row: int,
) -> AskedNode:
    facts = model.manifest[MANIFEST_KEY]
    schema = TypedSchema.from_json(facts["schema"])
    encoders = TypedEncoders.restore(facts, model.weights)
    typed = mirror.typed
    if typed is None:
        raise ValueError("the mirror has one label")
    graph = typed_graph(relationships, schema, typed.labels)
    names = mapping.classified.column_names
    used = encoders.tables[CLASSIFIED].encoders
    columns = tuple((place, name) for place, name in enumerate(names) if name in used)
    planner = typed_planner(model.network)
    what_if = None
    if planner is not None:
        weights = {n: one for n, one in model.weights.items() if not n.startswith(ENCODER)}
        what_if = TypedWhatIf(
            planner(schema, weights),
            graph,
            inner_graph(relationships, workspace.mapping),
            read_encoded(workspace.tables, model, mirror, graph, encoders),
            lambda at, blank: _encode_without(typed, encoders, names, at, blank),
        )
    heard = tuple(neighbours_by_relation(graph, row))
    return AskedNode(workspace, model, mirror, relationships, row, what_if, heard, columns)


def _encode_without(
    typed: TypedMirror,
    encoders: TypedEncoders,
    names: Sequence[str],
    row: int,
    blank: tuple[int, ...],
) -> Float32s:
    """Encode a node as if it had never had some of its raw columns."""
    columns = typed.columns(CLASSIFIED, np.array([row], np.int64))
    columns |= {names[place]: [None] for place in blank}
    encoded: Float32s = encoders.tables[CLASSIFIED].transform(columns, 1)[0]
    return encoded


def _heard(graph: InferenceGraph, row: int, kinds: int) -> tuple[tuple[int, int], ...]:
    """(neighbour, type) of all that a node hears, by neighbour; each neighbour once per type."""
    found: list[tuple[int, int]] = []
    for kind in range(kinds):
        takes = np.zeros(CODES, np.bool_)
        takes[2 * kind + 1] = True
        takes[2 * kind] = bool(graph.undirected[kind])
        sources = listed_through(graph, np.array([row]), takes).sources.tolist()
        found += [(int(other), kind) for other in sources]
    return tuple(sorted(found))


def _relation_names(workspace: Workspace) -> list[str]:
    mapping = workspace.mapping
    if mapping.typed is None:
        return [kind.type for kind in mapping.relationships]
    return [relation.type for relation in mapping.typed.relations]


def _column_names(workspace: Workspace, width: int) -> list[str]:
    mapping = workspace.mapping
    if mapping.features_are_list:
        return [f"{mapping.features[0]}[{place}]" for place in range(width)]
    return list(mapping.features)
