"""The local mirror: the graph's nodes and relationships as mapped columns.

A run reads from Neo4j only what is new. The mirror is a cache: it can be thrown away at any time
and is rebuilt from Neo4j when it is missing, torn, of another graph or mapping, or when the count
store says that nodes were missed or deleted.
"""

from ringfence.connector.mirror.files import FILE, load, save
from ringfence.connector.mirror.mirror import UNKNOWN, Mirror, create

__all__ = ["FILE", "UNKNOWN", "Mirror", "create", "load", "save"]
