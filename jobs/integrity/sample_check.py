"""The audit sample against the chain, and against the draw where the seed key is here.

The entry of a run seals how many nodes it was asked to draw and which it drew; runs of older
versions drew none. Who has the seed key of the version can draw again: a sample that was chosen by
a changed program, and sealed, differs from the draw.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ringfence.connector.errors import RingfenceError
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader, Row
from ringfence.connector.store.worklist.sampled_nodes import NO_SAMPLE, sample_digest, sample_facts
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.node_seed import node_seed
from ringfence.models.hashing import SAMPLE, draw_keys

NOTHING_DRAWN = sample_facts(NO_SAMPLE)


def find_sample_edits(seq: int, rows: Sequence[Row], decided: Mapping[str, Any]) -> Iterator[str]:
    """Yield whether the marked nodes of a run are not those that its entry `decided` seals."""
    sealed = decided.get("sample", NOTHING_DRAWN)
    keys = [row["node_key"] for row in rows if row["sampled"]]
    if len(keys) != sealed["nodes"]:
        yield f"run {seq}: {len(keys)} nodes are sampled, but {sealed['nodes']} were drawn"
    elif sample_digest(keys) != sealed["keys"]:
        yield f"run {seq}: sampled is not set at the {len(keys)} nodes that were drawn"


def find_chosen_samples(
    reader: RecordReader,
    record: AuditRecord,
    settings: Settings,
    seqs: Collection[int] | None = None,
) -> Iterator[str]:
    """Yield the runs whose sealed sample is not the draw, of all or of some runs.

    Those without a key here are left out.
    """
    for body in record.bodies("decided"):
        if seqs is not None and body["run"]["seq"] not in seqs:
            continue
        sealed = body.get("sample", NOTHING_DRAWN)
        version = body["run"]["model"]
        if not sealed["asked"] or version not in record.models:
            continue
        try:
            seed = node_seed(settings, json.loads(record.models[version]["manifest"]))
        except (RingfenceError, KeyError, TypeError, ValueError):  # said elsewhere
            continue
        seq = body["run"]["seq"]
        drawn = draw_keys(reader.keys_of_run(seq), seed, SAMPLE, sealed["asked"])
        if sample_digest(drawn) != sealed["keys"]:
            yield (
                f"run {seq}: its audit sample is not the one that the seed key draws: somebody "
                "chose its nodes"
            )
