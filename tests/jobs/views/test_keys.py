"""Keys that programs read stay: JSON API, CSV, report.json, `status --json`, `explain --json`."""

import json

import pytest

from ringfence.connector.alarm_records import AlarmEvent
from ringfence.connector.records import Run, StoredCoverage
from ringfence.connector.store import tables
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import COLUMNS, columns_of
from ringfence.jobs.config.load import load_values
from ringfence.jobs.dashboard import schemas
from ringfence.jobs.report.write import run_report
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.views.explain import explain
from ringfence.jobs.views.status import read_status
from ringfence.jobs.views.tables import TABLES, as_csv

HEADERS = {
    "coverage": "evaluated,known,covered,mean size,verdict,usual band,anytime bound,p,"
    "one class,of those right,empty,full",
    "runs": "run,decided,state,evaluated,waiting,rule,alpha,threshold,calibration,model,settings,"
    "known,covered,mean size,verdict,seconds",
    "thresholds": "run,NodeEx,EdgeEx,naive,calibration,effective,decided",
    "coverage-sample": "run,over,sampled,known,at least,at most,promised,verdict,mean size,"
    "usual band,anytime bound,p,decided",
    "lists": "list,holds,may be wrong,per,over,run,runs,empty,nodes,listed,known,wrong,"
    "mean of runs,all together,at least,at most,verdict,p,status",
    "drift": "run,distance of scores,new classes watched,mean p,decided",
    "before-labels": "run,decided,quantity,nodes of the run,calibration nodes,distance,p,state",
    "models": "version,state,trained,network,classes,train,validation,calibration,weights",
    "versions": "version,state,trained,network,classes,train,validation,calibration,holdout,"
    "accuracy,runs,evaluated,known,covered,verdict",
    "shadows": "version,runs,nodes,known,coverage,in force,difference in points,"
    "average size,size in force,last run,failed",
    "quarantine": "reason,nodes",
    "corrections": "noticed,node,was,is,why,model",
    "removals": "run,removed,kept for,nodes,worklist rows,shadow sets,characters",
    "schedule": "job,when,due,ended,outcome,words",
    "alarms": "rule,state,since,why",
    "alarm-events": "at,rule,was,is,why,told by",
    "chain": "entry,kind,what,hash,entry before,at,by",
}
RATES = ["promised", "own_promised", "singleton_rate", "singleton_hit", "band", "naive_coverage"]
JOINED = ["decided_ns", "threshold", "n_calibration"]


def names(table):
    return [column.name for column in table.columns]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
    }
    settings = load_values(values, folder / "ringfence.toml", {})
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=3, per_run=40))
    yield settings, ProjectQueries(store, "p")
    store.close()


def test_the_api_has_the_columns_of_the_tables_in_their_order():
    heavy = {"notes", "timings", "calibration_scores", "watch"}
    assert list(schemas.Coverage.model_fields) == names(tables.coverage)
    assert list(schemas.Run.model_fields) == names(tables.run)
    assert list(schemas.RunSummary.model_fields) == [
        name for name in names(tables.run) if name not in heavy
    ]
    assert list(schemas.Alarm.model_fields) == names(tables.alarm)


def test_every_record_with_an_order_of_its_own_has_those_fields():
    for record in (*COLUMNS, Run, StoredCoverage, AlarmEvent):
        assert set(columns_of(record)) <= set(record.__dataclass_fields__)


def test_csv_headers_are_what_they_were(project):
    _, queries = project
    headers = {name: as_csv(view.read(queries)).splitlines()[0] for name, view in TABLES.items()}
    coverage = HEADERS["coverage"]
    expected = {
        f"coverage-{slice_}": f"run,promised,{coverage},decided,naive covered,naive size"
        for slice_ in ("run", "window", "total")
    }
    expected |= {f"{name}es" if name == "class" else f"{name}s": f"{name},{coverage},own promise"
                 for name in ("class", "group")}  # fmt: skip
    assert headers == expected | {key: HEADERS[key] for key in HEADERS if key != "coverage"}


def test_report_json_has_the_columns_and_what_is_computed_from_them(project, tmp_path):
    settings, _ = project
    run_report(settings, tmp_path, ("json",))
    body = json.loads((tmp_path / "report.json").read_text())
    assert list(body) == ["project", "verdict", "counts", "chain", "model_cards", "tables"]
    assert list(body["verdict"]) == names(tables.coverage)
    assert list(body["counts"]) == ["evaluated", "known", "unknown"]
    keys = {name: list(rows[0]) for name, rows in body["tables"].items() if rows}
    assert keys["coverage-run"] == [*names(tables.coverage), *JOINED, *RATES]
    light = [name for name in names(tables.run) if name not in ("calibration_scores", "watch")]
    assert keys["thresholds"] == light
    assert keys["runs"] == [*light, "known", "coverage", "mean_size", "verdict", "seconds"]
    assert json.loads(body["tables"]["runs"][0]["timings"])  # text, as it stands in SQL
    assert keys["drift"] == ["seq", "distance", "new", "mean_p", "decided_ns"]
    assert keys["models"] == [*names(tables.model), "state", "network", "class_count", "weights",
                              "train", "validation", "calibration"]  # fmt: skip
    assert keys["chain"] == [*names(tables.audit), "kind", "what", "at_ns", "actor"]
    assert keys["alarms"] == names(tables.alarm)
    assert keys["quarantine"] == ["reason", "nodes"]


def test_status_and_explain_print_the_keys_that_they_did(project):
    _, queries = project
    status = json.loads(json.dumps(read_status(queries.store, "p").as_json()))
    assert list(status) == ["project", "models", "watermark", "working", "runs", "unfinished",
                            "evaluated", "unknown", "quarantine", "coverage", "chain_entries",
                            "schedule", "totals", "alarms", "not_beaten", "shadows",
                            "sample", "lists", "verdict"]  # fmt: skip
    assert list(status["models"][0]) == ["version", "state", "trained", "network", "classes",
                                         "holdout", "train", "validation",
                                         "calibration"]  # fmt: skip
    assert list(status["runs"][0]) == [*names(tables.run), "decided"]
    assert list(status["coverage"][0]) == names(tables.coverage)
    explanation = json.loads(json.dumps(explain(queries, "account 1-1").as_json()))
    assert list(explanation) == ["key", "typed_key", "words", "classes", "p_values", "alpha",
                                 "degree", "in_graph", "run", "model_state",
                                 "details_removed", "chain", "history",
                                 "groups", "nodes_of_key", "neighbours", "doubts"]  # fmt: skip
    assert list(explanation["p_values"][0]) == ["class", "p", "in_set", "level", "calibration"]
    assert list(explanation["run"]) == names(tables.run)
    assert list(explanation["chain"]) == ["n", "hash"]
    assert all(list(row) == names(tables.label) for row in explanation["history"])
