"""A model is bound to its mapping: to every name in the graph that shapes what the network is fed.

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
from ringfence.connector.mapping import GraphMapping, TypedMapping
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
    changed = [name for name in now if bound["parts"].get(name) != now[name]]
    raise ConfigError(
        found="; ".join(
            f"[graph] {name} is {dumps(now[name])}, model {manifest['version']} was trained with "
            f"{dumps(bound['parts'].get(name))}"
            for name in changed
        )
        or f"the mapping in the manifest of model {manifest['version']} does not fit its digest",
        needed="the mapping that the model was trained with: its sets mean nothing under another",
        next_step="restore [graph] in ringfence.toml; or, for a model of the new one: "
        "ringfence train",
    )


def _inputs(mapping: GraphMapping) -> dict[str, Any]:
    """All that shapes the network's inputs, by its name in `[graph]`; times are no inputs.

    >>> from ringfence.connector.mapping import RelationshipMapping
    >>> kind = RelationshipMapping("PAID", undirected=False)
    >>> names = ("Account", "id", ("f",), True, "kind", "created_at", "zoned", (kind,))
    >>> _inputs(GraphMapping(*names))["relationships"]
    ['PAID (directed)']
    """
    if mapping.typed is not None:
        return _typed_inputs(mapping.typed)
    return {
        "label": mapping.label,
        "key": mapping.key,
        "features": mapping.features[0] if mapping.features_are_list else list(mapping.features),
        "class_property": mapping.class_property,
        "relationships": [f"{r.type} ({WAYS[r.undirected]})" for r in mapping.relationships],
    }


def _typed_inputs(typed: TypedMapping) -> dict[str, Any]:
    """The same of several labels; the order of labels, columns and types is part of it."""
    relations = [
        f"{typed.describe(one)} ({WAYS[one.undirected]}"
        f"{', after evaluation' if one.after_evaluation else ''})"
        for one in typed.relations
    ]
    return {
        "class_property": typed.class_property,
        "nodes": [[node.label, node.key, list(node.column_names)] for node in typed.nodes],
        "columns": {
            f"{node.label}.{column.name}": [column.kind, dict(column.options)]
            for node in typed.nodes
            for column in node.columns
            if column.kind or column.options
        },
        "relationships": relations,
    }


def _digest(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(dumps(parts).encode()).hexdigest()
