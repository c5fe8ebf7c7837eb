"""How much memory and disk a graph will need, just from its counts, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BASE_BYTES = 1.02e9  # training: Python with torch, PyG and numba loaded
SCORING_BASE_BYTES = 0.26e9  # Python with numba, the driver and SQLAlchemy, and no torch
MAX_SUM_ROWS = 1 << 18  # as models.inference.state.MAX_SUM_SLOTS, which brings numpy
CONTROL_GROUP = Path("/sys/fs/cgroup")
MESSAGE_COPIES = 3  # [edges, width] in PyG's gather and scatter at a time, with gradients


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes: in memory for a scoring run and for training, and on disk for mirror and tables."""

    score: float
    train: float
    disk: float


def predict(
    nodes: int,
    relationships: int,
    width: int,
    hidden: int = 64,
    classes: int = 10,
    labelled: float = 0.5,
) -> Need:
    """Return what a graph of this size needs.

    Scoring: the largest run is the first one, which computes every row. It holds the kept tables
    (hidden + 2 classes numbers per node, and GCN's sums), the neighbours as one list (4 bytes per
    direction), and stamps. Before that its relationships were put in order, which takes 46 bytes
    for each (the peak that `benchmarks.scale` measures). Features are mapped from a file, so the
    system may take them back at any time.

    Training: the relationships as tensors, and messages along those between labelled nodes.

    >>> need = predict(nodes=1_000_000, relationships=10_000_000, width=64)
    >>> round(need.score / 1e9, 1), round(need.disk / 1e9, 1)
    (1.3, 0.9)
    """
    tables = nodes * (4 * (hidden + 2 * classes + 2) + 8) + min(nodes, MAX_SUM_ROWS) * hidden * 8
    mirror = nodes * (4 * width + 4 + 8 + 20 + 12 + 8 + 8 + 1) + relationships * 10
    scratch = relationships * (8 + 46) + nodes * 34
    inside = relationships * labelled**2 * 2
    tensors = relationships * (24 + 32 + 48) + nodes * labelled * width * 8
    return Need(
        score=SCORING_BASE_BYTES + tables + scratch,
        train=BASE_BYTES + tensors + inside * hidden * 4 * MESSAGE_COPIES,
        disk=mirror + tables,
    )


def available() -> float:
    """Return the bytes of memory that are available now; infinity if the system doesn't say.

    A container may have less than its machine.
    """
    return min(_free_on_machine(), _free_in_container())


def _free_on_machine() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return float("inf")
    kilobytes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(kilobytes[0]) * 1024 if kilobytes else float("inf")


def _free_in_container() -> float:
    """What the limit of the control group leaves; its file cache can be taken back."""
    try:
        most = (CONTROL_GROUP / "memory.max").read_text(encoding="ascii").strip()
        used = int((CONTROL_GROUP / "memory.current").read_text(encoding="ascii"))
        told = (CONTROL_GROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return float("inf")
    cache = sum(int(line.split()[1]) for line in told if line.startswith("inactive_file "))
    return int(most) - used + cache if most.isdigit() else float("inf")


def format_bytes(size: float) -> str:
    """Return a size that a person reads.

    >>> format_bytes(3.2e9), format_bytes(4.1e8)
    ('3.2 GB', '410 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
