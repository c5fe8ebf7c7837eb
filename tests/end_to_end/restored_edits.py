"""Lines of the tamper matrix: rows edited for one verb and then put back.

Each says which verb would rest on the column, and how it is edited. `EDITS` start from one project
of answered runs; `ELSEWHERE` names those with a project of their own, and their tests. The table in
docs/reliability.md has the same lines; `tests/jobs/integrity/test_matrix.py` compares them.
"""

import json
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Column, bindparam, select, update

from ringfence.connector.store import tables
from ringfence.connector.store.lifecycle import tables as lifecycle_tables
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.lifecycle.retrain_need import need_on_record
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.samples.accounts import batches
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from tests.project_copies import Stage, sample_parts, starts_from

PARTS, FIRST, EACH = 6, 300, 20
CLASS_AND_TIME = (
    "MATCH (n:Account) WHERE n.id IN $ids "
    "SET n.kind = 'retail', n.labelled_at = datetime.realtime()"
)
LATER_NS = 4 * 10**18
run, prediction, threshold = tables.run.c, tables.prediction.c, tables.threshold.c
mark, alarm, coverage = tables.audit_mark.c, tables.alarm.c, tables.coverage.c
activation = lifecycle_tables.activation.c


def parts_of(sample):
    return list(batches(sample, [FIRST, *[EACH] * PARTS]))[1:]


def play(workspace, sample):
    """Score five small batches; each batch's classes become known after the next one's run."""
    grown, parts = sample_parts(workspace, sample), parts_of(sample)
    known = parts[0].nodes[:0]
    run_scoring(workspace)
    for part in parts[:-1]:
        grown.arrive(part)
        run_scoring(workspace)
        grown.reveal(known)
        run_audit(workspace)
        known = part.nodes


answered = starts_from(Stage("answered runs", "trained", play))


def go_on(workspace, sample):
    """A further batch arrives, and classes of the batch before it become known."""
    grown, parts = sample_parts(workspace, sample), parts_of(sample)
    grown.arrive(parts[-1])
    grown.reveal(np.concatenate([parts[-2].nodes, parts[-1].nodes[:4]]))


@contextmanager
def configured(workspace, **sections):
    """The project under another configuration: changed values by table."""
    settings = workspace.settings
    changed = {
        name: getattr(settings, name).model_copy(update=values) for name, values in sections.items()
    }
    with open_workspace(settings.model_copy(update=changed)) as opened:
        yield opened


def audit_by_time(workspace):
    with configured(workspace, graph={"labelled_at": "labelled_at"}) as opened:
        return run_audit(opened)


def audit_groups(workspace):
    with configured(workspace, audit={"groups": ["region"]}) as opened:
        return run_audit(opened)


def reveal_with_time(workspace, sample):
    """An audit has read up to now by time; then classes of the newest batch become known."""
    audit_by_time(workspace)
    nodes = parts_of(sample)[-2].nodes.tolist()
    workspace.graph.run(CLASS_AND_TIME, ids=nodes)


def rescore(workspace):
    return run_rescoring(workspace, ["5", "6"], "somebody asked")


def train_frozen(workspace):
    from ringfence.jobs.training.train import run_training

    frozen = {"calibration_set": "frozen", "adapt": False}
    with configured(workspace, conformal=frozen) as opened:
        return run_training(opened)


def ask_for_training(workspace):
    asked = {"when": ["alarm", "classes"], "alarms": ["coverage"], "new_classes": 10**6}
    with configured(workspace, retrain=asked) as opened:
        return need_on_record(opened)


def with_level(text, level):
    levels = json.loads(text)
    for state in levels["adaptive"]:
        state["level"] = level
    return json.dumps(levels)


def with_capital(text, capital):
    watch = json.loads(text)
    for bets in watch["state"].values():
        for name, value in bets.items():
            if isinstance(value, float):
                bets[name] = capital
    return json.dumps(watch)


def zeros(text):
    return json.dumps([0.0] * len(json.loads(text)))


def high(text):
    return with_level(text, 0.9)


def as_mule(label):
    return label and "mule"


def fires(state):
    return "ok" if state == "firing" else "firing"


@dataclass(frozen=True)
class RestoredEdit:
    """The verb, the column, its other values, and what happens in the graph before."""

    verb: Callable
    column: Column
    change: Callable
    before: Callable = go_on


EDITS = {
    "levels": RestoredEdit(run_scoring, run.levels, high),
    "watch": RestoredEdit(run_scoring, run.watch, lambda text: with_capital(text, -900.0)),
    "label": RestoredEdit(run_scoring, prediction.label, as_mule),
    "p_values": RestoredEdit(run_scoring, prediction.p_values, zeros),
    "n_evaluated": RestoredEdit(run_scoring, run.n_evaluated, lambda count: 3 * count),
    "covered": RestoredEdit(
        run_audit, prediction.covered, lambda covered: covered is not None or None
    ),
    "alpha": RestoredEdit(run_audit, run.alpha, lambda _: 0.6),
    "size": RestoredEdit(run_audit, prediction.size, lambda _: 1),
    "classes": RestoredEdit(
        run_audit, prediction.classes, lambda _: '["mule","normal","exchange","merchant"]'
    ),
    "scores": RestoredEdit(run_audit, prediction.scores, zeros),
    "threshold": RestoredEdit(run_audit, threshold.n_calibration, lambda _: 3),
    "mark of classes": RestoredEdit(
        audit_by_time, mark.labels_ns, lambda _: LATER_NS, reveal_with_time
    ),
    "mark of groups": RestoredEdit(audit_groups, mark.grouped_seq, lambda seq: seq + 9),
    "mark's advice": RestoredEdit(run_audit, mark.advice, lambda _: '{"nodes":1000000}'),
    "alarm": RestoredEdit(run_audit, alarm.state, fires),
    "verdict": RestoredEdit(run_audit, coverage.verdict, lambda _: "broken"),
    "band": RestoredEdit(audit_groups, prediction.band, lambda _: "a band"),
    "levels of a later evaluation": RestoredEdit(rescore, run.levels, high),
    "label of a later evaluation": RestoredEdit(rescore, prediction.label, as_mule),
    "label of a training": RestoredEdit(train_frozen, prediction.label, as_mule),
    "run of a training": RestoredEdit(train_frozen, prediction.seq, lambda seq: 7 - seq),
    "alarm of a training": RestoredEdit(ask_for_training, alarm.state, fires),
    "version in use of a training": RestoredEdit(
        train_frozen, activation.reason, lambda reason: f"{reason}, said nobody"
    ),
}
ELSEWHERE = {
    "version in use of a run": "activation.version",
    "first sighting": "first_seen.seen_ns",
    "payload of a replay": "prediction.p_values",
    "payload of a repair": "prediction.p_values",
    "shadow set of a run": "shadow_set.covered",
    "shadow set of an audit": "shadow_set.size",
    "shadow set of a promotion": "shadow_set.covered",
    "consulted": "consulted.seq",
}
"""Lines with a project of their own: name, and the column that is edited."""


def edit(workspace, column, change):
    """Change a column of all rows; return a function that puts the old values back."""
    table = column.table
    keys = [key for key in table.primary_key.columns if key is not column]
    if column.primary_key:
        return _edit_key(workspace, column, change, keys)
    with workspace.store.reading() as connection:
        rows = [tuple(row) for row in connection.execute(select(*keys, column))]
    rows = [row for row in rows if change(row[-1]) != row[-1]]
    assert rows, "changes nothing"

    def write(of_value):
        matched = [key == bindparam(f"key{i}") for i, key in enumerate(keys)]
        statement = update(table).where(*matched).values({column.name: bindparam("value")})
        values = [
            {f"key{i}": row[i] for i in range(len(keys))} | {"value": of_value(row[-1])}
            for row in rows
        ]
        with workspace.store.transaction() as connection:
            connection.execute(statement, values)

    write(change)
    return lambda: write(lambda value: value)


def _edit_key(workspace, column, change, keys):
    """The same for a part of the primary key: every row gets another value, all at once."""
    with workspace.store.reading() as connection:
        values = sorted({row[0] for row in connection.execute(select(column))})
    assert values, "changes nothing"

    def write(pairs):
        with workspace.store.transaction() as connection:
            for old, new in pairs:
                connection.execute(
                    update(column.table).where(column == old).values({column.name: new})
                )

    write([(value, change(value)) for value in values])
    return lambda: write([(change(value), value) for value in values])
