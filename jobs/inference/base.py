"""What a forward pass is: open its cache, compute outputs, seal the cache.

Every family of networks and every engine computes passes by this protocol; `run_pass` is the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PassOutputs:
    """Logits at the wanted rows [m, classes], and a sentence on how they were computed.

    seconds: by stage, if the pass had several.
    """

    logits: Float32s
    sentence: str
    seconds: Mapping[str, float] = field(default_factory=dict)


class Pass(Protocol):
    """One forward pass of one model over the graph as it is now."""

    def open(self) -> None:
        """Restore the cache of the last pass, or begin an empty one; mark it as in use."""
        ...

    def outputs(self, wanted: Ints) -> Float32s:
        """Return the logits at `wanted` [m, classes]; a row may be wanted more than once."""
        ...

    def seal(self) -> None:
        """Write the cache for the next pass; it is used once the mirror is saved."""
        ...

    def describe(self) -> str:
        """Return a sentence on how much was computed, and why."""
        ...


def run_pass(forward_pass: Pass, wanted: Ints) -> PassOutputs:
    """Return the outputs of one pass at `wanted`."""
    forward_pass.open()
    logits = forward_pass.outputs(wanted)
    forward_pass.seal()
    return PassOutputs(logits, forward_pass.describe())
