"""A model is bound to its mapping: to every name in the graph that shapes the network's inputs.

A label with the same keys, features in another order or another relationship type give inputs of
the right shape and the wrong meaning, and sets and coverage that look fine. So the manifest holds
the mapping, and another one is refused. Manifests from before this have none: such a model runs on,
and each run notes that it is not bound.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.store.engine import dumps

WAYS = {True: "undirected", False: "directed"}
NOT_BOUND = (
    "the model was trained before models were bound to [graph]: a changed label, feature or "
    "relationship type would not be noticed; ringfence train binds the next one"
)


def bind_mapping(mapping: GraphMapping) -> dict[str, Any]:
    """Return what a manifest holds of the mapping: a digest, and the parts that it is over."""
    parts = _inputs(mapping)
    return {"digest": _digest(parts), "parts": parts}


def is_bound(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest holds the mapping that its model was trained with."""
    return "mapping" in manifest


def require_mapping(mapping: GraphMapping, recorded: str) -> None:
    """Raise `ConfigError` where the mapping is not the one in the `recorded` manifest."""
    manifest = json.loads(recorded)
    if not is_bound(manifest):
        return
    now, bound = _inputs(mapping), manifest["mapping"]
    if _digest(now) == bound["digest"]:
        return
    names = dict.fromkeys([*now, *bound["parts"]])
    changed = [name for name in names if bound["parts"].get(name) != now.get(name)]
    raise ConfigError(
        found="; ".join(
            f"[graph] {name} is {dumps(now.get(name))}, model {manifest['version']} was trained "
            f"with {dumps(bound['parts'].get(name))}"
            for name in changed
        )
        or f"the mapping in the manifest of model {manifest['version']} does not fit its digest",
        needed="the mapping that the model was trained with: its sets mean nothing under another",
        next_step="restore [graph] in ringfence.toml; or, for a model of the new one: "
        "ringfence train",
    )


def _inputs(mapping: GraphMapping) -> dict[str, Any]:
    """All that shapes the network's inputs, by its name in `[graph]`; times are no inputs.

    >>> from ringfence.connector.mapping import RelationMapping, map_one_label
    >>> paid = RelationMapping(0, "PAID", 0, undirected=False)
    >>> names = ("Account", "id", "f", "kind", "created_at", "zoned", [paid])
    >>> _inputs(map_one_label(*names))["relationships"]
    ['PAID (directed)']
    """
    return _strict_inputs(mapping) if mapping.features_are_strict else _column_inputs(mapping)


def _strict_inputs(mapping: GraphMapping) -> dict[str, Any]:
    """Of one label with strict features, as its settings in `[graph]` are called."""
    node = mapping.classified
    names = node.column_names
    return {
        "label": node.label,
        "key": node.key,
        "features": names[0] if mapping.features_are_list else list(names),
        "class_property": mapping.class_property,
        "relationships": [f"{r.type} ({WAYS[r.undirected]})" for r in mapping.relations],
    }


def _column_inputs(mapping: GraphMapping) -> dict[str, Any]:
    """Of `[[graph.nodes]]`; the order of labels, columns and types is part of it."""
    relations = [
        f"{mapping.describe(relation)} ({WAYS[relation.undirected]}"
        f"{', after evaluation' if relation.after_evaluation else ''})"
        for relation in mapping.relations
    ]
    inputs = {
        "class_property": mapping.class_property,
        "nodes": [[node.label, node.key, list(node.column_names)] for node in mapping.nodes],
        "columns": {
            f"{node.label}.{column.name}": [column.kind, dict(column.options)]
            for node in mapping.nodes
            for column in node.columns
            if column.kind or column.options
        },
        "relationships": relations,
    }
    related = {
        f"{mapping.describe(relation)}.{column.name}": [column.kind, dict(column.options)]
        for relation in mapping.relations
        for column in relation.columns
    }
    return inputs | ({"relationship_columns": related} if related else {})


def _digest(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(dumps(parts).encode()).hexdigest()
