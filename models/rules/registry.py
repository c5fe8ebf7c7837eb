"""Rules by the name that a configuration uses: one rule, one file, one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.models.kind_registry import KindRegistry

if TYPE_CHECKING:
    from ringfence.models.rules.base import Rule

__all__ = ["RULES", "rule_named"]

RULES: KindRegistry[Rule] = KindRegistry(
    "rule",
    {
        "auto": "ringfence.models.rules.degree_bands:DEGREE_BANDS",
        "NodeEx": "ringfence.models.rules.node_ex:NODE_EX",
        "EdgeEx": "ringfence.models.rules.edge_ex:EDGE_EX",
    },
)


def rule_named(name: str) -> Rule:
    """Return the rule called ``name``.

    >>> rule_named("EdgeEx").needs_neighbours
    True
    """
    return RULES.named(name)
