"""Counting the audit sample reads its index, not every prediction."""

from contextlib import closing

import pytest
from sqlalchemy import func, select

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.sample import count_sample
from ringfence.connector.store.tables import prediction
from ringfence.connector.store.worklist.sampled_nodes import IS_SAMPLED
from tests.jobs.report.packs import PLAN, make_record


@pytest.mark.parametrize(
    ("condition", "uses_index"), [(IS_SAMPLED, True), (prediction.c.sampled.is_(True), False)]
)
def test_sqlite_knows_its_index_by_the_words_of_the_condition(tmp_path, condition, uses_index):
    """The control says the same in other words, and goes over all predictions."""
    settings = make_record(tmp_path)
    with closing(open_store(settings.audit.url)) as store:
        query = select(func.count()).where(prediction.c.project == settings.project, condition)
        with store.reading() as connection:
            said = str(query.compile(connection.engine, compile_kwargs={"literal_binds": True}))
            plan = str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {said}").all())
        assert ("prediction_sampled" in plan) is uses_index
        counted = count_sample(ProjectQueries(store, settings.project))
        assert counted.nodes == PLAN.runs * settings.audit.sample_nodes
