"""What the checks of a label share: the graph, what was seen of the label, the settings."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.inspect import LabelView, Property
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding


@dataclass(frozen=True, slots=True)
class LabelInGraph:
    """The configured label as it is in the live graph."""

    graph: Graph
    view: LabelView
    settings: Settings

    @property
    def mapping(self) -> GraphMapping:
        """The names in the graph, as configured."""
        return self.settings.mapping()

    def find_property(self, name: str) -> Property | None:
        """Return a property of the label's nodes; None where no node has it."""
        return next((prop for prop in self.view.properties if prop.name == name), None)

    def missing_property(self, setting: str, name: str) -> Finding:
        """Return the error that no node has the property that `[graph] setting` names."""
        there = ", ".join(prop.name for prop in self.view.properties)
        return Finding(
            "error",
            f"no :{self.view.name} node has the property {name}; there are: {there}",
            f"correct [graph] {setting}",
        )
