"""Kinds by name, each imported on first use: listing the names does not import numpy.

A configuration is checked against the names before anything heavy is loaded.

    RULES = KindRegistry("rule", {"NodeEx": "ringfence.models.rules.node_ex:NODE_EX"})
    RULES["NodeEx"].needs_neighbours
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Generic, TypeVar, cast

Kind = TypeVar("Kind")


class KindRegistry(MutableMapping[str, Kind], Generic[Kind]):
    """Kinds of one sort (`rule`, `promise`) by name; a path is `package.module:OBJECT`."""

    def __init__(self, sort: str, paths: Mapping[str, str]) -> None:
        self._sort = sort
        self._kinds: dict[str, Kind | str] = dict(paths)

    def named(self, name: str) -> Kind:
        """Return the kind called ``name``; raise if there is none."""
        if name not in self._kinds:
            known = ", ".join(self._kinds)
            raise ValueError(f"{self._sort} {name!r} is unknown; needed: one of {known}")
        return self[name]

    def __getitem__(self, name: str) -> Kind:
        kind = self._kinds[name]
        if isinstance(kind, str):
            module, _, attribute = kind.partition(":")
            kind = cast(Kind, getattr(import_module(module), attribute))
            self._kinds[name] = kind
        return kind

    def __setitem__(self, name: str, kind: Kind) -> None:
        self._kinds[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
