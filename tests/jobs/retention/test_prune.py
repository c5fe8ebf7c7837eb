"""Retention on a record with its chain: what goes, what stays, what is found, on both stores."""

import json
import math
import zipfile

import pytest
from pydantic import ValidationError
from sqlalchemy import func, select, text

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.records import KnownClass
from ringfence.connector.store import labels, tables
from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.connector.store.audit_chain.summary import describe_entry
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.retention.removals import KIND, read_removals
from ringfence.connector.store.worklist.marks import record_mark
from ringfence.connector.store.worklist.outcomes import read_outcomes
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing.audit import count_coverage
from ringfence.jobs.auditing.list_audit import audit_lists
from ringfence.jobs.config.audit import AuditSettings
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source, open_audit
from ringfence.jobs.report.pack import PackRequest, run_pack
from ringfence.jobs.report.verify_pack import Pack, check_pack
from ringfence.jobs.retention import prune
from ringfence.jobs.retention.prune import find_old, first_turn, refuse_short_period, remove_old
from ringfence.jobs.samples.audit_store import CLASSES
from ringfence.jobs.views.explain import explain, record_of
from tests.jobs.integrity.sample_record import ENGINES, drop_triggers, project, writing
from tests.jobs.integrity.test_tampering import problems_after, problems_of
from tests.jobs.report.packs import make_record
from tests.stores import two_at_once

A_MOMENT = 1e-9
OPEN = AuditSettings(keep_days=A_MOMENT, keep_open_days=A_MOMENT)
NODE = "{node}"


LATER = ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])]


@pytest.fixture(params=LATER)
def made(request, tmp_path):
    with project(request, tmp_path, request.param) as opened:
        yield opened


@pytest.fixture(scope="module", params=ENGINES)
def pruned(request, tmp_path_factory):
    """A record of which runs 1 and 2 were pruned."""
    with project(request, tmp_path_factory.mktemp("pruned"), request.param) as opened:
        remove(*opened, seqs=(1, 2))
        yield opened


def remove(store, settings, seqs=None, audit=OPEN):
    with writing(store, settings) as writer:
        plan = find_old(store, "p", audit, A_MOMENT)
        if seqs is not None:
            runs = tuple(run for run in plan.runs if run.seq in seqs)
            plan = prune.PrunePlan(plan.report, plan.before_ns, runs)
        return remove_old(writer, key_source(settings), plan, lambda *_: None)


def column(store, query):
    with store.reading() as connection:
        return connection.execute(query).scalars().all()


def snapshot(store):
    """Every row of every table but the lease, which each attempt renews."""
    with store.reading() as connection:
        return {
            name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for name, table in tables.metadata.tables.items()
            if name != "lease"
        }


def test_details_go_and_everything_that_coverage_needs_stays(made):
    store, settings = made
    before, counted = snapshot(store), count_coverage(store, settings)
    done = remove(store, settings, seqs=(1, 2))
    assert (done.runs, done.nodes, done.dry_run) == ((1, 2), 80, False)
    assert done.entries > 80
    assert done.freed > 80 * 20
    after = snapshot(store)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"prediction", "worklist_entry", "removal", "audit"}
    p = tables.prediction.c
    assert column(store, select(p.node_key).where(p.scores.like("[%"), p.seq < 3)) == []
    assert len(column(store, select(p.node_key).where(p.scores.like("[%"), p.seq == 3))) == 40
    assert set(column(store, select(tables.worklist_entry.c.seq).distinct())) == {3}
    assert count_coverage(store, settings) == counted
    assert problems_of(store, settings) == []
    assert remove(store, settings, seqs=(1, 2)).runs == ()  # nothing is removed twice


def test_the_removal_is_one_entry_with_time_actor_period_and_digests(pruned):
    store, _ = pruned
    (entry,) = [e for e in ProjectQueries(store, "p").whole_chain() if e.kind == KIND]
    assert entry.at_ns > 0
    assert "process" in entry.actor
    assert entry.facts["keep_days"] == A_MOMENT
    assert [one["seq"] for one in entry.facts["runs"]] == [1, 2]
    for one in entry.facts["runs"]:
        assert len(one["removed"]) == len(one["kept"]) == 64
        assert one["removed"] != one["kept"]
    assert describe_entry(entry).startswith("details of 80 nodes of 2 runs")


EDITS = {
    "more p-values": (
        f"""UPDATE prediction SET p_values = '{{"of":4}}' WHERE node_key = '{NODE}'""",
        "run 2: its predictions are not those that retention left",
    ),
    "more of the scores": (
        f"""UPDATE prediction SET scores = '{{"best":[],"naive":[]}}' WHERE node_key = '{NODE}'""",
        "run 2: its predictions are not those that retention left",
    ),
    "the set": (
        f"UPDATE prediction SET classes = '[]', size = 0 WHERE node_key = '{NODE}'",
        "run 2: its predictions are not those that retention left",
    ),
    "a whole node": (
        "; ".join(
            f"DELETE FROM {table} WHERE node_key = '{NODE}'" for table in ("grouping", "prediction")
        ),
        "run 2: 39 predictions, but 40 were decided",
    ),
    "whether it was covered": (
        "UPDATE prediction SET covered = NOT covered WHERE seq = 2 AND covered IS NOT NULL; "
        "UPDATE label SET covered = NOT covered",
        "covered in its label row",
    ),
    "top_p": (
        f"UPDATE prediction SET top_p = 0.5 WHERE node_key = '{NODE}'",
        f"prediction {NODE} (run 2): top_p",
    ),
    "degree": (
        f"UPDATE prediction SET degree = degree + 1 WHERE node_key = '{NODE}'",
        "run 2: degree of some predictions",
    ),
    "the row of the removal": ("DELETE FROM removal WHERE seq = 2", "removal of run 2: the row is"),
    "its period": ("UPDATE removal SET keep_days = 9000", "removal of run 1: keep_days changed"),
    "a row for the worklist": (
        "INSERT INTO worklist_entry (project, node_key, class, p, seq, size, degree, known) "
        f"VALUES ('p', '{NODE}', 'mule', 0.9, 2, 1, 4, TRUE)",
        f"worklist_entry {NODE} (run 2)",
    ),
    "details of another run, with a row that says so": (
        """UPDATE prediction SET p_values = '{"0":0.5,"of":4}', scores = """
        """'{"best":[0],"naive":[0]}' WHERE seq = 3; DELETE FROM worklist_entry WHERE seq = 3; """
        "INSERT INTO removal SELECT project, 3, at_ns, keep_days, nodes, entries, shadow_sets, "
        "freed FROM removal WHERE seq = 2",
        "run 3: its predictions are not those that were decided",
    ),
    "rows of a run that was not pruned": (
        "DELETE FROM worklist_entry WHERE seq = 3",
        "worklist_entry s:account 3-",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_removed_by_hand_is_found_and_named(pruned, edit):
    statement, words = EDITS[edit]
    node = a_node(pruned[0])
    found = problems_after(pruned, [statement.replace(NODE, node)])
    assert any(words.replace(NODE, node) in problem for problem in found), found


def a_node(store):
    """A node of run 2 with a set, of unknown class: no label row is in the way."""
    p = tables.prediction.c
    query = select(p.node_key).where(p.seq == 2, p.label.is_(None), p.size > 0)
    return column(store, query.order_by(p.node_key).limit(1))[0]


def test_a_pruned_record_has_no_problem(pruned):
    assert problems_of(*pruned) == []


CHANGES = {
    "a p-value": f"UPDATE prediction SET p_values = '[1,0,0,0]' WHERE node_key = '{NODE}'",
    "text that is no JSON": f"UPDATE prediction SET scores = 'x' WHERE node_key = '{NODE}'",
    "a hidden row of the worklist": f"DELETE FROM worklist_entry WHERE node_key = '{NODE}'",
    "a flipped verdict": "UPDATE prediction SET covered = NOT covered WHERE seq = 2",
    "the chain itself": "UPDATE audit SET body = replace(body, 'NodeEx', 'EdgeEx')",
}


@pytest.mark.parametrize("change", two_at_once(CHANGES))
def test_retention_hides_no_change_that_came_before_it(made, change):
    store, settings = made
    node = a_node(store)
    with store.transaction() as connection:
        if " audit" in CHANGES[change]:
            drop_triggers(connection)
        statement = CHANGES[change].replace(NODE, node).replace(":", r"\:")
        assert connection.execute(text(statement)).rowcount
    before = snapshot(store)
    with pytest.raises(StoreError):
        remove(store, settings)
    assert snapshot(store) == before


@pytest.mark.parametrize("place", fault_points.RETENTION_NAMES)
def test_a_process_that_dies_leaves_whole_blocks_and_the_next_goes_on(made, place, monkeypatch):
    store, settings = made
    monkeypatch.setattr(prune, "MAX_BLOCK_RUNS", 1)
    reached = []

    def die(name):
        reached.append(name)
        if name == place and reached.count(place) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "reach", die)
        with pytest.raises(KeyboardInterrupt):
            remove(store, settings)
    done = 2 if place == "removed" else 1
    with store.reading() as connection:
        assert [one.seq for one in read_removals(connection, "p")] == [1, 2][:done]
    assert problems_of(store, settings) == []
    assert remove(store, settings).runs == (1, 2, 3)[done:]
    assert problems_of(store, settings) == []


def test_runs_with_unknown_or_uncounted_classes_stay(made):
    store, _ = made
    waiting = find_old(store, "p", AuditSettings(keep_days=1), A_MOMENT)
    assert waiting.runs == ()
    assert waiting.report.waiting == {"class unknown": 3}
    with store.transaction() as connection:  # run 1: nobody is left whose class could come
        connection.execute(
            text("UPDATE prediction SET in_graph = FALSE WHERE seq = 1 AND label IS NULL")
        )
        connection.execute(text("UPDATE coverage SET known = known - 1 WHERE seq = 2"))
    found = find_old(store, "p", AuditSettings(keep_days=1), A_MOMENT)
    assert found.report.runs == (1,)
    assert found.report.waiting == {"class unknown": 1, "not audited": 1}


def test_young_runs_stay_whatever_the_period(made):
    store, _ = made
    for days in (1.0, 36_500.0):
        found = find_old(store, "p", AuditSettings(keep_days=days, keep_open_days=1), days)
        assert found.runs == ()
        assert found.before_ns >= 0


def test_a_class_that_changes_later_is_judged_by_what_stayed(pruned):
    store, settings = pruned
    p = tables.prediction.c
    key = column(store, select(p.node_key).where(p.seq == 1, p.label.is_(None)).limit(1))[0]
    for class_ in CLASSES[:2]:
        (evaluated,) = labels.predictions_of(store, "p", [key])
        judged = labels.check_label(evaluated, KnownClass(class_), CLASSES)
        assert judged.covered == (class_ in json.loads(evaluated.classes))
        with writing(store, settings) as writer:
            labels.record_labels(writer, [judged])
    found = [one for one in problems_of(store, settings) if "coverage" not in one]
    assert found == []


def test_a_pruned_node_says_when_its_details_went(pruned):
    queries = ProjectQueries(pruned[0], "p")
    whole, slim = explain(queries, "account 3-3"), explain(queries, "account 2-3")
    assert whole.removed_ns is None
    assert len(whole.p_values) == 4
    assert slim.removed_ns > 0
    assert 0 < len(slim.p_values) < 4
    assert set(slim.levels) == set(CLASSES)
    assert "removed by retention" in dict(record_of(slim))["details"]
    assert slim.as_json()["details_removed"].endswith("Z")
    assert not any(math.isnan(value.p) for value in slim.p_values)


def test_the_audit_pack_says_what_retention_did(pruned, tmp_path):
    store, settings = pruned
    if store.engine.dialect.name != "sqlite":
        pytest.skip("the pack opens the store by itself, with a password of the environment")
    here = settings.model_copy(
        update={
            "audit": settings.audit.model_copy(
                update={"url": str(store.engine.url), "keep_days": 90.0}
            )
        }
    )
    run_pack(here, tmp_path / "pack.zip")
    with zipfile.ZipFile(tmp_path / "pack.zip") as archive:
        page = archive.read("index.html").decode()
        rows = archive.read("tables/removals.csv").decode().splitlines()
    assert "Details of 80 nodes of 2 runs (runs 1 to 2) were removed" in page
    assert "Details of runs are removed 90 days after the run" in page
    assert len(rows) == 3
    report, _ = check_pack(Pack(str(tmp_path / "pack.zip")))
    assert report.problems == []
    run_pack(here, tmp_path / "salted.zip", PackRequest(salted_keys=True))
    report, _ = check_pack(Pack(str(tmp_path / "salted.zip")))
    assert report.problems == []
    assert any("Predictions of 2 runs (1, 2)" in words for words in report.unchecked)


def test_a_row_that_was_edited_by_hand_is_an_error_in_words(made):
    store, _ = made
    with store.transaction() as connection:
        connection.execute(text("""UPDATE prediction SET p_values = '{"of"\\:3}'"""))
    with pytest.raises(StoreError, match="is not as it was decided"):
        explain(ProjectQueries(store, "p"), "account 3-3")


@pytest.mark.parametrize("days", [-1, math.inf, math.nan, "soon"])
def test_a_period_that_is_none_is_refused(days):
    with pytest.raises(ValidationError):
        AuditSettings(keep_days=days)


def test_details_never_go_before_the_period_for_which_they_must_be_kept():
    with pytest.raises(ValidationError, match="must be kept"):
        AuditSettings(keep_days=30, retention_days=365)
    refuse_short_period(0, AuditSettings(retention_days=365))
    with pytest.raises(ConfigError, match="after 30 days"):
        refuse_short_period(30, AuditSettings(retention_days=365))


def test_nobody_can_be_evaluated_twice(pruned):
    keys = column(pruned[0], select(tables.prediction.c.node_key))
    assert len(keys) == len(set(keys)) == 120
    count = select(func.count()).select_from(tables.removal)
    assert column(pruned[0], count) == [2]


def test_a_turn_takes_so_many_nodes_and_the_next_one_the_rest(made, monkeypatch):
    store, settings = made
    for size, expected in ((1, (1,)), (79, (1,)), (80, (1, 2)), (10**9, (1, 2, 3))):
        monkeypatch.setattr(prune, "MAX_TURN_NODES", size)
        turn = first_turn(find_old(store, "p", OPEN, A_MOMENT))
        assert (turn.report.runs, turn.report.nodes) == (expected, 40 * len(expected))
        assert turn.report.left == 120 - turn.report.nodes
    monkeypatch.setattr(prune, "MAX_TURN_NODES", 80)
    done, left = [], True
    while left:
        with writing(store, settings) as writer:
            plan = first_turn(find_old(store, "p", OPEN, A_MOMENT))
            done.append(remove_old(writer, key_source(settings), plan, lambda *_: None))
        left = done[-1].left
    assert [one.runs for one in done] == [(1, 2), (3,)]
    both = done[1].after(done[0])
    assert (both.runs, both.nodes, both.left) == ((1, 2, 3), 120, 0)
    assert both.entries == sum(one.entries for one in done)
    assert problems_of(store, settings) == []


def test_lists_their_audit_and_outcomes_outlive_the_details(tmp_path):
    settings = make_record(tmp_path)
    name = settings.project
    with open_audit(settings) as store:
        source = key_source(settings)
        with store.reading() as connection:
            query = select(tables.prediction.c.node_key).where(
                tables.prediction.c.lists.is_not(None), tables.prediction.c.seq == 1
            )
            listed = connection.execute(query.order_by(tables.prediction.c.node_key)).scalars()
            node = listed.first()
        record_mark(store, name, source, node, "anna", "done", "", outcome="confirmed")
        before = audit_lists(store, name, detail=True), read_outcomes(store, name)
        held = acquire(store, name, "test", 600)
        writer = Writer(store, held, source.read(None))
        plan = find_old(store, name, OPEN, A_MOMENT)
        done = remove_old(writer, source, plan, lambda *_: None)
        release(store, held)
        assert done.runs
        assert (audit_lists(store, name, detail=True), read_outcomes(store, name)) == before
        assert before[1][0].about == "mule"
        with record_snapshot(store, name, source) as reader:
            assert list(find_edits(reader, reader.record())) == []
        with store.transaction() as connection:  # the control: a listed node less
            connection.execute(
                text("UPDATE prediction SET lists = NULL WHERE node_key = :key"), {"key": node}
            )
        with record_snapshot(store, name, source) as reader:
            problems = list(find_edits(reader, reader.record()))
        assert any("run 1: " in words and "nodes are on lists" in words for words in problems)
