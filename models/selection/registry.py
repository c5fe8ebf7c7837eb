"""What a list's promise is about, by the name that a configuration uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.models.kind_registry import KindRegistry

if TYPE_CHECKING:
    from ringfence.models.selection.base import SelectionScope

__all__ = ["SCOPES", "scope_named"]

SCOPES: KindRegistry[SelectionScope] = KindRegistry(
    "per",
    {
        "run": "ringfence.models.selection.per_run:PER_RUN",
        "stream": "ringfence.models.selection.per_stream:PER_STREAM",
    },
)


def scope_named(name: str) -> SelectionScope:
    """Return what a list's promise is about.

    >>> scope_named("run").is_proved
    True
    """
    return SCOPES.named(name)
