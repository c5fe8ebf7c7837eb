"""Which version is in use, compared with the entries that took one into use, as it is read.

A version that is taken into use in SQL alone for one run, and then taken back, leaves a sound run
of a version that nobody promoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from sqlalchemy import Connection

from ringfence.connector.store.audit_chain.preflight_check import refuse_difference
from ringfence.connector.store.audit_chain.sealed_entries import Body, SealedEntries
from ringfence.connector.store.lifecycle.activations import (
    KIND,
    MIGRATED_REASON,
    Activation,
    read_activations,
)

TRAINED = "trained"


def sealed_activations(bodies: Iterable[Body]) -> Iterator[Body]:
    """Yield the rows that follow from the chain's entries, oldest first.

    In older versions every training took its model into use; their entries say no state.
    """
    n, was = 0, None
    for body in bodies:
        if body["kind"] == TRAINED and "state" not in body:
            n += 1
            row = {"n": n, "version": body["version"], "was": was, "how": "migrated",
                   "reason": MIGRATED_REASON}  # fmt: skip
            known = {"at_ns": body["trained_ns"]} if "trained_ns" in body else {}
            was = body["version"]
            yield row | known
        elif "activation" in body:
            n, was = body["activation"]["n"], body["activation"]["version"]
            yield body["activation"]


def activation_differences(
    recorded: Iterable[Body], activations: Iterable[Activation]
) -> Iterator[str]:
    """Yield the rows of `activation` that are not as the chain has them."""
    sealed = {row["n"]: row for row in recorded}
    stored = {activation.n: asdict(activation) for activation in activations}
    for n in sorted({*sealed, *stored}):
        if n not in stored:
            yield f"activation {n}: the row is gone, model {sealed[n]['version']} was in use"
        elif n not in sealed:
            yield f"activation {n}: model {stored[n]['version']} was never taken into use"
        elif changed := [name for name, value in sealed[n].items() if stored[n].get(name) != value]:
            yield f"activation {n}: {', '.join(changed)} changed"


def require_activations(
    connection: Connection, project: str, sealed: SealedEntries
) -> list[Activation]:
    """Return every change of the version in use; raise `StoreError` where one differs."""
    bodies = sorted(
        (*sealed.of_kind(TRAINED), *sealed.of_kind(KIND)), key=lambda body: int(body["n"])
    )
    stored = read_activations(connection, project)
    for difference in activation_differences(sealed_activations(bodies), stored):
        refuse_difference(difference)
    return stored
