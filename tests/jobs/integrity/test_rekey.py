"""`ringfence rekey`: a new key, an entry of its own, and everything before it still verifiable."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from typer.testing import CliRunner

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.digests import MAX_BLOCKS, digest_entries, first_changed
from ringfence.connector.store.audit_chain.keys import KeySource, current_key, write_next_key
from ringfence.connector.store.audit_chain.preflight_check import require_sound_record
from ringfence.connector.store.audit_chain.rotation import rotate_key
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.writer import Writer
from ringfence.jobs.cli.app import app
from ringfence.jobs.integrity.chain_check import chain_words
from ringfence.jobs.integrity.rekey import run_rekey
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.project.session import write_session
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from tests.jobs.integrity.sample_record import ENGINES, drop_triggers, project, writing
from tests.schedulers import MAIN
from tests.stores import postgresql_later

QUIET = lambda *_: None  # noqa: E731


@pytest.fixture(params=ENGINES)
def sealed(request, tmp_path):
    with project(request, tmp_path, request.param) as opened:
        yield opened


def rotate(opened):
    """Rotate the key by file, as `run_rekey` does; return both keys."""
    store, settings = opened
    source = key_source(settings)
    with writing(store, settings) as writer:
        with store.reading() as connection:
            writer = Writer(store, writer.lease, current_key(connection, "p", source))
        new_key = write_next_key(source)
        rotate_key(writer, new_key)
    source.next_file.replace(source.project_folder / "audit.key")
    return writer.key, new_key


def broken(store, key):
    with store.reading() as connection:
        return chain.first_broken(connection, "p", key)


def edit(store, statement):
    with store.transaction() as connection:
        drop_triggers(connection)
        connection.execute(text(statement.replace(":", r"\:")))


def test_after_a_rotation_the_new_key_alone_tells_every_edit_of_every_entry(sealed):
    store, _ = sealed
    rotate(sealed)
    old, new = rotate(sealed)  # twice: the second one covers the first
    with store.reading() as connection:
        entries = chain.read_entries(connection, "p")
    assert [entry.kind for entry in entries[-2:]] == ["rekeyed", "rekeyed"]
    assert broken(store, new) is None
    assert broken(store, old) == len(entries)
    for entry in entries:
        edited = [e for e in entries if e is not entry]
        last = entry is entries[-1]  # cut off: only the graph's memory shows it
        assert chain.broken_entry(edited, "p", new) == (entry.n if not last else entry.n - 1)
    for n in (1, 2, len(entries) - 1, len(entries)):
        with store.engine.connect() as connection:
            drop_triggers(connection)
            statement = "UPDATE audit SET body = replace(body, '\"actor\"', '\"acted\"') WHERE n = "
            connection.execute(text(f"{statement}{n}".replace(":", r"\:")))
            assert chain.first_broken(connection, "p", new) == n
            connection.rollback()


def test_whoever_has_the_old_key_can_change_nothing_that_it_sealed(sealed):
    store, _ = sealed
    old, new = rotate(sealed)
    with store.engine.connect() as connection:
        drop_triggers(connection)
        (prev,) = connection.execute(text("SELECT hash FROM audit WHERE n = 2")).one()
        rows = connection.execute(text("SELECT n, body FROM audit WHERE n > 2 ORDER BY n")).all()
        for n, body in rows[:-1]:  # forged with the old key, up to the rotation's entry
            body = body.replace('"at_ns":', '"at_ns":1')
            hash_ = chain.seal(old, prev, body)
            values = {"n": n, "body": body, "prev": prev, "hash": hash_}
            statement = "UPDATE audit SET body = :body, prev = :prev, hash = :hash WHERE n = :n"
            connection.execute(text(statement), values)
            prev = hash_
        assert chain.first_broken(connection, "p", new) == 3
        connection.rollback()


def test_a_broken_chain_is_not_sealed_anew(sealed):
    store, settings = sealed
    edit(store, "UPDATE audit SET body = '{}' WHERE n = 3")
    with writing(store, settings) as writer, pytest.raises(StoreError, match="entry 3 of"):
        rotate_key(writer, b"a new key of the chain")


def test_after_a_rotation_a_run_still_refuses_what_does_not_fit(sealed):
    store, settings = sealed
    _, new = rotate(sealed)
    with writing(store, settings) as writer:
        writer = Writer(store, writer.lease, new)
        require_sound_record(writer)
        edit(store, "UPDATE model SET manifest = '{}'")
        with pytest.raises(StoreError, match="the manifest of model"):
            require_sound_record(writer)
        edit(store, "UPDATE audit SET body = replace(body, '\"actor\"', '\"acted\"') WHERE n = 1")
        with pytest.raises(StoreError, match="has no entry that fits for model"):
            require_sound_record(writer)


def test_a_process_with_the_old_key_is_refused_and_told_of_the_rotation(sealed):
    store, settings = sealed
    old, _ = rotate(sealed)
    with writing(store, settings) as writer:
        stale = Writer(store, writer.lease, old)
        with pytest.raises(StoreError, match="says that the key was rotated at"):
            require_sound_record(stale)
        with pytest.raises(StoreError, match="says that the key was rotated at"):
            rotate_key(stale, b"another key of the chain")


def test_chains_of_two_projects_put_in_each_others_place_are_found(sealed):
    """Both are sealed with the same key: the entries say whose they are."""
    store, settings = sealed
    key = chain.chain_key(None, settings.engine.folder)
    with store.transaction() as connection:
        connection.execute(text("INSERT INTO lease SELECT 'q', owner, token, expires_ns, "
                                "watermark_ns, next_seq FROM lease"))  # fmt: skip
        for number in range(3):
            chain.append(connection, "q", key, "test", {"number": number})
    edit(store, "UPDATE audit SET project = 'x' WHERE project = 'p'")
    edit(store, "UPDATE audit SET project = 'p' WHERE project = 'q'")
    edit(store, "UPDATE audit SET project = 'q' WHERE project = 'x'")
    with store.reading() as connection:
        assert chain.first_broken(connection, "p", key) == 1
        assert chain.first_broken(connection, "q", key) == 1


def test_an_emptied_chain_gets_no_new_key(sealed, tmp_path):
    store, _ = sealed
    edit(store, "DELETE FROM audit")
    elsewhere = KeySource(None, tmp_path / "elsewhere", tmp_path / "elsewhere" / "own")
    with (
        store.reading() as connection,
        pytest.raises(StoreError, match="no entries any more, but its key is not here"),
    ):
        current_key(connection, "p", elsewhere)
    assert not elsewhere.folder.exists()


@pytest.mark.parametrize("length", [1, 999, 1000, 1001, 4321])
def test_a_rotations_entry_stays_small_and_finds_the_block(length):
    entries = [chain.ChainEntry("p", n, f"body {n}", "", "", {}) for n in range(1, length + 1)]
    facts = digest_entries(entries)
    assert len(facts["digests"]) <= MAX_BLOCKS
    assert first_changed(entries, facts) is None
    assert first_changed(entries[:-1], facts) is not None
    assert first_changed([*entries, entries[0]], facts) is not None
    middle = length // 2
    entries[middle] = chain.ChainEntry("p", middle + 1, "other", "", "", {})
    first = first_changed(entries, facts)
    assert first <= middle + 1 < first + facts["block"]


def test_a_folder_whose_key_others_have_too_keeps_it(tmp_path):
    source = KeySource(None, tmp_path, tmp_path / "projects" / "p")
    shared = chain.chain_key(None, tmp_path)
    write_next_key(source)
    assert stat.S_IMODE(source.next_file.stat().st_mode) == 0o600
    source.next_file.replace(source.project_folder / "audit.key")
    assert source.read(None) != shared
    assert chain.chain_key(None, tmp_path) == shared


DIE = """
import os, signal
from ringfence.connector import fault_points
def reach(name):
    if name == os.environ["RINGFENCE_TEST_PLACE"]:
        os.kill(os.getpid(), signal.SIGKILL)
fault_points.reach = reach
from ringfence.jobs.cli.app import main; main()
"""


def run_command(folder, settings, *arguments, code=MAIN, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RINGFENCE_")}
    clean |= {
        "RINGFENCE_NEO4J_USER": settings.neo4j.user,
        "RINGFENCE_NEO4J_PASSWORD": settings.neo4j.password.get_secret_value(),
        "RINGFENCE_AUDIT_URL": settings.audit.url,
        "OMP_NUM_THREADS": "1",
    }
    if settings.audit.password is not None:
        clean["RINGFENCE_AUDIT_PASSWORD"] = settings.audit.password.get_secret_value()
    return subprocess.run(
        [sys.executable, "-c", code, *arguments, "--config", "ringfence.toml"],
        cwd=folder, env=clean | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.long
@postgresql_later
@pytest.mark.slow
def test_rekey_on_real_stores_survives_kills_at_every_place(trained, tmp_path):
    """Killed before and after the chain's entry; then whole; then two more rotations by hand."""
    workspace, settings = trained.workspace, trained.workspace.settings
    source = workspace.key_source
    first = (settings.engine.folder / "audit.key").read_text()

    def killed(place):
        done = run_command(tmp_path, settings, "rekey", code=DIE, RINGFENCE_TEST_PLACE=place)
        assert done.returncode == -9, done.stderr
        assert source.next_file.exists()
        assert run_verification(workspace).problems == ()
        assert chain_words_of(workspace)[0] is True

    assert fault_points.ROTATION_NAMES == ("next key written", "key rotated")
    killed("next key written")
    waited_for_lease(workspace)
    assert not source.next_file.exists()  # taken back: the chain never saw it
    assert source.file == settings.engine.folder / "audit.key"
    killed("key rotated")
    waited_for_lease(workspace)
    assert not source.next_file.exists()  # finished: the chain had it
    assert source.file == source.project_folder / "audit.key"
    assert source.file.read_text() != first
    run_scoring(workspace)
    done = run_command(tmp_path, settings, "rekey", "--json")
    report = json.loads(done.stdout)
    assert report["file"] == str(source.project_folder / "audit.key")
    assert report["removed"] is None
    assert (settings.engine.folder / "audit.key").exists()  # left by the kill; harmless
    with write_session(workspace, QUIET):
        pass
    assert run_verification(workspace).problems == ()
    again = run_rekey(workspace)
    assert again.old_key == report["new_key"]
    assert run_verification(workspace).problems == ()


def chain_words_of(workspace):
    return chain_words(ProjectQueries(workspace.store, workspace.project), workspace.settings)


def waited_for_lease(workspace):
    """Open a write session as the next command would, once the dead process's lease is over."""
    with workspace.store.transaction() as connection:
        connection.execute(text("UPDATE lease SET expires_ns = 0"))
    with write_session(workspace, QUIET):
        pass


@postgresql_later
def test_a_configured_key_is_rotated_to_a_configured_one(grown):
    workspace = grown.workspace
    first, second = "the first key of 32 characters..", "the second key of 32 characters."

    def with_keys(**keys):
        audit = workspace.settings.audit.model_copy(
            update={n: SecretStr(v) for n, v in keys.items()}
        )
        settings = workspace.settings.model_copy(update={"audit": audit})
        return replace(workspace, settings=settings)

    run_training(with_keys(key=first))
    with pytest.raises(ConfigError, match="RINGFENCE_AUDIT_NEW_KEY is not"):
        run_rekey(with_keys(key=first))
    assert run_rekey(with_keys(key=first, new_key=first)).entry is None
    done = run_rekey(with_keys(key=first, new_key=second))
    assert (done.entry, done.file) == (2, None)
    assert run_rekey(with_keys(key=first, new_key=second)).entry is None  # a second machine
    with pytest.raises(StoreError, match="says that the key was rotated"):
        run_scoring(with_keys(key=first))
    problems = run_verification(with_keys(key=first)).problems
    assert problems[0].startswith("the chain is broken at entry 2")
    assert "entry 2 says that the key was rotated" in problems[0]
    run_scoring(with_keys(key=second))
    assert run_verification(with_keys(key=second)).problems == ()
    assert not (workspace.settings.engine.folder / "audit.key").exists()


@postgresql_later
def test_the_command_says_what_it_did(trained, tmp_path):
    workspace = trained.workspace
    done = run_command(tmp_path, workspace.settings, "rekey")
    assert done.returncode == 0, done.stderr
    assert "Entry 2: key " in done.stdout
    assert "audit.key. Keep a copy" in " ".join(done.stdout.split())
    assert CliRunner().invoke(app, ["rekey", "--help"]).exit_code == 0


@postgresql_later
def test_an_old_database_is_refused_also_where_only_an_audit_is_missing(trained, tmp_path):
    """The graph remembers the chain's newest entry."""
    workspace, settings = trained.workspace, trained.workspace.settings
    if not settings.audit.url.startswith("sqlite"):
        pytest.skip("a file is copied")
    file = settings.audit.url.removeprefix("sqlite:///")
    with (
        closing(sqlite3.connect(file)) as newest,
        closing(sqlite3.connect(tmp_path / "old.db")) as backup,
    ):
        newest.backup(backup)
    run_rekey(workspace)
    old = open_store(f"sqlite:///{tmp_path / 'old.db'}")
    restored = replace(workspace, store=old)
    for work in (run_scoring, run_rekey, run_training):
        with pytest.raises(StoreError, match=r"older than the graph|does not fit"):
            work(restored)
    problems = run_verification(restored).problems
    assert any("the chain ends before entry 2" in problem for problem in problems), problems
    old.close()
