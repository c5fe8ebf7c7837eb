"""Edits of bands, further alphas, joined and corrected nodes, first sightings: found and named."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import text

from ringfence.connector.list_terms import ListFacts, ListTerms
from ringfence.connector.prediction_table import FurtherSizes
from ringfence.connector.records import (
    Correction,
    JoinedNode,
    KnownClass,
    Prediction,
    RunFacts,
    Threshold,
)
from ringfence.connector.store import chain, coverage, labels, runs
from ringfence.connector.store.audit_chain.run_comparison import RUN_DEFAULTS
from ringfence.connector.store.calibration.run_basis import MonitorInput, RunBasis
from ringfence.connector.store.corrections import record_corrections
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.first_seen import record_first_seen
from ringfence.connector.store.labels import OpenPrediction
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.worklist.sampled_nodes import AuditSample
from ringfence.jobs.auditing.audit import count_coverage
from tests.jobs.integrity.later_edits import LATER_EDITS
from tests.jobs.integrity.sample_record import (
    ENGINES,
    PLAN,
    append_of_an_older_version,
    project,
    writing,
)
from tests.jobs.integrity.test_tampering import problems_after, problems_of

ALPHAS = (0.1, 0.005)
LEVELS = {"used": list(ALPHAS), "nonempty": False}


@contextmanager
def later_record(request, folder, engine):
    """The sample record and one run that uses everything that later versions added."""
    with project(request, folder, engine) as (store, settings):
        with writing(store, settings) as writer:
            record_first_seen(writer, {"s:a": 10, "s:b": 10})
            record_first_seen(writer, {"s:b": 99, "s:c": 20})
            record_corrections(
                writer, "sample-1", [Correction("i:-71", "business", "retail", "corrected")]
            )
            _run_with_bands(store, settings, writer)
        yield store, settings


def _run_with_bands(store, settings, writer):
    p = (0.9, 0.01, 0.02, 0.03)
    sets = [
        Prediction(
            f"s:new {i}", ("retail",), p, tuple(x - 1 for x in p), i, "0-4" if i < 5 else "5+"
        )
        for i in range(9)
    ]
    before = runs.one_run(store, "p", 3)
    facts = RunFacts(**{name: getattr(before, name) for name in RunFacts.__dataclass_fields__})
    facts = replace(
        facts, n_evaluated=9, alphas=ALPHAS, level=0.1, lowest_level=0.005, n_thresholds=4,
        levels=LEVELS, watermark_to_ns=facts.watermark_to_ns + 1, threshold=None,
        lists=[LIST.as_json()],
    )  # fmt: skip
    thresholds = [
        Threshold(alpha, band, "", alpha, -0.9, 30, 30.0, 5 if band == "0-4" else 4)
        for alpha in ALPHAS
        for band in ("0-4", "5+")
    ]
    further = FurtherSizes([one.node_key for one in sets], (0.005,), np.full((1, 9), 4))
    joining = [JoinedNode("s:account 1-5", 1, "retail")]
    listed = {"s:new 1": {"clear": 0.01}, "s:new 2": {"clear": 0.02, "investigate": 0.3}}
    decision = Decision(
        facts, sets, [], {}, thresholds, further, joining,
        sample=AuditSample(2, ("s:new 1", "s:new 3")),
        basis=RunBasis(MonitorInput(("s:account 1-5", "s:account 1-6"), (0.4, 0.7))),
        listed=listed,
    )  # fmt: skip
    seq = runs.decide(writer, decision)
    runs.close_run(writer, seq, (), {})
    one = sets[0]
    opened = OpenPrediction(
        one.node_key, dumps(one.classes), dumps(one.scores), None, facts.threshold_naive,
        "sample-1", p_values=dumps(one.p_values), alphas=dumps(ALPHAS),
        levels=dumps(LEVELS),
    )  # fmt: skip
    labels.record_labels(writer, [labels.check_label(opened, KnownClass("retail"), PLAN.classes)])
    coverage.set_mark(writer, coverage.mark_of(store, "p"), grouped_seq=seq)
    coverage.record_coverage(writer, count_coverage(store, settings))


@pytest.fixture(scope="module", params=ENGINES)
def later(request, tmp_path_factory):
    with later_record(request, tmp_path_factory.mktemp("later"), request.param) as opened:
        yield opened


TERMS = ListTerms("clear", "retail", is_clear=True, may_be_wrong=0.05, per="run")
LIST = ListFacts(TERMS, 30, 9, 0.3, 8, 2, "theorem", "list clear: 2 nodes")

CASES = [(edit, "alone") for edit in LATER_EDITS]
CASES += [(edit, "covered up") for edit, (_, cover_up, _) in LATER_EDITS.items() if cover_up]


def test_an_untouched_record_has_no_problem(later):
    assert problems_of(*later) == []


@pytest.mark.parametrize(("edit", "how"), CASES)
def test_an_edit_of_later_tables_is_found_and_named(later, edit, how):
    statement, cover_up, words = LATER_EDITS[edit]
    problems = problems_after(later, [statement, *(cover_up if how == "covered up" else ())])
    assert any(words in problem for problem in problems), problems


def test_times_that_nobody_sealed_are_sealed_with_the_next(request, tmp_path):
    def before(connection, project_, key, kind, facts, *, append=chain.append):
        return "" if kind == "seen" else append(connection, project_, key, kind, facts)

    with (
        project(request, tmp_path, "sqlite", append_of_an_older_version) as (store, settings),
        writing(store, settings) as writer,
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "append", before)
            record_first_seen(writer, {"s:a": 10})
        edit = ["UPDATE first_seen SET seen_ns = 5"]
        assert problems_after((store, settings), edit) == []  # the control: it was not sealed
        record_first_seen(writer, {"s:b": 20})
        assert problems_of(store, settings) == []
        assert problems_after((store, settings), edit)


MIGRATED = (
    "UPDATE run SET level = alpha, n_thresholds = 1, levels = NULL, shift = NULL, "
    "mean_size_naive = NULL"
)


def test_a_run_of_an_older_version_has_no_levels(request, tmp_path):
    later = {*RUN_DEFAULTS, "level"}

    def before(connection, project_, key, kind, facts, *, append=chain.append):
        if kind == "decided":
            run = {k: v for k, v in facts["run"].items() if k not in later}
            facts = {**facts, "run": run}
        return append(connection, project_, key, kind, facts)

    with project(request, tmp_path, "sqlite", before) as opened:
        with opened[0].engine.begin() as connection:  # as the migration leaves such runs
            connection.execute(text(MIGRATED))
        assert problems_of(*opened) == []
        for column, value in {"alphas": "'[0.5]'", "level": "0.5", "promise": "'class'"}.items():
            edit = f"UPDATE run SET {column} = {value} WHERE seq = 2"
            problems = problems_after(opened, [edit])
            assert any(f"run 2: {column} changed" in problem for problem in problems), problems


def test_groups_that_stood_there_before_are_not_sealed(later):
    """Whoever adds a group before the audit reads them: it is replaced by what the graph has."""
    from ringfence.connector.store.groups import record_groups

    store, settings = later
    forged = "INSERT INTO grouping VALUES ('p', 's\\:new 4', 'region', 'north')"
    with store.engine.begin() as connection:
        connection.execute(text(forged))
    assert problems_of(store, settings)
    with writing(store, settings) as writer:
        record_groups(writer, ["s:new 4"], [])
    assert problems_of(store, settings) == []
