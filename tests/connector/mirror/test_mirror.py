"""The mirror on disk: what was added is found again, whatever the order, and a torn file is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.connector.errors import GraphError
from ringfence.connector.mirror import (
    FILE,
    NodeBlock,
    RelationshipBlock,
    adjacency,
    create,
    load,
    save,
)
from ringfence.connector.mirror import key_index as key_module
from ringfence.connector.mirror.columns import Column
from ringfence.connector.records import RejectedNode

WIDTH = 3


def block(keys, seed=0, rejected=()):
    rng = np.random.default_rng(seed)
    n = len(keys)
    return NodeBlock(
        list(keys),
        rng.standard_normal((n, WIDTH), dtype=np.float32),
        [None if i % 3 == 0 else f"class {i % 2}" for i in range(n)],
        np.arange(n, dtype=np.int64) + 10,
        list(rejected),
    )


def links(*ends, kind=0):
    return RelationshipBlock(kind, [a for a, _ in ends], [b for _, b in ends])


@pytest.fixture
def mirror(tmp_path):
    return create(tmp_path, "graph", WIDTH)


def again(mirror, tmp_path):
    save(mirror, tmp_path)
    found = load(tmp_path, "graph")
    assert found is not None
    return found


def same(a, b):
    for name in ("features", "classes", "created_ns", "evaluated", "edges"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    # several versions in one save are stamped with the last of them: too late is harmless
    assert (a.adjacency.changed <= b.adjacency.changed).all()
    assert np.array_equal(a.adjacency.late, b.adjacency.late)
    for name in ("class_names", "dangling", "rejected", "watermark_ns", "seq", "version", "epoch"):
        assert getattr(a, name) == getattr(b, name), name
    assert list(a.keys) == list(b.keys)


def test_what_is_saved_is_loaded(mirror, tmp_path):
    bad = RejectedNode("4:x:1", None, "the key is missing")
    mirror.add_nodes([block(["i:1", "s:é", "f:0.5", "i:2"], rejected=[bad])])
    mirror.add_relationships([links(("i:1", "s:é"), ("i:2", "i:2"), ("i:1", "i:77"))])
    mirror.evaluated[1] = True
    mirror.watermark_ns, mirror.seq = 99, 4
    found = again(mirror, tmp_path)
    same(mirror, found)
    assert found.edges.tolist() == [[0, 3], [1, 3], [0, 0]]
    assert found.dangling == [("i:1", "i:77", 0)]
    assert found.find(["s:é", "nobody", "i:1"]).tolist() == [1, -1, 0]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("nodes"), st.lists(st.integers(0, 60), max_size=8)),
        st.tuples(
            st.just("links"),
            st.lists(
                st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 2)), max_size=8
            ),
        ),
        st.tuples(st.just("save"), st.none()),
        st.tuples(st.just("crash"), st.none()),
        st.tuples(st.just("merge"), st.none()),
    ),
    max_size=15,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_any_history_of_adding_saving_and_crashing_keeps_what_was_saved(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("mirror")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_module, "MAX_UNSORTED_KEYS", 5)  # so that the index takes part
        patch.setattr(adjacency, "MIN_LATE_ENTRIES_TO_MERGE", 6)
        mirror = create(folder, "graph", WIDTH)
        nodes, edges = [], set()
        saved = None
        for step, values in steps:
            mirror.advance()
            if step == "nodes":
                fresh = [v for v in dict.fromkeys(values) if v not in nodes]
                added = mirror.add_nodes([block([f"i:{v}" for v in values])])
                assert len(added) == len(fresh)
                nodes += fresh
                mirror.add_relationships([])
            elif step == "links":
                for a, b, kind in values:
                    mirror.add_block(links((f"i:{a}", f"i:{b}"), kind=kind))
                    edges.add((a, b, kind))
                mirror.add_relationships([])
            elif step == "merge":
                mirror.adjacency.merge(mirror.version)
            elif step == "save":
                save(mirror, folder)
                saved = list(nodes), set(edges)
            elif saved is not None:
                mirror = load(folder, "graph")
                assert mirror is not None
                nodes, edges = list(saved[0]), set(saved[1])
            expected = {e for e in edges if e[0] in nodes and e[1] in nodes}
            assert list(mirror.keys) == [f"i:{v}" for v in nodes]
            assert mirror.find([f"i:{v}" for v in nodes]).tolist() == list(range(len(nodes)))
            source, target, kind = mirror.edges
            found = {
                (nodes[a], nodes[b], int(k)) for a, b, k in zip(source, target, kind, strict=True)
            }
            assert found == expected
            assert mirror.edge_count == len(expected)
        same(mirror, again(mirror, folder))


def test_a_change_is_stamped_at_both_ends_and_survives_saving_and_merging(mirror, tmp_path):
    mirror.add_nodes([block([f"i:{i}" for i in range(6)])])
    mirror.add_relationships([links(("i:0", "i:1"))])
    first = mirror.version
    found = again(mirror, tmp_path)
    assert found.adjacency.changed.tolist() == [first] * 6
    found.advance()
    found.add_relationships([links(("i:0", "i:1"), ("i:2", "i:3"))])  # the first is known
    expected = [first, first, found.version, found.version, first, first]
    assert found.adjacency.changed.tolist() == expected
    kept = again(found, tmp_path)
    assert kept.adjacency.changed.tolist() == expected
    kept.adjacency.merge(kept.version + 1)
    assert again(kept, tmp_path).adjacency.changed.tolist() == expected


def test_the_number_of_the_base_names_its_content(mirror, tmp_path):
    """Kept sums trust a base by its number: the same until a merge, another one after it."""
    first = mirror.adjacency.base_number
    mirror.add_nodes([block([f"i:{i}" for i in range(6)])])
    mirror.add_relationships([links(("i:0", "i:1"), ("i:2", "i:3"))])
    assert mirror.adjacency.base_number == first  # what came stands beside the base
    merged = again(mirror, tmp_path)
    merged.adjacency.merge(merged.version)
    number = merged.adjacency.base_number
    assert number != first
    assert again(merged, tmp_path).adjacency.base_number == number
    merged.adjacency.remove(np.array([0]), np.array([1]), np.array([0]), merged.version + 1)
    assert merged.adjacency.base_number == number
    merged.adjacency.merge(merged.version + 1)
    assert merged.adjacency.base_number not in (first, number)


@pytest.mark.parametrize("name", ["features", "keys.text", "others.*", "evaluated.*", "log.*"])
@pytest.mark.parametrize("harm", ["cut", "flip", "gone"])
def test_a_torn_file_is_found(mirror, tmp_path, name, harm):
    mirror.add_nodes([block(["i:1", "i:2", "i:3"])])
    mirror.add_relationships([links(("i:1", "i:2"))])
    found = again(mirror, tmp_path)
    found.advance()
    found.add_relationships([links(("i:3", "i:2"))])  # stands in the log
    again(found, tmp_path)
    (path,) = (tmp_path / mirror.epoch).glob(name)
    raw = bytearray(path.read_bytes())
    if harm == "gone":
        path.unlink()
    else:
        raw[-1] ^= 0xFF
        path.write_bytes(bytes(raw[:-1] if harm == "cut" else raw))
    assert load(tmp_path, "graph") is None


def test_after_a_restart_of_the_machine_no_file_is_trusted_unread(mirror, tmp_path, monkeypatch):
    mirror.add_nodes([block(["i:1", "i:2", "i:3"])])
    save(mirror, tmp_path)
    path = tmp_path / mirror.epoch / "features"
    before = path.stat()
    raw = bytearray(path.read_bytes())
    raw[0] ^= 1
    with path.open("r+b") as file:
        file.write(raw)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load(tmp_path, "graph") is not None  # nothing shows that it was touched
    from ringfence.connector.mirror import files

    monkeypatch.setattr(files, "_boot", lambda: "another start")
    assert load(tmp_path, "graph") is None


def test_a_run_that_never_saved_leaves_no_trace(mirror, tmp_path):
    mirror.add_nodes([block(["i:1", "i:2"])])
    mirror.add_relationships([links(("i:1", "i:2"))])
    found = again(mirror, tmp_path)
    found.advance()
    found.add_nodes([block(["i:3"], seed=5)])
    found.add_relationships([links(("i:3", "i:1"))])  # and here it dies
    other = load(tmp_path, "graph")
    other.advance()
    other.add_nodes([block(["i:4", "i:5"], seed=6)])
    other.add_relationships([links(("i:4", "i:5"))])
    last = again(other, tmp_path)
    assert list(last.keys) == ["i:1", "i:2", "i:4", "i:5"]
    assert last.edges.tolist() == [[0, 2], [1, 3], [0, 0]]
    assert np.array_equal(last.features[2:], block(["i:4", "i:5"], seed=6).features)


def test_loading_reads_neither_features_nor_relationships(mirror, tmp_path, monkeypatch):
    mirror.add_nodes([block([f"i:{i}" for i in range(50)])])
    mirror.add_relationships([links(*((f"i:{i}", f"i:{i + 1}") for i in range(49)))])
    save(mirror, tmp_path)
    mapped = []
    original = Column._map

    def record(self):
        mapped.append(self.path.name.split(".")[0])
        return original(self)

    monkeypatch.setattr(Column, "_map", record)
    load(tmp_path, "graph")
    assert not {"features", "others", "codes", "created_ns", "classes"} & set(mapped)


def test_keys_with_one_hash_are_told_apart_by_their_text(tmp_path, monkeypatch):
    monkeypatch.setattr(key_module, "MAX_UNSORTED_KEYS", 2)
    monkeypatch.setattr(key_module, "FACTORS", np.ones(key_module.MAX_KEY_BYTES, np.uint64))
    mirror = create(tmp_path, "graph", WIDTH)
    names = ["s:abc", "s:cba", "s:bca", "s:cab", "s:acb", "s:ad"]  # sums of their bytes agree
    mirror.add_nodes([block(names)])
    assert mirror.keys.hashes.rows == len(names)
    assert mirror.find([*names, "s:bac", "s:da"]).tolist() == [0, 1, 2, 3, 4, 5, -1, -1]


def test_a_node_that_can_be_used_at_last_leaves_the_quarantine(mirror):
    mirror.add_nodes([block([], rejected=[RejectedNode("4:x:1", "i:7", "features are missing")])])
    assert mirror.rejected
    mirror.add_nodes([block(["i:7"])])
    assert not mirror.rejected


def test_the_mirror_is_smaller_than_twice_the_raw_arrays(tmp_path):
    rng = np.random.default_rng(0)
    n, e = 20_000, 200_000
    mirror = create(tmp_path, "graph", 16)
    keys = [f"i:{i}" for i in range(n)]
    features = rng.standard_normal((n, 16), dtype=np.float32)
    mirror.add_nodes([NodeBlock(keys, features, [None] * n, np.arange(n), [])])
    ends = rng.integers(0, n, (2, e))
    mirror.adjacency.add(ends[0], ends[1], 0, mirror.version)
    mirror.add_relationships([])
    save(mirror, tmp_path)
    used = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    raw = features.nbytes + sum(map(len, keys)) + n * (4 + 8) + mirror.edge_count * (8 + 8)
    assert used < 2 * raw


def test_an_older_format_and_too_many_types_are_refused(mirror, tmp_path):
    mirror.add_nodes([block(["i:1", "i:2"])])
    with pytest.raises(GraphError, match="at most 128"):
        mirror.add_block(links(("i:1", "i:2"), kind=128))
    save(mirror, tmp_path)
    from ringfence.connector.mirror import files

    meta = json.loads((tmp_path / FILE).read_text().partition("\n")[2])
    files._write(tmp_path / FILE, {**meta, "format": 1})
    assert load(tmp_path, "graph") is None


def test_only_folders_of_older_mirrors_are_removed(mirror, tmp_path):
    (tmp_path / "somebody's").mkdir()
    older = create(tmp_path, "graph", WIDTH)
    save(mirror, tmp_path)
    assert not older.folder.exists()
    assert (tmp_path / "somebody's").exists()


HOLD = """
import sys
from pathlib import Path
from ringfence.connector.mirror import load
held = load(Path(sys.argv[1]), sys.argv[2])
print(held is not None, flush=True)
sys.stdin.read()
"""


def test_files_that_another_process_still_has_are_left_alone(tmp_path):
    """A frozen process may wake up while it adds rows; only its end makes its files ours."""
    mirror = create(tmp_path, "a graph", WIDTH)
    mirror.add_nodes([block(["s:a", "s:b"])])
    save(mirror, tmp_path)
    del mirror
    command = [sys.executable, "-c", HOLD, str(tmp_path), "a graph"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"True\n"
        assert load(tmp_path, "a graph") is None
        other.communicate()
    assert load(tmp_path, "a graph").size == 2


def test_a_long_read_that_merges_again_and_again_keeps_every_relationship(tmp_path, monkeypatch):
    """All merges of one read have one version; a base must not be written over while it is read."""
    monkeypatch.setattr(adjacency, "MAX_PENDING_RELATIONSHIPS", 100)
    monkeypatch.setattr(adjacency, "MIN_LATE_ENTRIES_TO_MERGE", 50)
    monkeypatch.setattr(adjacency, "NODES_PER_MERGE_STEP", 8)
    mirror = create(tmp_path, "graph", WIDTH)
    mirror.add_nodes([block([f"i:{i}" for i in range(64)])])
    rng, expected = np.random.default_rng(0), set()
    for _ in range(12):
        ends = rng.integers(0, 64, (2, 120))
        mirror.add_block(RelationshipBlock(0, ends[0], ends[1]))
        expected |= set(map(tuple, ends.T.tolist()))
    mirror.add_relationships([])
    assert set(map(tuple, mirror.edges[:2].T.tolist())) == expected
    assert mirror.adjacency.log.rows > 0
    same(mirror, again(mirror, tmp_path))
    assert (
        mirror.adjacency.log.rows == 0
    )  # the first save leaves nothing to be sorted at each start


@pytest.mark.parametrize("spread", [1, 1000])
def test_integer_keys_are_found_by_value_and_others_are_not(tmp_path, spread):
    mirror = create(tmp_path, "graph", WIDTH)
    values = [-5, 3, 0, 12, -(2**62) if spread > 1 else 7]
    mirror.add_nodes([block([f"i:{value}" for value in values])])
    wanted = np.array([12, 4, -5, values[-1], 10**15, -(2**63)])
    assert mirror.rows_of(wanted).tolist() == [3, -1, 0, 4, -1, -1]
    mirror.add_nodes([block(["i:4"])])
    assert mirror.rows_of(wanted).tolist() == [3, 5, 0, 4, -1, -1]
    mirror.add_nodes([block(["s:i:12", "s:4"])])  # from here on there is no table of integers
    assert mirror.rows_of(wanted).tolist() == [3, 5, 0, 4, -1, -1]
