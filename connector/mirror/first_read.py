"""How far a first read has come with relationships, so that one that dies can be continued."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(slots=True)
class FirstRead:
    """Which relations have been read at which nodes.

    A relation is read at the nodes of one of its labels. `steps` uint8 [n or fewer] says how many
    of the relations that are read at a node's label have been read at the node, in their order;
    `at_targets` says by relation whether it is read at its targets.
    """

    steps: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    at_targets: tuple[bool, ...] = ()

    def note(self, rows: Ints, step: int, size: int) -> None:
        """Note a step at some of `size` rows; one that lacks the step before it stays as it is."""
        self.steps = np.append(self.steps, np.zeros(size - len(self.steps), np.uint8))
        self.steps[rows[self.steps[rows] == step]] += 1

    def rows_left(self, step: int, size: int) -> Ints:
        """Return those of `size` rows at which a step has not been read."""
        done = self.steps > step
        return np.append(np.flatnonzero(~done), np.arange(len(done), size))

    def finish(self) -> None:
        """Forget the steps: all have been read everywhere."""
        self.steps = np.empty(0, np.uint8)
