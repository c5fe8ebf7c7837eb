"""Doctor on several labels: what would fail later fails here, each with a fix."""

import pytest

from ringfence.jobs.setup.doctor import run_doctor

GRAPH = """
UNWIND range(1, 120) AS i
CREATE (c:Case {id: i, size: i % 7, note: 'x' + (i % 5), ragged: [y IN range(0, i % 3) | 1.0],
  outcome: CASE WHEN i <= 100 THEN ['good', 'bad'][i % 2] END})
SET c.verdict = CASE WHEN i <= 100 THEN 'v' + (i % 9) END
SET c.other = CASE WHEN i % 2 = 1 THEN 'bad indeed' ELSE 'good indeed' END
SET c.code = CASE WHEN i % 10 > 0 THEN i END
SET c.one = CASE WHEN i < 90 THEN 'same' END
WITH c, i
MERGE (s:Site {name: 's' + (i % 5)})
CREATE (c)-[:AT]->(s)
"""

FILE = """
[neo4j]
uri = "{uri}"
[graph]
class_property = "outcome"
[[graph.nodes]]
label = "Case"
key = "id"
role = "classified"
columns = ["size", "note"]
[[graph.nodes]]
label = "Site"
key = "name"
[[graph.relationships]]
from = "Case"
type = "AT"
to = "Site"
"""


@pytest.fixture
def check(connected, graph, tmp_path, monkeypatch):
    connected.run(GRAPH)
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])

    def check(*changes, cypher=None):
        text = FILE.format(uri=graph.uri)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        if cypher:
            connected.run(cypher)
        path = tmp_path / "ringfence.toml"
        path.write_text(text, encoding="utf-8")
        found = [one for one in run_doctor(path) if one.level != "ok"]
        return {one.text: one for one in found if "migrate" not in one.fix}

    return check


def test_a_sound_configuration_has_nothing_to_correct(check):
    assert check() == {}


@pytest.mark.parametrize(
    ("change", "text", "fix"),
    [
        (('"size"', '"weight"'), "no sampled :Case node has the column weight", "take weight out"),
        (('"outcome"', '"one"'), "have a known class: only 'same' in one", "class_property"),
        (('"outcome"', '"absent"'), "0 :Case nodes have a known class", "ranks candidates"),
        (('"note"', '"verdict"'), "Case.verdict: set for 100 % of the nodes", 'verdict = "leave"'),
        (('"note"', '"note", "other"'), "Case.other: tells 9", 'other = "leave"'),
        (('key = "id"', 'key = "note"'), "the key note of Case is not unique", "another key"),
        (('key = "id"', 'key = "code"'), "10% of the :Case nodes have no code", "another key"),
        (('key = "id"', 'key = "nr"'), "has the property nr; there are: code", "correct the key"),
        (('"AT"', '"IN"'), "there is no relationship of the type IN", "take it out"),
        (
            ('from = "Case"\ntype = "AT"\nto = "Site"', 'from = "Site"\ntype = "AT"\nto = "Case"'),
            "AT joins (:Case)->(:Site)",
            "correct from and to",
        ),
        (
            ('key = "id"', 'key = "id"\ncreated_at = "size"'),
            "holds 120 INTEGER in 120 sampled nodes",
            "time_kind",
        ),
        (('["size", "note"]', "[]"), "no label has a column", "name properties in columns"),
        (
            ('"note"]', '"ragged"]\n[graph.columns.Case]\nragged = "vector"\n'),
            "Case.ragged has lists of 3 lengths (1 to 3)",
            'ragged = "numbers"',
        ),
        (
            ('"note"]', '"note"]\n[graph.columns.Case]\nnote = "kategory"\n'),
            "no column kind is called 'kategory'",
            "correct [graph.columns.Case] note",
        ),
    ],
)
def test_what_would_fail_later_fails_here(check, change, text, fix):
    (found,) = [one for said, one in check(change).items() if text in said]
    assert found.level == "error"
    assert fix in found.fix


def test_a_column_that_a_person_has_chosen_is_a_warning(check):
    change = ('"note"]', '"note"]\n[graph.columns.Case]\nother = "use"\n')
    (found,) = [one for said, one in check(change).items() if "Case.other" in said]
    assert found.level == "warning"


def test_a_context_label_that_vanished_is_said(check):
    found = check(cypher="MATCH (s:Site) DETACH DELETE s")
    assert any("no node carries the context label Site" in said for said in found)


def test_a_relationship_that_comes_with_the_class_is_found(check):
    connect = (
        "MATCH (c:Case), (s:Site {name: 's1'}) WHERE c.outcome IS NOT NULL "
        "CREATE (c)-[:CLOSED_AT]->(s)"
    )
    relation = '"Site"\n[[graph.relationships]]\nfrom = "Case"\ntype = "CLOSED_AT"\nto = "Site"\n'
    change = ('to = "Site"\n', f"to = {relation}")
    (found,) = [one for said, one in check(change, cypher=connect).items() if "CLOSED_AT" in said]
    assert found.level == "error"
    assert "after_evaluation = true" in found.fix
    marked = (relation, relation + "after_evaluation = true\n")
    assert not [said for said in check(change, marked) if "CLOSED_AT" in said]


ONE_LABEL = """
[neo4j]
uri = "{uri}"
[graph]
label = "Case"
key = "id"
features = {features}
class_property = "outcome"
created_at = "at"
"""


@pytest.mark.parametrize(
    ("features", "text"),
    [
        ('"ragged"', "ragged has lists of 3 lengths; the nodes whose list has not"),
        ('["size", "code"]', "10% of the :Case nodes have no code and fall out"),
        ('["size", "result"]', "result is set for 100 % of the nodes with a class"),
    ],
)
def test_one_label_fails_on_ragged_lists_gaps_and_leaks(
    connected, graph, tmp_path, monkeypatch, features, text
):
    connected.run(GRAPH)
    connected.run("MATCH (c:Case) SET c.at = datetime.realtime()")
    connected.run("MATCH (c:Case) WHERE c.outcome IS NOT NULL SET c.result = c.id")
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    path = tmp_path / "ringfence.toml"
    path.write_text(ONE_LABEL.format(uri=graph.uri, features=features), encoding="utf-8")
    (found,) = [one for one in run_doctor(path) if text in one.text]
    assert found.level == "error"
