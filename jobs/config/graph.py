"""`[graph]`: where nodes, features, classes and times stand in the graph of the user."""

from __future__ import annotations

from pydantic import Field

from ringfence.connector.mapping import TimeKind
from ringfence.jobs.config.section import Section


class RelationshipSettings(Section):
    """One relationship type that carries messages."""

    type: str = Field(description="Relationship type.")
    undirected: bool = Field(
        True, description="Messages flow both ways; false keeps the stored direction."
    )
    created_at: str | None = Field(
        "created_at",
        description="Property with the creation time. An empty text says there is none: then "
        "relationships are read together with the new nodes they touch.",
    )


class GraphSettings(Section):
    """Where nodes, features, classes and times stand in your graph."""

    label: str = Field(description="Label of the nodes to predict.")
    key: str = Field(description="Property that is unique per node (text or number).")
    features: str | list[str] = Field(
        description="One property that holds a list of numbers, or a list of numeric properties."
    )
    class_property: str = Field(description="Property with the known class; absent where unknown.")
    labelled_at: str | None = Field(
        None,
        description="Property with the time at which the class was set, of the same type as "
        "`created_at`. With it an audit reads what is new; without it, it asks for every node "
        "whose class isn't known yet.",
    )
    created_at: str = Field("created_at", description="Property with a node's creation time.")
    time_kind: TimeKind = Field(
        "zoned",
        description="Type of every `created_at`: `zoned` or `local` datetimes (local ones are read "
        "as UTC) or integer `milliseconds` since 1970.",
    )
    relationships: list[RelationshipSettings] = Field(
        default_factory=list, description="Relationship types that carry messages."
    )
    manage_indexes: bool = Field(
        True,
        description="`ringfence migrate` may create the unique constraint on `key` and the range "
        "indexes on `created_at` that reading needs.",
    )
