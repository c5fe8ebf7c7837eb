"""Graphs that grow, shrink and are relabelled, and how far an incremental pass is off on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from ringfence.models.inference import (
    InferenceGraph,
    empty_tables,
    forward,
    forward_whole,
    plan_of,
)
from ringfence.models.inference import cost as cost_module
from ringfence.models.inference.graph import AlteredFeatures, RemovedEntries, code_of
from ringfence.models.networks import NETWORKS, build, canonical_edges

ALL = list(NETWORKS)
WIDTH, CLASSES = 6, 3
BOTH = np.array([True, False])  # type 0 is undirected, type 1 is not


class History:
    """A graph with two relationship types that grows, shrinks and is relabelled."""

    def __init__(self, seed, both=BOTH):
        self.both = both
        self.rng = np.random.default_rng(seed)
        self.features = np.empty((0, WIDTH), np.float32)
        self.relationships = []  # (source, target, type): loops and parallels included
        self.base = 0  # so many of them are in the base, the others came late
        self.removed = []  # relationships of the base that are no more
        self.altered = []  # (node, version) of features that changed
        self.gone = set()
        self.changed = np.empty(0, np.int64)
        self.version = 0
        for _ in range(8):
            self.node()
        for _ in range(10):
            self.link(*self.rng.integers(0, 8, 2))
        self.base = len(self.relationships)

    @property
    def alive(self):
        return [i for i in range(len(self.features)) if i not in self.gone]

    def node(self):
        self.features = np.vstack(
            [self.features, self.rng.standard_normal((1, WIDTH), dtype=np.float32)]
        )
        self.changed = np.append(self.changed, self.version)
        return len(self.features) - 1

    def link(self, a, b):
        self.relationships.append((int(a), int(b), int(self.rng.integers(0, 2))))
        self.changed[[a, b]] = self.version

    def unlink(self, place):
        """Remove a relationship with its parallels, as a mirror holds them: once."""
        arrow = self.relationships[place]
        if arrow in self.relationships[: self.base]:
            self.removed.append(arrow)
        kept = [one != arrow for one in self.relationships]
        self.base = sum(kept[: self.base])
        self.relationships = [r for r, stays in zip(self.relationships, kept, strict=True) if stays]
        self.changed[list(arrow[:2])] = self.version

    def alter(self, node):
        self.features = self.features.copy()
        self.features[node] = self.rng.standard_normal(WIDTH, dtype=np.float32)
        self.altered.append((node, self.version))

    def delete(self, node):
        while mine := [i for i, one in enumerate(self.relationships) if node in one[:2]]:
            self.unlink(mine[0])
        self.features = self.features.copy()
        self.features[node] = np.nan  # a gap that nothing reads
        self.gone.add(node)

    def event(self, kind, a, b):
        self.version += 1
        alive = self.alive
        if kind == "node":
            new = self.node()
            for _ in range(a % 3):
                self.link(new, alive[b % len(alive)])
        elif kind == "link":
            self.link(alive[a % len(alive)], alive[b % len(alive)])
        elif kind == "unlink" and self.relationships:
            self.unlink(a % len(self.relationships))
        elif kind == "delete" and len(alive) > 3:
            self.delete(alive[a % len(alive)])
        elif kind == "alter":
            self.alter(alive[a % len(alive)])
        elif kind == "merge":
            self.base, self.removed = len(self.relationships), []
        # "relabel" changes a class, which no network sees

    def graph(self):
        n = len(self.features)
        old = [*self.relationships[: self.base], *self.removed]
        offsets, others, codes, _ = lists(old, n)
        gone_offsets, gone_others, gone_codes, _ = lists(self.removed, n)
        gone = np.flatnonzero(np.diff(gone_offsets))
        late_offsets, late_others, late_codes, _ = lists(
            self.relationships[self.base :], len(self.features)
        )
        keep = np.flatnonzero(np.diff(late_offsets))
        return InferenceGraph(
            offsets, others, codes,
            keep, np.append(late_offsets[keep], late_offsets[-1]), late_others, late_codes,
            n, self.both, self.changed, self.version,
            RemovedEntries(
                gone, np.append(gone_offsets[gone], gone_offsets[-1]), gone_others, gone_codes
            ),
            AlteredFeatures(*np.array(self.altered, np.int64).reshape(-1, 2).T),
        )  # fmt: skip

    def edges(self):
        ends = [(a, b) for a, b, _ in self.relationships]
        ends += [(b, a) for a, b, kind in self.relationships if self.both[kind]]
        index = torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T
        return canonical_edges(index, len(self.features), undirected=False)


def lists(relationships, nodes):
    rows = sorted(
        {(b, a, code_of(kind, True)) for a, b, kind in relationships}
        | {(a, b, code_of(kind, False)) for a, b, kind in relationships}
    )
    node, other, code = np.array(rows, np.int64).reshape(-1, 3).T
    offsets = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=nodes))]).astype(np.int64)
    return offsets, other.astype(np.int32), code.astype(np.uint8), node


def network_of(name):
    network = build(name, WIDTH, CLASSES, hidden=8, seed=1).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():  # biases are zero at first: let them take part
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return network


MEAN, SPREAD = torch.full((WIDTH,), 0.3), torch.full((WIDTH,), 1.7)
NETS = {name: network_of(name) for name in ALL}
PLANS = {name: plan_of(net, MEAN, SPREAD) for name, net in NETS.items()}

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["node", "node", "link", "link", "unlink", "delete", "alter", "relabel", "merge"]
        ),
        st.integers(0, 1000),
        st.integers(0, 1000),
    ),
    min_size=1,
    max_size=12,
)


LINKS = [("link", i, i + 3) for i in range(8)]


def differences(name, events, seed, scattered=0.0, both=BOTH, largest=1.0):
    """Per step, the largest difference to the full pass of ours and to PyG's."""
    plan, history = PLANS[name], History(seed, both)
    history.features[0] *= np.float32(largest)
    tables = empty_tables(plan, 64)
    ours, reference = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            cost_module, "SCATTERED_ROW_COST", scattered
        )  # 0: the incremental way however small
        for event in [None, *events]:
            if event is not None:
                history.event(*event)
            graph, alive = history.graph(), np.array(history.alive)
            wanted = alive[history.rng.random(len(alive)) < 0.5]
            found = forward(plan, graph, history.features, wanted, tables)
            whole = forward_whole(plan, graph, history.features)[wanted]
            x = (torch.from_numpy(np.nan_to_num(history.features)) - MEAN) / SPREAD
            with torch.no_grad():
                truth = NETS[name](x, history.edges()).numpy()[wanted]
            ours.append(np.abs(found.logits - whole).max(initial=0))
            reference.append(np.abs(found.logits - truth).max(initial=0))
    return ours, reference
