"""`ringfence models compare --stored`: the newest comparison on record of one version or of two."""

from __future__ import annotations

from ringfence.connector.errors import ModelError
from ringfence.connector.store import migrate
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.comparisons import comparisons_of
from ringfence.connector.store.models import class_names
from ringfence.jobs.lifecycle.comparison import HoldoutReport, holdout_report
from ringfence.jobs.lifecycle.versions import choose_version


def stored_report(
    store: Store, project: str, version: str, against: str | None = None
) -> HoldoutReport:
    """Return the newest comparison on record of a version, or of two, whichever was the newer."""
    migrate.require_sql(store)
    versions = list(class_names(store, project))
    wanted = {choose_version(versions, one) for one in (version, against) if one is not None}
    for one in reversed(comparisons_of(store, project)):
        if wanted <= {one.version, one.against}:
            return holdout_report(one)
    raise ModelError(
        found=f"no comparison of {' and '.join(sorted(wanted))} is on record",
        needed="one that was made",
        next_step=f"ringfence models compare {version}{f' {against}' if against else ''}",
    )
