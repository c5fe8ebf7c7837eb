"""Training is refused where memory would not be enough: nothing dies halfway without a word."""

from __future__ import annotations

from ringfence.connector.errors import ModelError
from ringfence.jobs.setup import memory


def refuse_without_memory(needed: float) -> None:
    """Raise `ModelError` where training needs more bytes than are free now."""
    free = memory.available()
    if needed <= free:
        return
    raise ModelError(
        found=f"training needs about {memory.format_bytes(needed)} of memory, "
        f"{memory.format_bytes(free)} are free",
        needed="memory for the pass over the graph; without it the system would end the process",
        next_step="[model] batch_size = 512 trains in parts; a smaller [model] hidden, or fewer "
        "columns, need less; then: ringfence train",
    )
