"""A row is edited, a verb that compares nothing rests on it, the row is put back: it is named.

The kinds of `tests/jobs/integrity/forged_entries.py` on both engines, by a life without a graph.
`tests/end_to_end/test_forged_entries.py` does the same with the verbs themselves.
"""

import pytest
from sqlalchemy import select

from ringfence.connector.records import NodeGroup
from ringfence.connector.store import coverage, tables
from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.connector.store.groups import record_groups
from ringfence.jobs.config.audit import AuditSettings
from ringfence.jobs.config.load import load_values
from ringfence.jobs.integrity.derivation import derived_coverage, derived_levels
from ringfence.jobs.integrity.derivation.derive import derive_entries
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.retention.prune import find_old, first_turn, remove_old
from tests.end_to_end.restored_edits import EDITS, edit
from tests.jobs.integrity.derivation.made_life import AUDIT_EVERY, begin
from tests.jobs.integrity.forged_entries import FORGED
from tests.stores import open_at

RUNS, NODES = AUDIT_EVERY + 1, 20
AUDITED = {"covered", "alpha"}
A_MOMENT = 1e-9


@pytest.fixture
def life(sql_url, tmp_path):
    graph = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
    settings = load_values({"project": "p", "graph": graph}, tmp_path / "ringfence.toml", {})
    store = open_at(sql_url)
    life = begin(store, settings)
    for number in range(1, RUNS + 1):
        life.live(number, NODES)
    yield life
    store.close()


def check(life):
    """What `verify` says of the rows, and of the entries."""
    with record_snapshot(life.store, "p", key_source(life.settings)) as reader:
        record = reader.record()
        edits = list(find_edits(reader, record))
        findings = derive_entries(reader, record)
    return edits, findings


def test_a_life_in_which_nobody_edits_follows(life):
    edits, findings = check(life)
    assert (edits, findings.problems()) == ([], [])
    derived = {derived.subject: derived for derived in findings.summary()}
    assert all(derived.derived and not derived.not_derivable for derived in derived.values())
    assert derived["joined nodes"].derived == (RUNS - 1) * NODES


def test_removed_details_are_counted_and_no_problem(life):
    """The rule `today` compares p-values that are gone with a later level."""
    period = AuditSettings(keep_days=A_MOMENT, keep_open_days=A_MOMENT)
    old = first_turn(find_old(life.store, "p", period, A_MOMENT))
    assert remove_old(life.writer, key_source(life.settings), old, lambda *_: None).nodes
    life.live(RUNS + 1, NODES)
    edits, findings = check(life)
    assert (edits, findings.problems()) == ([], [])
    derived = {derived.subject: derived for derived in findings.summary()}
    assert derived["levels of runs"].not_derivable[derived_levels.PRUNED] > 0
    assert derived["sets"].derived == (RUNS + 1) * NODES


def read_groups(life, seq, *, seal):
    """The groups of a run's nodes, as an audit reads them; they are sealed with the mark."""
    keys = [f"s:{seq}-{i}" for i in range(NODES)]
    groups = [NodeGroup(key, "region", "north" if i % 3 else "south") for i, key in enumerate(keys)]
    record_groups(life.writer, keys, groups)
    if seal:
        coverage.set_mark(life.writer, coverage.mark_of(life.store, "p"), grouped_seq=seq)


@pytest.mark.parametrize("seal", [True, False])
def test_rows_about_groups_are_derived_at_every_audit(life, seal):
    """Also those of an audit before later runs had groups; not where groups were never sealed."""
    groups = life.settings.audit.model_copy(update={"groups": ["region"]})
    life.settings = life.settings.model_copy(update={"audit": groups})
    for seq in range(1, RUNS + 1):
        read_groups(life, seq, seal=seal)
    for number in (RUNS + 1, RUNS + 2):
        life.audit()
        life.live(number, NODES)
        read_groups(life, number, seal=seal)
    life.audit()
    edits, findings = check(life)
    assert (edits, findings.problems()) == ([], [])
    left = {derived.subject: derived for derived in findings.summary()}["coverage rows"]
    assert left.not_derivable == ({} if seal else {derived_coverage.UNGROUPED: 6})


def several_alphas(sql_url, tmp_path):
    """A life of which every run has sets at three alphas."""
    graph = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
    settings = load_values({"project": "p", "graph": graph}, tmp_path / "ringfence.toml", {})
    life = begin(open_at(sql_url), settings, alphas=(0.1, 0.3, 0.02))
    for number in range(1, RUNS + 1):
        life.live(number, NODES)
    return life


def test_rows_at_alphas_after_the_first_are_derived(sql_url, tmp_path):
    life = several_alphas(sql_url, tmp_path)
    edits, findings = check(life)
    assert (edits, findings.problems()) == ([], [])
    derived = {derived.subject: derived for derived in findings.summary()}["coverage rows"]
    assert not derived.not_derivable
    with life.store.reading() as connection:
        further = ~tables.coverage.c.first_alpha
        rows = connection.execute(select(tables.coverage).where(further)).all()
    assert len(rows) == 2 * derived.derived / 3
    put_back = edit(life, tables.further_set.c.covered, lambda covered: covered is not None or None)
    life.audit()
    put_back()
    edits, findings = check(life)
    assert edits == []
    problems = findings.problems()
    assert problems
    assert all("at alpha 0.3: covered is" in p or "at alpha 0.02: covered is" in p or "more" in p
               for p in problems), problems  # fmt: skip
    life.store.close()


@pytest.mark.parametrize("name", FORGED)
def test_what_was_sealed_of_it_is_named(life, name):
    put_back = edit(life, EDITS[name].column, EDITS[name].change)
    if name in AUDITED:
        life.audit()
    else:
        life.live(RUNS + 1, NODES)
    put_back()
    edits, findings = check(life)
    assert edits == []  # the control: without the derivation nothing is found
    problems = "\n".join(findings.problems())
    assert [part for part in FORGED[name] if part not in problems] == [], problems
