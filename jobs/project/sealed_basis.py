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
from ringfence.connector.store.lifecycle.activations import Activation, activations_of
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.project.workspace import Workspace


@contextmanager
def on_record(workspace: Workspace) -> Iterator[tuple[Workspace, Basis]]:
    """Yield the project reading from one snapshot, and the `Basis` of the same snapshot."""
    with workspace.store.at_one_moment() as store, store.reading() as connection:
        key = current_key(connection, workspace.project, workspace.key_source)
        yield replace(workspace, store=store), Basis(connection, workspace.project, key)


def activations_on_record(workspace: Workspace) -> list[Activation]:
    """Return every change of the version in use, as the chain has them; the last one is in use."""
    with on_record(workspace) as (held, basis):
        activations = activations_of(held.store, held.project)
        basis.require_active(activations[-1].version if activations else None)
    return activations


def active_on_record(workspace: Workspace) -> str | None:
    """Return the manifest of the version in use, as the chain has it; None before there is one."""
    with on_record(workspace) as (held, basis):
        activations = activations_of(held.store, held.project)
        active = activations[-1].version if activations else None
        basis.require_active(active)
        if active is None:
            return None
        basis.require_model(active)
        return manifest_of(held.store, held.project, active)
