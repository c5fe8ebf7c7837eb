"""What init proposes on graphs that nobody prepared: never a name that isn't there."""

import pytest

from ringfence.connector.errors import GraphError
from ringfence.jobs.config.load import load, load_values
from ringfence.jobs.config.settings import Neo4jSettings
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.proposal.proposal import propose
from ringfence.jobs.setup.proposal.toml import as_toml, server_lines

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


def server(uri, user):
    return server_lines(Neo4jSettings(uri=uri, user=user))


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

    text = as_toml(propose(crimes), "p", server(graph.uri, graph.auth[0]))
    settings = load_values(tomllib.loads(text), tmp_path / "ringfence.toml", {})
    typed = settings.mapping()
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
    values = tomllib.loads(as_toml(proposal, "p", server("bolt://localhost", "neo4j")))
    typed = load_values(values, tmp_path / "x.toml", {}).mapping()
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


def test_a_class_that_is_asked_for_is_judged_like_a_proposed_one(crimes):
    assert propose(crimes, "Crime", "type").class_property.sure
    for name, why in (("ref", "it is a key"), ("reported", "of the type DATE")):
        doubted = propose(crimes, "Crime", name)
        assert not doubted.class_property.sure
        assert why in doubted.class_property.why
        assert "class_property" in doubted.open_points


LABELS = """
UNWIND range(1, 300) AS i
CREATE (:Log {status: ['open', 'closed', 'lost'][i % 3]})
CREATE (c:Claim {nr: i, kind: ['a', 'b'][i * i % 7 % 2]})
"""


def test_a_label_without_a_key_gives_way_to_the_next_one(connected):
    connected.run(LABELS)
    proposal = propose(connected)
    assert (proposal.label.value, proposal.key.value) == ("Claim", "nr")
    assert "without a unique property: Log" in proposal.label.why
    assert not proposal.label.sure
    with pytest.raises(GraphError, match="no property of :Log"):
        propose(connected, "Log")  # the control: whoever names it gets a word


def test_a_label_on_every_node_is_not_chosen(connected):
    connected.run(LABELS + "SET c.code = 'c' + i")
    connected.run(
        "MATCH (n) SET n:Entity, n.uid = elementId(n), "
        "n.outcome = CASE WHEN rand() < 0.5 THEN 'yes' ELSE 'no' END"
    )
    connected.run("MATCH (n:Log) SET n.code = 'l' + elementId(n)")
    proposal = propose(connected)
    assert proposal.label.value != "Entity"
    assert "every node carries it" in left_out(proposal)["Entity"]
    assert propose(connected, "Entity").label.value == "Entity"  # whoever names it gets it
    connected.run("MATCH (n:Log) REMOVE n:Entity")
    now = left_out(propose(connected))  # the control: not on every node any more
    assert "every node carries it" not in now.get("Entity", "")


def test_words_about_labels_and_degrees_are_true(connected, monkeypatch):
    import ringfence.jobs.setup.proposal.proposal as module

    connected.run(LABELS)
    connected.run("CREATE (:Far {id: 1})")
    connected.run("MATCH (c:Claim) WHERE c.nr <= 3 CREATE (c)-[:PAID_BY]->(:Payer {id: c.nr})")
    full = module.sample_label

    def without_payers(graph, name, count, nodes=2_000):
        from dataclasses import replace

        sample = full(graph, name, count, nodes)
        rest = tuple(one for one in sample.relations if one.label != "Payer")
        return replace(sample, relations=rest)

    monkeypatch.setattr(module, "sample_label", without_payers)  # a sample that missed all three
    said = left_out(propose(connected, "Claim"))
    assert said["Payer"].startswith("one hop away by PAID_BY, which none of the 300 sampled nodes")
    assert "[[graph.relationships]] for PAID_BY" in said["Payer"]
    assert said["Far"] == "no sampled relationship leads to it within two hops"


def test_what_is_not_used_is_listed_with_what_to_type(crimes):
    crimes.run("MATCH (c:Crime) SET c.constant = 'x' CREATE (c)-[:LOGGED]->(:Line {text: 'a'})")
    said = left_out(propose(crimes))
    assert '[graph.columns.Crime] "constant" = "category"' in said["Crime.constant"]
    assert '[graph.columns.Crime] "closed_by" = "use"' in said["Crime.closed_by"]
    assert "Line is left out: no property is unique" in said["relationship LOGGED (Crime to Line)"]
    names = {column.name for column in propose(crimes).columns}
    told = {name.partition(".")[2] for name in said if name.startswith("Crime.")}
    stands = {"ref", "outcome"}
    there = set(
        crimes.read("MATCH (c:Crime) UNWIND keys(c) AS k RETURN collect(DISTINCT k) AS k")[0]["k"]
    )
    assert there == names | told | stands  # nothing is dropped without a word


SHIPPED = """
UNWIND ['fast', 'slow', 'sea'] AS name CREATE (:Shipper {name: name, phone: 'p' + name})
WITH count(*) AS _
UNWIND range(0, 19) AS i CREATE (:Customer {id: i, size: i})
WITH count(*) AS _
UNWIND range(1, 400) AS i
CREATE (o:Order {id: i, amount: i * 37 % 101, written: date('2020-01-01') + duration({days: i}),
  status: ['fast', 'slow', 'sea'][i * i * 7 % 11 % 3]})
WITH o, i
MATCH (s:Shipper {name: o.status}), (c:Customer {id: i * 13 % 20})
CREATE (o)-[:SHIPPED_BY]->(s), (o)-[:FOR]->(c)
"""


def test_a_class_that_stands_at_a_neighbour_is_named_and_cut(
    connected, graph, tmp_path, monkeypatch
):
    connected.run(SHIPPED)
    proposal = propose(connected, "Order", "status")
    relations = {one.type: one for one in proposal.relations}
    assert relations["SHIPPED_BY"].after_evaluation
    assert "the class may stand at the neighbour" in relations["SHIPPED_BY"].why
    assert "on later nodes" in relations["SHIPPED_BY"].why
    assert not relations["FOR"].after_evaluation  # the control

    path = tmp_path / "ringfence.toml"
    text = as_toml(proposal, "p", server(graph.uri, graph.auth[0]))
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    path.write_text(text, encoding="utf-8")
    assert not [one for one in run_doctor(path) if "stand at the neighbour" in one.text]
    path.write_text(text.replace("after_evaluation = true", ""), encoding="utf-8")
    (said,) = (one for one in run_doctor(path) if "stand at the neighbour" in one.text)
    assert "SHIPPED_BY" in said.text
    assert "after_evaluation = true" in said.fix


def test_a_carrier_named_at_each_order_s_own_shipment_is_seen_in_its_columns(connected):
    connected.run(SHIPPED)
    connected.run(
        "MATCH (o:Order) CREATE (o)-[:HAS]->(:Shipment {id: o.id, carrier: o.status, box: o.id})"
    )
    relations = {one.type: one for one in propose(connected, "Order", "status").relations}
    assert "its carrier tells" in relations["HAS"].why


def test_a_carrier_at_one_of_several_shipments_is_seen_wherever_it_stands(connected):
    connected.run(SHIPPED)
    connected.run(
        "MATCH (o:Order) UNWIND range(0, 4) AS n CREATE (o)-[:HAS]->(:Shipment {id: o.id * 5 + n, "
        "note: CASE WHEN n = o.id % 5 THEN o.status ELSE 'n' + (o.id * 7 + n) % 50 END})"
    )
    relations = {one.type: one for one in propose(connected, "Order", "status").relations}
    assert "its note tells" in relations["HAS"].why
    assert relations["HAS"].after_evaluation


MONTHLY = """
UNWIND range(0, 9) AS m CREATE (:Month {id: m, days: 30 + m % 2})
WITH count(*) AS _
UNWIND range(0, 399) AS i
CREATE (o:Order {id: i, amount: i * 37 % 101, written: date('2020-01-01') + duration({days: i}),
  status: ['fast', 'slow', 'sea'][toInteger(i / 40) % 3]})
WITH o, i MATCH (m:Month {id: toInteger(i / 40)}) CREATE (o)-[:IN]->(m)
"""


def test_init_and_doctor_hold_out_the_same_nodes(connected, graph, tmp_path, monkeypatch):
    """Months tell the class of other orders of the month, and nothing of later ones."""
    connected.run(MONTHLY)
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    path = tmp_path / "ringfence.toml"

    def said():
        proposal = propose(connected, "Order", "status")
        text = as_toml(proposal, "p", server(graph.uri, graph.auth[0]))
        path.write_text(text.replace("after_evaluation = true", ""), encoding="utf-8")
        named = [one for one in run_doctor(path) if "stand at the neighbour" in one.text]
        return {one.type for one in proposal.relations if "stand at the" in one.why}, len(named)

    assert said() == (set(), 0)
    connected.run("MATCH (o:Order) REMOVE o.written")
    assert said() == ({"IN"}, 1)  # the control: without a time other nodes are held out


def test_kinds_that_a_closer_look_shows_are_written_into_the_file(connected, tmp_path):
    connected.run(
        "UNWIND range(1, 200) AS i CREATE (c:Claim {nr: i, size: i % 17, "
        "amount: toString(i * i % 97) + '.5', paid: ['yes', 'no'][i % 2], "
        "tags: [j IN range(0, i % 4) | (i * j * 7 + j) % 11 + 20 * j], "
        "status: CASE WHEN i % 3 = 0 THEN 'fraud' ELSE 'fine' END}) "
        "MERGE (w:Way {name: ['sea', 'air', 'road', 'rail'][i % 4]}) "
        "CREATE (c)-[:BY {fee: toString(i) + '.25'}]->(w)"
    )
    proposal = propose(connected, "Claim", "status")
    path = tmp_path / "ringfence.toml"
    path.write_text(as_toml(proposal, "p", server("bolt://localhost", "neo4j")))
    mapping = load(path).mapping()
    claim, way = mapping.nodes
    kinds = {column.name: (column.kind, dict(column.options)) for column in claim.columns}
    assert kinds == {
        "amount": ("number", {"text": True}),
        "paid": ("boolean", {"text": True}),
        "tags": ("texts", {}),
        "size": (None, {}),  # what training sees by itself is not written
    }
    ((name, kind, options),) = ((c.name, c.kind, dict(c.options)) for c in way.columns)
    assert (name, kind, options) == ("name", "category", {"least": 1})
    ((fee),) = mapping.relations[0].columns
    assert (fee.name, fee.kind, dict(fee.options)) == ("fee", "number", {"text": True})
    said = path.read_text()
    for words in (
        "numbers kept as text",
        "true and false kept as text",
        "ids,",
        "tells the 4 nodes",
    ):
        assert words in said


def test_dates_of_a_node_are_also_read_as_days_since_its_earliest(connected, tmp_path):
    connected.run(
        "UNWIND range(1, 719) AS i WITH i, date('2020-01-01') + duration({days: i % 90}) AS day "
        "CREATE (:Parcel {nr: i, sold: day, packed: day + duration({days: i % 5}), "
        "sent: day + duration({days: i * 7 % 11}), size: i % 17, "
        "state: CASE WHEN toInteger(i / 90) % 2 = 0 THEN 'late' ELSE 'fine' END})"
    )
    proposal = propose(connected, "Parcel", "state")
    path = tmp_path / "ringfence.toml"
    path.write_text(as_toml(proposal, "p", server("bolt://localhost", "neo4j")))
    columns = load(path).mapping().classified.columns
    read = {column.name: (column.kind, dict(column.options)) for column in columns}
    assert read["packed"] == read["sent"] == ("date", {"since": "sold"})
    assert read["sold"] == (None, {})
    assert "also as days since sold" in path.read_text()
    connected.run(  # the control: the difference is the class, which neither date tells
        "MATCH (p:Parcel) SET p.sent = p.sold + duration({days: CASE p.state WHEN 'late' THEN 9 "
        "ELSE 1 END})"
    )
    columns = {column.name: column for column in propose(connected, "Parcel", "state").columns}
    assert columns["packed"].named
    assert not columns["sent"].named


def test_uneven_classes_get_a_promise_each_with_what_the_other_would_do(connected, tmp_path):
    connected.run(
        "UNWIND range(1, 3000) AS i CREATE (:Account {id: i, size: i % 17, "
        "status: CASE WHEN i % 20 = 0 THEN 'fraud' ELSE 'fine' END})"
    )
    proposal = propose(connected)
    assert proposal.promise.value == "class"
    assert "kept with 0% of them covered" in proposal.promise.why
    text = as_toml(proposal, "p", server("bolt://localhost", "neo4j"))
    assert 'promise = "class"' in text
    assert 'network = "auto"' in text
    connected.run("MATCH (a:Account) SET a.status = ['fraud', 'fine'][a.id % 2]")
    assert propose(connected).promise.value == "marginal"


def test_a_person_can_choose(crimes):
    asked = []

    def ask(question, answers, proposed):
        asked.append((list(answers), proposed))
        return "type" if "class" in question else proposed

    assert propose(crimes, ask=ask).class_property.value == "type"
    assert asked[0][1] == "Crime"
    assert asked[1][1] == "outcome"
    assert {"outcome", "type"} <= set(asked[1][0])
