"""Write a NeoDash dashboard of the cookbook's queries: the demo's, or that of a project of yours.

    python examples/neo4j/make_dashboard.py         # dashboard.json beside this file
    python examples/neo4j/make_dashboard.py --config ringfence.toml --class fraud --output mine.json

Each report's query stands in docs/cookbook.md, whose queries the tests execute. With `--config`
they have the label, the key, the class property and the relationships of that file in place of the
demo's, and the class that you are after in place of `mule`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.quoting import quote, quote_text
from ringfence.jobs.config.load import load

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


def read_recipes() -> dict[str, tuple[str, str]]:
    """Title and query of the cookbook's recipes, by their titles there."""
    page = COOKBOOK.read_text(encoding="utf-8")
    recipes = re.findall(r"### (.+?)\n.*?```cypher\n(.+?)```", page, re.DOTALL)
    return {title: (title, query.strip()) for title, query in recipes}


def recipes_of(mapping: GraphMapping, class_: str) -> dict[str, tuple[str, str]]:
    """The recipes with the names of another graph.

    Those about neighbours are left out where nodes of the label have no relationship to each other.
    """
    node = mapping.classified
    among = [
        relation
        for relation in mapping.relations
        if mapping.nodes[relation.source] == mapping.nodes[relation.target] == node
    ]
    times = {relation.created_at for relation in among}
    time = times.pop() if len(times) == 1 else None
    names = {
        ":Account": f":{quote(node.label)}",
        ".id": f".{quote(node.key)}",
        ".kind": f".{quote(mapping.class_property)}",
        "{kind:": f"{{{quote(mapping.class_property)}:",
        "'mule'": quote_text(class_),
        ":SENT_TO": ":" + "|".join(quote(relation.type) for relation in among),
        "p.created_at": f"p.{quote(time)}" if time else "null",
    }
    words = {"a known mule": f"a known {class_}", "a mule": class_, "mules": class_,
             "accounts": f"{node.label} nodes"}  # fmt: skip
    return {
        name: (_replace(words, title), _replace(names, query))
        for name, (title, query) in read_recipes().items()
        if among or ":SENT_TO" not in query
    }


def _replace(others: Mapping[str, str], text: str) -> str:
    """Put others in the place of names, all at once: what was put in is not looked at again."""
    every = "|".join(re.escape(name) for name in others)
    return re.sub(rf"(?:{every})(?!\w)", lambda found: others[found[0]], text)


def make_dashboard(
    recipes: Mapping[str, tuple[str, str]] | None = None, project: str = "ringfence"
) -> dict:
    """The dashboard as NeoDash 2.4 stores it, of the pages that have all their queries."""
    recipes = read_recipes() if recipes is None else recipes
    pages = [
        {
            "title": title,
            "reports": [_report(name, *recipes[name], at) for at, name in enumerate(there)],
        }
        for title, names in PAGES.items()
        if (there := [name for name in names if name in recipes])
    ]
    return {
        "uuid": str(uuid5(NAMESPACE_URL, project)),
        "title": project,
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


def _report(name: str, title: str, query: str, at: int) -> dict:
    across = COLUMNS // WIDTH
    return {
        "id": str(uuid5(NAMESPACE_URL, name)),
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


def main() -> None:
    """Write the dashboard that was asked for."""
    parser = argparse.ArgumentParser(description="Write a NeoDash dashboard.")
    parser.add_argument("--config", type=Path, help="the ringfence.toml of your project")
    parser.add_argument("--class", dest="class_", help="the class that you are after")
    parser.add_argument("--output", type=Path, default=HERE / "dashboard.json")
    options = parser.parse_args()
    if (options.config is None) != (options.class_ is None):
        parser.error("--config and --class belong together")
    if options.config is None:
        dashboard = make_dashboard()
    else:
        settings = load(options.config)
        recipes = recipes_of(settings.mapping(), options.class_)
        dashboard = make_dashboard(recipes, settings.project)
    options.output.write_text(json.dumps(dashboard, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
