"""What is said of a set while its promise is broken, or an alarm is firing."""

import pytest
from sqlalchemy import text

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.auditing.alarms.rules import RULES
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.views.doubts import PROMISE_ALARMS
from ringfence.jobs.views.explain import describe_set, explain
from tests.dashboard.conftest import settings_at

PROMISED = "sets may miss"


@pytest.fixture
def told(tmp_path):
    """What explain says of every node of a run, for a made-up store."""
    stores = []

    def tell(audit=None, **plan):
        folder = tmp_path / str(len(stores))
        folder.mkdir()
        store = open_store(f"sqlite:///{folder}/audit.db")
        stores.append(store)
        settings = settings_at(folder, **({"audit": audit} if audit else {}))
        made = Plan(runs=8, known=1.0, **plan)
        fill_store(store, settings, made)
        queries = ProjectQueries(store, settings.project)
        nodes = [explain(queries, f"{made.prefix}2-{i}") for i in range(40)]
        return queries, [node for node in nodes if 0 < len(node.classes) < len(node.levels)]

    yield tell
    for store in stores:
        store.close()


def test_a_kept_promise_is_repeated(told):
    queries, nodes = told(covered=0.91)
    assert queries.verdict().verdict == "kept"
    assert all(node.doubts == () for node in nodes)
    assert any(PROMISED in node.sentence for node in nodes)


def test_a_broken_promise_is_not_repeated_over_any_set(told):
    queries, nodes = told(covered=0.7)
    assert queries.verdict().verdict == "broken"
    assert all(PROMISED not in node.sentence for node in nodes)
    assert all("promise of 90 % to all nodes is broken" in node.doubts[0] for node in nodes)
    fitting = [node for node in nodes if "fits" in node.sentence or "may be" in node.sentence]
    assert fitting
    assert all("is broken" in node.sentence for node in fitting)


def test_the_alarm_of_a_decline_stands_with_the_broken_promise(told):
    queries, nodes = told(covered=0.7)
    alarms = {alarm.rule: alarm for alarm in queries.alarms()}
    assert alarms["decline"].state == "firing"
    assert any("the alarm decline is firing" in doubt for doubt in nodes[0].doubts)
    assert nodes[0].as_json()["doubts"] == nodes[0].doubts


def test_a_broken_class_is_named_over_sets_of_a_promise_per_class(told):
    _, nodes = told(covered=0.95, covered_by_class={"mule": 0.5}, promise="class")
    assert all("to class mule is broken" in " ".join(node.doubts) for node in nodes)
    assert all(PROMISED not in node.sentence for node in nodes)


def test_an_audit_sample_that_breaks_the_promise_stands_first(told):
    sampled = {"groups": ["region"], "sample_nodes": 30}
    _, nodes = told(audit=sampled, covered=0.7)
    assert all("is broken in the audit sample" in node.doubts[0] for node in nodes)
    assert all(PROMISED not in node.sentence for node in nodes)
    _, nodes = told(audit=sampled, covered=0.91)
    assert all(node.doubts == () for node in nodes)


@pytest.mark.parametrize("inside", [[], ["a"], ["a", "b"], ["a", "b", "c"]])
def test_full_and_empty_sets_are_doubted_too(inside):
    p = dict.fromkeys("abc", 0.5)
    doubted = describe_set(inside, 3, p, 0.1, doubts=["the promise is broken"])
    assert doubted.endswith("; but the promise is broken")
    assert describe_set(inside, 3, p, 0.1).partition(";")[0] == doubted.partition(";")[0]
    filled = describe_set(["a"], 3, {"a": 0.04}, 0.1, doubts=["the promise is broken"])
    assert filled.endswith("no class conforms at 0.1; but the promise is broken")


@pytest.mark.parametrize("rule", ["shift", "bias"])
def test_an_alarm_on_who_is_judged_is_a_doubt(told, rule):
    """The nodes differ from those that calibrate, or the known ones from the others."""
    assert set(PROMISE_ALARMS) <= set(RULES)
    queries, nodes = told(covered=0.91)
    assert nodes[0].doubts == ()
    with queries.store.transaction() as connection:
        connection.execute(text("DELETE FROM alarm WHERE rule = :rule"), {"rule": rule})
        fire = "UPDATE alarm SET rule = :rule, state = 'firing', words = 'they differ' "
        connection.execute(text(fire + "WHERE rule = 'decline'"), {"rule": rule})
    (doubt,) = explain(queries, nodes[0].key).doubts
    assert doubt == f"the alarm {rule} is firing: they differ"
