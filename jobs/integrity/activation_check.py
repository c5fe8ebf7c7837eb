"""Which model version was in use when, and comparisons of versions, against the chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ringfence.connector.store.audit_chain.integrity import AuditRecord
from ringfence.connector.store.lifecycle.activations import MIGRATED_REASON
from ringfence.connector.store.lifecycle.comparisons import KIND as COMPARED


def find_activation_edits(record: AuditRecord) -> Iterator[str]:
    """Yield the rows of `activation` that are not as the chain has them."""
    recorded = {row["n"]: row for row in _recorded(record)}
    stored = {activation.n: asdict(activation) for activation in record.activations}
    for n in sorted({*recorded, *stored}):
        if n not in stored:
            yield f"activation {n}: the row is gone, model {recorded[n]['version']} was in use"
        elif n not in recorded:
            yield f"activation {n}: model {stored[n]['version']} was never taken into use"
        elif changed := [
            name for name, value in recorded[n].items() if stored[n].get(name) != value
        ]:
            yield f"activation {n}: {', '.join(changed)} changed"


def _recorded(record: AuditRecord) -> Iterator[Mapping[str, Any]]:
    """Yield the rows that follow from the chain, oldest first.

    In older versions every training took its model into use; their entries say no state.
    """
    n, was = 0, None
    for entry in record.entries:
        if entry.kind == "trained" and "state" not in entry.facts:
            n += 1
            row = {
                "n": n,
                "version": entry.facts["version"],
                "was": was,
                "how": "migrated",
                "reason": MIGRATED_REASON,
            }
            if "trained_ns" in entry.facts:
                row["at_ns"] = entry.facts["trained_ns"]
            was = row["version"]
            yield row
        elif "activation" in entry.facts:
            n, was = entry.facts["activation"]["n"], entry.facts["activation"]["version"]
            yield entry.facts["activation"]


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
