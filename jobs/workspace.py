"""All that a command works with: settings, the graph, the audit store."""

from __future__ import annotations

import errno
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ringfence.connector import migrate_graph, migrate_sql
from ringfence.connector.chain import chain_key
from ringfence.connector.embedded import ServerInfo, find_running, running
from ringfence.connector.embedded.jars import Progress
from ringfence.connector.errors import FolderError
from ringfence.connector.graph import Graph, connect
from ringfence.connector.lease import acquire, release
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.refresh import Progress as ReadProgress
from ringfence.connector.refresh import Reader
from ringfence.connector.runs import Writer
from ringfence.connector.store import Store
from ringfence.jobs.audit_store import open_audit, secret_text
from ringfence.jobs.settings import Settings

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


@dataclass(frozen=True, slots=True)
class Workspace:
    """An open project."""

    settings: Settings
    mapping: GraphMapping
    graph: Graph
    store: Store

    @property
    def project(self) -> str:
        """Name of the project."""
        return self.settings.project

    @property
    def models(self) -> Path:
        """Folder of the trained models."""
        return self.settings.engine.folder / "models"

    @property
    def mirror(self) -> Path:
        """Folder of the mirror."""
        return self.settings.engine.folder / "mirror"

    @property
    def tables(self) -> Path:
        """Folder of what the forward pass keeps between runs."""
        return self.settings.engine.folder / "forward"

    def reader(self, progress: ReadProgress) -> Reader:
        """Return how this project reads its graph."""
        engine = self.settings.engine
        return Reader(
            self.graph,
            self.mapping,
            self.mirror,
            engine.read_rows,
            engine.overlap_seconds,
            progress,
        )

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Hold the project's lease for the length of a `with` block."""
        key = secret_text(self.settings.audit.key)
        folder = self.settings.engine.folder
        held = acquire(self.store, self.project, _owner(), self.settings.engine.lease_seconds)
        try:
            yield Writer(self.store, held, chain_key(key, folder))
        except OSError as error:
            if error.errno not in DISK:
                raise
            raise FolderError(
                found=f"[engine] folder {folder} can't be written: {error.strerror}",
                needed="a disk with room for mirror, models and tables (see ringfence doctor)",
                next_step="make room and run again; nothing is lost",
            ) from error
        finally:
            release(self.store, held)

    def require_migrated(self) -> None:
        """Raise unless both stores are at this code's version."""
        migrate_sql.require_sql(self.store)
        migrate_graph.require_graph(self.graph)


@contextmanager
def open_workspace(
    settings: Settings, download: Callable[[Progress], None] | None = None
) -> Iterator[Workspace]:
    """Open graph and store; an embedded server that isn't running yet runs for the block."""
    with ExitStack() as stack:
        graph = stack.enter_context(open_graph(settings, download))
        store = stack.enter_context(open_audit(settings))
        yield Workspace(settings, settings.mapping(), graph, store)


@contextmanager
def open_graph(
    settings: Settings, download: Callable[[Progress], None] | None = None
) -> Iterator[Graph]:
    """Connect to the configured server, or to the project's embedded one."""
    neo4j = settings.neo4j
    with ExitStack() as stack:
        if neo4j.uri == "embedded":
            server = stack.enter_context(_embedded(settings.engine.folder / "neo4j", download))
            graph = connect(server.uri, server.user, server.password, neo4j.database, neo4j.tls)
        else:
            password = secret_text(neo4j.password)
            graph = connect(neo4j.uri, neo4j.user, password, neo4j.database, neo4j.tls)
        stack.callback(graph.close)
        yield graph


@contextmanager
def _embedded(folder: Path, download: Callable[[Progress], None] | None) -> Iterator[ServerInfo]:
    if found := find_running(folder):
        yield found
        return
    with running(folder, progress=download) as server:
        yield server


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
