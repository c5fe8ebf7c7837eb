"""A model runs under the mapping that it was trained with, and under no other.

The digests of manifests that are in use stay what they are: one that changed would refuse every
model that was trained before. The values are those of version b008978.
"""

import pytest
from sqlalchemy import select

from ringfence.connector.errors import ConfigError
from ringfence.connector.store import tables
from ringfence.connector.store.engine import dumps
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.graph import RelationshipSettings
from ringfence.jobs.config.load import load
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project import mapping_digest
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training import train

ONE_LABEL = '[graph]\nlabel = "Account"\nkey = "id"\nclass_property = "kind"\n'
PAID = '[[graph.relationships]]\ntype = "PAID"\n'
KNOWS = '[[graph.relationships]]\ntype = "KNOWS"\nundirected = false\ncreated_at = ""\n'
LABELS = """
[graph]
class_property = "status"
[[graph.nodes]]
label = "Airport"
key = "faa"
columns = ["name", "altitude"]
[[graph.nodes]]
label = "Flight"
key = "id"
role = "classified"
columns = ["hour", "tailnum", "carrier"]
[graph.columns.Flight]
tailnum = "leave"
carrier = "category"
distance = { kind = "number", options = { log = true } }
"""
TIMED_LABELS = LABELS.replace('role = "classified"', 'role = "classified"\ncreated_at = "written"')
DEPARTS = '[[graph.relationships]]\nfrom = "Flight"\ntype = "DEPARTS"\nto = "Airport"\n'
NEXT = """
[[graph.relationships]]
from = "Flight"
type = "NEXT"
to = "Flight"
undirected = false
created_at = "t"
"""
LATE = """
[[graph.relationships]]
from = "Airport"
type = "LATE"
to = "Flight"
after_evaluation = true
"""
ONE_VECTOR = """
[graph]
class_property = "kind"
[[graph.nodes]]
label = "Account"
key = "id"
role = "classified"
created_at = "created_at"
[graph.columns.Account]
features = "vector"
[[graph.relationships]]
from = "Account"
type = "PAID"
to = "Account"
created_at = "created_at"
"""
PROPERTIES = 'features = ["b", "a"]\ncreated_at = "t"\ntime_kind = "milliseconds"\n'

BOUND = {
    "a list": (
        ONE_LABEL + 'features = "x"\n' + PAID,
        "2a9f82b490cce6fe1de12e980320c2c5ba5d6039112cadd775a3ae8327e620e3",
    ),
    "no relationship": (
        ONE_LABEL + 'features = "x"\n',
        "84dc2f42489b803e02870e0d611bbd4ad9c844854670e3b7551896a4f9037edf",
    ),
    "one property": (
        ONE_LABEL + 'features = ["x"]\n' + PAID,
        "3aa721cc679119d30b0e5cb725f3542e81a25f27a54f4be6c920e479e4268fc9",
    ),
    "several properties": (
        ONE_LABEL + PROPERTIES + PAID + KNOWS,
        "9928ac8b564b9453e7a725a1ee7a1a27ad27dd94e34402f62210ce810ab354d2",
    ),
    "labels": (
        LABELS + DEPARTS,
        "4a40bc94dd4ec706f77af0db4ba4fba97b684cd3b509bdb09489a53d90cad047",
    ),
    "labels with times": (
        TIMED_LABELS + DEPARTS + NEXT + LATE,
        "7e57e0f9dd789a4ea7c082049c882fc23b1db6054accafcd62d5f6fd13aa20da",
    ),
    "one label with a vector column": (
        ONE_VECTOR,
        "fde0f80f5321039955b6b9d61b4a733c718cf636a17eaaf24e2493b119ea9b8a",
    ),
}
PARTS = {
    "several properties": '{"class_property":"kind","features":["b","a"],"key":"id",'
    '"label":"Account","relationships":["PAID (undirected)","KNOWS (directed)"]}',
    "labels with times": '{"class_property":"status","columns":{"Flight.carrier":["category",{}],'
    '"Flight.distance":["number",{"log":true}]},"nodes":[["Flight","id",["hour","carrier",'
    '"distance"]],["Airport","faa",["name","altitude"]]],"relationships":['
    '"(:Flight)-[:DEPARTS]->(:Airport) (undirected)","(:Flight)-[:NEXT]->(:Flight) (directed)",'
    '"(:Airport)-[:LATE]->(:Flight) (undirected, after evaluation)"]}',
}


@pytest.fixture
def bind(tmp_path):
    def bind(text):
        path = tmp_path / "ringfence.toml"
        path.write_text(text, encoding="utf-8")
        return mapping_digest.bind_mapping(load(path, {}).mapping())

    return bind


@pytest.mark.parametrize("name", BOUND)
def test_models_of_the_version_before_are_bound_to_the_same_digest(bind, name):
    text, digest = BOUND[name]
    assert bind(text)["digest"] == digest


@pytest.mark.parametrize("name", PARTS)
def test_the_parts_of_a_binding_are_written_as_before(bind, name):
    assert dumps(bind(BOUND[name][0])["parts"]) == PARTS[name]


def test_a_changed_name_column_or_direction_is_another_digest(bind):
    text, digest = BOUND["labels with times"]
    changes = [
        ('"faa"', '"code"'),
        ('["name", "altitude"]', '["altitude", "name"]'),
        ('"category"', '"text"'),
        ("undirected = false", "undirected = true"),
        ("after_evaluation = true", "after_evaluation = false"),
    ]
    for old, new in changes:
        assert old in text
        assert bind(text.replace(old, new))["digest"] != digest
    assert bind(text.replace('"written"', '"made"'))["digest"] == digest  # times are no inputs


CHANGES = {
    "label": {"label": "Shop"},
    "features": {"features": ["b", "a"]},
    "class_property": {"class_property": "kind2"},
    "relationships": {"relationships": [RelationshipSettings(type="PAID", undirected=False)]},
    "relationships of another type": {"relationships": [RelationshipSettings(type="KNOWS")]},
}


@pytest.fixture
def sql_url(tmp_path):
    """SQLite alone: the manifest is one text on both."""
    return f"sqlite:///{tmp_path / 'ringfence.db'}"


def mapped(settings, **graph):
    return settings.model_copy(update={"graph": settings.graph.model_copy(update=graph)})


@pytest.fixture
def columns(grown):
    """The sample with two feature columns, and shops that share keys, width and classes with it."""
    grown.workspace.graph.run(
        "MATCH (n:Account) SET n.a = n.features[0], n.b = n.features[1], n.kind2 = n.kind "
        "CREATE (:Shop {id: n.id, a: n.b, b: n.a, kind: n.kind, created_at: n.created_at})"
    )
    with open_workspace(mapped(grown.workspace.settings, features=["a", "b"])) as workspace:
        yield workspace


def test_another_mapping_than_the_models_is_refused_with_what_differs(columns):
    train.run_training(columns)
    mirror = sorted((file, file.stat().st_mtime_ns) for file in columns.mirror.iterdir())
    key = str(columns.graph.read("MATCH (n:Account) RETURN min(n.id) AS id")[0]["id"])
    verbs = (run_scoring, run_audit, lambda workspace: run_rescoring(workspace, [key], "asked"))
    for name, change in CHANGES.items():
        with open_workspace(mapped(columns.settings, **change)) as workspace:
            for verb in verbs:
                with pytest.raises(ConfigError, match=rf"\[graph\] {name.split()[0]} is") as raised:
                    verb(workspace)
                assert "ringfence train" in str(raised.value)
    assert sorted((file, file.stat().st_mtime_ns) for file in columns.mirror.iterdir()) == mirror
    with columns.store.reading() as connection:
        assert connection.execute(select(tables.run)).all() == []
    report = run_scoring(columns)  # control: the mapping that it was trained with
    assert report.evaluated > 100
    assert mapping_digest.NOT_BOUND not in report.run.notes
    times = {"relationships": [RelationshipSettings(type="PAID", created_at=None)]}
    with open_workspace(mapped(columns.settings, **times)) as workspace:
        run_scoring(workspace)  # where times stand shapes no input
    assert run_verification(columns).problems == ()


def test_a_model_from_before_runs_on_and_each_run_says_that_it_is_not_bound(grown, monkeypatch):
    facts = train._manifest_facts

    def older(*given):
        return {name: value for name, value in facts(*given).items() if name != "mapping"}

    with monkeypatch.context() as before:
        before.setattr(train, "_manifest_facts", older)
        train.run_training(grown.workspace)
    assert mapping_digest.NOT_BOUND in run_scoring(grown.workspace).run.notes
    grown.arrive(grown.later[0])
    directed = mapped(grown.workspace.settings, **CHANGES["relationships"])
    with open_workspace(directed) as workspace:
        assert run_scoring(workspace).evaluated > 0  # what a bound model refuses
        train.run_training(workspace, promote="other relationships")
    with pytest.raises(ConfigError, match="relationships is"):
        run_scoring(grown.workspace)


def test_columns_of_relationships_are_bound_and_absent_without_them(tmp_path):
    path = tmp_path / "ringfence.toml"

    def bound(text):
        path.write_text(text, encoding="utf-8")
        mapping = load(path, {}).mapping()
        return mapping, mapping_digest.bind_mapping(mapping)

    plain, without = bound(LABELS + DEPARTS)
    related, beside = bound(LABELS + DEPARTS + 'columns = ["gate"]\n')
    assert "relationship_columns" not in without["parts"]
    drawn = "(:Flight)-[:DEPARTS]->(:Airport).gate"
    assert beside["parts"]["relationship_columns"] == {drawn: [None, {}]}
    for mapping, other in ((plain, beside), (related, without)):
        recorded = dumps({"version": "v1", "mapping": other})
        with pytest.raises(ConfigError, match="relationship_columns"):
            mapping_digest.require_mapping(mapping, recorded)
