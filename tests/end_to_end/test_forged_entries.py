"""Entries that a changed program sealed: every row fits its seal, and nothing explains them."""

import dataclasses
import json

import pytest
from sqlalchemy import select

from ringfence.connector.store import tables
from ringfence.connector.store.audit_chain.basis_check import Basis
from ringfence.jobs.cli.commands.record.verify import print_verification
from ringfence.jobs.cli.console import print_json
from ringfence.jobs.integrity.checkpoint import compared_rows
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.scoring import decision
from ringfence.jobs.scoring.score import run_scoring
from tests.end_to_end.restored_edits import EDITS, answered, edit, go_on
from tests.jobs.integrity.forged_entries import FORGED
from tests.stores import postgresql_later

COMPARISONS = ("runs", "labels", "model", "predictions", "groups")


@pytest.fixture
def trusting(monkeypatch):
    """Verbs that compare nothing of what they decide with, as older versions."""
    for subject in COMPARISONS:
        monkeypatch.setattr(Basis, f"require_{subject}", lambda *_, **__: None)


def problems_without_derivation(workspace):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compared_rows, "derive_entries", lambda *_: Findings())
        return run_verification(workspace).problems


@answered
@postgresql_later
@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED)
def test_an_entry_that_follows_from_nothing_is_named(workspace, sample, trusting, name):
    line = EDITS[name]
    go_on(workspace, sample)
    assert run_verification(workspace).problems == ()
    put_back = edit(workspace, line.column, line.change)
    line.verb(workspace)
    put_back()
    assert problems_without_derivation(workspace) == ()  # the control: rows are as they were sealed
    assert run_verification(workspace, quick=True).problems == ()
    problems = "\n".join(run_verification(workspace).problems)
    assert [part for part in FORGED[name] if part not in problems] == [], problems


@answered
@pytest.mark.slow
def test_sets_that_do_not_follow_from_p_values_are_named(workspace, sample, monkeypatch):
    """A changed program leaves a class out of every set that has another one."""
    make_table = decision.prediction_table

    def make_smaller(*given):
        table = make_table(*given)
        sets = table.sets & ~((table.sets.sum(axis=1) > 1)[:, None] & (table.sets.cumsum(1) == 1))
        return dataclasses.replace(table, sets=sets)

    go_on(workspace, sample)
    monkeypatch.setattr(decision, "prediction_table", make_smaller)
    run = run_scoring(workspace).seq
    assert problems_without_derivation(workspace) == ()
    problems = run_verification(workspace).problems
    assert problems
    assert all(f"(run {run}): classes is " in problem for problem in problems)


@answered
@pytest.mark.slow
def test_what_was_derived_is_counted(workspace, sample, capsys):
    go_on(workspace, sample)
    run_scoring(workspace)
    done = run_verification(workspace)
    with workspace.store.reading() as connection:
        rows = {
            name: len(connection.execute(select(getattr(tables, name))).all())
            for name in ("run", "prediction", "joined", "coverage", "monitor_input")
        }
    derived = {derived.subject: derived for derived in done.derived}
    assert all(not derived.not_derivable for derived in done.derived)
    assert derived["sets"].derived == rows["prediction"] == done.predictions
    assert derived["levels of runs"].derived == derived["monitor states"].derived == rows["run"]
    assert derived["joined nodes"].derived == rows["joined"] > 0
    assert derived["coverage rows"].derived >= rows["coverage"] > 0  # rows that changed, twice
    assert rows["monitor_input"] > 0
    quick = run_verification(workspace, quick=True)
    assert (quick.quick, quick.derived, quick.predictions) == (True, (), done.predictions)
    print_verification(done)
    assert f"Derived again: {done.predictions:,} sets.\n" in capsys.readouterr().out
    print_json(done)
    in_json = json.loads(capsys.readouterr().out)["derived"][0]
    assert in_json == {"subject": "sets", "derived": done.predictions, "not_derivable": {}}
