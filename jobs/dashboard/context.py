"""What the pages of a dashboard share: settings, store, the graph if it answers, access control."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ringfence.connector.errors import RingfenceError
from ringfence.connector.store.engine import Store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.dashboard.security import Guard
from ringfence.jobs.integrity.chain_check import chain_words

if TYPE_CHECKING:
    from ringfence.connector.neo4j.driver import Graph


@dataclass(slots=True)
class Dashboard:
    """A running dashboard. The graph is asked for the Node page alone, and may be away."""

    settings: Settings
    store: Store
    guard: Guard
    stack: ExitStack = field(default_factory=ExitStack)
    _graph: Graph | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def queries(self) -> ProjectQueries:
        """The project's rows."""
        return ProjectQueries(self.store, self.settings.project)

    def graph(self) -> Graph | None:
        """Return the graph; None while it can't be reached. An embedded one is not started."""
        from ringfence.connector.neo4j.embedded import find_running
        from ringfence.jobs.project.workspace import open_graph

        with self._lock:
            if self._graph is None:
                folder = self.settings.engine.folder / "neo4j"
                if self.settings.neo4j.uri == "embedded" and find_running(folder) is None:
                    return None
                try:
                    self._graph = self.stack.enter_context(open_graph(self.settings))
                except RingfenceError:
                    return None
            return self._graph

    def how_to_start(self) -> str:
        """Return what to type so that the graph answers; nothing for a server of someone else."""
        if self.settings.neo4j.uri != "embedded":
            return ""
        return f"ringfence neo4j start --data {self.settings.engine.folder / 'neo4j'}"

    def verify(self) -> tuple[str, str]:
        """Check chain and shown rows, each time anew; return a tone and a sentence."""
        sound, sentence = chain_words(self.queries, self.settings)
        return {True: "good", False: "bad", None: "calm"}[sound], sentence

    def close(self) -> None:
        """Let go of the graph."""
        self.stack.close()
