"""All that a command works with: settings, the graph, the audit store; and the lease to write."""

from __future__ import annotations

import errno
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ringfence.connector.errors import FolderError
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.access.login import ClientCertificateFiles, Login
from ringfence.connector.neo4j.driver import RETRY_SECONDS, Graph, log_in
from ringfence.connector.neo4j.embedded import ServerInfo, find_running, running
from ringfence.connector.neo4j.embedded.jars import ServerProgress
from ringfence.connector.neo4j.migrate import require_graph
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.progress import Progress
from ringfence.connector.store.audit_chain.actor import describe_actor
from ringfence.connector.store.audit_chain.basis.first_sightings import FirstSightings
from ringfence.connector.store.audit_chain.keys import KeySource, current_key, settle_next_key
from ringfence.connector.store.audit_chain.signature import SigningKeys, recorded_key
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lease import Lease, acquire, release, renew
from ringfence.connector.store.migrate import require_sql
from ringfence.connector.store.writer import Writer
from ringfence.jobs.config.settings import Neo4jSettings, Settings
from ringfence.jobs.config.sources.server import EMBEDDED_FOLDER
from ringfence.jobs.project.audit_store import key_source, open_audit, secret_text
from ringfence.jobs.project.folders import MIRROR, MODELS, SHADOW_TABLES, TABLES, project_folder
from ringfence.jobs.project.same_database import require_same_database
from ringfence.jobs.project.shared_resources import hold_resources

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


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
    def folder(self) -> Path:
        """Folder of what belongs only to this project."""
        return project_folder(self.settings.engine.folder, self.project)

    @property
    def models(self) -> Path:
        """Folder of the trained models."""
        return self.folder / MODELS

    @property
    def mirror(self) -> Path:
        """Folder of the mirror."""
        return self.folder / MIRROR

    @property
    def tables(self) -> Path:
        """Folder of what the forward pass keeps between runs."""
        return self.folder / TABLES

    @property
    def shadow_tables(self) -> Path:
        """Folder of what the forward pass of a candidate keeps between runs."""
        return self.folder / SHADOW_TABLES

    def reader(self, progress: Progress) -> GraphReader:
        """Return how this project reads its graph."""
        engine = self.settings.engine
        return GraphReader(
            self.graph,
            self.mapping,
            self.mirror,
            engine.read_rows,
            engine.overlap_seconds,
            progress,
            check_nodes=engine.check_nodes,
            unseen_seconds=engine.unseen_transaction_seconds,
            first_seen=FirstSightings(self.store, self.project, self.key_source),
            writer=describe_actor(),
        )

    @contextmanager
    def lease(self) -> Iterator[Lease]:
        """Hold the project's lease for the length of a `with` block."""
        folder = self.settings.engine.folder
        held = acquire(self.store, self.project, _owner(), self.settings.engine.lease_seconds)
        try:
            yield held
        except OSError as error:
            if error.errno not in DISK_ERRORS:
                with self.store.transaction() as connection:
                    renew(self.store, connection, held)  # a successor may have removed the files
                raise
            raise FolderError(
                found=f"[engine] folder {folder} can't be written: {error.strerror}",
                needed="a disk with room for mirror, models and tables (see ringfence doctor)",
                next_step="make room and run again; nothing is lost",
            ) from error
        finally:
            release(self.store, held)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Hold just the lease and the chain's key; commands open a `session.write_session`."""
        with self.lease() as held:
            yield self.writer_with(held)

    def writer_with(self, held: Lease) -> Writer:
        """Return the writer under a held lease; an interrupted rotation is settled first."""
        source = self.key_source
        self.settle_signing_key()
        with self.store.reading() as connection:
            settle_next_key(connection, self.project, source)
            return Writer(self.store, held, current_key(connection, self.project, source))

    @property
    def key_source(self) -> KeySource:
        """Where the audit chain's key may be."""
        return key_source(self.settings)

    @property
    def signing_keys(self) -> SigningKeys:
        """Where the key is that packs are signed with."""
        return SigningKeys(self.folder)

    def settle_signing_key(self) -> None:
        """Finish or undo an interrupted rotation of the signing key; the caller holds the lease."""
        if self.signing_keys.next_file.exists():
            with self.store.reading() as connection:
                self.signing_keys.settle(recorded_key(connection, self.project))

    def require_migrated(self) -> None:
        """Raise unless both stores are at this code's version, and the graph is the project's."""
        require_sql(self.store)
        require_same_database(self.graph, self.store, self.project)
        require_graph(self.graph)


@contextmanager
def open_workspace(
    settings: Settings, download: Callable[[ServerProgress], None] | None = None
) -> Iterator[Workspace]:
    """Open graph and store; an embedded server that isn't running yet runs for the block."""
    with ExitStack() as stack:
        stack.enter_context(hold_resources())
        graph = stack.enter_context(open_graph(settings, download))
        store = stack.enter_context(open_audit(settings))
        yield Workspace(settings, settings.mapping(), graph, store)


@contextmanager
def open_graph(
    settings: Settings,
    download: Callable[[ServerProgress], None] | None = None,
    retry_seconds: float = RETRY_SECONDS,
) -> Iterator[Graph]:
    """Connect to the configured server, or to the project's embedded one.

    `retry_seconds` is for how long a server that does not answer is asked again.
    """
    neo4j = settings.neo4j
    with ExitStack() as stack:
        if neo4j.uri == "embedded":
            server = stack.enter_context(
                _embedded(settings.engine.folder / EMBEDDED_FOLDER, download)
            )
            uri, login = server.uri, Login(server.user, server.password)
        else:
            uri, login = neo4j.uri, login_of(neo4j)
        graph = log_in(uri, login, neo4j.database, neo4j.tls, retry_seconds)
        stack.callback(graph.close)
        yield graph


def login_of(neo4j: Neo4jSettings) -> Login:
    """Return how the settings say to log in."""
    certificate = ClientCertificateFiles(
        neo4j.client_certificate, neo4j.client_key or None, secret_text(neo4j.client_key_password)
    )
    return Login(
        neo4j.user,
        secret_text(neo4j.password),
        neo4j.auth,
        secret_text(neo4j.token),
        certificate if neo4j.client_certificate else None,
    )


@contextmanager
def _embedded(
    folder: Path, download: Callable[[ServerProgress], None] | None
) -> Iterator[ServerInfo]:
    if server := find_running(folder):
        yield server
        return
    with running(folder, progress=download) as server:
        yield server


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
