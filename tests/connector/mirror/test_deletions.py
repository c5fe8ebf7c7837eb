"""Nodes and relationships that leave the mirror, and properties that change, without a rebuild."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.connector.mirror import (
    FILE,
    UNKNOWN,
    NodeBlock,
    RelationshipBlock,
    adjacency,
    compact,
    create,
    exists,
    is_compaction_due,
    load,
    save,
)
from ringfence.connector.mirror import compaction as compaction_module
from ringfence.connector.mirror import key_index as key_module
from ringfence.connector.mirror import table as table_module
from ringfence.connector.mirror.files import FORMAT

WIDTH = 3
KEYS = st.lists(st.integers(0, 25), max_size=6)
LINKS = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25), st.integers(0, 2)), max_size=8)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["nodes", "remove", "alter"]), KEYS),
        st.tuples(st.sampled_from(["links", "unlink"]), LINKS),
        st.tuples(st.sampled_from(["save", "crash", "merge", "compact"]), st.none()),
    ),
    max_size=20,
)


class Model:
    """What a mirror should hold, in plain Python."""

    def __init__(self):
        self.features, self.links, self.waiting = {}, set(), set()

    def copy(self):
        other = Model()
        other.features = dict(self.features)
        other.links, other.waiting = set(self.links), set(self.waiting)
        return other

    def settle(self):
        here = {one for one in self.waiting if one[0] in self.features and one[1] in self.features}
        self.links |= here
        self.waiting -= here

    def remove(self, keys):
        gone = set(keys) & set(self.features)
        for key in gone:
            del self.features[key]
        self.links = {one for one in self.links if not gone & set(one[:2])}
        self.waiting = {one for one in self.waiting if not gone & set(one[:2])}


def block(values, features, klass="a"):
    keys = [f"i:{v}" for v in values]
    rows = np.array(features, np.float32).reshape(len(keys), WIDTH)
    return NodeBlock(keys, rows, [klass] * len(keys), np.array(values, np.int64), [])


def apply(mirror, model, step, values, rng):
    mirror.advance()
    if step in ("nodes", "alter"):
        fresh = [v for v in dict.fromkeys(values) if (v in model.features) == (step == "alter")]
        given = [rng.standard_normal(WIDTH).astype(np.float32) for _ in fresh]
        add = mirror.add_nodes if step == "nodes" else mirror.replace_nodes
        add([block(fresh, given)])
        model.features.update(zip(fresh, given, strict=True))
        mirror.add_relationships([])
        model.settle()
    elif step == "remove":
        rows = mirror.find([f"i:{v}" for v in values])
        mirror.remove_nodes(rows[rows >= 0])
        model.remove(values)
    elif step == "links":
        for a, b, kind in values:
            mirror.add_block(RelationshipBlock(kind, [f"i:{a}"], [f"i:{b}"]))
            model.waiting.add((a, b, kind))
        mirror.add_relationships([])
        model.settle()
    elif step == "unlink":
        here = [one for one in values if one in model.links]
        ends = [[*mirror.find([f"i:{a}", f"i:{b}"]).tolist(), kind] for a, b, kind in here]
        mirror.remove_relationships(np.array(ends, np.int64).reshape(-1, 3).T)
        model.links -= set(here)
    elif step == "merge":
        mirror.adjacency.merge(mirror.version)


def assert_holds(mirror, model):
    keys = {int(mirror.keys[row][2:]): row for row in np.flatnonzero(mirror.present).tolist()}
    assert set(keys) == set(model.features)
    assert mirror.node_count == len(keys)
    assert mirror.find([f"i:{key}" for key in keys]).tolist() == list(keys.values())
    wanted = np.array([*range(26), -4], np.int64)
    found = mirror.keys.find_integers(wanted)
    assert found.tolist() == [keys.get(int(key), -1) for key in wanted]
    for key, row in keys.items():
        assert np.array_equal(mirror.features[row], model.features[key])
    names = {row: key for key, row in keys.items()}
    source, target, kind = mirror.edges.tolist()
    assert {(names[a], names[b], k) for a, b, k in zip(source, target, kind, strict=True)} == (
        model.links
    )
    assert mirror.edge_count == len(model.links)
    assert not (~mirror.present & (mirror.classes != UNKNOWN)).any()


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 9))
def test_any_history_of_changes_leaves_what_the_graph_has(tmp_path_factory, steps, seed):
    folder, rng = tmp_path_factory.mktemp("mirror"), np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_module, "MAX_UNSORTED_KEYS", 5)
        patch.setattr(adjacency, "MIN_LATE_ENTRIES_TO_MERGE", 6)
        patch.setattr(table_module, "ROWS_PER_STEP", 4)
        mirror, model, saved = create(folder, "graph", WIDTH), Model(), None
        for step, values in steps:
            if step == "save":
                save(mirror, folder)
                saved = model.copy()
            elif step == "crash" and saved is not None:
                mirror, model = load(folder, "graph"), saved.copy()
            elif step == "compact":
                mirror = compact(mirror, folder)
                assert mirror.present.all()
            else:
                apply(mirror, model, step, values, rng)
            assert_holds(mirror, model)
        save(mirror, folder)
        assert_holds(load(folder, "graph"), model)


@pytest.fixture
def mirror(tmp_path):
    found = create(tmp_path, "graph", WIDTH)
    rng = np.random.default_rng(0)
    found.add_nodes([block(range(30), rng.standard_normal((30, WIDTH)))])
    ends = [[f"i:{i}" for i in side] for side in rng.integers(0, 30, (2, 60)).tolist()]
    found.add_relationships([RelationshipBlock(0, *ends)])
    save(found, tmp_path)
    return load(tmp_path, "graph")


def test_only_what_a_deletion_touches_counts_as_changed(mirror, tmp_path):
    before = mirror.version
    row = int(mirror.find(["i:7"])[0])
    source, target, _ = mirror.adjacency.touching(np.array([row]))
    near = {*source.tolist(), *target.tolist()}
    removed = mirror.remove_nodes(np.array([row]))
    assert removed == {0: len(source)}
    assert set(np.flatnonzero(mirror.adjacency.changed > before).tolist()) == near
    assert mirror.evaluated[row]  # nobody is asked about a gap
    save(mirror, tmp_path)
    kept = load(tmp_path, "graph")
    assert set(np.flatnonzero(kept.adjacency.changed > before).tolist()) == near
    assert kept.find(["i:7"]).tolist() == [-1]


def test_changed_features_are_known_with_their_version_and_other_properties_are_none(mirror):
    rows = mirror.find(["i:3", "i:4"])
    features = mirror.features[rows].copy()
    features[0] += 1
    before = mirror.version
    mirror.replace_nodes([block([3, 4], features, "b")])
    altered, versions = mirror.patches.altered()
    assert (altered.tolist(), versions.tolist()) == ([rows[0]], [mirror.version])
    assert mirror.version > before
    assert [mirror.class_names[i] for i in mirror.classes[rows]] == ["b", "b"]


def test_a_key_that_comes_again_has_a_row_of_its_own_and_is_asked_about_anew(mirror):
    old = int(mirror.find(["i:7"])[0])
    mirror.remove_nodes(np.array([old]))
    mirror.seq, mirror.members_of = 5, "model"
    mirror.add_nodes([block([99], np.zeros((1, WIDTH)))])
    assert (mirror.seq, mirror.members_of) == (5, "model")  # an ordinary newcomer
    mirror.add_nodes([block([7], np.ones((1, WIDTH)))])
    (new,) = mirror.find(["i:7"]).tolist()
    assert (new != old, mirror.seq, mirror.members_of) == (True, 0, "")
    assert not mirror.evaluated[new]
    mirror.add_relationships([RelationshipBlock(0, ["i:7"], ["i:8"])])
    assert mirror.adjacency.touching(np.array([old])).shape == (3, 0)
    assert mirror.adjacency.touching(np.array([new])).shape == (3, 1)


def test_relationships_that_wait_for_a_deleted_node_wait_no_more(mirror):
    mirror.add_relationships([RelationshipBlock(0, ["i:7", "i:8"], ["i:77", "i:88"])])
    mirror.remove_nodes(mirror.find(["i:7"]))
    assert mirror.dangling == [("i:8", "i:88", 0)]


def test_a_compaction_is_due_when_gaps_and_patches_are_many(mirror, tmp_path, monkeypatch):
    monkeypatch.setattr(compaction_module, "MIN_ROWS_TO_COMPACT", 0)
    assert not is_compaction_due(mirror)
    mirror.remove_nodes(mirror.find(["i:1", "i:2"]))
    assert not is_compaction_due(mirror)
    rows = mirror.find(["i:3", "i:4"])
    mirror.replace_nodes([block([3, 4], mirror.features[rows] + 1)])
    assert is_compaction_due(mirror)
    mirror.checked = 20
    fresh = compact(mirror, tmp_path)
    assert (fresh.epoch != mirror.epoch, fresh.size, len(fresh.patches)) == (True, 28, 0)
    assert fresh.keys[fresh.checked] == mirror.keys[20]
    assert not is_compaction_due(fresh)


def rewrite_manifest(folder, change):
    path = folder / FILE
    meta = json.loads(path.read_text().partition("\n")[2])
    change(meta)
    body = json.dumps(meta)
    path.write_text(f"{zlib.crc32(body.encode()):08x}\n{body}")


@pytest.mark.parametrize("number", [3, 4, FORMAT + 1])
def test_a_mirror_of_another_format_is_not_read(mirror, tmp_path, number):
    del mirror
    rewrite_manifest(tmp_path, lambda meta: meta.update(format=FORMAT))
    assert load(tmp_path, "graph") is not None  # control: the number alone decides
    rewrite_manifest(tmp_path, lambda meta: meta.update(format=number))
    assert load(tmp_path, "graph") is None
    assert not exists(tmp_path, "graph")  # reading it again is a first read, which is continued


@pytest.mark.parametrize("name", ["patch.features", "patch.rows", "log", "gone"])
def test_a_torn_file_of_changes_is_found(mirror, tmp_path, name):
    mirror.remove_nodes(mirror.find(["i:7"]))
    mirror.replace_nodes([block([8], np.ones((1, WIDTH)))])
    save(mirror, tmp_path)
    (path,) = [
        p for p in mirror.folder.iterdir() if p.name == name or p.name.startswith(f"{name}.")
    ]
    raw = bytearray(path.read_bytes())
    raw[0] ^= 1
    path.write_bytes(bytes(raw))
    assert load(tmp_path, "graph") is None


def test_without_its_bit_a_removal_in_the_log_would_be_an_addition(mirror, tmp_path, monkeypatch):
    """A control: log what goes as if it came, and it is back after the next start."""
    ends = mirror.edges[:, :1]
    monkeypatch.setattr(adjacency, "removal_of", lambda arrows: arrows)
    mirror.remove_relationships(ends)
    gone = mirror.edge_count
    save(mirror, tmp_path)
    assert load(tmp_path, "graph").edge_count != gone
