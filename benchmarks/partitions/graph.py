"""A graph for the partitions' benchmark: its mirror written directly, and what arrives later.

Communities of 1,000 nodes that were read together; a share of the relationships leads anywhere.
With the share 1 the graph is uniform, and no division of it is good.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.scale import sage_weights
from ringfence.connector.mapping import RelationMapping, map_one_label
from ringfence.connector.mirror import Mirror, NodeBlock, create, save
from ringfence.connector.mirror.format import pack_entries, relationship_code
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import Scaling

WIDTH, HIDDEN, CLASSES, DEGREE, COMMUNITY = 64, 64, 10, 10, 1_000
CALIBRATION, NEW, BLOCK = 2_000, 1_000, 250_000
CROSSING = {"community": 0.02, "uniform": 1.0}
MAPPING = map_one_label("N", "id", "x", "c", "t", relations=[RelationMapping(0, "R", 0)])
HERE = np.uint64(relationship_code(0, points_here=True))
THERE = np.uint64(relationship_code(0, points_here=False))


def saved_model() -> SavedModel:
    """SAGE with random weights, without torch: a run has none in its memory."""
    weights = sage_weights(np.random.default_rng(1), HIDDEN, CLASSES)
    scaling = Scaling(np.zeros(WIDTH, np.float32), np.ones(WIDTH, np.float32))
    manifest = {"network": "sage", "options": {}, "classes": [str(i) for i in range(CLASSES)]}
    return SavedModel("v", weights, scaling, np.zeros(1), manifest)


def write_mirror(folder: Path, nodes: int, kind: str) -> None:
    """Write the mirror of a whole graph: entries of both ends sorted once, then its base."""
    rng = np.random.default_rng(2)
    mirror = create(folder, "g", WIDTH)
    _add_nodes(mirror, rng, nodes)
    entries = np.empty(2 * nodes * DEGREE, np.uint64)
    for start in range(0, nodes, BLOCK):
        source = np.repeat(np.arange(start, min(start + BLOCK, nodes)), DEGREE)
        target = other_ends(rng, source, nodes, CROSSING[kind])
        at = 2 * start * DEGREE
        entries[at : at + len(source)] = pack_entries(target, source, HERE)
        entries[at + len(source) : at + 2 * len(source)] = pack_entries(source, target, THERE)
    entries.sort()
    first = np.ones(len(entries), np.bool_)
    first[1:] = entries[1:] != entries[:-1]
    mirror.adjacency.late = entries[first]
    mirror.adjacency.merge(mirror.version)
    save(mirror, folder)


def other_ends(rng, source, nodes: int, crossing: float):
    """For each source a node of its community, or with the share `crossing` any node."""
    start = source // COMMUNITY * COMMUNITY
    near = start + rng.integers(0, COMMUNITY, len(source))
    anywhere = rng.integers(0, nodes, len(source))
    far = (rng.random(len(source)) < crossing) | (near >= nodes)
    return np.where(far, anywhere, near)


def arrive(mirror: Mirror, kind: str) -> np.ndarray:
    """Let new nodes join, spread over some communities; return the rows that a run then wants."""
    rng = np.random.default_rng(3)
    before = mirror.size
    mirror.advance()
    _add_nodes(mirror, rng, NEW)
    source = np.repeat(np.arange(before, before + NEW), DEGREE)
    around = np.repeat(rng.integers(0, before, NEW // 50), 50 * DEGREE)
    mirror.adjacency.add(source, other_ends(rng, around, before, CROSSING[kind]), 0, mirror.version)
    mirror.add_relationships([])
    calibration = np.random.default_rng(4).choice(before, CALIBRATION, replace=False)
    return np.concatenate([calibration, np.arange(before, before + NEW)])


def _add_nodes(mirror: Mirror, rng, nodes: int) -> None:
    for start in range(0, nodes, BLOCK):
        n = min(BLOCK, nodes - start)
        keys = [f"i:{i}" for i in range(mirror.size, mirror.size + n)]
        features = rng.standard_normal((n, WIDTH), dtype=np.float32)
        mirror.add_nodes([NodeBlock(keys, features, [None] * n, np.arange(n), [])])
