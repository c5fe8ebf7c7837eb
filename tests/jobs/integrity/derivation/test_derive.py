"""Entries that were sealed over wrong values: rows fit their seals, and derivation names them."""

from dataclasses import replace

import pytest

from ringfence.connector.records import JoinedNode, RunFacts
from ringfence.connector.store import coverage, runs
from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.connector.store.calibration.run_basis import MonitorInput, RunBasis
from ringfence.connector.store.runs import Decision
from ringfence.jobs.auditing.audit import count_coverage
from ringfence.jobs.integrity.derivation.derive import derive_entries
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.scoring.monitor import describe_state
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor
from tests.jobs.integrity.sample_record import ENGINES, project, some_set, writing
from tests.jobs.integrity.test_tampering import append_as_before, as_migrated

NEW = "s:new 1"
LEVELS = {"used": [0.1], "nonempty": False}


@pytest.fixture(params=ENGINES)
def sealed(request, tmp_path):
    with project(request, tmp_path, request.param) as opened:
        yield opened


def honest(store):
    """A fourth run of one node, to which nothing is new."""
    before = runs.one_run(store, "p", 3)
    facts = RunFacts(**{name: getattr(before, name) for name in RunFacts.__dataclass_fields__})
    state = ExchangeabilityMonitor.from_dict(before.watch["state"])
    facts = replace(
        facts, n_evaluated=1, alphas=(0.1,), level=0.1, lowest_level=0.1, levels=LEVELS,
        watch=describe_state(state, before.watch["mark_ns"], ()),
        watermark_to_ns=facts.watermark_to_ns + 1, threshold=None,
    )  # fmt: skip
    return Decision(facts, [some_set(NEW)], [], basis=RunBasis(MonitorInput()))


def with_facts(decision, **columns):
    return replace(decision, facts=replace(decision.facts, **columns))


def other_state(decision):
    watch = decision.facts.watch
    moved = ExchangeabilityMonitor.from_dict(watch["state"]).after([0.001] * 9).as_dict()
    return {**watch, "state": moved}


FORGERIES = {
    "a class left out": (
        lambda run: replace(run, predictions=[replace(some_set(NEW), classes=())]),
        f"prediction {NEW} (run 4): classes is [], but p_values and the run's levels give "
        '["retail"]',
    ),
    "a class added": (
        lambda run: replace(
            run, predictions=[replace(some_set(NEW), classes=("retail", "exchange"))]
        ),
        f'prediction {NEW} (run 4): classes is ["retail","exchange"], but',
    ),
    "alpha": (
        lambda run: with_facts(run, alpha=0.6),
        "run 4: alpha is 0.6, but its alphas begin with 0.1",
    ),
    "lowest_level": (
        lambda run: with_facts(run, lowest_level=0.01),
        "run 4: lowest_level is 0.01, but its levels give 0.1",
    ),
    "levels": (
        lambda run: with_facts(run, levels={**LEVELS, "used": [0.01]}),
        "run 4: levels (used) is [0.01], but the runs before it and the known classes give [0.1]",
    ),
    "levels that adapted": (
        lambda run: with_facts(run, levels={**LEVELS, "adaptive": [{"level": 0.9}]}),
        "run 4: levels (adaptive) is [{'level': 0.9}], but",
    ),
    "a node that joined without a class": (
        lambda run: replace(run, joined=[JoinedNode("s:account 1-0", 1, "mule")]),
        "joined s:account 1-0 (run 4): ",
    ),
    "watch": (
        lambda run: with_facts(run, watch=other_state(run)),
        "run 4: watch (state) is {",
    ),
    "watch up to another time": (
        lambda run: with_facts(run, watch={**run.facts.watch, "mark_ns": 7}),
        "run 4: watch (mark_ns) is 7, but",
    ),
    "fed with a node of unknown class": (
        lambda run: replace(run, basis=RunBasis(MonitorInput((NEW,), (0.5,)))),
        f"monitor_input of run 4: node_keys has {NEW}, which this version did not evaluate",
    ),
}


def check(opened):
    """What `verify` says of the rows, and of the entries."""
    store, settings = opened
    with record_snapshot(store, "p", key_source(settings)) as reader:
        record = reader.record()
        return list(find_edits(reader, record)), derive_entries(reader, record).problems()


def decide(opened, decision):
    store, settings = opened
    with writing(store, settings) as writer:
        seq = runs.decide(writer, decision)
        runs.close_run(writer, seq, (), {})
        coverage.record_coverage(writer, count_coverage(store, settings))


def test_a_record_that_nobody_forged_follows(sealed):
    decide(sealed, honest(sealed[0]))
    assert check(sealed) == ([], [])


def test_a_record_of_an_older_version_is_sealed_and_not_derivable(request, tmp_path):
    with project(request, tmp_path, "sqlite", append_as_before) as opened:
        as_migrated(opened[0])
        assert check(opened) == ([], [])


@pytest.mark.parametrize("name", FORGERIES)
def test_a_run_that_does_not_follow_is_named(sealed, name):
    forge, words = FORGERIES[name]
    decide(sealed, forge(honest(sealed[0])))
    edits, problems = check(sealed)
    assert edits == []  # the control: every row is as it was sealed
    assert any(words in problem for problem in problems), problems


def test_a_run_that_says_less_than_those_before_it_is_named(sealed):
    decide(sealed, honest(sealed[0]))
    silent = replace(honest(sealed[0]), predictions=[some_set("s:new 2")], basis=None)
    decide(sealed, silent)
    assert check(sealed) == (
        [],
        ["run 5 says nothing of what it can be derived from, although earlier runs do"],
    )


ROWS = {
    "covered": ({"covered": 28}, "covered is 28, expected "),
    "known": ({"known": 39}, "known is 39, expected "),
    "evaluated": ({"evaluated": 50}, "evaluated is 50, expected 40"),
    "empty": ({"empty": 0, "full": 9}, "full is 9, expected "),
    "alpha": ({"alpha": 0.6}, "alpha is 0.6, but the run has 0.1"),
    "model": ({"model": "sample-2"}, "model is sample-2, but sample-1 decided that run"),
}
SLICES = ("run", "window", "total", "class", "group")


@pytest.mark.parametrize("slice_", SLICES)
@pytest.mark.parametrize("name", ROWS)
def test_a_coverage_row_that_does_not_follow_is_named(sealed, name, slice_):
    store, settings = sealed
    columns, words = ROWS[name]
    rows = count_coverage(store, settings)
    place = next(i for i, row in enumerate(rows) if row.slice == slice_)
    if slice_ != "run":
        words = words.partition(", expected")[0]
    rows[place] = replace(rows[place], **columns)
    with writing(store, settings) as writer:
        coverage.record_coverage(writer, rows)
    edits, problems = check(sealed)
    assert edits == []
    assert any(f", {slice_}" in problem and words in problem for problem in problems), problems


def test_a_row_that_a_later_audit_replaced_is_named_too(sealed):
    store, settings = sealed
    right = count_coverage(store, settings)
    wrong = [replace(row, covered=row.known) if row.slice == "run" else row for row in right]
    with writing(store, settings) as writer:
        coverage.record_coverage(writer, wrong)
        coverage.record_coverage(writer, right)
    edits, problems = check(sealed)
    assert edits == []
    assert sum("coverage of run" in problem for problem in problems) == 3
