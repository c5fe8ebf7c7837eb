"""The SQL store on SQLite and PostgreSQL: migrations, lease, append-only chain."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import delete, select, text, update
from sqlalchemy.exc import DBAPIError

from ringfence.connector.errors import ConfigError, LeaseHeld, LeaseLost, StoreError, WrongVersion
from ringfence.connector.store import chain, lease, migrate, tables
from ringfence.connector.store.engine import dumps, open_store
from ringfence.connector.times import NANOSECONDS

KEY = b"key"


def test_migrating_twice_does_no_harm_and_tells_what_it_did(sql_url):
    from sqlalchemy import make_url

    opened = open_store(make_url(sql_url)._replace(password=None).render_as_string())
    with pytest.raises(StoreError, match="ringfence migrate"):
        migrate.require_sql(opened)
    done = migrate.migrate_sql(opened)
    assert done[0].startswith("SQL 0001: The first tables")
    assert migrate.migrate_sql(opened) == []
    migrate.require_sql(opened)
    opened.close()


def test_the_revisions_make_exactly_the_tables_that_the_code_knows(store):
    with store.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": migrate.VERSION_TABLE, "compare_type": True}
        )
        assert compare_metadata(context, tables.metadata) == []


def test_a_missing_column_would_be_noticed(store):
    """The negative control of the comparison."""
    with store.transaction() as connection:
        connection.execute(text("ALTER TABLE run DROP COLUMN notes"))
    with store.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": migrate.VERSION_TABLE}
        )
        assert compare_metadata(context, tables.metadata) != []


def test_a_store_newer_than_the_code_is_refused(store):
    with store.transaction() as connection:
        connection.execute(text("UPDATE ringfence_version SET version_num = '9999'"))
    for attempt in (migrate.migrate_sql, migrate.require_sql):
        with pytest.raises(WrongVersion, match="a newer ringfence has been here"):
            attempt(store)


def test_the_lease_belongs_to_one_and_says_to_whom(store):
    held = lease.acquire(store, "p", "first", 60)
    with pytest.raises(LeaseHeld, match="first is working on project 'p'"):
        lease.acquire(store, "p", "second", 60)
    lease.acquire(store, "another project", "second", 60)
    lease.release(store, held)
    assert lease.acquire(store, "p", "second", 60).token == held.token + 1


def test_a_process_that_slept_through_its_lease_is_stopped(store):
    asleep = lease.acquire(store, "p", "asleep", 0.0)
    awake = lease.acquire(store, "p", "awake", 60)
    with pytest.raises(LeaseLost), store.transaction() as connection:
        lease.renew(store, connection, asleep)
    with store.transaction() as connection:
        lease.renew(store, connection, awake)
    lease.release(store, asleep)  # harmless: it is not its own any more
    with pytest.raises(LeaseHeld):
        lease.acquire(store, "p", "third", 60)


def test_an_expired_lease_nobody_took_can_be_renewed(store):
    held = lease.acquire(store, "p", "slow", 0.0)
    with store.transaction() as connection:
        lease.renew(store, connection, held)


def test_the_store_has_a_clock_of_its_own(store):
    with store.reading() as connection:
        first, second = store.now_ns(connection), store.now_ns(connection)
    assert first <= second
    assert abs(first - 1.75e18) < 1e18
    assert second - first < 60 * NANOSECONDS


def fill(store, entries=3):
    with store.transaction() as connection:
        for number in range(entries):
            chain.append(connection, "p", KEY, "test", {"number": number})


def test_the_chain_is_append_only_by_trigger(store):
    fill(store)
    for statement in (
        update(tables.audit).values(body="{}"),
        delete(tables.audit),
        text("INSERT OR REPLACE INTO audit SELECT * FROM audit")
        if store.engine.dialect.name == "sqlite"
        else text("TRUNCATE audit"),
    ):
        with pytest.raises(DBAPIError, match="append-only"), store.transaction() as connection:
            connection.execute(statement)
    with store.reading() as connection:
        assert chain.first_broken(connection, "p", KEY) is None


def drop_triggers(connection):
    if connection.dialect.name == "sqlite":
        for verb in ("update", "delete"):
            connection.execute(text(f"DROP TRIGGER audit_no_{verb}"))
    else:
        connection.execute(text("DROP TRIGGER audit_append_only ON audit"))


@pytest.mark.parametrize(
    ("damage", "first"),
    [
        ("UPDATE audit SET body = '{}' WHERE n = 2", 2),
        ("DELETE FROM audit WHERE n = 2", 2),
        ("UPDATE audit SET n = n + 10 WHERE n = 3", 3),
        ("UPDATE audit SET prev = '' WHERE n = 3", 3),
    ],
)
def test_whoever_gets_past_the_triggers_is_found_out(store, damage, first):
    fill(store)
    with store.transaction() as connection:
        drop_triggers(connection)
        connection.execute(text(damage))
    with store.reading() as connection:
        assert chain.first_broken(connection, "p", KEY) == first


def test_chains_of_two_projects_do_not_mix(store):
    fill(store)
    with store.transaction() as connection:
        chain.append(connection, "q", KEY, "test", {})
    with store.reading() as connection:
        assert connection.execute(
            select(tables.audit.c.n).where(tables.audit.c.project == "q")
        ).scalars().all() == [1]
        assert chain.first_broken(connection, "q", KEY) is None


def test_nan_never_reaches_the_store():
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps({"p": float("nan")})


def test_a_password_in_the_url_is_refused_and_not_repeated():
    with pytest.raises(ConfigError, match="RINGFENCE_AUDIT_PASSWORD") as caught:
        open_store("postgresql+psycopg://user:hunter2@localhost/db")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://localhost/db", "not a url", "nosuchdb+driver://x/y"])
def test_other_databases_are_refused_with_what_would_do(url):
    with pytest.raises(ConfigError, match="sqlite:///file"):
        open_store(url)


def test_an_unreachable_store_is_an_error_in_words():
    away = open_store("postgresql+psycopg://nobody@127.0.0.1:1/none", "hunter2")
    with pytest.raises(StoreError, match="doesn't work") as caught, away.reading() as connection:
        connection.execute(text("SELECT 1"))
    assert "hunter2" not in str(caught.value)
    away.close()


def test_the_chains_key_is_made_once_and_readable_by_us_alone(tmp_path):
    first = chain.chain_key(None, tmp_path / "new")
    assert chain.chain_key(None, tmp_path / "new") == first
    assert (tmp_path / "new" / "audit.key").stat().st_mode & 0o777 == 0o600
    assert chain.chain_key("a key of 16 char", tmp_path) == b"a key of 16 char"
    with pytest.raises(ConfigError, match="has 15 characters"):
        chain.chain_key("a key of 15 cha", tmp_path)


def test_a_machine_with_another_key_is_refused_before_it_breaks_the_chain(store):
    fill(store)
    with pytest.raises(StoreError, match="RINGFENCE_AUDIT_KEY"), store.transaction() as connection:
        chain.append(connection, "p", b"another key", "test", {})
    with store.transaction() as connection:
        assert chain.first_broken(connection, "p", KEY) is None
        chain.append(connection, "p", KEY, "test", {})  # the right key still goes on


def test_a_file_that_vanished_is_missed_and_not_replaced_by_an_empty_one(tmp_path):
    path = tmp_path / "a folder" / "100% of #1.db"
    opened = open_store(f"sqlite:///{path}")
    with pytest.raises(StoreError, match="there is no audit store at"):
        migrate.require_sql(opened)
    assert not path.exists()
    migrate.migrate_sql(opened)
    migrate.require_sql(opened)
    opened.close()
    path.unlink()
    with pytest.raises(StoreError, match="bring it back"), opened.transaction():
        pass
    assert not path.exists()


def test_revisions_by_the_names_of_their_files_are_alembics(store):
    from alembic.script import ScriptDirectory

    with store.reading() as connection:
        scripts = ScriptDirectory.from_config(migrate._alembic(connection))
    walked = [script.revision for script in scripts.walk_revisions()]
    assert migrate.revisions() == walked[::-1]
    assert migrate.revisions()[-1] == scripts.get_current_head()
