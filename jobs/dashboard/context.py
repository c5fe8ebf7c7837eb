"""What the pages of a dashboard share: settings, store, the graph if it answers, access control."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringfence.connector.store.engine import Store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.dashboard.page_graph import PageGraph
from ringfence.jobs.dashboard.security import Guard
from ringfence.jobs.integrity.chain_check import chain_words


@dataclass(slots=True)
class Dashboard:
    """A running dashboard; pages of a node, and worklists with its columns, query the graph too."""

    settings: Settings
    store: Store
    guard: Guard
    graph: PageGraph = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the connection to the graph; it is opened when a page needs it."""
        self.graph = PageGraph(self.settings)

    @property
    def root(self) -> str:
        """The path under which the project is served; empty where it is the only one."""
        return self.guard.root

    @property
    def queries(self) -> ProjectQueries:
        """The project's rows."""
        return ProjectQueries(self.store, self.settings.project)

    def how_to_start(self) -> str:
        """Return the command that starts the graph; nothing for a server that is not embedded."""
        if self.settings.neo4j.uri != "embedded":
            return ""
        return f"ringfence neo4j start --data {self.settings.engine.folder / 'neo4j'}"

    def verify(self) -> tuple[str, str]:
        """Check chain and shown rows, each time anew; return a tone and a sentence."""
        sound, sentence = chain_words(self.queries, self.settings)
        return {True: "good", False: "bad", None: "calm"}[sound], sentence

    def close(self) -> None:
        """Close the connection to the graph."""
        self.graph.close()
