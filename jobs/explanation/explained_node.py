"""A node of the mirror with the network that judged it, ready for counterfactual questions.

Everything is computed on the mirror as the last run left it, in memory; nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import decode_key
from ringfence.connector.mirror import UNKNOWN, Mirror, find_recorded, plain_key
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.explanation.changed_rows import ChangedRows
from ringfence.jobs.explanation.reasons import COLUMN, NEIGHBOUR, TYPE, Part
from ringfence.jobs.inference import inference_graph, inner_graph, read_encoded
from ringfence.jobs.project import model_files
from ringfence.jobs.project.columns.column_encoders import (
    PlainNetwork,
    TypedNetwork,
    network_of,
)
from ringfence.jobs.project.columns.relation_means import RelationMeans
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import arrival_times
from ringfence.jobs.project.workspace import Workspace
from ringfence.models.explanation.blend_counterfactuals import BlendWhatIf
from ringfence.models.explanation.counterfactual_query import ANY, Question
from ringfence.models.explanation.counterfactuals import Counterfactual, WhatIf
from ringfence.models.explanation.tree_counterfactuals import TreeWhatIf
from ringfence.models.explanation.typed_counterfactuals import TypedWhatIf, neighbours_by_relation
from ringfence.models.inference import InferenceGraph
from ringfence.models.inference.graph import listed_through
from ringfence.models.inference.several_labels import TypedGraph
from ringfence.models.schema import CLASSIFIED
from ringfence.models.trees.columns import CountRule, encoded_columns
from ringfence.models.trees.ensemble import TreeEnsemble

Float32s = NDArray[np.float32]
CODES = 256


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A node, the graph around it, and the questions that can be asked about it.

    what_if: None for a user's own module, which runs as a whole. heard: (neighbour, type) of all
    messages to the node. columns: names of its columns and their places.
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
        asked = [
            (Question(self.row, ((other, kind if several else ANY),)), self._neighbour(other, kind))
            for other, kind in self.heard[:max_neighbours]
        ]
        for kind, name in enumerate(kinds):
            if sum(type_ == kind for _, type_ in self.heard) > 1:
                asked.append((Question(self.row, ((ANY, kind),)), Part(TYPE, name)))
        asked += [
            (Question(self.row, blank=(place,)), Part(COLUMN, name)) for place, name in self.columns
        ]
        return asked

    def _neighbour(self, other: int, kind: int) -> Part:
        mapping = self.workspace.mapping
        kinds = _relation_names(self.workspace)
        index = int(self.mirror.classes[other])
        key = self.mirror.keys[other]
        label = None
        if self.mirror.has_raw_columns:
            label = mapping.nodes[int(self.mirror.labels[other])].label
            key = plain_key(key)
        return Part(
            NEIGHBOUR,
            str(decode_key(key)),
            kinds[kind] if len(kinds) > 1 else None,
            label,
            None if index == UNKNOWN else self.mirror.class_names[index],
        )


def find_node(workspace: Workspace, typed_key: str, version: str) -> ExplainedNode:
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
    (row,) = find_recorded(mirror, [typed_key]).tolist()
    if row < 0:
        raise ConfigError(
            found=f"the node {typed_key} is not in the mirror any more",
            needed="a node of the graph as the last run read it",
            next_step="ringfence explain KEY   (without --why: what is on record)",
        )
    graph = inference_graph(mirror, workspace.mapping)
    return _explained_node(network_of(model), workspace, model, mirror, graph, row)


@singledispatch
def _explained_node(
    network: object,
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    graph: InferenceGraph,
    row: int,
) -> ExplainedNode:
    """Return a node with what its model's network heard about it."""
    raise TypeError(network)


@_explained_node.register(PlainNetwork)
def _plain_node(
    _network: PlainNetwork,
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    graph: InferenceGraph,
    row: int,
) -> ExplainedNode:
    plan = model.plan()
    neutral = model.scaling.mean
    what_if = None if plan is None else WhatIf(plan, graph, mirror.features, neutral)
    heard = _heard(graph, row, len(workspace.mapping.relations))
    columns = tuple(enumerate(_column_names(workspace, mirror.width)))
    return ExplainedNode(workspace, model, mirror, graph, row, what_if, heard, columns)


@_explained_node.register(TypedNetwork)
def _typed_node(
    network: TypedNetwork,
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    relationships: InferenceGraph,
    row: int,
) -> ExplainedNode:
    graph = network.graph(mirror, relationships)
    times = arrival_times(mirror, workspace.mapping)
    rule = CountRule(times, network.counts_classified)
    changed = ChangedRows(mirror, workspace.mapping, network.encoders, rule)
    columns = changed.columns
    heard = tuple(neighbours_by_relation(graph, row))
    what_if = _typed_what_if(workspace, network, model, changed, graph)
    return ExplainedNode(workspace, model, mirror, relationships, row, what_if, heard, columns)


def _typed_what_if(
    workspace: Workspace,
    network: TypedNetwork,
    model: SavedModel,
    changed: ChangedRows,
    graph: TypedGraph,
) -> Counterfactual | None:
    """What answers questions about a network, trees or both; None for a user's own module."""
    halves, mapping = network.halves(), workspace.mapping
    plan, trees = (network.plan(), network.trees()) if halves is None else halves
    if plan is None and trees is None:
        return None
    inner = inner_graph(graph.relationships, mapping)
    features = read_encoded(workspace.tables, model, changed.mirror, graph, network.encoders)
    answers: list[Counterfactual] = []
    if plan is not None:
        answers.append(TypedWhatIf(plan, graph, inner, features, changed.encode))
    if trees is not None:
        answers.append(_tree_what_if(trees, changed, graph, inner, features, len(model.classes)))
    return answers[0] if len(answers) == 1 else BlendWhatIf(*answers)


def _tree_what_if(
    trees: TreeEnsemble,
    changed: ChangedRows,
    graph: TypedGraph,
    inner: InferenceGraph,
    features: list[Float32s],
    classes: int,
) -> TreeWhatIf:
    means = RelationMeans(changed.mirror, changed.encoders.related)

    def count(rows: NDArray[np.int64]) -> Float32s:
        return means.counts(CLASSIFIED, rows, changed.rule)

    inputs = encoded_columns(graph, features, changed.rule, count)
    return TreeWhatIf(trees, inputs, inner, classes, changed.encode, changed.count)


def _heard(graph: InferenceGraph, row: int, kinds: int) -> tuple[tuple[int, int], ...]:
    """(neighbour, type) of all messages to a node, by neighbour; each neighbour once per type."""
    heard: list[tuple[int, int]] = []
    for kind in range(kinds):
        takes = np.zeros(CODES, np.bool_)
        takes[2 * kind + 1] = True
        takes[2 * kind] = bool(graph.undirected[kind])
        sources = listed_through(graph, np.array([row]), takes).sources.tolist()
        heard += [(int(other), kind) for other in sources]
    return tuple(sorted(heard))


def _relation_names(workspace: Workspace) -> list[str]:
    return [relation.type for relation in workspace.mapping.relations]


def _column_names(workspace: Workspace, width: int) -> list[str]:
    names = workspace.mapping.classified.column_names
    if workspace.mapping.features_are_list:
        return [f"{names[0]}[{place}]" for place in range(width)]
    return list(names)
