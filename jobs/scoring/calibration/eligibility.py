"""Which evaluated nodes of known class may calibrate a model version."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from ringfence.connector.keys import typed_key_of
from ringfence.connector.records import KnownNode
from ringfence.models import hashing


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Which evaluated nodes that took no part in a version's training may calibrate it.

    version, seed: of the version; its own runs move its level.
    shares: class -> shares of the roles at the training, "" for every class without its own; empty
        where an older version did not record them.
    consulted: runs of which some class helped to choose the version: none of their nodes
        calibrates it, since those that became known later alone would be a choice of their own.
    learnt: keys that its ancestors (`[model] warm_start`) learnt from.
    draw_seed: keys the draw at the window's border: a secret, where the version has a seed key.
    """

    version: str = ""
    seed: int = 0
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    consulted: frozenset[int] = frozenset()
    learnt: frozenset[str] = frozenset()
    draw_seed: int = field(default=0, repr=False)

    def among(self, nodes: Sequence[KnownNode], divided: Container[int]) -> list[KnownNode]:
        """Return those of some nodes that may join; `divided` are runs that the training divided.

        Of a run that had known nodes at the training, these were divided by their keys; its other
        nodes are divided in the same way once they are known, and the part that would have
        calibrated does. All of them would be too many of the classes that become known late.
        """
        free = [
            n
            for n in nodes
            if n.role is None
            and n.evaluated_in not in self.consulted
            and n.node_key not in self.learnt
        ]
        by_class: dict[str, list[KnownNode]] = {}
        for node in free:
            if node.evaluated_in in divided:
                name = node.label if node.label in self.shares else ""
                by_class.setdefault(name, []).append(node)
        drawn: set[str] = set()
        for name, alike in by_class.items() if self.shares else ():
            typed_keys = [typed_key_of(n.node_key) for n in alike]
            parts = hashing.split(typed_keys, self.seed, self.shares[name])
            calibrates = parts["calibration"].tolist()
            drawn |= {n.node_key for n, inside in zip(alike, calibrates, strict=True) if inside}
        return [n for n in free if n.evaluated_in not in divided or n.node_key in drawn]
