"""The project of a demo: its folder, configuration and server, and the dashboard at the end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from ringfence.connector.neo4j.embedded import ServerProgress
from ringfence.connector.neo4j.migrate import create_user_indexes, migrate_graph
from ringfence.connector.neo4j.write import bulk
from ringfence.connector.progress import Progress
from ringfence.connector.store.migrate import migrate_sql
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.dashboard.server import changed, run_server, show_in_browser
from ringfence.jobs.project.seed_key import seed_keys
from ringfence.jobs.project.workspace import Workspace, open_workspace


class ProjectView(Protocol):
    """Receives the project's steps, which all demos share."""

    def progress(self, what: str) -> AbstractContextManager[Progress]:
        """Show how far a step has come."""

    def server_progress(self, report: Progress) -> Callable[[ServerProgress], None]:
        """Show the start of the embedded server through `report`."""

    def opened(self, workspace: Workspace) -> None:
        """Both stores are open and migrated."""

    def serving(self, url: str, neo4j_uri: str) -> None:
        """The dashboard is open."""

    def closing(self) -> None:
        """The dashboard is closed; Neo4j follows."""


@contextmanager
def open_demo(folder: Path, toml: str, view: ProjectView) -> Iterator[Workspace]:
    """Open an empty project in `folder`; what an earlier demo left there is replaced."""
    settings = _write_configuration(folder, toml)
    with ExitStack() as stack:
        with view.progress("starting Neo4j") as report:  # the bar ends with the start
            workspace = stack.enter_context(open_workspace(settings, view.server_progress(report)))
        bulk.delete_all_nodes(workspace.graph)
        migrate_sql(workspace.store)
        migrate_graph(workspace.graph)
        create_user_indexes(workspace.graph, workspace.mapping)
        view.opened(workspace)
        yield workspace


def _write_configuration(folder: Path, toml: str) -> Settings:
    """Write the configuration; keep the server's folder, which is slow to make."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ringfence.toml"
    path.write_text(toml, encoding="utf-8")
    settings = load(path)
    for name in ("projects", "models", "mirror", "forward"):  # the last three: of the first version
        shutil.rmtree(settings.engine.folder / name, ignore_errors=True)
    for file in settings.engine.folder.glob("audit.*"):
        file.unlink()
    seed_keys(settings).write(settings.model.seed)  # a published key: everyone gets the same sets
    return settings


def keep_open(workspace: Workspace, view: ProjectView) -> None:
    """Keep the dashboard and Neo4j open until Ctrl-C."""

    def ready(url: str) -> None:
        view.serving(url, workspace.graph.uri)
        show_in_browser(url)

    run_server(changed(workspace.settings, None, 0), ready)
    view.closing()
