"""What is written about the tables that the forward pass keeps between runs: one small file.

Tables belong to one model and one numbering of the nodes (the mirror's epoch). They are marked open
while a run works on them and closed only after the mirror is saved: tables that a crash left open,
or that lived through a restart of the machine, are thrown away and made again.
"""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

from ringfence.connector.files import write_atomically
from ringfence.connector.mirror import Mirror

STATE_FILE = "state.json"
TABLES_FORMAT = 6  # also raised when kernels change: kept rows must have the bits of new ones
BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


def read_state(place: Path) -> dict[str, Any]:
    """What was written about the tables; {} where it can't be read, or not as it was written."""
    try:
        checksum, _, body = (place / STATE_FILE).read_text(encoding="utf-8").partition("\n")
        if int(checksum, 16) != zlib.crc32(body.encode()):
            return {}
        found: dict[str, Any] = json.loads(body)
    except (OSError, ValueError):
        return {}
    return found if found.get("format") == TABLES_FORMAT else {}


def write_state(place: Path, state: dict[str, Any]) -> None:
    """Write what belongs to the tables, with format and start of the machine."""
    body = json.dumps({**state, "format": TABLES_FORMAT, "boot": boot_id()})
    text = f"{zlib.crc32(body.encode()):08x}\n{body}"
    write_atomically(place / STATE_FILE, text, durable=False)


def closed_state(place: Path, mirror: Mirror) -> dict[str, Any]:
    """The state of tables that a finished run left for this mirror or an earlier state of it."""
    state = read_state(place)
    return state if state and still_valid(state, mirror.version) else {}


def still_valid(state: dict[str, Any], version: int) -> bool:
    """Whether a finished run left this state since the machine started, and not a later one."""
    return bool(
        not state["open"] and state["boot"] == boot_id() != "" and state["version"] <= version
    )


def close_state(place: Path, mirror: Mirror) -> None:
    """Close the tables of this run: the mirror that they belong to is saved."""
    state = read_state(place)
    if state and state["open"] and state["version"] == mirror.version:
        write_state(place, {**state, "open": False})


def drop_tables(folder: Path, version: str = "") -> int:
    """Remove the tables of all versions but one, which is in use; return how many went.

    A version that comes back has its tables made again from the mirror.
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
    """A name for this start of the machine; "" where it has none."""
    try:
        return BOOT_ID_FILE.read_text(encoding="ascii").strip()
    except OSError:
        return ""
