"""Marks with outcomes and assignees, one by one and in bulk, and what can't be one."""

import json
import re

import pytest
from sqlalchemy import func, insert, select, text

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import encode_key
from ringfence.connector.records import KnownClass
from ringfence.connector.store import chain, labels
from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.connector.store.audit_chain.keys import current_key
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import WorklistFilter, read_worklist
from ringfence.connector.store.tables import audit, mark, prediction
from ringfence.connector.store.worklist.marks import (
    MAX_MARKS,
    MarkRequest,
    outcome_of,
    read_marks,
    record_mark,
    record_marks,
)
from ringfence.connector.store.worklist.outcomes import read_outcomes
from ringfence.jobs.integrity.derivation.history import History
from ringfence.jobs.integrity.derivation.known_at_entry import KnownAtEntry
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source, open_audit
from tests.jobs.integrity.sample_record import ENGINES, GONE, PLAN, RETURNED, project, writing
from tests.jobs.report.packs import make_record

KEYS = [f"s:account 2-{i}" for i in range(5)]


@pytest.fixture(params=ENGINES)
def opened(request, tmp_path):
    with project(request, tmp_path, request.param) as (store, settings):
        yield store, key_source(settings)


def count(store, table):
    with store.reading() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def is_sound(store, source):
    with record_snapshot(store, "p", source) as reader:
        return list(find_edits(reader, reader.record())) == []


def test_many_marks_are_one_transaction_and_each_is_sealed(opened):
    store, source = opened
    asked = [MarkRequest(key, "anna", "done", "", "confirmed", "mule") for key in KEYS]
    marks, entries = count(store, mark), count(store, audit)
    made = record_marks(store, "p", source, asked)
    assert [it.node_key for it in made] == KEYS
    assert len({it.at_ns for it in made}) == 1
    assert (count(store, mark), count(store, audit)) == (marks + 5, entries + 5)
    assert is_sound(store, source)


def test_one_node_that_can_not_be_marked_leaves_all_unmarked(opened):
    """The control: the good ones before it are not written either."""
    store, source = opened
    before = count(store, mark), count(store, audit)
    asked = [MarkRequest(key, "anna", "claim") for key in [*KEYS, "s:nobody"]]
    with pytest.raises(ConfigError, match="no node with the key 's:nobody'"):
        record_marks(store, "p", source, asked)
    assert (count(store, mark), count(store, audit)) == before
    for many in ([], [MarkRequest(KEYS[0], "anna", "claim")] * (MAX_MARKS + 1)):
        with pytest.raises(ConfigError, match="nodes to mark at once"):
            record_marks(store, "p", source, many)


def test_an_outcome_stands_until_work_begins_again_and_notes_do_not_end_it(opened):
    store, source = opened
    key = KEYS[0]
    record_mark(store, "p", source, key, "anna", "done", "x", outcome="false alarm", about="mule")
    record_mark(store, "p", source, key, "anna", "note", "seen twice")
    standing = {it.node_key: it for it in read_outcomes(store, "p")}
    assert (standing[key].outcome, standing[key].about, standing[key].seq) == (
        "false alarm", "mule", 2,
    )  # fmt: skip
    assert standing[RETURNED].outcome == "confirmed"
    with store.reading() as connection:
        rows = connection.execute(text("SELECT node_key, outcome FROM ringfence_outcome")).all()
    assert {tuple(row) for row in rows} == {(it.node_key, it.outcome) for it in standing.values()}
    record_mark(store, "p", source, key, "anna", "reopen", "")
    assert key not in {it.node_key for it in read_outcomes(store, "p")}


def test_the_worklist_knows_outcome_note_and_whose_a_node_is(opened):
    store, source = opened
    queries = ProjectQueries(store, "p")
    wanted = WorklistFilter("mule", known="any", state="any", run=2)
    first, second = (node.node_key for node in read_worklist(queries, wanted)[:2])
    record_mark(store, "p", source, first, "anna", "claim", "look", assignee="ben")
    record_mark(store, "p", source, second, "anna", "done", "", outcome="confirmed", about="mule")
    nodes = {node.node_key: node for node in read_worklist(queries, wanted)}
    assert (nodes[first].who, nodes[first].state, nodes[first].note) == ("ben", "claimed", "look")
    assert (nodes[second].outcome, nodes[second].about) == ("confirmed", "mule")
    for changes, found in (
        ({"state": "confirmed"}, [second]),
        ({"state": "false alarm"}, []),
        ({"by": "ben"}, [first]),
        ({"by": "anna"}, [second]),
    ):
        asked = WorklistFilter("mule", known="any", run=2, **({"state": "any"} | changes))
        assert [node.node_key for node in read_worklist(queries, asked)] == found


def test_the_class_of_an_outcome_is_the_only_one_in_the_set(opened):
    store, source = opened
    with store.transaction() as connection:
        rows = connection.execute(
            text("SELECT node_key, classes FROM prediction WHERE seq = 3")
        ).all()
    sets = {key: json.loads(classes) for key, classes in rows}
    alone = next(key for key, classes in sets.items() if len(classes) == 1)
    several = next(key for key, classes in sets.items() if len(classes) > 1)
    made = record_mark(store, "p", source, alone, "anna", "done", "", outcome="confirmed")
    assert made.about == sets[alone][0]
    with pytest.raises(ConfigError, match="leave open which class"):
        record_mark(store, "p", source, several, "anna", "done", "", outcome="confirmed")
    open_ = record_mark(store, "p", source, several, "anna", "done", "", outcome="undecided")
    assert open_.about is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"action": "burn"}, "the action 'burn'"),
        ({"outcome": "guilty"}, "the outcome 'guilty'"),
        ({"outcome": "confirmed", "action": "claim"}, "an outcome with the action 'claim'"),
        ({"outcome": "confirmed", "about": "nobody"}, "the class 'nobody', which no model"),
        ({"about": "mule"}, "the outcome None"),
        ({"assignee": "ben"}, "an assignee with the action 'done'"),
        ({"assignee": " ", "action": "claim"}, "one without a name"),
        ({"who": ""}, "a name that is empty"),
        ({"note": "\x00"}, "holds a NUL"),
        ({"note": "x" * 2001}, "2,001 characters"),
        ({"action": "note"}, "an empty note"),
        ({"node_key": "s:\x00"}, "was evaluated"),
    ],
)
def test_what_can_not_be_a_mark_is_refused_in_words(request, tmp_path, changes, words):
    with project(request, tmp_path, "sqlite") as (store, settings):
        asked = {"node_key": KEYS[0], "who": "anna", "action": "done"} | changes
        with pytest.raises(ConfigError, match=re.escape(words)):
            record_marks(store, "p", key_source(settings), [MarkRequest(**asked)])


def test_marks_of_an_older_version_are_done_without_an_outcome(request, tmp_path):
    """Their entries have no such fields, and stay verifiable."""
    with project(request, tmp_path, "sqlite") as (store, settings):
        source = key_source(settings)
        old = {
            "n": 3, "node_key": GONE, "at_ns": 5, "who": "otto", "action": "done", "note": "",
        }  # fmt: skip
        with store.transaction() as connection:
            connection.execute(insert(mark).values(project="p", **old))
            key = current_key(connection, "p", source)
            chain.append(connection, "p", key, "marked node", {"mark": old})
        assert is_sound(store, source)
        with store.reading() as connection:
            assert read_marks(connection, "p", GONE)[0].outcome is None
        standing = {it.node_key: it for it in read_outcomes(store, "p")}
        assert standing[GONE].outcome is None
        assert not standing[GONE].in_graph


def test_outcomes_are_typed_as_a_shell_likes_them():
    assert outcome_of("false_alarm") == outcome_of(" False-Alarm") == "false alarm"
    assert encode_key("account 2-0") == KEYS[0]


@pytest.mark.parametrize("said_before", [True, False])
def test_a_class_is_selected_if_somebody_said_what_came_out_before_it_was_noticed(
    request, tmp_path, said_before
):
    with project(request, tmp_path, "sqlite") as (store, settings):
        source, known = key_source(settings), KnownNodes(store, "p", "")
        with store.reading() as connection:
            query = select(prediction.c.node_key).where(
                prediction.c.label.is_(None), prediction.c.in_graph
            )
            key = connection.execute(query.order_by(prediction.c.node_key)).scalars().first()
        assert not any(count.selected for count in known.counts())
        said = {"outcome": "confirmed", "about": "mule"}
        if said_before:
            record_mark(store, "p", source, key, "anna", "done", "", **said)
        with writing(store, settings) as writer:
            (evaluated,) = labels.predictions_of(writer.store, "p", [key])
            checked = labels.check_label(evaluated, KnownClass("mule"), PLAN.classes)
            labels.record_labels(writer, [checked])
        if not said_before:
            record_mark(store, "p", source, key, "anna", "done", "", **said)
        assert sum(count.nodes for count in known.counts() if count.selected) == said_before
        with record_snapshot(store, "p", source) as reader:
            record = reader.record()
            history = History(reader, record)
            for entry in record.entries:
                if entry.kind == "decided":
                    history.decide(entry.n, entry.facts)
            history.advance(record.entries[-1].n + 1)
            counts = KnownAtEntry(history, {}).counts()
        assert {it: it.nodes for it in counts} == {it: it.nodes for it in known.counts()}


def test_listed_nodes_are_selected_and_counted_by_run(tmp_path):
    settings = make_record(tmp_path)
    with open_audit(settings) as store:
        project_ = settings.project
        counts = KnownNodes(store, project_, "").counts()
        with store.reading() as connection:
            rows = connection.execute(
                select(prediction.c.seq, prediction.c.lists, prediction.c.sampled,
                       prediction.c.label).where(prediction.c.project == project_)
            ).all()  # fmt: skip
        on_list = [row for row in rows if row.lists is not None]
        assert sum(it.nodes for it in counts if it.selected) == sum(
            row.label is not None for row in on_list
        )
        for run in run_counts(store, project_):
            apart = [row for row in on_list if row.seq == run.seq and not row.sampled]
            assert (run.listed_apart, run.sampled) == (len(apart), 7)
