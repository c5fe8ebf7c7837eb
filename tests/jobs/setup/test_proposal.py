"""What init proposes on graphs that nobody prepared: never a name that isn't there."""

import pytest

from ringfence.connector.errors import GraphError
from ringfence.jobs.config.load import load_values
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.proposal.proposal import propose
from ringfence.jobs.setup.proposal.toml import as_toml

CASES = """
UNWIND range(0, 9) AS i CREATE (:Officer {badge: 'B' + i, rank: ['PC', 'DS'][i % 2]})
WITH count(*) AS _
UNWIND range(0, 19) AS i CREATE (:Place {address: 'street ' + i, area: i % 3})
WITH count(*) AS _
UNWIND range(1, 200) AS i
CREATE (c:Crime {ref: i, type: ['Drugs', 'Theft', 'Fraud'][i % 3], day: i % 28,
  reported: date('2017-08-01') + duration({days: i % 28}),
  text: 'a note of some words number ' + (i * 7 % 13),
  scores: [x IN range(0, i % 4) | toFloat(x)]})
SET c.outcome = CASE WHEN i <= 150 THEN ['open', 'charged'][(i * i * 31 + i * 17) % 101 % 2] END
SET c.closed_by = CASE WHEN i <= 150 THEN 'officer ' + (i % 40) END
SET c.charge = CASE WHEN i <= 150 AND c.outcome = 'charged' THEN 'article ' + (i % 5) END
WITH c, i
MATCH (p:Place {address: 'street ' + (i % 20)}), (o:Officer {badge: 'B' + (i % 10)})
CREATE (c)-[:AT]->(p)
FOREACH (_ IN CASE WHEN i <= 150 THEN [1] ELSE [] END | CREATE (o)-[:CLOSED]->(c))
"""


@pytest.fixture
def crimes(connected):
    connected.run(CASES)
    return connected


def left_out(proposal):
    return {one.name: one.why for one in proposal.left_out}


def test_the_class_is_ranked_by_how_it_looks_and_leaks_are_left_out(crimes):
    proposal = propose(crimes)
    assert (proposal.label.value, proposal.class_property.value) == ("Crime", "outcome")
    assert proposal.key.value == "ref"
    assert proposal.candidates[0].points > proposal.candidates[1].points
    kinds = {column.name: column.kind for column in proposal.columns}
    assert kinds["type"] == "category"
    assert kinds["reported"] == "date"
    assert kinds["scores"] == "numbers"  # of varying length: no vector
    assert "comes with the class" in left_out(proposal)["Crime.closed_by"]
    assert not {"ref", "outcome", "closed_by", "charge"} & set(kinds)


def test_labels_around_it_are_context_and_a_relationship_that_comes_late_is_cut(crimes):
    proposal = propose(crimes)
    assert {node.label: node.key.value for node in proposal.context} == {
        "Place": "address",
        "Officer": "badge",
    }
    relations = {one.type: one for one in proposal.relations}
    assert (relations["AT"].source, relations["AT"].target) == ("Crime", "Place")
    assert not relations["AT"].after_evaluation
    assert (relations["CLOSED"].source, relations["CLOSED"].target) == ("Officer", "Crime")
    assert relations["CLOSED"].after_evaluation
    assert "relationship CLOSED" in proposal.open_points


def test_a_business_date_is_no_watermark(crimes):
    proposal = propose(crimes)
    assert proposal.created_at is None
    assert "reported is a business date" in proposal.arrival.why
    crimes.run("MATCH (c:Crime) SET c.created = datetime.realtime()")
    again = propose(crimes)
    assert (again.created_at, again.time_kind) == ("created", "zoned")


def test_the_file_can_be_read_and_names_only_what_is_there(crimes, tmp_path, graph, monkeypatch):
    import tomllib

    text = as_toml(propose(crimes), "p", graph.uri, graph.auth[0])
    settings = load_values(tomllib.loads(text), tmp_path / "ringfence.toml", {})
    typed = settings.mapping().typed
    assert typed.classified.label == "Crime"
    assert typed.arrival == "keys"
    path = tmp_path / "ringfence.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    errors = [one for one in run_doctor(path) if one.level == "error"]
    assert [one.fix for one in errors if "migrate" not in one.fix] == []


def test_hostile_names_stay_names(connected, tmp_path):
    import tomllib

    label, name = 'A`) DETACH DELETE (n" # \n', "k'\"\\ ]\n[x]"
    connected.write(
        lambda tx: tx.run(
            "UNWIND range(1, 60) AS i CREATE (n:$($label)) "
            "SET n[$name] = i, n.status = ['a', 'b'][i % 2], n.size = i * 1.5",
            label=label, name=name,
        ).consume()
    )  # fmt: skip
    proposal = propose(connected)
    assert (proposal.label.value, proposal.key.value) == (label, name)
    values = tomllib.loads(as_toml(proposal, "p", "bolt://localhost", "neo4j"))
    typed = load_values(values, tmp_path / "x.toml", {}).mapping().typed
    assert (typed.classified.label, typed.classified.key) == (label, name)


@pytest.mark.parametrize(
    ("cypher", "message"),
    [
        ("RETURN 1", "the graph is empty"),
        ("CREATE (:A {x: 1})", "no property of any label looks like a class"),
        (
            "UNWIND range(1, 100) AS i CREATE (:A {status: ['a', 'b'][i % 2]})",
            "no property of :A is there and different in every node",
        ),
    ],
)
def test_a_graph_without_what_is_needed_gets_a_clear_word(connected, cypher, message):
    connected.run(cypher)
    with pytest.raises(GraphError, match=message):
        propose(connected)


def test_a_class_that_is_asked_for_must_be_there(crimes):
    assert propose(crimes, "Crime", "type").class_property.value == "type"
    with pytest.raises(GraphError, match="has the property outcom"):
        propose(crimes, "Crime", "outcom")


def test_a_person_can_choose(crimes):
    asked = []

    def ask(question, answers, proposed):
        asked.append((list(answers), proposed))
        return "type" if "class" in question else proposed

    assert propose(crimes, ask=ask).class_property.value == "type"
    assert asked[0][1] == "Crime"
    assert asked[1][1] == "outcome"
    assert {"outcome", "type"} <= set(asked[1][0])
