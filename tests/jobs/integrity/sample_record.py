"""A made-up audit store with a chain, for tests that edit it."""

import hashlib
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from sqlalchemy import insert, make_url, text

from ringfence.connector.records import Member, Prediction
from ringfence.connector.store import chain, predictions
from ringfence.connector.store.audit_chain.actor import acting_as, current_actor
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import dumps, open_store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.lifecycle.activations import record_activation
from ringfence.connector.store.lifecycle.comparisons import record_comparison
from ringfence.connector.store.models import record_model
from ringfence.connector.store.rescores import record_rescores
from ringfence.connector.store.tables import audit
from ringfence.connector.store.worklist.marks import record_mark
from ringfence.connector.store.writer import Writer
from ringfence.jobs.config.load import load_values
from ringfence.jobs.lifecycle.comparison import BASELINES, result_json
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.models.comparison.outcome import Outcome
from ringfence.models.comparison.paired import compare
from tests.store_copies import DATABASE_PREFIX, administer

PLAN = Plan(runs=3, per_run=40, calibration=60, covered=0.4)  # so few that an alarm fires
GONE, RETURNED = "s:account 1-0", "s:account 1-1"
ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@contextmanager
def database(request, folder, engine):
    """The address of a database that `store_copies` will make, with its password beside it."""
    if engine == "sqlite":
        yield f"sqlite:///{folder / 'audit.db'}", None
        return
    server = request.getfixturevalue("postgres_server")
    address = server.set(database=DATABASE_PREFIX + folder.name.replace("-", "_").lower())
    password = None if address.password is None else str(address.password)
    yield address._replace(password=None).render_as_string(), password
    administer(server, f"DROP DATABASE IF EXISTS {address.database} WITH (FORCE)")


@contextmanager
def project(request, folder, engine, appending=chain.append):
    """A record of its own for each test: a copy of one that is written once per process."""
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
        "alarms": {"pending_minutes": 0},
    }
    settings = load_values(values, folder / "ringfence.toml", {})
    with database(request, folder, engine) as (url, password):

        def make():
            store = open_store(url, password)
            write_record(store, settings, appending)
            store.close()

        address = make_url(url) if password is None else make_url(url).set(password=password)
        copies = request.getfixturevalue("store_copies")
        copies.provide(("record", appending), address, settings.engine.folder, make)
        store = open_store(url, password)
        yield store, settings
        store.close()


def write_record(store, settings, appending):
    """Three runs, a node that went, one that somebody looked at, two versions and comparisons."""
    # a verb that an earlier test of the command line left in this process is not this one's
    with acting_as("python"), mock.patch.object(chain, "append", appending):
        fill_store(store, settings, PLAN)
        with writing(store, settings) as writer:
            predictions.mark_gone(writer, [GONE])
            source = key_source(settings)
            record_mark(store, "p", source, RETURNED, "anna", "claim", "seen", assignee="ben")
            came_out = {"outcome": "confirmed", "about": "mule"}
            record_mark(store, "p", source, RETURNED, "anna", "done", "seen", **came_out)
            record_rescores(writer, "sample-1", 0.1, "asked for", [some_set(RETURNED)])
            live_on(writer)


def live_on(writer):
    """A second model version, promoted and rolled back."""
    counts = {"train": 1, "validation": 0, "calibration": 0}
    manifest = dumps({"network": "GCN", "classes": ["retail", "mule"], "counts": counts})
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    record_model(writer, "sample-2", manifest, digest, [Member("i:-1", "train", 0)])
    record_activation(writer, "sample-2", "promoted", "it is better")
    record_activation(writer, "sample-1", "rolled back", "it is not")
    record_comparison(writer, "sample-1", None, compared("sample-1"))
    record_comparison(writer, "sample-2", "sample-1", compared("sample-2", "sample-1"))


def compared(*versions):
    """The result of a comparison on 40 nodes in which only the first version knows anything."""
    truth, rng = np.arange(40) % 2, np.random.default_rng(0)
    knowing = np.stack([1 - truth, truth], axis=1) * 0.8 + 0.1
    outcomes = [
        Outcome(name, knowing if name == versions[0] else rng.dirichlet([5, 5], 40))
        for name in (*versions, *BASELINES)
    ]
    found = compare(truth, ("mule", "retail"), outcomes)
    return result_json(
        found, versions, ["made up"], by="accuracy", alpha=0.1, nodes_sha256="cd" * 32
    )


@contextmanager
def writing(store, settings):
    held = acquire(store, "p", "test", 600)
    try:
        yield Writer(store, held, chain_key(None, settings.engine.folder))
    finally:
        release(store, held)


def some_set(key):
    return Prediction(key, ("retail",), (0.9, 0.01, 0.02, 0.03), (-0.1, -0.9, -0.9, -0.9), 4)


def drop_triggers(connection):
    if connection.dialect.name == "sqlite":
        for verb in ("update", "delete"):
            connection.execute(text(f"DROP TRIGGER IF EXISTS audit_no_{verb}"))
    else:
        connection.execute(text("DROP TRIGGER IF EXISTS audit_append_only ON audit"))


@contextmanager
def unguarded(connection):
    """Without the triggers that keep the chain append-only; they are as before afterwards."""
    definitions = {
        "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'audit_no_%'",
        "postgresql": "SELECT pg_get_triggerdef(oid) FROM pg_trigger "
        "WHERE tgname = 'audit_append_only'",
    }
    standing = connection.execute(text(definitions[connection.dialect.name])).scalars().all()
    drop_triggers(connection)
    yield
    for definition in standing:
        connection.exec_driver_sql(definition)


def append_of_an_older_version(connection, project_, key, kind, facts, *, append=chain.append):
    """Seal entries without the keyless hash, as versions did that did not seal all tables."""
    with mock.patch.object(chain, "append_sealed", _append_without_keyless_hash):
        return append(connection, project_, key, kind, facts)


def _append_without_keyless_hash(connection, project_, key, kind, facts):
    last = chain.newest_entry(connection, project_)
    n, prev = (last.n + 1, last.hash) if last else (1, "")
    written = {"at_ns": 1, "actor": current_actor(), "lease": None}
    body = dumps({"n": n, "project": project_, "kind": kind, **written, **facts})
    values = {"project": project_, "n": n, "body": body, "prev": prev}
    sealed = chain.seal(key, prev, body)
    connection.execute(insert(audit).values(**values, hash=sealed))
    return n
