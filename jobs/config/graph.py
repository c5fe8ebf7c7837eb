"""`[graph]`: where nodes, features, classes and times stand in the graph of the user.

One label with one vector of numbers is written in `[graph]` itself. Several labels, or columns of
other kinds, are written as `[[graph.nodes]]`; `jobs/config/labels.py` has those tables.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from ringfence.connector.mapping import (
    GraphMapping,
    RelationMapping,
    TimeKind,
    map_one_label,
)
from ringfence.jobs.config.labels import (
    ColumnTable,
    NodeSettings,
    RelationshipSettings,
    check_nodes,
    check_relations,
    node_mappings,
    relation_mappings,
)
from ringfence.jobs.config.section import Section

ONE_LABEL_SETTINGS = ("label", "key", "features", "created_at")


class GraphSettings(Section):
    """Where nodes, features, classes and times stand in your graph."""

    label: str = Field("", description="Label of the nodes to predict.")
    key: str = Field("", description="Property that is unique per node (text or number).")
    features: str | list[str] = Field(
        "",
        description="One property that holds a list of numbers, or a list of numeric properties.",
    )
    class_property: str = Field(description="Property with the known class; absent where unknown.")
    labelled_at: str | None = Field(
        None,
        description="Property with the time at which the class was set, of the same type as "
        "`created_at`. With it an audit reads what is new; without it, it asks for every node "
        "whose class isn't known yet.",
    )
    label_delay_days: float | None = Field(
        None,
        gt=0,
        le=3_650,
        description="After how many days the class of a node is usually known. It counts for "
        "classes that no evaluated node has shown yet: runs wait for them before they calibrate "
        "and move the level, twice as long at most (without it, a year); afterwards the delay is "
        "measured, class by class.",
    )
    created_at: str = Field("created_at", description="Property with a node's creation time.")
    time_kind: TimeKind = Field(
        "zoned",
        description="Type of every `created_at`: `zoned` or `local` datetimes (local ones are read "
        "as UTC) or integer `milliseconds` since 1970.",
    )
    nodes: list[NodeSettings] = Field(
        default_factory=list,
        description="Several labels, or columns that aren't numbers: in place of `label`, `key`, "
        "`features` and `created_at`, which say the same for one label with numbers.",
    )
    relationships: list[RelationshipSettings] = Field(
        default_factory=list, description="Relationship types that carry messages."
    )
    columns: ColumnTable = Field(
        default_factory=dict,
        description='By label and property (`[graph.columns.Account]`, `city = "leave"`): `use`, '
        "`leave`, a kind, or a table of use, kind and options. Only beside `[[graph.nodes]]`.",
    )
    manage_indexes: bool = Field(
        True,
        description="`ringfence migrate` may create the unique constraint on `key` and the range "
        "indexes on `created_at` that reading needs.",
    )

    @model_validator(mode="after")
    def _one_form(self) -> GraphSettings:
        if self.nodes:
            self._check_several_labels()
        else:
            self._check_one_label()
        return self

    def _check_several_labels(self) -> None:
        given = [name for name in ONE_LABEL_SETTINGS if name in self.model_fields_set]
        if given:
            raise ValueError(
                f"{given[0]} stands beside [[graph.nodes]]; write it in the table of its label"
            )
        never = {self.class_property: "the class_property"}
        if self.labelled_at:
            never[self.labelled_at] = "labelled_at"
        check_nodes(self.nodes, self.columns, never)
        check_relations(self.nodes, self.relationships)

    def _check_one_label(self) -> None:
        for name in ("label", "key", "features"):
            if name not in self.model_fields_set:
                raise ValueError(f"{name} is missing")
        names = [self.features] if isinstance(self.features, str) else self.features
        if not names or "" in names:
            raise ValueError(
                "features names no property; name one that holds a list of numbers, or numeric "
                "ones, or feed other kinds of columns: ringfence init writes [[graph.nodes]]"
            )
        between_labels = [
            relation.type
            for relation in self.relationships
            if relation.source or relation.target or relation.after_evaluation or relation.columns
        ]
        if between_labels:
            raise ValueError(
                f"relationship {between_labels[0]} has from, to, after_evaluation or columns, "
                "which need [[graph.nodes]]"
            )
        if self.columns:
            raise ValueError("columns needs [[graph.nodes]]")

    def mapping(self) -> GraphMapping:
        """Return the names in the user's graph as the connector takes them."""
        if self.nodes:
            nodes = node_mappings(self.nodes, self.columns)
            relations = relation_mappings(nodes, self.relationships)
            return GraphMapping(nodes, relations, self.class_property, self.time_kind)
        return map_one_label(
            self.label,
            self.key,
            self.features,
            self.class_property,
            self.created_at,
            self.time_kind,
            [
                RelationMapping(0, kind.type, 0, kind.undirected, kind.created_at or None)
                for kind in self.relationships
            ],
        )
