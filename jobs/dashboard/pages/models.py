"""Models: every version with its state, data, accuracy, runs and coverage so far."""

from __future__ import annotations

from urllib.parse import quote

from ringfence.jobs.dashboard.page_table import MAX_TABLE_ROWS
from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.lifecycle.card import describe_use
from ringfence.jobs.lifecycle.versions import read_versions


def build(view: PageView) -> Values:
    """Return the versions, newest first, and the last changes of the one in use."""
    versions = read_versions(view.queries.store, view.queries.project)
    return {
        "title": PAGE.title,
        "figures": [],
        "active": next(
            (version for version in versions.versions if version.state == "active"), None
        ),
        "changes": [
            {
                "at_ns": activation.at_ns,
                "version": activation.version,
                "address": address_of(activation.version),
                "how": activation.how,
                "reason": describe_use(activation.reason, activation.actor),
            }
            for activation in versions.activations[: -MAX_TABLE_ROWS - 1 : -1]
        ],
        "older": max(0, len(versions.activations) - MAX_TABLE_ROWS),
        "tables": view.tables("versions", "shadows"),
    }


def address_of(version: str) -> str:
    """Return the address of a version's page.

    >>> address_of("20260101-ab")
    '/models/20260101-ab'
    """
    return f"/models/{quote(version, safe='')}"


PAGE = Page("models", "Models", "/models", "models.html", build)
