"""`ringfence doctor` says how much room the audit store takes, and which tables take most."""

import re

from ringfence.connector.store import migrate
from ringfence.connector.store.queries import sizes
from ringfence.jobs.setup.checks import store as checks
from tests.stores import open_at, sqlite


@sqlite
def test_room_of_the_store_and_of_its_largest_tables_is_said(sql_url, monkeypatch):
    opened = open_at(sql_url)
    migrate.migrate_sql(opened)
    try:
        (told,) = checks.check_sizes(opened, None)
        assert told.level == "ok"
        said = re.match(
            r"the audit store takes ([\d.]+) MB \(([\d.]+) of them indexes; ", told.text
        )
        assert said is not None, told.text
        assert 0 < float(said[2]) < float(said[1])
        assert told.text.count(", ") == checks.LARGEST_TABLES - 1
        monkeypatch.setattr(
            checks, "table_sizes", lambda of: sizes.table_sizes(of, max_scanned_bytes=1)
        )
        (whole,) = checks.check_sizes(opened, None)
        assert re.fullmatch(r"the audit store takes [\d.]+ MB", whole.text)
    finally:
        opened.close()
