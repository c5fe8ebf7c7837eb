"""Made-up audit stores in the states that pages must make sense of, for tests and pictures.

An empty project, one run, no class known, hostile text in every field, 300 classes, 10,000 runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from sqlalchemy import text

from ringfence.connector.store.engine import Store
from ringfence.connector.store.migrate import migrate_sql
from ringfence.connector.store.worklist.marks import record_mark
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.samples.audit_store import Plan, fill_store

HOSTILE = (
    "<script>window.hit=1</script>",
    "\"><img src=x onerror='window.hit=1'>",
    "</script><svg onload=window.hit=1>",
    "javascript:window.hit=1 {{7*7}} ${7*7}",
    "\u202eesrever \u200b ملصق 类别 🙂",
    "W" * 300,
    "\x07bell \x1b[31mred\x1b[0m \r\n\ttab\u2028line \ufeff",
    "ten thousand " + "ä<b>" * 2_500,
)
MANY_RUNS = 10_000
HOUR_NS = 3_600 * 10**9


def _empty(store: Store, settings: Settings) -> None:
    del settings
    migrate_sql(store)


def _one_run(store: Store, settings: Settings) -> None:
    fill_store(store, settings, Plan(runs=1, per_run=30))


def _no_labels(store: Store, settings: Settings) -> None:
    fill_store(store, settings, Plan(runs=3, per_run=30, known_runs=0, days_apart=1.0))


def _hostile(store: Store, settings: Settings) -> None:
    plan = Plan(runs=4, per_run=60, classes=HOSTILE, regions=HOSTILE, prefix=HOSTILE[1])
    fill_store(store, settings, plan)
    with store.transaction() as connection:  # fields that no plan reaches
        for statement in (
            "UPDATE quarantine SET reason = :text",
            "UPDATE alarm SET words = :text, state = 'firing'",
            "INSERT INTO schedule (project, job, trigger, timezone, outcome, words, failures) "
            "SELECT project, :text, :text, :text, :text, :text, 3 FROM lease",
        ):
            connection.execute(text(statement), {"text": "".join(HOSTILE[:7])})
        connection.execute(text("UPDATE run SET notes = :notes"), {"notes": json.dumps(HOSTILE)})
        connection.execute(
            text("UPDATE activation SET reason = :text, actor = :actor"),
            {
                "text": "".join(HOSTILE),
                "actor": json.dumps({"user": HOSTILE[0], "verb": HOSTILE[5]}),
            },
        )
        key = connection.execute(text("SELECT node_key FROM prediction LIMIT 1")).scalar()
    for note in HOSTILE[:7]:
        record_mark(store, settings.project, key_source(settings), key, note[:150], "note", note)


def _many_classes(store: Store, settings: Settings) -> None:
    classes = tuple(f"class {number:03}" for number in range(300))
    regions = tuple(f"region {number:03}" for number in range(300))
    plan = Plan(runs=3, per_run=150, classes=classes, regions=regions, days_apart=1.0)
    fill_store(store, settings, plan)


def _many_runs(store: Store, settings: Settings) -> None:
    """A few runs as they are written, copied in SQL to many, an hour apart."""
    fill_store(store, settings, Plan(runs=4, per_run=40, days_apart=1.0))
    with store.transaction() as connection:
        columns = {
            table: [row[1] for row in connection.execute(text(f"PRAGMA table_info({table})"))]
            for table in ("run", "coverage")
        }
        for table, names in columns.items():
            own = "" if table == "run" else "AND t.slice IN ('run', 'total', 'window')"
            listed = ", ".join(f'"{name}"' for name in names)
            copied = ", ".join("n.seq" if name == "seq" else f't."{name}"' for name in names)
            connection.execute(
                text(
                    "WITH RECURSIVE n(seq) AS "
                    f"(SELECT 5 UNION ALL SELECT seq + 1 FROM n WHERE seq < {MANY_RUNS}) "
                    f"INSERT INTO {table} ({listed}) SELECT {copied} FROM {table} t JOIN n "
                    f"ON t.seq = 2 + n.seq % 3 {own}"
                )
            )
        connection.execute(
            text(f"UPDATE run SET decided_ns = :last - ({MANY_RUNS} - seq) * {HOUR_NS}"),
            {"last": 1_790_000_000 * 10**9},
        )


STATES: Mapping[str, Callable[[Store, Settings], None]] = {
    "empty project": _empty,
    "one run": _one_run,
    "no labels": _no_labels,
    "hostile text": _hostile,
    "300 classes": _many_classes,
    "10,000 runs": _many_runs,
}
"""By name, each as the function that fills a SQLite store."""
