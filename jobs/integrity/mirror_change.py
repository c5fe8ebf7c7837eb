"""What a full read shows that the mirror did not have: of one label, or of several."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import UNKNOWN, Mirror

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MirrorChange:
    """What a full read shows that the mirror did not have."""

    missed: int
    deleted: int
    changed: int
    edges_missed: int
    edges_deleted: int

    @property
    def clean(self) -> bool:
        """Whether the mirror was up to date."""
        return not (
            self.missed or self.deleted or self.changed or self.edges_missed or self.edges_deleted
        )


def compare_mirrors(before: Mirror | None, after: Mirror) -> MirrorChange:
    """Return how a mirror differs from one that was read whole; without one nothing differs."""
    if before is None:
        return MirrorChange(0, 0, 0, 0, 0)
    old, new = _rows_by_key(before), _rows_by_key(after)
    both = [key for key in new if key in old]
    mine = np.array([old[key] for key in both], np.int64)
    theirs = np.array([new[key] for key in both], np.int64)
    changed = _other_columns(before, after, mine, theirs)
    changed |= _other_classes(before, after, mine, theirs)
    edges, now = _edge_keys(before), _edge_keys(after)
    return MirrorChange(
        missed=len(new) - len(both),
        deleted=len(old) - len(both),
        changed=int(changed.sum()),
        edges_missed=len(now - edges),
        edges_deleted=len(edges - now),
    )


def _rows_by_key(mirror: Mirror) -> dict[str, int]:
    rows = np.flatnonzero(mirror.present).tolist()
    return dict(zip(mirror.keys.take(rows), rows, strict=True))


def _other_columns(before: Mirror, after: Mirror, mine: Ints, theirs: Ints) -> NDArray[np.bool_]:
    """Whose features differ; with several labels, whose raw columns do."""
    differs = np.zeros(len(mine), np.bool_)
    labels = after.labels[theirs]
    for label in np.unique(labels).tolist():
        at = np.flatnonzero(labels == label)
        table, places = before.tables[label], before.places_of(mine[at])
        differs[at] = table.differ(places, after.tables[label], after.places_of(theirs[at]))
    return differs


def _other_classes(before: Mirror, after: Mirror, mine: Ints, theirs: Ints) -> NDArray[np.bool_]:
    """Whose class is another now, or went; one that became known is left to the audit."""
    names, now = [*before.class_names, None], [*after.class_names, None]
    pairs = zip(before.classes[mine].tolist(), after.classes[theirs].tolist(), strict=True)
    return np.fromiter((a != UNKNOWN and names[a] != now[b] for a, b in pairs), np.bool_, len(mine))


def _edge_keys(mirror: Mirror) -> set[tuple[object, ...]]:
    """Pairs of ends by relation; of relations with columns each relationship with its values."""
    source, target, kind = mirror.edges.tolist()
    keys: set[tuple[object, ...]] = {
        (mirror.keys[a], mirror.keys[b], k)
        for a, b, k in zip(source, target, kind, strict=True)
        if k not in mirror.related
    }
    for relation, table in mirror.related.items():
        places = np.flatnonzero(table.live)
        sources, targets = (mirror.keys.take(rows.tolist()) for rows in table.ends(places))
        listed = zip(
            sources, targets, table.numbers.array[places].tolist(), table.records.texts(places),
            strict=True,
        )  # fmt: skip
        keys |= {(a, b, relation, number, text) for a, b, number, text in listed}
    return keys
