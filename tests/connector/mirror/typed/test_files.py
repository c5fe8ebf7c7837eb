"""Raw columns on disk: what was saved comes back, and what can't be trusted does not."""

import numpy as np
import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import GraphError
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import ColumnMapping, NodeMapping, TypedMapping
from ringfence.connector.mirror.typed import RawBlock, create_typed, load_typed, save_typed

MAPPING = TypedMapping(
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
    typed = create_typed(tmp_path, "graph", MAPPING)
    typed.add_nodes(block(0, ["i:1", "i:2"], [5, None]))
    typed.add_nodes(block(1, ["@1:s:JFK"], ["Kennedy"], [[1, 2]]))
    typed.add_nodes(block(2, ["@2:s:N1"]))
    save_typed(typed, tmp_path)
    return typed


def load(folder):
    return load_typed(folder, "graph", MAPPING)


def test_what_was_saved_comes_back(filled, tmp_path):
    folder = filled.folder
    del filled  # the lock on its files goes with it
    found = load(tmp_path)
    assert found.folder == folder
    assert found.labels.tolist() == [0, 0, 1, 2]
    assert found.columns(0, np.array([0, 1])) == {"hour": [5, None]}
    assert found.columns(1, np.array([2])) == {"name": ["Kennedy"], "note": [[1, 2]]}
    assert found.columns(2, np.array([3])) == {}
    assert found.base.evaluated.tolist() == [False, False, True, True]


def test_nodes_that_are_here_stay_as_they_are_and_equal_keys_of_a_block_are_one(filled):
    rows = filled.add_nodes(block(0, ["i:1", "i:3", "i:3"], [99, 3, 4]))
    assert rows.tolist() == [4]
    assert filled.columns(0, np.array([0, 4])) == {"hour": [5, 3]}


def test_an_update_writes_only_what_changed(filled):
    records = len(filled.tables[0])
    assert filled.update_nodes(block(0, ["i:1", "i:2", "i:9"], [5, 7, 1])).tolist() == [1]
    assert len(filled.tables[0]) == records + 1
    assert filled.columns(0, np.array([0, 1])) == {"hour": [5, 7]}


def test_a_crash_between_the_two_saves_leaves_the_old_state(filled, tmp_path, monkeypatch):
    filled.base.advance()
    filled.add_nodes(block(0, ["i:3"], [8]))
    filled.update_nodes(block(0, ["i:1"], [0]))

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mirrors, "save", crash)
    with pytest.raises(KeyboardInterrupt):
        save_typed(filled, tmp_path)
    del filled
    found = load(tmp_path)
    assert list(found.base.keys) == ["i:1", "i:2", "@1:s:JFK", "@2:s:N1"]
    assert found.columns(0, np.array([0, 1])) == {"hour": [5, None]}


def test_a_flipped_byte_is_not_trusted(filled, tmp_path):
    path = filled.tables[0].text.path
    del filled
    content = bytearray(path.read_bytes())
    content[1] ^= 1
    path.write_bytes(content)
    assert load(tmp_path) is None


def test_a_torn_or_missing_manifest_is_not_trusted(filled, tmp_path):
    del filled
    (manifest,) = (tmp_path / "raw").glob("*.json")
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace("Kennedy", "Kennedi").replace('"size"', '"siez"'))
    assert load(tmp_path) is None
    manifest.unlink()
    assert load(tmp_path) is None


def test_a_key_of_context_can_not_be_taken_for_one_of_the_classified_label():
    with pytest.raises(GraphError, match="is not a typed key"):
        decode_key("@1:s:JFK")
