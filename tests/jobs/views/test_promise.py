"""What a run promised, as status, Today, the report and an agent are told."""

from dataclasses import replace

import numpy as np

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.cli.commands.runs.status import print_status
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.views.promise import promise_of_run
from ringfence.jobs.views.status import read_status
from ringfence.models.conformal.strata import one_stratum
from ringfence.models.guarantee.drift_gap import describe_drift_gap
from tests.dashboard.conftest import settings_at


def test_what_drift_may_cost_stands_beside_the_promise_where_ages_have_weights(tmp_path, capsys):
    settings = settings_at(tmp_path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=2, per_run=20))
    (run,) = ProjectQueries(store, settings.project).runs(last=1)
    ages = np.array([0.0, 10.0])
    gap = describe_drift_gap(one_stratum(2, 1, np.ones(2)), ages, np.zeros(1))
    weighted = replace(run, notes=(*run.notes, gap))
    assert promise_of_run(weighted) == f"{promise_of_run(run)}; {gap}"
    assert "drift costs" not in promise_of_run(run)  # nothing is said where no age counts
    current = read_status(store, settings.project)
    print_status(replace(current, runs=(*current.runs[:-1], weighted)))
    said = " ".join(capsys.readouterr().out.split())
    assert f"Promise in force: {promise_of_run(weighted)}." in said
    store.close()
