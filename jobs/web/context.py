"""What the routes of one dashboard share: settings, store, the graph if it answers, the door."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ringfence.connector.errors import RingfenceError
from ringfence.connector.store import Store
from ringfence.jobs.chain_words import chain_words
from ringfence.jobs.looking import Look
from ringfence.jobs.settings import Settings
from ringfence.jobs.web.security import Guard

if TYPE_CHECKING:
    from ringfence.connector.graph import Graph


@dataclass(slots=True)
class Dashboard:
    """A running dashboard. The graph is asked for the Node page alone, and may be away."""

    settings: Settings
    store: Store
    guard: Guard
    stack: ExitStack = field(default_factory=ExitStack)
    verified: tuple[int, bool | None, str] | None = None
    _graph: Graph | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def look(self) -> Look:
        """The project's rows."""
        return Look(self.store, self.settings.project)

    def graph(self) -> Graph | None:
        """Return the graph; None while it can't be reached. An embedded one is not started."""
        from ringfence.connector.embedded import find_running
        from ringfence.jobs.workspace import open_graph

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
        """Check the chain; return a tone and a sentence. An unchanged chain isn't read again."""
        length = self.look.chain_length()
        if self.verified is None or self.verified[0] != length:
            self.verified = (length, *chain_words(self.look, self.settings))
        _, sound, words = self.verified
        return {True: "good", False: "bad", None: "calm"}[sound], words

    def close(self) -> None:
        """Let go of the graph."""
        self.stack.close()
