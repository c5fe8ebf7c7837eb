"""Edits of the audit store's schema, by SQL engine: statements, and words of the problem.

A trigger's inner semicolon has no space behind it: "; " separates statements.
"""

EDITS_ON_ALL = {
    "view redefined": (
        "DROP VIEW ringfence_class; CREATE VIEW ringfence_class AS SELECT l.project, l.node_key, "
        "p.seq, l.label AS class, {noticed} AS noticed_at, {happened} AS happened_at, "
        "l.covered_naive AS covered, l.covered_naive, l.unseen FROM label l "
        "JOIN prediction p ON p.project = l.project AND p.node_key = l.node_key",
        "the view ringfence_class is not the one",
    ),
    "view with another condition": (
        "DROP VIEW ringfence_alarm; CREATE VIEW ringfence_alarm AS SELECT a.project, a.n, {at} AS "
        "at, a.rule, a.was, a.state, a.words, a.delivered FROM alarm_event a "
        "WHERE a.state <> 'firing'",
        "the view ringfence_alarm is not the one",
    ),
    "view dropped": ("DROP VIEW ringfence_threshold", "the view ringfence_threshold is gone"),
    "index dropped": ("DROP INDEX prediction_by_run", "prediction_by_run is gone"),
    "index on other columns": (
        "DROP INDEX label_by_time; CREATE INDEX label_by_time ON label (project)",
        "label_by_time has other columns",
    ),
    "index without its condition": (
        "DROP INDEX prediction_sampled; "
        "CREATE INDEX prediction_sampled ON prediction (project, seq, node_key)",
        "prediction_sampled has another condition",
    ),
    "unique index that refuses rows": (
        "CREATE UNIQUE INDEX calm ON alarm_event (project, rule, at_ns)",
        "the unique index calm is not ringfence's",
    ),
    "column added": (
        "ALTER TABLE alarm_event ADD COLUMN hidden TEXT",
        "alarm_event: the column hidden is not ringfence's",
    ),
    "column dropped": (
        "ALTER TABLE schedule DROP COLUMN failed_words",
        "schedule: the column failed_words is gone",
    ),
    "table dropped": ("DROP TABLE first_seen", "the table first_seen is gone"),
}
SQLITE_TIMES = {
    name: f"datetime({column} / 1000000000, 'unixepoch')"
    for name, column in (("noticed", "l.noticed_ns"), ("happened", "l.happened_ns"),
                         ("at", "a.at_ns"))
}  # fmt: skip
POSTGRESQL_TIMES = {
    name: f"to_timestamp({column} / 1000000000.0)"
    for name, column in (("noticed", "l.noticed_ns"), ("happened", "l.happened_ns"),
                         ("at", "a.at_ns"))
}  # fmt: skip
SWALLOW = (
    "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL;END $$"
)
EDITS_BY_ENGINE = {
    "sqlite": {
        **{name: (text.format(**SQLITE_TIMES), said) for name, (text, said) in
           EDITS_ON_ALL.items()},
        "append-only trigger dropped": (
            "DROP TRIGGER audit_no_delete",
            "audit_no_delete on audit, which keeps the chain append-only, is gone",
        ),
        "append-only trigger emptied": (
            "DROP TRIGGER audit_no_update; CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit "
            "BEGIN SELECT 1;END",
            "audit_no_update on audit, which keeps the chain append-only, was changed",
        ),
        "trigger that swallows alarm events": (
            "CREATE TRIGGER calm BEFORE INSERT ON alarm_event BEGIN SELECT RAISE(IGNORE);END",
            "the trigger calm on alarm_event is not ringfence's",
        ),
        "trigger on a view": (
            "CREATE TRIGGER calm INSTEAD OF INSERT ON ringfence_run BEGIN SELECT 1;END",
            "the trigger calm on ringfence_run is not ringfence's",
        ),
        "truth value 2": (
            "UPDATE prediction SET unseen = 2 WHERE seq = 2 AND covered",
            "prediction: unseen of",
        ),
        "text as bytes": (
            "UPDATE alarm_event SET delivered = CAST('webhook' AS BLOB)",
            "alarm_event: delivered of",
        ),
        "number as text": (
            "UPDATE alarm SET checked_ns = 'never'",
            "alarm: checked_ns of",
        ),
    },
    "postgresql": {
        **{name: (text.format(**POSTGRESQL_TIMES), said) for name, (text, said) in
           EDITS_ON_ALL.items()},
        "append-only trigger dropped": (
            "DROP TRIGGER audit_append_only ON audit",
            "audit_append_only on audit, which keeps the chain append-only, is gone",
        ),
        "append-only trigger switched off": (
            "ALTER TABLE audit DISABLE TRIGGER audit_append_only",
            "audit_append_only on audit, which keeps the chain append-only, was changed",
        ),
        "append-only function emptied": (
            "CREATE OR REPLACE FUNCTION ringfence_append_only() RETURNS trigger LANGUAGE plpgsql "
            "AS $$ BEGIN RETURN NULL;END $$",
            "audit_append_only on audit, which keeps the chain append-only, was changed",
        ),
        "trigger that swallows alarm events": (
            f"{SWALLOW}; CREATE TRIGGER calm BEFORE INSERT ON alarm_event FOR EACH ROW "
            "EXECUTE FUNCTION swallow()",
            "the trigger calm on alarm_event is not ringfence's",
        ),
        "rule that swallows alarm events": (
            "CREATE RULE calm AS ON INSERT TO alarm_event DO INSTEAD NOTHING",
            "the rule calm on alarm_event is not ringfence's",
        ),
        "row security that hides": (
            "ALTER TABLE alarm_event ENABLE ROW LEVEL SECURITY",
            "row security on alarm_event is not ringfence's",
        ),
        "references switched off": (
            "ALTER TABLE grouping DISABLE TRIGGER ALL",
            "a switched off reference of grouping is not ringfence's",
        ),
        "reference dropped": (
            "ALTER TABLE label DROP CONSTRAINT label_project_node_key_fkey",
            "label: the reference to prediction is gone",
        ),
        "check dropped": (
            "ALTER TABLE run DROP CONSTRAINT run_state",
            "run: the check run_state is gone",
        ),
        "check that allows more": (
            "ALTER TABLE member DROP CONSTRAINT member_role; ALTER TABLE member ADD CONSTRAINT "
            "member_role CHECK (role IN ('train', 'validation', 'calibration', 'holdout', 'x'))",
            "member: the check member_role allows other values",
        ),
        "check that refuses rows": (
            "ALTER TABLE alarm_event ADD CONSTRAINT calm CHECK (state <> 'x')",
            "alarm_event: the check calm is not ringfence's",
        ),
        "type changed": (
            "ALTER TABLE schedule ALTER COLUMN failures TYPE DOUBLE PRECISION",
            "schedule: the column failures has another type",
        ),
        "default changed": (
            "ALTER TABLE prediction ALTER COLUMN sampled SET DEFAULT true",
            "prediction: the column sampled has another default",
        ),
        "NULL allowed": (
            "ALTER TABLE prediction ALTER COLUMN degree DROP NOT NULL",
            "prediction: the column degree may be NULL",
        ),
    },
}  # fmt: skip
