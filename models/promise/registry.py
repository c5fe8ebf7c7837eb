"""Promises by the name that a configuration uses: one promise, one file, one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.models.kind_registry import KindRegistry

if TYPE_CHECKING:
    from ringfence.models.promise.base import PromiseKind

__all__ = ["PROMISES", "promise_named"]

PROMISES: KindRegistry[PromiseKind] = KindRegistry(
    "promise",
    {
        "marginal": "ringfence.models.promise.marginal:MARGINAL",
        "class": "ringfence.models.promise.per_class:PER_CLASS",
        "group": "ringfence.models.promise.per_group:PER_GROUP",
    },
)


def promise_named(name: str) -> PromiseKind:
    """Return the promise called ``name``.

    >>> promise_named("class").per_class
    True
    """
    return PROMISES.named(name)
