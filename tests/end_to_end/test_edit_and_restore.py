"""A row that is edited for one run and then put back: the run refuses to rest on it."""

import json

import numpy as np
import pytest
from sqlalchemy import bindparam, select, update

from ringfence.connector.errors import StoreError
from ringfence.connector.store import tables
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.samples.accounts import batches
from ringfence.jobs.scoring.score import run_scoring
from tests.project_copies import Stage, sample_parts, starts_from
from tests.stores import postgresql_later

PARTS, FIRST, EACH = 6, 300, 20
run, prediction, threshold = tables.run.c, tables.prediction.c, tables.threshold.c


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


EDITS = {
    "levels": (run_scoring, run.levels, lambda text: with_level(text, 0.9)),
    "watch": (run_scoring, run.watch, lambda text: with_capital(text, -900.0)),
    "label": (run_scoring, prediction.label, lambda label: label and "mule"),
    "p_values": (run_scoring, prediction.p_values, zeros),
    "n_evaluated": (run_scoring, run.n_evaluated, lambda count: 3 * count),
    "covered": (run_audit, prediction.covered, lambda covered: covered is not None or None),
    "alpha": (run_audit, run.alpha, lambda _: 0.6),
    "size": (run_audit, prediction.size, lambda _: 1),
    "classes": (run_audit, prediction.classes, lambda _: '["mule","normal","exchange","merchant"]'),
    "scores": (run_audit, prediction.scores, zeros),
    "threshold": (run_audit, threshold.n_calibration, lambda _: 3),
}
KEYS = {
    "run": (run.project, run.seq),
    "prediction": (prediction.project, prediction.node_key),
    "threshold": (
        threshold.project, threshold.seq, threshold.alpha, threshold["class"], threshold.band,
    ),
}  # fmt: skip


def edit(workspace, column, change):
    """Change a column of all rows; return a function that puts the old values back."""
    keys = KEYS[column.table.name]
    with workspace.store.reading() as connection:
        rows = [tuple(row) for row in connection.execute(select(*keys, column))]
    rows = [row for row in rows if change(row[-1]) != row[-1]]
    assert rows, "changes nothing"

    def write(of_value):
        matched = [key == bindparam(f"key{i}") for i, key in enumerate(keys)]
        statement = update(column.table).where(*matched).values({column.name: bindparam("value")})
        values = [
            {f"key{i}": row[i] for i in range(len(keys))} | {"value": of_value(row[-1])}
            for row in rows
        ]
        with workspace.store.transaction() as connection:
            connection.execute(statement, values)

    write(change)
    return lambda: write(lambda value: value)


def go_on(workspace, sample):
    """A further batch arrives, and classes of the batch before it become known."""
    grown, parts = sample_parts(workspace, sample), parts_of(sample)
    grown.arrive(parts[-1])
    grown.reveal(np.concatenate([parts[-2].nodes, parts[-1].nodes[:4]]))


@answered
@postgresql_later
@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
def test_no_verb_rests_on_a_row_that_is_edited_and_put_back(workspace, sample, name):
    verb, column, change = EDITS[name]
    go_on(workspace, sample)
    put_back = edit(workspace, column, change)
    with pytest.raises(StoreError) as refused:
        verb(workspace)
    assert refused.value.next_step == "ringfence verify"
    put_back()
    assert run_verification(workspace).problems == ()
    verb(workspace)  # the control: as it was, the record is taken
    assert run_verification(workspace).problems == ()
