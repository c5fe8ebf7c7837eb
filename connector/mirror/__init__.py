"""The local mirror: the graph's nodes and relationships as mapped columns.

A run reads from Neo4j only what is new. The mirror is a cache: it can be thrown away at any time
and is rebuilt from Neo4j when it is missing, torn, or of another graph or mapping. Nodes and
relationships that were deleted, and properties that changed, are updated in place.

Nodes of all labels stand in one space of rows, and each label has a table of its properties: a
vector per node, or raw columns as the graph has them, whose vocabularies and scales belong to a
model version.
"""

from ringfence.connector.mirror.blocks import (
    NodeBlock,
    RawBlock,
    RelatedBlock,
    RelationshipBlock,
    TypedKeys,
)
from ringfence.connector.mirror.compaction import compact, is_compaction_due
from ringfence.connector.mirror.files import (
    FILE,
    PART,
    exists,
    forget_part,
    load,
    load_part,
    open_shared,
    save,
    save_part,
    writer_of,
)
from ringfence.connector.mirror.incarnations import find_recorded, record_keys_at
from ringfence.connector.mirror.labels import (
    CLASSIFIED,
    UNKNOWN,
    context_key,
    context_keys,
    plain_key,
)
from ringfence.connector.mirror.mirror import Mirror
from ringfence.connector.mirror.new_mirror import create, create_raw

__all__ = [
    "CLASSIFIED", "FILE", "PART", "UNKNOWN", "Mirror", "NodeBlock", "RawBlock", "RelatedBlock",
    "RelationshipBlock", "TypedKeys", "compact", "context_key", "context_keys", "create",
    "create_raw", "exists", "find_recorded", "forget_part", "is_compaction_due", "load",
    "load_part", "open_shared", "plain_key", "record_keys_at", "save", "save_part", "writer_of",
]  # fmt: skip
