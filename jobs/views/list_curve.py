"""The newest measurement of each list at several shares, kept in a file for pages to show.

`ringfence advise --list NAME` computes it and writes it; no list is decided with it. It is a cache:
one that is missing, unreadable or of other terms is none.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ringfence.connector.errors import RingfenceError
from ringfence.connector.files import make_private_folder, write_atomically
from ringfence.connector.list_terms import ListTerms
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.folders import project_folder
from ringfence.jobs.scoring.list_trade_off import ListTradeOff

FOLDER = "lists"
MAX_FILE_BYTES = 100_000


def save_curve(settings: Settings, trade_off: ListTradeOff) -> None:
    """Keep a measurement; it takes the place of an earlier one of this name."""
    path = _path(settings, trade_off.terms.name)
    make_private_folder(path.parent)
    write_atomically(path, json.dumps(trade_off.as_json()))


def read_curve(settings: Settings, terms: ListTerms) -> ListTradeOff | None:
    """Return the measurement of a list, whatever share it promises; None where there is none."""
    path = _path(settings, terms.name)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return None
        found = ListTradeOff.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, RingfenceError):
        return None
    alike = replace(found.terms, may_be_wrong=terms.may_be_wrong) == terms
    return found if alike else None


def _path(settings: Settings, name: str) -> Path:
    """A list's name is letters, digits, - and _, and so the name of a file."""
    return project_folder(settings.engine.folder, settings.project) / FOLDER / f"{name}.json"
