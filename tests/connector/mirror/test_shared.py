"""A mirror that some read while another process adds to it."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from ringfence.connector.mirror import (
    NodeBlock,
    RelationshipBlock,
    create,
    load,
    open_shared,
    save,
    writer_of,
)
from ringfence.connector.mirror.columns import Column

WIDTH = 2

HOLD = """
import sys
from pathlib import Path
from ringfence.connector import mirror as mirrors
held = getattr(mirrors, sys.argv[3])(Path(sys.argv[1]), sys.argv[2])
if held.claim is not None and len(sys.argv) > 4:
    held.claim.sign(sys.argv[4])
print(held is not None, flush=True)
sys.stdin.read()
"""


def block(keys):
    count = len(keys)
    features = np.arange(count * WIDTH, dtype=np.float32).reshape(count, WIDTH)
    return NodeBlock(keys, features, ["a"] * count, np.arange(count, dtype=np.int64), [])


@pytest.fixture
def folder(tmp_path):
    """A stored mirror of two nodes, which no process holds."""
    mirror = create(tmp_path, "graph", WIDTH)
    mirror.add_nodes([block(["s:a", "s:b"])])
    mirror.add_relationships([])
    save(mirror, tmp_path)
    return tmp_path


def hold(folder, how, *words):
    """Another process that has the mirror open."""
    command = [sys.executable, "-c", HOLD, str(folder), "graph", how, *words]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"True\n"
    return other


def content(mirror):
    return (
        list(mirror.keys),
        mirror.features.tolist(),
        mirror.feature_rows(np.arange(mirror.size)).tolist(),
        mirror.edges.tolist(),
        mirror.find(["s:a", "s:b", "s:c"]).tolist(),
    )


def test_a_reader_in_another_process_leaves_the_files_to_a_writer(folder):
    gc.collect()
    other = hold(folder, "open_shared")
    try:
        assert load(folder, "graph") is not None
        assert writer_of(folder, "graph") is None
    finally:
        other.communicate()


def test_a_reader_opens_what_a_writer_in_another_process_holds(folder):
    gc.collect()
    other = hold(folder, "load", "score (process 7 on pike)")
    try:
        assert load(folder, "graph") is None
        assert open_shared(folder, "graph").size == 2
        assert writer_of(folder, "graph") == "score (process 7 on pike)"
    finally:
        other.communicate()
    assert writer_of(folder, "graph") is None


def test_a_lock_of_a_process_that_did_not_sign_is_another_process(folder):
    gc.collect()
    other = hold(folder, "load")
    try:
        assert writer_of(folder, "graph") == "another process"
    finally:
        other.communicate()


def test_what_a_reader_has_open_stays_as_it_was_while_a_writer_adds_and_removes(folder):
    """All values are compared after two saves, which remove files that the reader has mapped."""
    reader = open_shared(folder, "graph")
    before = content(open_shared(folder, "graph"))
    writer = load(folder, "graph")
    for key in ("s:c", "s:d"):
        writer.advance()
        writer.add_nodes([block([key])])
        writer.add_block(RelationshipBlock(0, np.array([0]), np.array([writer.size - 1])))
        writer.add_relationships([])
        writer.adjacency.merge(writer.version)
        writer.keys.sort_in()
        save(writer, folder)
    assert not reader.adjacency.offsets.path.exists()
    assert content(reader) == before
    assert content(open_shared(folder, "graph")) == content(writer) != before


def test_a_reader_that_meets_a_save_reads_the_new_manifest(folder, monkeypatch):
    """The files of the manifest that it had read are gone; it begins again."""
    writer, pin, saved = load(folder, "graph"), Column.pin, []

    def pin_after_a_save(column):
        if not saved:
            saved.append(True)
            writer.advance()
            writer.add_nodes([block(["s:c"])])
            writer.adjacency.merge(writer.version)
            save(writer, folder)
        pin(column)

    monkeypatch.setattr(Column, "pin", pin_after_a_save)
    assert list(open_shared(folder, "graph").keys) == ["s:a", "s:b", "s:c"]


def test_a_damaged_file_is_no_mirror_for_a_reader_either(folder):
    mirror = open_shared(folder, "graph")
    path = mirror.tables[0].files()["features"].path
    path.write_bytes(b"x" * path.stat().st_size)
    assert open_shared(folder, "graph") is None
    assert open_shared(folder, "another graph") is None
    assert open_shared(folder / "nowhere", "graph") is None


def test_a_reader_can_not_add(folder):
    with pytest.raises(ValueError, match="reading alone"):
        open_shared(folder, "graph").add_nodes([block(["s:c"])])


def test_two_claims_of_one_process_are_one(folder):
    """The system would drop the lock of both when one of them is closed."""
    gc.collect()
    first, second = load(folder, "graph"), load(folder, "graph")
    assert first.claim is second.claim
    del first
    gc.collect()
    command = [sys.executable, "-c", HOLD.replace("held.claim", "held"), str(folder), "graph"]
    other = subprocess.run([*command, "load"], input=b"", stdout=subprocess.PIPE, check=False)
    assert other.stdout == b"False\n"
