"""A configuration that changes under a running `ringfence schedule`: said, and nothing is lost."""

import json
import signal

import pytest
from sqlalchemy import select

from ringfence.connector.store import tables
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.schedule.config_file import GOES_ON, ConfigFile
from tests.schedulers import (
    FAR,
    count,
    ends,
    env,
    eventually,
    make_overdue,
    plan,
    rows,
    scheduler,
)
from tests.stores import sqlite

EDITS = {
    "[conformal] alpha": ("alpha = 0.1", "alpha = 0.3"),
    "[conformal] rule": ('rule = "NodeEx"', 'rule = "EdgeEx"'),
    "[graph] label": ('label = "Account"', 'label = "Other"'),
    "[graph] class_property": ('class_property = "kind"', 'class_property = "other"'),
    "[graph] features": ('features = "features"', 'features = "others"'),
    "[audit] groups": ("[audit]\n", '[audit]\ngroups = ["region"]\n'),
}


def edited(path, setting):
    """Write the file with one setting changed; return the text before."""
    text = path.read_text(encoding="utf-8")
    old, new = EDITS[setting]
    assert old in text, f"{old} is not in:\n{text}"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return text


@pytest.mark.long
@sqlite
def test_a_running_scheduler_goes_on_as_it_started_and_says_so(trained, tmp_path):
    workspace, settings = trained.workspace, trained.workspace.settings
    path = tmp_path / "ringfence.toml"
    plan(settings, score=FAR)
    environment = env(settings, RINGFENCE_SCHEDULE_SCORE=FAR)

    def score(process, outcome):
        make_overdue(settings, "score")
        eventually(lambda: rows(settings)["score"].outcome is not None, process)
        row = rows(settings)["score"]
        assert row.outcome == outcome, row.words
        return row.words

    def decided():
        with workspace.store.reading() as connection:
            query = select(tables.run.c.alpha, tables.run.c.n_evaluated).order_by(tables.run.c.seq)
            return [tuple(row) for row in connection.execute(query)]

    due = int((~trained.labelled[trained.first.nodes]).sum())
    with scheduler(tmp_path, environment) as process:
        eventually(lambda: count(process.log, "scheduled"), process)
        for setting in EDITS:
            before = edited(path, setting)
            told = f"{setting} changed; {GOES_ON}"
            eventually(lambda told=told: told in process.log.read_text(), process)
            path.write_text(before, encoding="utf-8")
        path.write_text("[conformal", encoding="utf-8")
        eventually(lambda: "is not TOML" in process.log.read_text(), process)
        path.write_text(before, encoding="utf-8")
        edited(path, "[conformal] alpha")
        score(process, "done")
        assert decided() == [(0.1, due)]
        assert ends(process, signal.SIGTERM) == 0
    trained.arrive(trained.later[0])
    new = len(trained.later[0].nodes)
    with scheduler(tmp_path, environment) as process:  # restarted: the new alpha counts
        score(process, "done")
        assert decided() == [(0.1, due), (0.3, new)]
        assert ends(process, signal.SIGTERM) == 0
    trained.arrive(trained.later[1])
    for setting in ("[graph] label", "[graph] class_property", "[graph] features"):
        before = edited(path, setting)
        with scheduler(tmp_path, environment) as process:  # refused, and nothing is written
            words = score(process, "failed")
            assert setting.split()[1] in words, words
            assert ends(process, signal.SIGTERM) == 0
        path.write_text(before, encoding="utf-8")
    assert len(decided()) == 2
    with scheduler(tmp_path, environment) as process:
        score(process, "done")
        assert ends(process, signal.SIGTERM) == 0
    assert decided() == [(0.1, due), (0.3, new), (0.3, len(trained.later[1].nodes))]
    entries = ProjectQueries(workspace.store, workspace.project).whole_chain()
    (change,) = [json.loads(entry.body) for entry in entries if entry.kind == "configuration"]
    assert change["changed"] == {"alpha": [0.1, 0.3]}
    assert (change["seq"], change["actor"]["verb"]) == (2, "schedule score")
    assert run_verification(workspace).problems == ()


def test_a_file_that_was_saved_unchanged_is_told_as_such(settings, tmp_path):
    path = tmp_path / "ringfence.toml"
    file = ConfigFile(path, settings)
    assert file.news() == ""
    path.write_text(path.read_text() + "\n# a remark\n")
    assert "changed" in file.news() or "are those" in file.news()
    assert file.news() == ""
    path.unlink()
    assert "there is no" in file.news()
