"""Which node of its key a row is: kept by a save and a compaction, forgotten with another time."""

from dataclasses import replace

import numpy as np

from ringfence.connector.mirror import (
    NodeBlock,
    compact,
    create,
    find_recorded,
    load,
    record_keys_at,
    save,
)

KEYS = ["i:1", "i:2", "i:3", "i:4"]


def block(keys, created):
    features = np.zeros((len(keys), 1), np.float32)
    return NodeBlock(keys, features, [None] * len(keys), np.full(len(keys), created), [])


def filled(folder):
    mirror = create(folder, "graph", 1)
    mirror.add_nodes([block(KEYS, 5)])
    mirror.incarnations |= {1: 2, 3: 1}
    return mirror


def test_a_record_is_found_by_key_and_number_alone(tmp_path):
    mirror = filled(tmp_path)
    assert list(record_keys_at(mirror, np.arange(4))) == ["i:1", "2@i:2", "i:3", "1@i:4"]
    asked = ["i:1", "i:2", "1@i:2", "2@i:2", "1@i:1", "1@i:4", "i:9"]
    assert find_recorded(mirror, asked).tolist() == [0, -1, -1, 1, -1, 3, -1]
    mirror.incarnations.clear()  # control: then every row is the first node of its key
    assert find_recorded(mirror, asked).tolist() == [0, 1, -1, -1, -1, -1, -1]


def test_numbers_outlive_a_save_and_move_with_their_rows(tmp_path):
    mirror = filled(tmp_path)
    mirror.remove_nodes(np.array([0, 3]))
    fresh = compact(mirror, tmp_path)
    assert fresh.incarnations == {0: 2}
    save(fresh, tmp_path)
    fresh.claim = None
    again = load(tmp_path, "graph")
    assert again.incarnations == {0: 2}
    assert find_recorded(again, ["2@i:2", "i:3", "1@i:4"]).tolist() == [0, 1, -1]


def test_a_node_with_another_creation_time_loses_its_number(tmp_path):
    mirror = filled(tmp_path)
    mirror.replace_nodes([replace(block(["i:2", "i:4"], 5), created_ns=np.array([6, 5]))])
    assert mirror.incarnations == {3: 1}
