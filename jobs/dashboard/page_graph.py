"""The graph as pages ask it: an answer within two seconds, or none.

A run waits minutes for a server that restarts; a person who opened a page does not. A stopped
server is given up by the driver, a frozen one by the page: its question is left to a thread of its
own. The next question after a failure opens a new connection, since an embedded server that was
started again has another port.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from ringfence.connector.errors import RingfenceError, ServerError
from ringfence.jobs.config.settings import Settings

if TYPE_CHECKING:
    from ringfence.connector.neo4j.driver import Graph

T = TypeVar("T")
PAGE_SECONDS = 2.0
MAX_QUESTIONS = 16  # that may wait for a server at the same time; further ones get no answer


class PageGraph:
    """A connection for pages; an embedded server is not started for them."""

    def __init__(self, settings: Settings, seconds: float = PAGE_SECONDS) -> None:
        self.settings, self.seconds = settings, seconds
        self._graph: Graph | None = None
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MAX_QUESTIONS)

    def ask(self, question: Callable[[Graph], T]) -> T | None:
        """Return the answer to a question; None if there is none after the seconds of a page."""
        import ringfence.jobs.project.workspace  # noqa: F401  # the driver: before the time counts

        if not self._places.acquire(blocking=False):
            return None
        answers: SimpleQueue[T | None] = SimpleQueue()

        def wait() -> None:
            try:
                answers.put(self._answer(question))
            finally:
                self._places.release()
                answers.put(None)

        threading.Thread(target=wait, name="ringfence-page-graph", daemon=True).start()
        try:
            return answers.get(timeout=self.seconds)
        except Empty:
            return None

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._close()

    def _answer(self, question: Callable[[Graph], T]) -> T | None:
        graph = self._open()
        if graph is None:
            return None
        try:
            return question(graph)
        except ServerError:
            with self._lock:
                if graph is self._graph:  # not one that another question has opened meanwhile
                    self._close()
        except RingfenceError:
            pass  # the graph is not as configured: the page shows what SQL knows
        return None

    def _open(self) -> Graph | None:
        from ringfence.connector.neo4j.embedded import find_running
        from ringfence.jobs.project.workspace import open_graph

        with self._lock:
            if self._graph is None:
                folder = self.settings.engine.folder / "neo4j"
                if self.settings.neo4j.uri == "embedded" and find_running(folder) is None:
                    return None
                try:
                    opened = open_graph(self.settings, retry_seconds=self.seconds)
                    self._graph = self._stack.enter_context(opened)
                except RingfenceError:
                    return None
            return self._graph

    def _close(self) -> None:
        self._graph = None
        self._stack.close()
