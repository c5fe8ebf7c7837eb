"""Which model version was in use when, and comparisons of versions, against the chain."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.store.audit_chain.basis.activations import (
    activation_differences,
    sealed_activations,
)
from ringfence.connector.store.audit_chain.integrity import AuditRecord
from ringfence.connector.store.lifecycle.comparisons import KIND as COMPARED


def find_activation_edits(record: AuditRecord) -> Iterator[str]:
    """Yield the rows of `activation` that are not as the chain has them."""
    bodies = ({"kind": entry.kind, **entry.facts} for entry in record.entries)
    yield from activation_differences(sealed_activations(bodies), record.activations)


def find_comparison_edits(record: AuditRecord) -> Iterator[str]:
    """Yield the rows of `comparison` that are not as the chain has them."""
    recorded = {body["comparison"]["n"]: body["comparison"] for body in record.bodies(COMPARED)}
    stored = {comparison.n: comparison.sealed() for comparison in record.comparisons}
    for n in sorted({*recorded, *stored}):
        if n not in stored:
            yield f"comparison {n}: the row is gone, model {recorded[n]['version']} was compared"
        elif n not in recorded:
            yield f"comparison {n}: model {stored[n]['version']} was never compared"
        elif changed := [
            name for name, value in recorded[n].items() if stored[n].get(name) != value
        ]:
            names = ", ".join(name.removesuffix("_sha256") for name in changed)
            yield f"comparison {n}: {names} changed"
