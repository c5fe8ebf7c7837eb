"""What pages and API take as parameters: the open dashboard, and its queries.

FastAPI fills them in for a request; a test or script passes them itself.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.dashboard.context import Dashboard


def dashboard_of(request: Request) -> Dashboard:
    """Return the dashboard that a request is for."""
    dashboard: Dashboard = request.app.state.dashboard
    return dashboard


def queries_of(request: Request) -> ProjectQueries:
    """Return the queries on the project of a request's dashboard."""
    return dashboard_of(request).queries


OpenDashboard = Annotated[Dashboard, Depends(dashboard_of)]
Queries = Annotated[ProjectQueries, Depends(queries_of)]
