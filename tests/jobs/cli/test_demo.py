"""`ringfence demo`: everything once, and the query of the README."""

import json
import re
from pathlib import Path

import pytest
from neo4j import GraphDatabase

from ringfence.connector.neo4j import embedded
from tests.docs.test_cookbook import DEMO_RECIPES

ROOT = Path(__file__).resolve().parents[3]


NOTHING = ("the control", "MATCH (a:Account {kind: 'nobody'}) RETURN a")


def run_recipes(server, recipes):
    """How many rows each query of the cookbook returns."""
    auth = (server.user, server.password)
    with GraphDatabase.driver(server.uri, auth=auth) as driver:
        return {title: len(driver.execute_query(query).records) for title, query in recipes}


PILES = re.compile(r"(List \w+: [\d,]+ nodes; .*|(investigate|clear|open): [\d,]+ nodes of run .*)")


def lines_of_readme(mark):
    readme = (ROOT / "README.md").read_text()
    return readme.partition(f"<!-- {mark} -->")[2].partition(f"<!-- /{mark} -->")[0].splitlines()


def pile_lines(lines):
    return [line for line in lines if PILES.fullmatch(line)]


def test_readmes_first_screen_has_the_piles_of_the_demos_output():
    first = [line for line in lines_of_readme("piles") if line and line != "```"]
    assert first == pile_lines(lines_of_readme("demo"))
    assert len(first) == 5
    before = (ROOT / "README.md").read_text().partition("<!-- /piles -->")[0]
    assert len(before.splitlines()) < 40


def without_numbers(lines):
    """The lines as any demo prints them, whatever it counts; a cut list says how many it shows."""
    return [re.sub(r", the surest \d+$", "", re.sub(r"[\d,]+", "N", line)) for line in lines]


@pytest.mark.neo4j
def test_the_demo_runs_by_itself_and_its_sets_answer_the_readmes_query(ringfence, tmp_path):
    done = ringfence("demo", "--no-serve", "--nodes", "1500", "--arriving", "2", cwd=tmp_path)
    for sentence in (
        "devices",
        "of auto, by the log loss on",
        "Thresholds move",
        "naive",
        "Coverage of the accounts",
        "kept",
        "Whom to investigate",
        "are on no list",
        "Where to look next",
    ):
        assert sentence in done.stdout
    readme = without_numbers(pile_lines(lines_of_readme("piles")))
    assert without_numbers(pile_lines(done.stdout.splitlines())) == readme
    assert without_numbers(["open: N nodes of run N"]) != readme[-1:]
    (version,) = re.findall(r"ringfence models \S+ \S+ show (\S+)", done.stdout)
    demo = ("--config", ".ringfence/demo/ringfence.toml")
    card = " ".join(ringfence("models", "show", version, *demo, cwd=tmp_path).stdout.split())
    for words in ("auto tried trees", "auto tried blend", "taken", "more than",
                  "column of SENT_TO relationships", "amount, encoded as number",
                  "the same scorer on permuted ends"):  # fmt: skip
        assert words in card
    readme = (ROOT / "README.md").read_text()
    (cypher,) = re.findall(r'ringfence query "(.*?)" --config', readme, re.DOTALL)[:1]
    with embedded.running(tmp_path / ".ringfence/demo/.ringfence/neo4j") as server:  # one start
        rows = ringfence(
            "query", cypher, "--config", ".ringfence/demo/ringfence.toml", "--json", cwd=tmp_path
        )
        returned = run_recipes(server, [*DEMO_RECIPES, NOTHING])
        again = ringfence(
            "demo", "--no-serve", "--nodes", "1500", "--arriving", "2", "--json", cwd=tmp_path
        )
    assert len(json.loads(rows.stdout)) == 10
    assert len(returned) == len(DEMO_RECIPES) + 1 > 20
    assert [title for title, count in returned.items() if count == 0] == [NOTHING[0]]
    report = json.loads(again.stdout)
    assert [run["seq"] for run in report["runs"]] == [1, 2, 3]
    piles = report["triage"]["piles"]
    assert sum(piles.values()) == report["runs"][-1]["evaluated"]
    assert {row["name"] for row in report["lists"]} == {"investigate", "clear"}
    mules = [
        row for row in report["audit"]["rows"] if (row["slice"], row["name"]) == ("class", "mule")
    ]
    assert mules
    assert all(row["own_promise"] and row["alpha"] == 0.05 for row in mules)
