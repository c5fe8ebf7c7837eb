"""Write `dashboard.json`, a NeoDash dashboard of the cookbook's queries.

    python examples/neo4j/make_dashboard.py

Each report's query stands in docs/cookbook.md, whose queries the tests execute.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

HERE = Path(__file__).resolve().parent
COOKBOOK = HERE.parents[1] / "docs/cookbook.md"
COLUMNS = 24  # of NeoDash's grid
WIDTH, HEIGHT = 12, 4

PAGES = {
    "Was the promise kept?": (
        "Was the promise kept?",
        "Which classes are promised something, and was it kept?",
        "Coverage of every run beside the naive one",
        "Classes that are covered worst",
        "How long classes take to become known",
        "Known accounts that their set missed",
    ),
    "Sets": (
        "Who may be a mule?",
        "Who can only be a mule?",
        "How many sets of each size, by level",
        "Classes that come together",
    ),
    "Neighbours": (
        "Ambiguous accounts next to a known mule",
        "Transfers between two accounts that may both be mules",
    ),
}


def read_recipes() -> dict[str, str]:
    """The cookbook's queries by their titles."""
    page = COOKBOOK.read_text(encoding="utf-8")
    recipes = re.findall(r"### (.+?)\n.*?```cypher\n(.+?)```", page, re.DOTALL)
    return {title: query.strip() for title, query in recipes}


def make_dashboard() -> dict:
    """The dashboard as NeoDash 2.4 stores it."""
    recipes = read_recipes()
    pages = [
        {
            "title": title,
            "reports": [_report(name, recipes[name], at) for at, name in enumerate(names)],
        }
        for title, names in PAGES.items()
    ]
    return {
        "uuid": str(uuid5(NAMESPACE_URL, "ringfence")),
        "title": "ringfence",
        "version": "2.4",
        "settings": {
            "pagenumber": 0,
            "editable": True,
            "fullscreenEnabled": True,
            "parameters": {},
        },
        "pages": pages,
        "parameters": {},
        "extensions": {},
    }


def _report(title: str, query: str, at: int) -> dict:
    across = COLUMNS // WIDTH
    return {
        "id": str(uuid5(NAMESPACE_URL, title)),
        "title": title,
        "query": query,
        "type": "table",
        "x": WIDTH * (at % across),
        "y": HEIGHT * (at // across),
        "width": WIDTH,
        "height": HEIGHT,
        "selection": {},
        "settings": {},
    }


if __name__ == "__main__":
    (HERE / "dashboard.json").write_text(json.dumps(make_dashboard(), indent=1) + "\n", "utf-8")
