"""The mirror of a graph with several labels: one row space, and raw columns beside it.

Rows, keys, classes, times and relationships are those of a plain mirror; a row's label and its
properties as the graph has them stand here. Vocabularies and scales belong to a model version.
"""

from ringfence.connector.mirror.typed.files import load_typed, save_typed
from ringfence.connector.mirror.typed.mirror import (
    RawBlock,
    TypedMirror,
    context_key,
    create_typed,
    plain_key,
)

__all__ = [
    "RawBlock",
    "TypedMirror",
    "context_key",
    "create_typed",
    "load_typed",
    "plain_key",
    "save_typed",
]
