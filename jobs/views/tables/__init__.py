"""The tables of pages and reports. A new one is a `TableView` and a line in `TABLES`."""

from __future__ import annotations

from ringfence.jobs.views.tables import coverage, lists, models, operations, runs
from ringfence.jobs.views.tables.model import Column, Table, TableView, as_csv, cell, csv_blocks

__all__ = ["TABLES", "Column", "Table", "TableView", "as_csv", "cell", "csv_blocks"]

TABLES: dict[str, TableView] = {
    view.name: view
    for view in (
        coverage.PER_RUN,
        coverage.WINDOW,
        coverage.TOTAL,
        coverage.SAMPLE,
        coverage.CLASSES,
        coverage.GROUPS,
        lists.LISTS,
        runs.RUNS,
        runs.THRESHOLDS,
        runs.DRIFT,
        runs.COMPARISON,
        models.VERSIONS,
        models.MODELS,
        models.SHADOWS,
        operations.QUARANTINE,
        operations.CORRECTIONS,
        operations.REMOVALS,
        operations.SCHEDULE,
        operations.ALARMS,
        operations.ALARM_EVENTS,
        operations.CHAIN,
    )
}
"""Every table by the name under which it downloads, in the order of the report's files."""
