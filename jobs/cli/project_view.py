"""Terminal output shared by all demos: where the stores are, progress, the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from ringfence.jobs.cli.console import say

if TYPE_CHECKING:
    from ringfence.connector.neo4j.embedded import ServerProgress
    from ringfence.connector.progress import Progress
    from ringfence.jobs.project.workspace import Workspace


class ProjectConsoleView:
    """Tells the steps that all demos have."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def progress(self, what: str) -> AbstractContextManager[Progress]:
        """Show how far a step has come."""
        from ringfence.jobs.cli.progress import show_progress

        return show_progress(what)

    def server_progress(self, report: Progress) -> Callable[[ServerProgress], None]:
        """Show the start of the embedded server through `report`."""
        from ringfence.jobs.cli.progress import server_progress

        return server_progress(report)

    def opened(self, workspace: Workspace) -> None:
        """Say where both stores are."""
        audit_url = workspace.settings.audit.url
        say(f"Neo4j runs at {workspace.graph.uri}, the audit store is {audit_url}")

    def serving(self, url: str, neo4j_uri: str) -> None:
        """Say that the dashboard is open, and how to log in to Neo4j."""
        credentials = self.folder / ".ringfence" / "neo4j" / "credentials.env"
        say(
            f"\nThe dashboard is open at {url}\n"
            f"Neo4j stays open at {neo4j_uri} (login: {credentials}). Ctrl-C ends both."
        )

    def closing(self) -> None:
        """Say that Neo4j closes."""
        say("Closing Neo4j.")
