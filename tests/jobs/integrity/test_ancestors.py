"""A warm start: what an ancestor learnt from, or was chosen by, calibrates no version after it."""

import hashlib

import pytest
from sqlalchemy import select

from ringfence.connector.records import JoinedNode, Member
from ringfence.connector.store import tables
from ringfence.connector.store.calibration.joined import insert_joined
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.models import record_model
from tests.jobs.integrity.sample_record import project, writing
from tests.jobs.integrity.test_tampering import problems_after, problems_of

OLD = "calibration of sample-3"


@pytest.fixture
def made(request, tmp_path):
    with project(request, tmp_path, "sqlite") as opened:
        yield opened


def derive(opened, key, ancestors):
    """Record a version that began with the weights of others and is calibrated with one node."""
    store, settings = opened
    counts = {"train": 0, "validation": 0, "calibration": 1}
    start = {"from": ancestors[0], "ancestors": ancestors} if ancestors else None
    manifest = dumps({"classes": ["retail", "mule"], "counts": counts, "warm_start": start})
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    with writing(store, settings) as writer:
        record_model(writer, "sample-3", manifest, digest, [Member(key, "calibration", 0)])


def a_key(opened, seq):
    query = select(tables.prediction.c.node_key).where(tables.prediction.c.seq == seq)
    with opened[0].reading() as connection:
        return connection.execute(query.limit(1)).scalar_one()


@pytest.mark.parametrize(
    ("key", "ancestors", "found"),
    [("i:-1", ["sample-1"], True), ("i:-1", [], False), ("i:-100", ["sample-1"], False)],
    ids=["trained on", "no ancestor", "calibrated the ancestor too"],
)
def test_a_node_that_an_ancestor_learnt_from_is_named(made, key, ancestors, found):
    derive(made, key, ancestors)
    words = f"{OLD}: 1 nodes of it were trained or stopped by in sample-1"
    assert [words in one for one in problems_of(*made)] == ([True] if found else [])


def test_a_node_that_joins_later_is_named_too(made):
    store, _ = made
    derive(made, "i:-100", ["sample-2"])
    key = a_key(made, 2)
    with store.transaction() as connection:
        insert_joined(connection, "p", "sample-3", 3, [JoinedNode(key, 2, "retail")])
    learnt = f"UPDATE member SET node_key = '{key}' WHERE version = 'sample-2'"
    assert not any(OLD in one for one in problems_of(*made))
    assert any(OLD in one for one in problems_after(made, [learnt]))


def test_a_node_of_a_run_that_chose_the_ancestor_is_named(made):
    derive(made, a_key(made, 2), ["sample-2"])
    chosen = "INSERT INTO consulted (project, n, version, seq, known) VALUES ('p', 2, '{}', {}, 5)"
    words = f"{OLD}: 1 nodes of it are of runs that helped to choose sample-2"
    assert any(words in one for one in problems_after(made, [chosen.format("sample-2", 2)]))
    assert not any(words in one for one in problems_after(made, [chosen.format("sample-2", 1)]))
    assert not any(words in one for one in problems_after(made, [chosen.format("sample-1", 2)]))
