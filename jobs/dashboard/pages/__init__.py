"""The pages of the dashboard. A new page is one module here and one line in `PAGES`.

Routes, navigation and the screenshots of the documentation follow from this list.
"""

from __future__ import annotations

from ringfence.jobs.dashboard.pages import (
    classes,
    comparison,
    coverage,
    drift,
    lists,
    model,
    models,
    node,
    run,
    runs,
    thresholds,
    today,
    trail,
    why,
    worklist,
)
from ringfence.jobs.dashboard.pages.page import Page

__all__ = ["PAGES", "Page"]

PAGES: tuple[Page, ...] = (
    today.PAGE,
    worklist.PAGE,
    lists.PAGE,
    coverage.PAGE,
    classes.PAGE,
    thresholds.PAGE,
    drift.PAGE,
    runs.PAGE,
    comparison.PAGE,  # /runs/compare, before /runs/{seq} takes it for a number
    run.PAGE,
    models.PAGE,
    model.PAGE,
    node.PAGE,
    why.PAGE,
    trail.PAGE,
)
"""In the order of the navigation, which is also the order in which addresses are matched."""
