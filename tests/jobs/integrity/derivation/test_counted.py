"""Counts along the chain are those that the audit takes from SQL."""

import pytest

from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.connector.store.models import class_names
from ringfence.connector.store.tallies import COUNTS, tallies
from ringfence.jobs.config.load import load_values
from ringfence.jobs.integrity.derivation.derive import _Derivation
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.stores import open_at

PLAN = Plan(runs=3, per_run=60, covered=0.7, promise="class")


@pytest.fixture
def filled(sql_url, tmp_path):
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"], "sample_nodes": 7},
    }
    settings = load_values(values, tmp_path / "ringfence.toml", {})
    store = open_at(sql_url)
    fill_store(store, settings, PLAN)
    yield store, settings
    store.close()


def counted_by_sql(store, by):
    """By run with the place of its alpha, and name."""
    classes = {version: len(names) for version, names in class_names(store, "p").items()}
    return {
        ((tally.seq, 0), tally.name): [tally.counts[name] for name in COUNTS]
        for tally in tallies(store, "p", classes, by)
    }


def test_the_counts_are_those_of_sql(filled):
    store, settings = filled
    with record_snapshot(store, "p", key_source(settings)) as reader:
        record = reader.record()
        derivation = _Derivation(reader, record)
        for entry in record.entries:
            derivation.take(entry.n, entry.kind, entry.facts)
    counted = derivation.counted
    assert counted_by_sql(store, "run") == {(sets, ""): c for sets, c in counted.by_run.items()}
    assert counted_by_sql(store, "sample") == {(sets, ""): c for sets, c in counted.sampled.items()}
    assert counted_by_sql(store, "class") == counted.by_class
    assert counted_by_sql(store, "group") == counted.by_group
    assert len(counted.by_group) == 9
