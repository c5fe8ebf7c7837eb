"""Raw columns of a mirror as numbers: the encoders of a model, and the network that uses them.

Strict features need none of this: `network_inputs.Scaling` is all that is fitted to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.json_types import JsonObject
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.project.columns.relation_means import (
    Bools,
    RelationEncoders,
    RelationMeans,
    Without,
    facts_of,
)
from ringfence.jobs.project.model_files import TREE_COUNTS_KEY, SavedModel
from ringfence.models.encoders import TableEncoder
from ringfence.models.inference import InferenceGraph
from ringfence.models.inference.several_labels import TypedGraph, TypedPlan, typed_graph
from ringfence.models.networks.registry import TYPED_SAGE, is_blend, is_trees, typed_planner
from ringfence.models.schema import Relation, TypedSchema
from ringfence.models.trees.blend import without_trees
from ringfence.models.trees.ensemble import TreeEnsemble

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

ENCODER = "encoder."  # what the names of the encoders' arrays begin with, then label and name
RELATED_KEY = "related"  # beside them: encoders of relationships, where any have columns
CONTEXT_COUNTS, ALL_COUNTS = "context", "all"  # what trees of a version count
NO_RELATIONS = RelationEncoders(TypedSchema((), ()))
TYPED_KEY = "typed"  # of a manifest: schema and encoders of a model that has any
BYTES_PER_STEP = 16e6  # of raw columns that are encoded at a time


def schema_of(mapping: GraphMapping) -> TypedSchema:
    """Return the labels and relations of the configuration as `models` takes them."""
    return TypedSchema(
        tuple(node.label for node in mapping.nodes),
        tuple(
            Relation(
                relation.source,
                relation.type,
                relation.target,
                relation.undirected,
                relation.after_evaluation,
            )
            for relation in mapping.relations
        ),
    )


@dataclass(frozen=True, slots=True)
class ColumnEncoders:
    """The encoders of a model by label, and the columns that it leaves out, with the reason.

    `related` are those of relationships: their means are columns of the nodes at their ends, behind
    the nodes' own.
    """

    tables: tuple[TableEncoder, ...]
    left_out: dict[str, str]
    related: RelationEncoders = NO_RELATIONS

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns by label."""
        return tuple(
            table.width + self.related.width(label) for label, table in enumerate(self.tables)
        )

    @property
    def names(self) -> list[list[str]]:
        """Names of the columns by label."""
        return [
            [*table.names, *self.related.names(label)] for label, table in enumerate(self.tables)
        ]

    def raw_names(self, label: int) -> list[str]:
        """Return for each column of a label the property that it was made of; TYPE.property."""
        schema, related = self.related.schema, self.related.tables
        names = [name.partition(" / ")[0] for name in self.tables[label].names]
        return names + [
            f"{schema.relations[slot.relation].type}.{name.partition(' / ')[0]}"
            for slot in self.related.slots(label)
            for name in related[slot.relation].names
        ]

    def encode(
        self,
        mirror: Mirror,
        label: int,
        rows: Ints,
        means: RelationMeans | None = None,
        seen: Bools | None = None,
    ) -> Float32s:
        """Return the encoded rows of some nodes of a label [n, width].

        Args:
            mirror: with the graph as it is now.
            label: of the nodes.
            rows: of the mirror.
            means: of relationships, if they are asked for more than once.
            seen: the nodes that are there [nodes]; relationships of others do not count.
        """
        values = self.encode_own(mirror, label, rows)
        if not self.related.tables:
            return values
        means = RelationMeans(mirror, self.related) if means is None else means
        return np.concatenate([values, means.at(label, rows, seen)], axis=1)

    def encode_without(
        self, mirror: Mirror, row: int, blank: Sequence[str], without: Without
    ) -> Float32s:
        """Return a node's encoded row [width] under a question.

        `blank` are properties that it never had; `without` what its relationships lack.
        """
        label, rows = int(mirror.labels[row]), np.array([row], np.int64)
        columns = mirror.columns(label, rows) | {name: [None] for name in blank}
        values = self.tables[label].transform(columns, 1)
        means = RelationMeans(mirror, self.related)
        encoded: Float32s = np.concatenate(
            [values, means.at(label, rows, without=without)], axis=1
        )[0]
        return encoded

    def encode_own(self, mirror: Mirror, label: int, rows: Ints) -> Float32s:
        """Return the nodes' own encoded columns, so many nodes at a time."""
        out = np.empty((len(rows), self.tables[label].width), np.float32)
        step = max(1, int(BYTES_PER_STEP / max(mirror.tables[label].mean_bytes, 1)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            columns = mirror.columns(label, part)
            out[start : start + step] = self.tables[label].transform(columns, len(part))
        return out

    def blank(self) -> tuple[Float32s, ...]:
        """By label, the row of a node none of whose columns are known."""
        return tuple(
            np.append(table.transform({}, 1)[0], np.zeros(self.related.width(label), np.float32))
            for label, table in enumerate(self.tables)
        )

    def facts(self) -> JsonObject:
        """Return what a manifest holds of them."""
        facts = {
            "encoders": [table.to_json() for table in self.tables],
            "left_out": self.left_out,
        }
        return facts | ({RELATED_KEY: facts_of(self.related)} if self.related.tables else {})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is too long for a manifest, by name."""
        tables = dict(enumerate(self.tables)) | {
            f"r{relation}": table for relation, table in self.related.tables.items()
        }
        return {
            f"{ENCODER}{place}.{name}": array
            for place, table in tables.items()
            for name, array in table.arrays().items()
        }

    @classmethod
    def restore(
        cls, facts: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> ColumnEncoders:
        """Return the encoders of a manifest and of the arrays in the file of its weights."""

        def restored(place: int | str, table: Mapping[str, Any]) -> TableEncoder:
            front = f"{ENCODER}{place}."
            arrays = {
                name.removeprefix(front): array
                for name, array in weights.items()
                if name.startswith(front)
            }
            return TableEncoder.from_json(table, arrays)

        tables = tuple(restored(label, table) for label, table in enumerate(facts["encoders"]))
        left_out, related = dict(facts["left_out"]), facts.get(RELATED_KEY)
        if not related:
            return cls(tables, left_out)
        encoders = {
            int(each["relation"]): restored(f"r{each['relation']}", each["table"])
            for each in related
        }
        schema = TypedSchema.from_json(facts["schema"])
        return cls(tables, left_out, RelationEncoders(schema, encoders))


@dataclass(frozen=True, slots=True)
class TypedNetwork:
    """A network with weights per label and relation, as a model's manifest describes it.

    counts_classified: whether its trees, if it has any, count neighbours of the classified label.
    """

    name: str
    schema: TypedSchema
    encoders: ColumnEncoders
    weights: dict[str, NDArray[Any]]
    counts_classified: bool = True

    def plan(self) -> TypedPlan | None:
        """Return how its outputs follow a change; None if it has no inference layers."""
        planner = typed_planner(self.name)
        if planner is None:
            return None
        plan: TypedPlan = planner(self.schema, self.weights)
        return plan

    def halves(self) -> tuple[TypedPlan, TreeEnsemble] | None:
        """Return the network and the trees of a blend; None if it is one scorer alone."""
        if not is_blend(self.name):
            return None
        plan: TypedPlan = typed_planner(TYPED_SAGE)(self.schema, without_trees(self.weights))
        return plan, TreeEnsemble.from_arrays(self.weights)

    def trees(self) -> TreeEnsemble | None:
        """Return its trees; None if it is a network."""
        return TreeEnsemble.from_arrays(self.weights) if is_trees(self.name) else None

    def graph(self, mirror: Mirror, relationships: InferenceGraph) -> TypedGraph:
        """Return the mirror's graph with the label of each row."""
        return typed_graph(relationships, self.schema, mirror.labels)

    def mean_width(self, mirror: Mirror) -> int:
        """Return how many encoded columns a row of the mirror has on average."""
        widths = self.encoders.widths
        rows = np.bincount(mirror.labels, minlength=len(widths))
        return round(float(np.average(widths, weights=np.maximum(rows, 1))))

    def column_names(self) -> list[list[str]]:
        """Return what the encoded columns mean, by label."""
        return self.encoders.names


@dataclass(frozen=True, slots=True)
class PlainNetwork:
    """A network that takes the features of one label as they are, scaled."""

    model: SavedModel

    @property
    def name(self) -> str:
        """The network's name."""
        return self.model.network

    def mean_width(self, mirror: Mirror) -> int:
        """Return how many features a row of the mirror has."""
        return mirror.width

    def column_names(self) -> None:
        """Features are told apart by their places."""
        return


def network_of(model: SavedModel) -> PlainNetwork | TypedNetwork:
    """Return the network of a model, of either family.

    A stage that works differently for the two registers a function for each class.
    """
    return _typed_network(model) or PlainNetwork(model)


def column_facts(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a manifest keeps of schema and encoders; empty where there are none."""
    return dict(manifest.get(TYPED_KEY, {}))


def _typed_network(model: SavedModel) -> TypedNetwork | None:
    """Return the network with weights per label that a model has; None if it has another kind."""
    facts = column_facts(model.manifest)
    if not facts:
        return None
    return TypedNetwork(
        model.network,
        TypedSchema.from_json(facts["schema"]),
        ColumnEncoders.restore(facts, model.weights),
        network_weights(model.weights),
        counts_classified(model.manifest),
    )


def counts_classified(manifest: Mapping[str, Any]) -> bool:
    """Whether trees of a version count neighbours of the classified label, as older ones do."""
    return bool(manifest.get(TREE_COUNTS_KEY, ALL_COUNTS) == ALL_COUNTS)


def network_weights(weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model that belong to its network, without those of its encoders."""
    return {name: array for name, array in weights.items() if not name.startswith(ENCODER)}
