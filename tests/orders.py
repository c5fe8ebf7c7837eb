"""A project on 600 orders at shops, three of four labelled: for tests of scorers on raw columns.

The class of an order stands at its shop, but for every seventeenth order.
"""

import pytest
from sqlalchemy import make_url

from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.setup.migrate import run_migrations
from tests.forms import PUBLISHED_SEED_KEY

CONFIG = """
project = "{name}"
[neo4j]
uri = "{uri}"
[graph]
class_property = "risk"
[[graph.nodes]]
label = "Order"
key = "id"
role = "classified"
columns = ["amount", "note"]
created_at = "at"
[[graph.nodes]]
label = "Shop"
key = "name"
columns = ["country", "size"]
[[graph.relationships]]
from = "Order"
type = "AT"
to = "Shop"
[[graph.relationships]]
from = "Order"
type = "AFTER"
to = "Order"
undirected = false
[model]
{model}
[engine]
folder = "{folder}"
"""
SHOPS = """
UNWIND range(0, 19) AS i
CREATE (:Shop {name: 'shop ' + i, country: ['de', 'fr', 'it', null][i % 4], size: i})
"""
ORDERS = """
UNWIND range($first, $first + $count - 1) AS i
MATCH (s:Shop {name: 'shop ' + (i * 7 % 20)})
CREATE (o:Order {id: i, amount: CASE i % 9 WHEN 0 THEN null ELSE i % 31 END,
  at: datetime('2026-01-01T00:00:00Z') + duration({hours: i}), note: 'order of ' + (i % 5)})
CREATE (o)-[:AT]->(s)
WITH o, s, i
OPTIONAL MATCH (before:Order {id: i - 3})
FOREACH (b IN CASE WHEN before IS NULL OR i % 2 = 0 THEN [] ELSE [before] END |
  CREATE (b)-[:AFTER]->(o))
SET o.risk = CASE WHEN $known AND i % 4 < 3
  THEN CASE WHEN s.country = 'de' OR i % 17 = 0 THEN 'high' ELSE 'low' END END
"""
REVEAL = """
MATCH (o:Order)-[:AT]->(s) WHERE o.risk IS NULL
SET o.risk = CASE WHEN s.country = 'de' OR o.id % 17 = 0 THEN 'high' ELSE 'low' END
"""
TREES = 'network = "trees"'


@pytest.fixture
def order_projects(graph, tmp_path, sql_url):
    """Open a project with trees on a graph of 600 orders, three of four labelled."""
    opened = []
    address = make_url(sql_url)
    environment = {
        "RINGFENCE_NEO4J_USER": graph.auth[0],
        "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
        "RINGFENCE_SEED_KEY": PUBLISHED_SEED_KEY,
        "RINGFENCE_AUDIT_URL": address._replace(password=None).render_as_string(),
    }
    if address.password is not None:
        environment["RINGFENCE_AUDIT_PASSWORD"] = str(address.password)

    def open_project(model=TREES, folder="state"):
        path = tmp_path / f"{folder}.toml"
        path.write_text(
            CONFIG.format(uri=graph.uri, model=model, folder=tmp_path / folder, name=folder)
        )
        context = open_workspace(load_settings(path, environment))
        opened.append(context)
        workspace = context.__enter__()
        run_migrations(workspace)
        return workspace

    open_project.environment = environment
    graph.run(SHOPS)
    graph.run(ORDERS, first=0, count=600, known=True)
    yield open_project
    for context in opened:
        context.__exit__(None, None, None)
