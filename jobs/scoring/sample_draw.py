"""The audit sample of a run: `[audit] sample_nodes` of its nodes, drawn by a keyed hash.

The hash has the version's seed key and a purpose of its own, so a node's place in the sample says
nothing about its u, and nobody without the key can tell who will be drawn. The same key draws the
same nodes again: an auditor who is given it can check that nobody was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.connector.store.worklist.sampled_nodes import NO_SAMPLE, AuditSample
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.scoring.version_on_graph import VersionOnGraph
from ringfence.models.hashing import SAMPLE, draw_keys


def draw_sample(version: VersionOnGraph, keys: Sequence[str]) -> AuditSample:
    """Draw the sample of a run among the keys of the nodes that it evaluates."""
    settings = version.workspace.settings
    asked = settings.audit.sample_nodes
    if asked == 0:
        return NO_SAMPLE
    seed = node_seed(settings, version.model.manifest)
    return AuditSample(asked, tuple(draw_keys(keys, seed, SAMPLE, asked)))
