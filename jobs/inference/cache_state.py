"""What is written about the arrays that the forward pass caches between runs: one small file.

A cache belongs to one model and one numbering of the nodes (the mirror's epoch). It is marked open
while a run works on it and closed only after the mirror is saved: a cache that a crash left open,
or that is older than the last restart of the machine, is removed and computed again.
"""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

from ringfence.connector.files import write_atomically

STATE_FILE = "state.json"
CACHE_FORMAT = 9  # also raised when kernels change: cached rows must have the bits of new ones
BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


def read_state(place: Path) -> dict[str, Any]:
    """Return what was written about a cache; {} if it can't be read or fails its checksum."""
    try:
        checksum, _, body = (place / STATE_FILE).read_text(encoding="utf-8").partition("\n")
        if int(checksum, 16) != zlib.crc32(body.encode()):
            return {}
        state: dict[str, Any] = json.loads(body)
    except (OSError, ValueError):
        return {}
    return state if state.get("format") == CACHE_FORMAT else {}


def write_state(place: Path, state: dict[str, Any]) -> None:
    """Write the state of a cache, with the format and the id of this start of the machine."""
    body = json.dumps({**state, "format": CACHE_FORMAT, "boot": boot_id()})
    text = f"{zlib.crc32(body.encode()):08x}\n{body}"
    write_atomically(place / STATE_FILE, text, durable=False)


def closed_state(place: Path, version: int) -> dict[str, Any]:
    """Return the state of a cache that a finished run closed; {} if there is none to trust.

    `version` is that of the mirror: the cache must be of it or of an earlier one, and closed since
    the machine started.
    """
    state = read_state(place)
    usable = (
        bool(state)
        and not state["open"]
        and state["boot"] == boot_id() != ""
        and state["version"] <= version
    )
    return state if usable else {}


def remove_caches(folder: Path, version: str = "") -> int:
    """Remove the caches of all model versions but the one in use; return how many were removed.

    A version that comes back has its cache computed again from the mirror.
    """
    retired = [
        place
        for place in (folder.iterdir() if folder.is_dir() else ())
        if not version or not place.name.startswith(f"{version}-")
    ]
    for place in retired:
        shutil.rmtree(place, ignore_errors=True)
    return len(retired)


def boot_id() -> str:
    """Return an id of this start of the machine; "" if the system has none."""
    try:
        return BOOT_ID_FILE.read_text(encoding="ascii").strip()
    except OSError:
        return ""
