"""The mirror's codes and packed entries, and that the networks' kernels read the same codes."""

import numpy as np
import pytest

from ringfence.connector.errors import GraphError
from ringfence.connector.mirror import format as mirror_format
from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.connector.mirror.format import (
    MAX_NODES,
    MAX_RELATIONSHIP_TYPES,
    pack_entries,
    points_here,
    relationship_code,
    turn_to_source,
    unpack_codes,
    unpack_ends,
    unpack_types,
)
from ringfence.models.inference.graph import code_of

TYPES = range(MAX_RELATIONSHIP_TYPES)
LAST_NODE = MAX_NODES - 1


def codes_differ():
    return [
        (kind, here)
        for kind in TYPES
        for here in (True, False)
        if mirror_format.relationship_code(kind, here) != code_of(kind, here)
    ]


def test_mirror_and_networks_have_the_same_codes(monkeypatch):
    assert codes_differ() == []
    monkeypatch.setattr(
        mirror_format, "relationship_code", lambda kind, here: relationship_code(kind, not here)
    )
    assert len(codes_differ()) == 2 * MAX_RELATIONSHIP_TYPES  # control: turned round, all differ


def test_entries_keep_both_ends_type_and_direction_up_to_the_largest():
    node = np.array([0, 5, LAST_NODE])
    other = np.array([LAST_NODE, 7, 0])
    kind = np.array([0, 3, MAX_RELATIONSHIP_TYPES - 1])
    codes = np.array([relationship_code(one, points_here=True) for one in kind.tolist()], np.uint64)
    entries = pack_entries(node, other, codes)
    assert [ends.tolist() for ends in unpack_ends(entries)] == [node.tolist(), other.tolist()]
    assert unpack_types(entries).tolist() == kind.tolist()
    assert unpack_codes(entries).tolist() == codes.tolist()
    assert points_here(entries).all()
    turned = turn_to_source(entries)
    assert [ends.tolist() for ends in unpack_ends(turned)] == [other.tolist(), node.tolist()]
    assert unpack_types(turned).tolist() == kind.tolist()
    assert not points_here(turned).any()


def test_a_node_beyond_the_last_would_be_node_0_and_is_refused(tmp_path):
    over = pack_entries(np.array([MAX_NODES]), np.array([7]), np.uint64(1))
    assert unpack_ends(over)[0].tolist() == [0]  # why there is a guard
    lists = Adjacency.empty(tmp_path)
    with pytest.raises(GraphError, match="268,435,457 nodes") as refused:
        lists.grow(MAX_NODES + 1, version=1)
    assert "at most 268,435,456" in refused.value.needed
    assert "docs/scaling.md" in refused.value.next_step
    assert len(lists.changed) == 0


def test_a_mirror_takes_as_many_nodes_as_fit_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(mirror_format, "MAX_NODES", 5)
    lists = Adjacency.empty(tmp_path)
    lists.grow(5, version=1)
    lists.add(np.array([4]), np.array([0]), kind=0, version=1)
    with pytest.raises(GraphError):
        lists.grow(6, version=2)
    assert len(lists.changed) == 5
