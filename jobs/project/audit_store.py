"""Open only the audit store: code that only reads SQL needs neither Neo4j's driver nor torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import SecretStr

from ringfence.connector.store.audit_chain.keys import KeySource
from ringfence.connector.store.engine import Store, open_store
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.folders import project_folder


@contextmanager
def open_audit(settings: Settings) -> Iterator[Store]:
    """Connect to the audit store."""
    store = open_store(settings.audit.url, secret_text(settings.audit.password))
    try:
        yield store
    finally:
        store.close()


def key_source(settings: Settings) -> KeySource:
    """Return where the key of the project's audit chain may be."""
    folder = settings.engine.folder
    of_project = project_folder(folder, settings.project)
    return KeySource(secret_text(settings.audit.key), folder, of_project)


def secret_text(value: SecretStr | None) -> str | None:
    """Return what a secret holds, at the one place that needs it."""
    return None if value is None else value.get_secret_value()
