"""A row is edited, a verb that compares nothing rests on it, the row is put back: it is named.

The kinds of `tests/jobs/integrity/forged_entries.py` on both engines, by a life without a graph.
`tests/end_to_end/test_forged_entries.py` does the same with the verbs themselves.
"""

import pytest

from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.jobs.config.audit import AuditSettings
from ringfence.jobs.config.load import load_values
from ringfence.jobs.integrity.derivation import derived_levels
from ringfence.jobs.integrity.derivation.derive import derive_entries
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.retention.prune import find_old, first_turn, remove_old
from tests.end_to_end.test_edit_and_restore import EDITS, edit
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


@pytest.mark.parametrize("name", FORGED)
def test_what_was_sealed_of_it_is_named(life, name):
    _, column, change = EDITS[name]
    put_back = edit(life, column, change)
    if name in AUDITED:
        life.audit()
    else:
        life.live(RUNS + 1, NODES)
    put_back()
    edits, findings = check(life)
    assert edits == []  # the control: without the derivation nothing is found
    problems = "\n".join(findings.problems())
    assert [part for part in FORGED[name] if part not in problems] == [], problems
