"""What an address selects on a page: a range of time, and columns and order of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from ringfence.connector.store.queries.changes import read_changes
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.dashboard.address import Address, page_address
from ringfence.jobs.dashboard.dependencies import queries_of
from ringfence.jobs.dashboard.page_table import PageTable, show_table
from ringfence.jobs.dashboard.time_range import TimeRange, histories, time_range
from ringfence.jobs.views.charts import with_changes
from ringfence.jobs.views.charts.model import Figure


@dataclass(frozen=True, slots=True)
class View:
    """A request as pages take it.

    `queries` are of all there is; `history` and `series` of the range that was asked for, with its
    newest rows and with rows spread over it; `cookies` are what the browser remembers.
    """

    address: Address
    queries: ProjectQueries
    history: ProjectQueries
    series: ProjectQueries
    cookies: Mapping[str, str] = field(default_factory=dict)

    def tables(self, *names: str) -> list[PageTable]:
        """Return the named tables within the range."""
        return [show_table(self.history, self.address, name) for name in names]

    def marked(self, *figures: Figure) -> list[Figure]:
        """Return figures with marks where versions or the configuration changed in the range."""
        return with_changes(figures, read_changes(self.history))

    def range(self) -> TimeRange:
        """Return the range picker."""
        return time_range(self.queries, self.history, self.address)


def view_of(request: Request) -> View:
    """Return what a request selects; the answer is 400 if that can't be read."""
    queries = queries_of(request)
    address = page_address(request.url.path, request.query_params.multi_items())
    return View(address, queries, *histories(queries, address), request.cookies)


PageView = Annotated[View, Depends(view_of)]
