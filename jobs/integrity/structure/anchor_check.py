"""Whether the graph's anchor was set back to an earlier entry of the chain, which fits as well.

Every session begins by finishing runs that a crash left, and by storing in the graph what is in
the chain then. So the anchor is never behind the first entry of the newest session's own work.
"""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.neo4j.write.fence import Anchor
from ringfence.connector.store.audit_chain import keyless
from ringfence.connector.store.audit_chain.integrity import AuditRecord
from ringfence.connector.store.worklist.marks import KIND as MARKED

BEFORE_THE_ANCHOR = (MARKED, "applied")
"""Kinds of entries that need no session, or that one may write before it stores the anchor."""


def find_set_back_anchor(record: AuditRecord, anchor: Anchor | None) -> Iterator[str]:
    """Yield an anchor that is a true entry of the chain, but not a late enough one.

    Sessions of older versions stored no anchor when they began.
    """
    if anchor is None or record.hash_of(anchor.n) != anchor.hash:
        return
    by_session = [
        (entry.facts["lease"], entry.n)
        for entry in record.entries
        if keyless.FIELD in entry.facts and entry.kind not in BEFORE_THE_ANCHOR
        if isinstance(entry.facts.get("lease"), int)
    ]
    newest = max((lease for lease, _ in by_session), default=0)
    first = min((n for lease, n in by_session if lease == newest), default=1)
    if anchor.n < first - 1:
        yield (
            f"RingfenceFence: chain_n is {anchor.n}, but entry {first - 1} was stored in the graph "
            f"before lease {newest} wrote: it was set back"
        )
