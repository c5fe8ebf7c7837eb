"""A promise per class and per group, through graph, SQL, coverage rows and the chain."""

import json
import re

import pytest
from sqlalchemy import select

from ringfence.connector.errors import ConfigError
from ringfence.connector.store import runs, tables
from ringfence.connector.store.models import class_names
from ringfence.jobs.auditing.audit import count_coverage, run_audit
from ringfence.jobs.cli.commands.model.advise import print_trade_off
from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.class_trade_off import run_trade_off
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.checks.store import check_model
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.charts import class_trade_off
from ringfence.jobs.views.renderers.svg import draw

SPLIT = "MATCH (n:Account) SET n.zone = CASE n.id % 3 WHEN 0 THEN 'north' WHEN 1 THEN 'south' END"


@pytest.fixture
def sql_url(tmp_path):
    return f"sqlite:///{tmp_path / 'ringfence.db'}"


def with_conformal(workspace, **values):
    return workspace.settings.model_copy(update={"conformal": ConformalSettings(**values)})


def rows_of(workspace, table, **where):
    query = select(table).where(*(table.c[name] == value for name, value in where.items()))
    with workspace.store.reading() as connection:
        return connection.execute(query).all()


def play(grown, workspace):
    """Train, evaluate two batches, let all classes of the first become known."""
    announced = []
    trained = run_training(workspace, announce=announced.append)
    assert tuple(announced) == trained.announced
    first = run_scoring(workspace)
    grown.arrive(grown.later[0])
    second = run_scoring(workspace)
    grown.reveal(grown.first.nodes[~grown.labelled[grown.first.nodes]])
    return trained, (first, second), run_audit(workspace)


def test_classes_are_calibrated_apart_with_alphas_of_their_own_and_can_be_broken(grown):
    settings = with_conformal(
        grown.workspace, promise="class", alpha=[0.2, 0.1], classes={"mule": 0.3}
    )
    with open_workspace(settings) as workspace:
        trained, reports, audit = play(grown, workspace)
        classes = class_names(workspace.store, "test")[trained.version]
        run = runs.one_run(workspace.store, "test", reports[0].seq)
        assert (run.promise, run.score, run.threshold) == ("class", "TPS", None)
        levels = {name: 0.3 if name == "mule" else 0.2 for name in classes}
        assert run.levels["used"][0] == levels
        for row in rows_of(workspace, tables.prediction, seq=run.seq):
            p = dict(zip(classes, json.loads(row.p_values), strict=True))
            assert json.loads(row.classes) == [name for name in classes if p[name] > levels[name]]
        thresholds = rows_of(workspace, tables.threshold, seq=run.seq)
        assert {row._mapping["class"] for row in thresholds} == set(classes)
        members = rows_of(workspace, tables.member, version=trained.version, role="calibration")
        for y, name in enumerate(classes):  # no threshold rests on nodes of another class
            own = sum(row.class_index == y for row in members)
            sizes = {row.n_calibration for row in thresholds if row._mapping["class"] == name}
            assert max(sizes) <= own
        rows = {(row.name, row.alpha): row for row in audit.rows if row.slice == "class"}
        assert ("mule", 0.3) in rows
        assert ("mule", 0.2) not in rows  # one row tells all: its sets are the same at both alphas
        assert all(row.own_promise for row in rows.values())
        assert count_coverage(workspace.store, workspace.settings) == list(audit.rows)
        assert run_verification(workspace).problems == ()
        shown = workspace.graph.read(
            "MATCH (a:CoverageAudit {slice: 'class', name: 'mule'}) RETURN a.own_promise AS own, "
            "a.alpha AS alpha"
        )
        assert [dict(row) for row in shown] == [{"own": True, "alpha": 0.3}]


def test_groups_are_calibrated_apart_and_one_never_seen_gets_full_sets(grown):
    settings = with_conformal(grown.workspace, promise="group", group="zone", alpha=0.2)
    grown.workspace.graph.run(SPLIT)
    with open_workspace(settings) as workspace:
        run_training(workspace)
        first = run_scoring(workspace)
        bands = {row.band for row in rows_of(workspace, tables.prediction, seq=first.seq)}
        assert {band.rpartition(" in ")[2] for band in bands} == {
            "zone=north", "zone=south", "no zone",
        }  # fmt: skip
        grown.arrive(grown.later[0])
        workspace.graph.run(
            "MATCH (n:Account) WHERE n.zone IS NULL AND n.kind IS NULL "
            "AND NOT (n)-[:EVALUATED]->() SET n.zone = 'west'"
        )
        second = run_scoring(workspace)
        assert any("zone=west" in note and "full sets" in note for note in second.run.notes)
        classes = len(class_names(workspace.store, "test")[second.run.model])
        new = rows_of(workspace, tables.prediction, seq=second.seq)
        west = [row for row in new if row.band == "zone=west"]
        assert west
        assert {row.size for row in west} == {classes}
        workspace.graph.run("MATCH (n:Account) SET n.zone = 'moved'")  # after the evaluation
        grown.reveal(grown.first.nodes[~grown.labelled[grown.first.nodes]])
        audit = run_audit(workspace)
        rows = {row.name: row for row in audit.rows if row.slice == "group"}
        assert set(rows) == {"zone=north", "zone=south", "zone=west"}
        assert all(row.own_promise for row in rows.values())
        assert run_verification(workspace).problems == ()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"promise": "class", "classes": {"mole": 0.1}}, "'mole', which is no class"),
        ({"promise": "group", "group": "kind"}, "class_property"),
    ],
)
def test_a_promise_that_cannot_be_read_is_refused_before_training_and_before_scoring(
    trained, given, reason
):
    with open_workspace(with_conformal(trained.workspace, **given)) as workspace:
        for work in (run_training, run_scoring):
            with pytest.raises(ConfigError, match=reason):
                work(workspace)
        found = check_model(workspace.store, workspace.settings)
        assert any(one.level == "error" and re.search(reason, one.text) for one in found)
        assert runs.next_seq(workspace.store, "test") == 1
    run_scoring(trained.workspace)
    with (  # nobody is due any more: a promise that can't be read is still said
        open_workspace(with_conformal(trained.workspace, **given)) as workspace,
        pytest.raises(ConfigError, match=reason),
    ):
        run_scoring(workspace)


def test_calibration_with_more_of_the_rare_classes_is_no_base_for_a_promise_to_all(grown):
    with open_workspace(with_conformal(grown.workspace, promise="class")) as workspace:
        assert run_training(workspace).announced  # rare classes give more to calibration
    with (
        open_workspace(with_conformal(grown.workspace, promise="marginal")) as workspace,
        pytest.raises(ConfigError, match="larger share of its calibration"),
    ):
        run_scoring(workspace)


def test_what_a_promise_to_a_class_costs_is_shown_before_it_is_chosen(trained, tmp_path, capsys):
    found = run_trade_off(trained.workspace, "retail")
    members = rows_of(trained.workspace, tables.member, version=found.model)
    place = class_names(trained.workspace.store, "test")[found.model].index("retail")
    own = [row for row in members if row.class_index == place]
    assert found.calibration == sum(row.role == "calibration" for row in own)
    assert found.of_class == sum(row.role == "validation" for row in own)
    assert found.share == len(own) / len(members)
    alerted = [row.alert_rate for row in found.rows]
    assert alerted == sorted(alerted, reverse=True)
    assert found.rows[0].in_every_set  # to miss at most 1 % takes 99 calibration nodes
    assert "are too few to miss" in " ".join(found.sentences())
    print_trade_off(found)
    assert "miss at most" in capsys.readouterr().out
    assert "<svg" in draw(class_trade_off(found.class_, found.rows))
    with pytest.raises(ConfigError, match="no class of the model"):
        run_trade_off(trained.workspace, "mole")
