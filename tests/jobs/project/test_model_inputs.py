"""A model runs under the mapping that it was trained with, and under no other."""

import pytest
from sqlalchemy import select

from ringfence.connector.errors import ConfigError
from ringfence.connector.store import tables
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.graph import RelationshipSettings
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project import model_inputs
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training import train

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
    assert model_inputs.NOT_BOUND not in report.run.notes
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
    assert model_inputs.NOT_BOUND in run_scoring(grown.workspace).run.notes
    grown.arrive(grown.later[0])
    directed = mapped(grown.workspace.settings, **CHANGES["relationships"])
    with open_workspace(directed) as workspace:
        assert run_scoring(workspace).evaluated > 0  # what a bound model refuses
        train.run_training(workspace, promote="other relationships")
    with pytest.raises(ConfigError, match="relationships is"):
        run_scoring(grown.workspace)
