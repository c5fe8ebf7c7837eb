"""Marks on time axes: where a version was taken into use, rolled back, or settings changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ringfence.connector.store.queries.changes import Change
from ringfence.connector.times import format_time
from ringfence.jobs.views.charts.model import Figure, Mark, Panel
from ringfence.jobs.views.version_names import short_versions

MAX_TOLD = 3  # changes in the caption; pointing at a mark tells each
NS_PER_PLACE = 1_000_000  # of a time axis, in milliseconds


def with_changes(figures: Iterable[Figure], changes: Sequence[Change]) -> list[Figure]:
    """Return figures with a mark for each change on their time axes, and the newest in words."""
    return [_marked(figure, changes) for figure in figures]


def _marked(figure: Figure, changes: Sequence[Change]) -> Figure:
    panels = tuple(_with_marks(panel, changes) for panel in figure.panels)
    told = {mark.words: None for panel in panels for mark in panel.marks}
    if not told:
        return figure
    newest = "; ".join(list(told)[-MAX_TOLD:])
    more = f" The newest {MAX_TOLD} of {len(told)}" if len(told) > MAX_TOLD else ""
    caption = (
        f"{figure.caption} P marks a promotion, R a rollback, C a change of the configuration."
        f"{more or ' Marked'}: {newest}."
    )
    return replace(figure, panels=panels, caption=caption)


def _with_marks(panel: Panel, changes: Sequence[Change]) -> Panel:
    """The panel with the changes between its first and last point."""
    places = [float(x) for drawn in panel.series for x in drawn.x if x is not None]
    if not panel.dates or not places:
        return panel
    marks = tuple(
        Mark(change.at_ns / NS_PER_PLACE, change.kind[:1].upper(), _describe(change))
        for change in changes
        if min(places) <= change.at_ns / NS_PER_PLACE <= max(places)
    )
    return replace(panel, marks=marks)


def _describe(change: Change) -> str:
    return f"{format_time(change.at_ns)[:16]} {change.kind}, {short_versions(change.words)}"
