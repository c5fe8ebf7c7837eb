"""One model version: its card, as `ringfence models show` prints it, and its learning curves."""

from __future__ import annotations

from fastapi import HTTPException

from ringfence.connector.errors import ModelError
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.models import address_of
from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.lifecycle.card import ModelCard, read_card
from ringfence.jobs.lifecycle.card_page import FORMATS
from ringfence.jobs.views.charts.version import learning_curves
from ringfence.jobs.views.version_names import short_versions

MAX_VERSION_CHARS = 200


def build(queries: Queries, version: str) -> Values:
    """Return a version's card, or answer that there is none of this name."""
    card = find_card(queries, version)
    manifest = card.facts["manifest"]
    return {
        "title": title_of(card.version),
        "card": card,
        "figures": [learning_curves(manifest)],
        "downloads": [(name, f"{address_of(card.version)}/card/{name}") for name in FORMATS],
    }


def title_of(version: str) -> str:
    """Return a version's heading, by its short name; the card has the whole.

    >>> title_of("20261119T042137444770-b01298c1")
    'Model b01298c1'
    """
    return f"Model {short_versions(version)}"


def find_card(queries: ProjectQueries, version: str) -> ModelCard:
    """Return the card of exactly this version; the answer is 404 where there is none."""
    try:
        card = read_card(queries.store, queries.project, version[:MAX_VERSION_CHARS])
    except ModelError:
        card = None
    if card is None or card.version != version:
        raise HTTPException(404, "there is no such model version")
    return card


PAGE = Page("model", "Model", "/models/{version}", "model.html", build, part_of="/models")
