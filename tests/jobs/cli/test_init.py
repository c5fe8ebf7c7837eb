"""`ringfence init`: a file that works, from a live graph."""

import io
import json
import re
import sys

import pytest


def test_init_fills_in_the_file_and_doctor_finds_it_healthy(
    ringfence, project, tmp_path_factory, graph
):
    folder, env = project
    ringfence("sample", "--nodes", "600", cwd=folder, env=env)
    own = tmp_path_factory.mktemp("own")
    told = ringfence("init", "--uri", graph.uri, cwd=own, env=env)
    assert "ringfence doctor" in told.stdout
    text = (own / "ringfence.toml").read_text()
    for line in (
        'label = "Account"',
        'key = "id"',
        'features = "features"',
        'class_property = "kind"',
        'created_at = "created_at"',
        'type = "PAID"',
    ):
        assert line in text
    assert re.search(r'time_kind = "zoned"  # created_at is a ZONED DATETIME', text)
    refused = ringfence("init", "--uri", graph.uri, cwd=own, env=env, code=1)
    assert "--force" in refused.stderr
    before = json.loads(ringfence("doctor", "--json", cwd=own, env=env).stdout)
    coming = [one for one in before if one["text"].startswith("not done yet: ")]
    assert [one["fix"] for one in coming] == ["ringfence migrate"] * 2
    assert {one["level"] for one in before} == {"ok", "warning"}  # nothing is wrong so far
    ringfence("migrate", cwd=own, env=env)
    after = json.loads(ringfence("doctor", "--json", cwd=own, env=env).stdout)
    levels = {finding["level"]: finding for finding in after}
    assert "error" not in levels
    assert "no trained model" in levels["warning"]["text"]


ORDERS = """
UNWIND range(0, 119) AS i
MERGE (s:Shop {name: 'shop ' + (i % 30)}) SET s.status = ['open', 'closed'][i % 30 / 7 % 2]
CREATE (o:Order {id: i, amount: i * 1.5, outcome: CASE WHEN i < 80 THEN ['paid', 'lost'][i % 2] END,
  risk: CASE WHEN i < 80 THEN ['low', 'high'][(i / 2) % 2] END})
CREATE (o)-[:AT]->(s)
WITH o, s WHERE o.outcome = 'lost' CREATE (s)-[:CLAIMED]->(o)
"""


@pytest.fixture
def asked(ringfence, graph, tmp_path, monkeypatch):
    """Type `init --interactive` with answers, one per line, on a graph with several candidates."""
    graph.run(ORDERS)
    environment = {
        "RINGFENCE_NEO4J_USER": graph.auth[0],
        "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
    }

    def answer(*lines, options=(), code=0):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        done = ringfence(
            "init", "--interactive", "--uri", graph.uri, *options, cwd=tmp_path, env=environment,
            code=code,
        )  # fmt: skip
        return done, tmp_path / "ringfence.toml"

    return answer


def test_a_person_chooses_label_and_class_and_when_a_relationship_is_set(asked):
    done, path = asked("Order", "risk", "before")
    text = path.read_text()
    assert 'class_property = "risk"  # chosen by hand' in text
    assert 'label = "Order"' in text
    assert "after_evaluation" not in text  # the person said that it is set before
    for question in ("Which label is to be predicted?", "Which property is the class?",
                     "Is CLAIMED set before a node is evaluated, or after?"):  # fmt: skip
        assert question in done.stderr
    assert "Next: ringfence migrate, then: ringfence doctor" in done.stdout


def test_enter_takes_what_is_proposed_and_a_wrong_answer_is_asked_again(asked):
    done, path = asked("Nobody", "Order", "outcome", "", options=["--json"])
    assert "'Nobody' is not one of the answers" in done.stderr
    assert json.loads(done.stdout)["class_property"]["value"] == "outcome"
    text = path.read_text()
    assert 'class_property = "outcome"' in text
    assert "after_evaluation = true" in text  # proposed, and taken by Enter


def test_who_leaves_in_the_middle_has_no_file(asked):
    done, path = asked("Order", code=1)
    assert "Aborted" in done.stderr
    assert "Traceback" not in done.stderr
    assert not path.exists()
