"""A project as one snapshot of SQL has it, with what compares the rows of that snapshot with seals.

with on_record(workspace) as (held, basis):
    basis.require_labels()
    known = KnownNodes(held.store, held.project, version).all()
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ringfence.connector.store.audit_chain.basis_check import Basis
from ringfence.connector.store.audit_chain.keys import current_key
from ringfence.jobs.project.workspace import Workspace


@contextmanager
def on_record(workspace: Workspace) -> Iterator[tuple[Workspace, Basis]]:
    """Yield the project reading from one snapshot, and the `Basis` of the same snapshot."""
    with workspace.store.at_one_moment() as store, store.reading() as connection:
        key = current_key(connection, workspace.project, workspace.key_source)
        yield replace(workspace, store=store), Basis(connection, workspace.project, key)
