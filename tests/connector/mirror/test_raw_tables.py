"""Raw columns on disk: what was saved comes back, and what can't be trusted does not."""

import numpy as np
import pytest

from ringfence.connector.errors import GraphError
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import ColumnMapping, GraphMapping, NodeMapping
from ringfence.connector.mirror import (
    FILE,
    Mirror,
    RawBlock,
    RelationshipBlock,
    compact,
    create_raw,
    is_compaction_due,
    load,
    save,
)
from ringfence.connector.mirror import compaction as compaction_module
from ringfence.connector.mirror import files as files_module
from ringfence.connector.mirror import table as table_module

MAPPING = GraphMapping(
    (
        NodeMapping("Flight", "id", (ColumnMapping("hour"),)),
        NodeMapping("Airport", "faa", (ColumnMapping("name"), ColumnMapping("note"))),
        NodeMapping("Plane", "tail"),
    ),
    (),
    "status",
    "zoned",
)


def block(label, keys, *columns):
    times = np.zeros(len(keys), np.int64)
    return RawBlock(label, keys, list(columns), [None] * len(keys), times)


@pytest.fixture
def filled(tmp_path):
    typed = create_raw(tmp_path, "graph", MAPPING.column_names)
    typed.add_nodes([block(0, ["i:1", "i:2"], [5, None])])
    typed.add_nodes([block(1, ["@1:s:JFK"], ["Kennedy"], [[1, 2]])])
    typed.add_nodes([block(2, ["@2:s:N1"])])
    save(typed, tmp_path)
    return typed


def reload(folder):
    return load(folder, "graph")


def test_what_was_saved_comes_back(filled, tmp_path):
    folder = filled.folder
    del filled  # the lock on its files goes with it
    found = reload(tmp_path)
    assert found.folder == folder
    assert found.labels.tolist() == [0, 0, 1, 2]
    assert found.columns(0, np.array([0, 1])) == {"hour": [5, None]}
    assert found.columns(1, np.array([2])) == {"name": ["Kennedy"], "note": [[1, 2]]}
    assert found.columns(2, np.array([3])) == {}
    assert found.evaluated.tolist() == [False, False, True, True]


def test_nodes_that_are_here_stay_as_they_are_and_equal_keys_of_a_block_are_one(filled):
    rows = filled.add_nodes([block(0, ["i:1", "i:3", "i:3"], [99, 3, 4])])
    assert rows.tolist() == [4]
    assert filled.columns(0, np.array([0, 4])) == {"hour": [5, 3]}


def test_an_update_writes_only_what_changed(filled):
    records = len(filled.tables[0])
    assert filled.update_nodes(block(0, ["i:1", "i:2", "i:9"], [5, 7, 1])).tolist() == [1]
    assert len(filled.tables[0]) == records + 1
    assert filled.columns(0, np.array([0, 1])) == {"hour": [5, 7]}


def test_a_crash_before_the_manifest_leaves_the_old_state(filled, tmp_path, monkeypatch):
    filled.advance()
    filled.add_nodes([block(0, ["i:3"], [8])])
    filled.update_nodes(block(0, ["i:1"], [0]))

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files_module, "_write", crash)
    with pytest.raises(KeyboardInterrupt):
        save(filled, tmp_path)
    del filled
    found = reload(tmp_path)
    assert list(found.keys) == ["i:1", "i:2", "@1:s:JFK", "@2:s:N1"]
    assert found.columns(0, np.array([0, 1])) == {"hour": [5, None]}


def test_a_flipped_byte_is_not_trusted(filled, tmp_path):
    path = filled.tables[0].text.path
    del filled
    content = bytearray(path.read_bytes())
    content[1] ^= 1
    path.write_bytes(content)
    assert reload(tmp_path) is None


def test_a_torn_or_missing_manifest_is_not_trusted(filled, tmp_path):
    del filled
    manifest = tmp_path / FILE
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace('"names"', '"nmaes"'))
    assert reload(tmp_path) is None
    manifest.unlink()
    assert reload(tmp_path) is None


def test_a_compaction_leaves_every_node_its_own_record_and_no_other(filled, tmp_path, monkeypatch):
    """Rows of deleted nodes go, and records that an update has left behind."""
    monkeypatch.setattr(compaction_module, "MIN_ROWS_TO_COMPACT", 0)
    monkeypatch.setattr(table_module, "ROWS_PER_STEP", 2)
    filled.add_nodes([block(0, ["i:3", "i:4"], [3, 4]), block(1, ["@1:s:BOS"], ["Logan"], [None])])
    assert not is_compaction_due(filled)
    filled.add_relationships([RelationshipBlock(0, ["i:2", "i:4"], ["@1:s:JFK", "@1:s:BOS"])])
    filled.update_nodes(block(0, ["i:4"], [44]))
    assert is_compaction_due(filled)  # one record in seven is nobody's
    filled.remove_nodes(filled.find(["i:1"]))
    fresh = compact(filled, tmp_path)
    assert fresh.epoch != filled.epoch
    assert not is_compaction_due(fresh)
    save(fresh, tmp_path)
    del filled
    for mirror in (fresh, reload_after(tmp_path, fresh)):
        assert list(mirror.keys) == ["i:2", "@1:s:JFK", "@2:s:N1", "i:3", "i:4", "@1:s:BOS"]
        assert mirror.labels.tolist() == [0, 1, 2, 0, 0, 1]
        assert mirror.columns(0, mirror.rows_of_label(0)) == {"hour": [None, 3, 44]}
        assert mirror.columns(1, mirror.rows_of_label(1)) == {
            "name": ["Kennedy", "Logan"],
            "note": [[1, 2], None],
        }
        assert [len(table) for table in mirror.tables] == [3, 2, 1]
        assert mirror.edges.tolist() == [[0, 4], [1, 5], [0, 0]]
        assert mirror.evaluated.tolist() == [False, True, True, False, False, True]


def test_without_its_places_a_compacted_mirror_would_mix_up_records(filled, tmp_path, monkeypatch):
    """A control: take records by row, and the columns of two nodes are exchanged."""
    filled.update_nodes(block(0, ["i:1"], [1]))
    filled.update_nodes(block(0, ["i:2"], [2]))
    filled.update_nodes(block(0, ["i:1"], [11]))
    monkeypatch.setattr(Mirror, "places_of", lambda _mirror, rows: np.arange(len(rows)))
    fresh = compact(filled, tmp_path)
    assert fresh.columns(0, np.array([0, 1])) != {"hour": [11, 2]}
    monkeypatch.undo()
    fresh = compact(filled, tmp_path)
    assert fresh.columns(0, np.array([0, 1])) == {"hour": [11, 2]}


def reload_after(folder, mirror):
    """The mirror as it is on disk; its lock is let go first."""
    mirror.claim = None
    return reload(folder)


def test_a_key_of_context_can_not_be_taken_for_one_of_the_classified_label():
    with pytest.raises(GraphError, match="is not a typed key"):
        decode_key("@1:s:JFK")
