"""Classes of calibration nodes that are corrected, withdrawn, or whose key another node takes."""

from dataclasses import replace

import pytest
from sqlalchemy import delete, insert, select, update

from ringfence.connector.errors import ModelError, StoreError
from ringfence.connector.keys import decode_key
from ringfence.connector.neo4j.read.sync import sync_mirror
from ringfence.connector.store import corrections, predictions, tables
from ringfence.connector.store.models import active_manifest, members
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project import model_files
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.calibration_set import CalibrationSet
from ringfence.jobs.scoring.corrections import find_all
from ringfence.jobs.scoring.node_evaluation import evaluate_nodes
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.scoring.version_on_graph import calibrate_version
from ringfence.jobs.views.tables import TABLES
from tests.forms import both_forms
from tests.stores import sqlite


def version_and_classes(workspace):
    model = model_files.load_model(
        workspace.models, active_manifest(workspace.store, workspace.project)
    )
    return model.version, model.classes


def calibration(workspace):
    version, classes = version_and_classes(workspace)
    return corrections.calibration_members(workspace.store, workspace.project, version, classes)


def recorded(workspace):
    version, _ = version_and_classes(workspace)
    return sorted(
        members(workspace.store, workspace.project, version, "calibration"),
        key=lambda member: member.node_key,
    )


def set_class(workspace, member, name):
    label, key = workspace.mapping.classified.label, workspace.mapping.classified.key
    workspace.graph.run(
        f"MATCH (n:{label} {{{key}: $key}}) SET n.{workspace.mapping.class_property} = $name",
        key=decode_key(member.node_key),
        name=name,
    )


def other_class(workspace, member):
    _, classes = version_and_classes(workspace)
    return classes[(member.class_index + 1) % len(classes)]


def keys_of(workspace, seq):
    blocks = predictions.payload_keys(workspace.store, workspace.project, seq, 1000)
    return [key for block in blocks for key in block]


def computed(workspace, seq, known):
    """p-values of a run's nodes, computed again with these calibration nodes."""
    recorded = active_manifest(workspace.store, workspace.project)
    model = model_files.load_model(workspace.models, recorded)
    mirror = sync_mirror(workspace.reader(lambda *_: None)).mirror
    keys = keys_of(workspace, seq)
    calibration = CalibrationSet(tuple(known), (), (), 0, {})
    version = replace(calibrate_version(workspace, model, mirror), calibration=calibration)
    evaluation = evaluate_nodes(version, mirror.find(keys))
    return dict(zip(keys, map(tuple, evaluation.result.p_values.tolist()), strict=True))


def payloads(workspace, seq):
    keys = keys_of(workspace, seq)
    stored = predictions.some_predictions(workspace.store, workspace.project, keys)
    return {prediction.node_key: prediction.p_values for prediction in stored}


def test_a_corrected_class_counts_from_then_on_as_a_recorded_correction(scored):
    workspace = scored.workspace
    first = recorded(workspace)
    for member in first[:10]:
        set_class(workspace, member, other_class(workspace, member))
    set_class(workspace, first[10], None)
    set_class(workspace, first[11], "never seen")
    scored.arrive(scored.later[0])
    done = run_scoring(workspace)
    assert done.corrected == 12
    assert done.run.n_calibration == len(first) - 2
    said = "10 calibration nodes count with a class that was corrected"
    assert any(said in note for note in done.run.notes)
    assert run_scoring(workspace).corrected == 0  # noticed once
    now = {member.node_key: member.class_index for member in calibration(workspace)}
    assert all(now[member.node_key] != member.class_index for member in first[:10])
    assert not {first[10].node_key, first[11].node_key} & set(now)
    assert recorded(workspace) == first  # the members stay as they were recorded
    assert computed(workspace, done.seq, calibration(workspace)) == payloads(workspace, done.seq)
    assert computed(workspace, done.seq, first) != payloads(workspace, done.seq)  # control
    assert run_verification(workspace).problems == ()
    shown = TABLES["corrections"].read(ProjectQueries(workspace.store, workspace.project)).rows
    assert {row["reason"] for row in shown} == {"corrected", "withdrawn"}
    assert len(shown) == 12


@both_forms
@sqlite
def test_a_class_that_is_put_back_counts_again(scored):
    workspace = scored.workspace
    member = recorded(workspace)[3]
    _, classes = version_and_classes(workspace)
    for name, inside in ((None, False), (classes[member.class_index], True)):
        set_class(workspace, member, name)
        assert run_scoring(workspace).corrected == 1  # also where nothing is due
        assert (member in calibration(workspace)) == inside
    assert run_verification(workspace).problems == ()


@sqlite
def test_runs_compare_calibration_nodes_in_turn_and_an_audit_all_of_them(scored):
    workspace = scored.workspace
    engine = workspace.settings.engine.model_copy(update={"check_nodes": 10})
    settings = workspace.settings.model_copy(update={"engine": engine})
    small = Workspace(settings, workspace.mapping, workspace.graph, workspace.store)
    known = recorded(workspace)
    runs = -(-len(known) // 10)
    run_scoring(small)
    for member in known:
        set_class(workspace, member, other_class(workspace, member))
    corrected = [run_scoring(small).corrected for _ in range(runs)]
    assert sum(corrected) == len(known)
    assert max(corrected) <= 10
    set_class(workspace, known[0], None)
    set_class(workspace, known[-1], None)
    assert run_audit(small).corrected == 2
    assert run_scoring(small).corrected == 0


@sqlite
def test_reconcile_shows_corrections_and_records_them_with_repair(scored):
    workspace = scored.workspace
    set_class(workspace, recorded(workspace)[0], None)
    shown = run_reconcile(workspace, repair=False)
    assert (shown.corrected, shown.clean) == (1, False)
    assert run_reconcile(workspace, repair=True).corrected == 1
    assert run_reconcile(workspace, repair=False).corrected == 0
    assert len(calibration(workspace)) == len(recorded(workspace)) - 1


@sqlite
def test_without_any_class_left_a_run_says_so(scored):
    workspace = scored.workspace
    for member in recorded(workspace):
        set_class(workspace, member, None)
    scored.arrive(scored.later[0])
    with pytest.raises(ModelError, match="none of the model's calibration nodes"):
        run_scoring(workspace)


@both_forms
@sqlite
def test_a_new_node_with_a_calibration_key_does_not_inherit_its_class_and_gets_a_set(scored):
    workspace = scored.workspace
    member, kept = recorded(workspace)[:2]
    reuse(workspace, member)
    scored.arrive(scored.later[0])
    done = run_scoring(workspace)
    assert done.corrected == 1
    inside = {other.node_key for other in calibration(workspace)}
    assert (member.node_key in inside, kept.node_key in inside) == (False, True)
    assert member.node_key in payloads(workspace, done.seq)
    newest = corrections.newest_corrections(
        workspace.store, workspace.project, version_and_classes(workspace)[0]
    )
    assert newest[member.node_key].reason == "another node"
    assert run_verification(workspace).problems == ()
    assert run_scoring(workspace).evaluated == 0


@sqlite
def test_without_the_recorded_time_the_new_node_would_be_taken_for_the_old_one(scored):
    """The negative control, and what a model of an older version does: no time is on record."""
    workspace = scored.workspace
    member = recorded(workspace)[0]
    with workspace.store.transaction() as connection:
        connection.execute(update(tables.member).values(created_ns=None))
    _, classes = version_and_classes(workspace)
    reuse(workspace, member)
    set_class(workspace, member, classes[member.class_index])
    assert find_all(workspace)[1] == []
    assert member.node_key in {other.node_key for other in calibration(workspace)}


def reuse(workspace, member):
    """Delete a calibration node and let another one come with its key, without a class."""
    mapping, node = workspace.mapping, workspace.mapping.classified
    key = decode_key(member.node_key)
    workspace.graph.run(
        f"MATCH (n:{node.label} {{{node.key}: $key}}) WITH n, properties(n) AS all "
        f"DETACH DELETE n CREATE (m:{node.label}) SET m = all, "
        f"m.{node.created_at} = datetime.realtime() REMOVE m.{mapping.class_property}",
        key=key,
    )


EDITS = {
    "label": lambda c: c.execute(update(tables.correction).values(label="a")),
    "was": lambda c: c.execute(update(tables.correction).values(was=None)),
    "reason": lambda c: c.execute(update(tables.correction).values(reason="withdrawn")),
    "time": lambda c: c.execute(update(tables.correction).values(noticed_ns=1)),
    "deleted": lambda c: c.execute(delete(tables.correction)),
    "created": lambda c: c.execute(update(tables.member).values(created_ns=1)),
    "added": lambda c: c.execute(
        insert(tables.correction).from_select(
            ["project", "version", "node_key", "noticed_ns", "was", "label", "reason"],
            select(
                tables.member.c.project, tables.member.c.version, tables.member.c.node_key,
                tables.member.c.class_index + 7, tables.member.c.role, tables.member.c.role,
                tables.member.c.role,
            ).where(tables.member.c.role == "calibration"),
        )
    ),
}  # fmt: skip


def test_every_edit_of_a_correction_is_found_and_stops_a_run(scored):
    workspace = scored.workspace
    member = recorded(workspace)[0]
    set_class(workspace, member, other_class(workspace, member))
    run_audit(workspace)
    assert run_verification(workspace).problems == ()
    with workspace.store.reading() as connection:
        rows = [row._asdict() for row in connection.execute(select(tables.correction))]
        times = dict(
            connection.execute(select(tables.member.c.node_key, tables.member.c.created_ns)).all()
        )
    for name, edit in EDITS.items():
        with workspace.store.transaction() as connection:
            edit(connection)
        problems = run_verification(workspace).problems
        assert any("correction of" in text or "member of" in text for text in problems), name
        with pytest.raises(StoreError, match=r"corrected classes|members of model"):
            run_scoring(workspace)
        with workspace.store.transaction() as connection:  # put it back
            connection.execute(delete(tables.correction))
            connection.execute(insert(tables.correction), rows)
            for key, created_ns in times.items():
                at = tables.member.c.node_key == key
                connection.execute(update(tables.member).where(at).values(created_ns=created_ns))
    assert run_verification(workspace).problems == ()
    run_scoring(workspace)
