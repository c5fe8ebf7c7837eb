"""The local mirror: the graph's nodes and relationships as mapped columns.

A run reads from Neo4j only what is new. The mirror is a cache: it can be thrown away at any time
and is rebuilt from Neo4j when it is missing, torn, or of another graph or mapping. Nodes and
relationships that were deleted, and properties that changed, are taken over where they stand.
"""

from ringfence.connector.mirror.compaction import compact, is_compaction_due
from ringfence.connector.mirror.files import (
    FILE,
    PART,
    exists,
    forget_part,
    load,
    load_part,
    save,
    save_part,
)
from ringfence.connector.mirror.mirror import UNKNOWN, Mirror, create

__all__ = [
    "FILE", "PART", "UNKNOWN", "Mirror", "compact", "create", "exists", "forget_part",
    "is_compaction_due", "load", "load_part", "save", "save_part",
]  # fmt: skip
