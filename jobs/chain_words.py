"""Whether the audit chain fits, in words, for pages and reports."""

from __future__ import annotations

from ringfence.connector import chain
from ringfence.jobs.audit_store import secret_text
from ringfence.jobs.looking import Look
from ringfence.jobs.settings import Settings


def chain_words(look: Look, settings: Settings) -> tuple[bool | None, str]:
    """Return True, False or None (the key is elsewhere), and a sentence."""
    length = look.chain_length()
    key = secret_text(settings.audit.key)
    if key is None and not (settings.engine.folder / "audit.key").exists():
        return None, f"{length} chain entries, which can't be verified here: the key is elsewhere."
    secret = chain.chain_key(key, settings.engine.folder)
    with look.store.reading() as connection:
        broken = chain.first_broken(connection, look.project, secret)
    if broken is None:
        return True, f"All {length} entries of the audit chain fit: nothing was changed afterwards."
    return False, f"BROKEN: chain entry {broken} of {length} does not fit the one before it."
