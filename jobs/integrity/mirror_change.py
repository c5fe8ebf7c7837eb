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
        """Whether the mirror was right."""
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
    if before.typed is None or after.typed is None:
        return np.asarray((before.features[mine] != after.features[theirs]).any(axis=1))
    differs = np.zeros(len(mine), np.bool_)
    labels = after.typed.labels[theirs]
    for label in np.unique(labels).tolist():
        at = np.flatnonzero(labels == label)
        one, two = before.typed.tables[label], after.typed.tables[label]
        old = one.texts(before.typed.places[mine[at]])
        new = two.texts(after.typed.places[theirs[at]])
        differs[at] = [a != b for a, b in zip(old, new, strict=True)]
    return differs


def _other_classes(before: Mirror, after: Mirror, mine: Ints, theirs: Ints) -> NDArray[np.bool_]:
    """Whose class is another now, or went; one that became known is the audit's business."""
    names, now = [*before.class_names, None], [*after.class_names, None]
    pairs = zip(before.classes[mine].tolist(), after.classes[theirs].tolist(), strict=True)
    return np.fromiter((a != UNKNOWN and names[a] != now[b] for a, b in pairs), np.bool_, len(mine))


def _edge_keys(mirror: Mirror) -> set[tuple[str, str, int]]:
    source, target, kind = mirror.edges.tolist()
    return {
        (mirror.keys[a], mirror.keys[b], k) for a, b, k in zip(source, target, kind, strict=True)
    }
