"""Evaluated nodes of known class: counts and parts of them against all, on both engines."""

import pytest
from sqlalchemy import insert, update

from ringfence.connector.records import JoinedNode, Member
from ringfence.connector.store import tables
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.models import record_model
from tests.connector.store.calibration.test_calibration_digest import VERSION, decide
from tests.known_nodes import ListedNodes

KEYS = {seq: [f"s:{seq}-{i:02}" for i in range(12)] for seq in range(1, 5)}
LABELS = "aaab"


@pytest.fixture
def known(store, writer):
    """Four runs; most classes known, of two audits; some nodes joined, some were trained on."""
    members = [Member(KEYS[1][i], role, 0) for i, role in enumerate(("train", "calibration"))]
    record_model(writer, VERSION, '{"classes": ["a", "b"]}', "digest", members)
    for seq, keys in KEYS.items():
        joining = [JoinedNode(key, seq - 1, "a") for key in KEYS.get(seq - 1, [])[3:9]]
        decide(writer, keys, joining)
        with store.transaction() as connection:
            for place, key in enumerate(keys[:10]):
                values = {"label": LABELS[place % 4], "labelled_ns": 100 * seq + place % 2}
                one = tables.prediction.c.node_key == key
                connection.execute(update(tables.prediction).where(one).values(**values))
    other = {"project": "p", "version": "another", "seq": 4, "evaluated_seq": 1, "label": "a"}
    with store.transaction() as connection:  # of another version: it says nothing here
        connection.execute(insert(tables.joined).values(**other, node_key=KEYS[1][9]))
    return KnownNodes(store, "p", VERSION)


def by_kind(counts):
    return sorted(counts, key=lambda one: (one.evaluated_in, one.noticed_ns, repr(one)))


def test_counts_and_parts_are_those_of_all(known):
    listed = ListedNodes(known.all())
    assert len(listed.nodes) == 40
    assert by_kind(known.counts()) == by_kind(listed.counts())
    for runs in ([], [2], [1, 3, 4], range(1, 2_000)):
        assert known.unjoined(runs) == listed.unjoined(runs)
        for label in (None, "b", "never seen"):
            assert known.joined(runs, label) == listed.joined(runs, label)
    assert known.all_joined() == listed.all_joined()
    assert len(known.all_joined()) == 18
    assert known.members() == {KEYS[1][1]: (1, "a")}


def test_roles_and_joins_are_those_of_the_version(known, store):
    other = KnownNodes(store, "p", "another")
    assert {node.node_key for node in other.all_joined()} == {KEYS[1][9]}
    assert {node.role for node in other.all()} == {None}
    assert {node.role for node in known.all()} == {None, "train", "calibration"}
