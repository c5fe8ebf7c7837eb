"""`ringfence rekey`: rotate the key of the audit chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.integrity.rekey import RekeyReport


def rekey(config: Config = None, as_json: AsJson = False) -> None:
    """Rotate the key of the audit chain; what the old one sealed stays verifiable."""
    from ringfence.jobs.integrity.rekey import run_rekey

    with open_with_progress(config, "rotating the key") as (workspace, report):
        done = run_rekey(workspace, report)
    print_report(done, as_json, print_rotation)


def print_rotation(done: RekeyReport) -> None:
    """Show which entry rotated the key, and where the new key is."""
    if done.entry is None:
        say(f"The chain has key {done.new_key} already; nothing was changed.")
    else:
        say(f"Entry {done.entry}: key {done.old_key} ends, key {done.new_key} begins.")
    if done.file is None:
        say("Next: on every machine, RINGFENCE_AUDIT_KEY is the new key from now on; then restart.")
        return
    say(f"The new key is in {done.file}. Keep a copy where the database's backups are not.")
    if done.removed is not None:
        say(f"The old key's file, {done.removed}, is gone: nothing needs it any more.")
