"""The evaluated nodes of known class as a version saw them when a run of it was decided.

What `connector.store.calibration.known.KnownNodes` reads of the store as it is now, kept up to date
class by class while the chain is gone through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from ringfence.connector.records import KnownNode, Role
from ringfence.connector.store.calibration.known import KnownCount
from ringfence.jobs.integrity.derivation.history import Change, History, Known

Alike = tuple[int, str, int, bool, Role | None, bool, bool]
"""Run, class, time of notice, whether it joined, role in the training, selected, sampled."""


class KnownAtEntry:
    """The known nodes of one version: `counts` and `unjoined` as the next run would read them."""

    def __init__(self, history: History, roles: Mapping[str, Role]) -> None:
        self._history, self._roles = history, roles
        self._joined_by: dict[int, int] = {}
        self._counts: Counter[Alike] = Counter()
        self._count(
            Change(node, None, known)
            for node, known in enumerate(history.known)
            if known is not None
        )

    def update(self, changes: Iterable[Change]) -> None:
        """Take in classes that became known or changed."""
        self._count(changes)

    def join(self, seq: int, nodes: Iterable[int]) -> None:
        """Take in the nodes that joined by a run."""
        for node in nodes:
            known = self._history.known[node]
            if known is not None:
                self._counts[self._alike(node, known)] -= 1
            self._joined_by[node] = seq
            if known is not None:
                self._counts[self._alike(node, known)] += 1

    def has_joined(self, node: int) -> bool:
        """Whether a node joined by an earlier run."""
        return node in self._joined_by

    def role_of(self, node: int) -> Role | None:
        """Return what a node was in the version's training."""
        return self._roles.get(self._history.keys[node])

    def counts(self) -> list[KnownCount]:
        """Return how many there are of each run, class, time of notice, joined or not, and role."""
        return [
            KnownCount(*alike[:5], nodes, *alike[5:])
            for alike, nodes in self._counts.items()
            if nodes > 0
        ]

    def unjoined(self, runs: Collection[int]) -> list[KnownNode]:
        """Return the nodes of some runs that neither joined nor took part in the training."""
        history = self._history
        return [
            KnownNode(
                history.keys[node], seq, known.label, known.noticed_ns, None, None,
                history.sampled[node],
            )
            for seq in sorted(runs)
            for node in history.nodes_of(seq)
            if (known := history.known[node]) is not None
            and node not in self._joined_by
            and self.role_of(node) is None
        ]  # fmt: skip

    def _count(self, changes: Iterable[Change]) -> None:
        for node, before, after in changes:
            if before is not None:
                self._counts[self._alike(node, before)] -= 1
            self._counts[self._alike(node, after)] += 1

    def _alike(self, node: int, known: Known) -> Alike:
        history = self._history
        joined = node in self._joined_by
        return (
            history.run_of[node], known.label, known.noticed_ns, joined, self.role_of(node),
            history.is_selected(node, known), history.sampled[node],
        )  # fmt: skip
