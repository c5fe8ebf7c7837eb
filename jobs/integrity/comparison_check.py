"""Comparisons of model versions against the chain: every one, in its order, as it was found."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.store.lifecycle.comparisons import KIND
from ringfence.connector.store.trail.integrity import AuditRecord


def find_comparison_edits(record: AuditRecord) -> Iterator[str]:
    """Yield the rows of `comparison` that are not as the chain has them."""
    recorded = {body["comparison"]["n"]: body["comparison"] for body in record.bodies(KIND)}
    stored = {one.n: one.sealed() for one in record.comparisons}
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
