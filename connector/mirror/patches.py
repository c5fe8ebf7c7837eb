"""Changed properties of nodes that are in the mirror already, stored outside the columns.

Columns only grow, so a node's new class, time and features stand in files of their own, in the
order in which they came. The columns' arrays show them; a compaction writes them into the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.columns import Column

Ints = NDArray[np.int64]
SAME_FEATURES = -1  # stands for the version where only class or time differ


@dataclass(slots=True)
class Patches:
    """Rows int64 [k] and what they have instead; the last one counts.

    versions int64 [k]: at which version of the mirror the features changed.
    """

    rows: Column
    versions: Column
    classes: Column
    created: Column
    features: Column

    @classmethod
    def empty(cls, folder: Path, width: int) -> Patches:
        """Return patches of no rows."""
        return cls(
            rows=Column(folder / "patch.rows", np.int64),
            versions=Column(folder / "patch.versions", np.int64),
            classes=Column(folder / "patch.classes", np.int32),
            created=Column(folder / "patch.created_ns", np.int64),
            features=Column(folder / "patch.features", np.float32, width),
        )

    def __len__(self) -> int:
        return self.rows.rows

    def append(self, *columns: NDArray[Any]) -> None:
        """Write rows, versions, classes, times and features behind those that are here."""
        for column, values in zip(self.columns().values(), columns, strict=True):
            column.append(values)

    def columns(self) -> dict[str, Column]:
        """Return the columns by the names that a manifest has for them."""
        return {
            "patch_rows": self.rows, "patch_versions": self.versions,
            "patch_classes": self.classes, "patch_created_ns": self.created,
            "patch_features": self.features,
        }  # fmt: skip

    def altered(self) -> tuple[Ints, Ints]:
        """Return whose features changed, and at which version each time [k]."""
        versions = self.versions.array
        changed = versions != SAME_FEATURES
        return self.rows.array[changed], versions[changed]
