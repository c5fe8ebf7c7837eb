"""A row that is edited for one run and then put back: the verb refuses to rest on it."""

from dataclasses import replace

import pytest
from sqlalchemy import delete, select

from ringfence.connector import fault_points
from ringfence.connector.errors import StoreError
from ringfence.connector.store import coverage, tables
from ringfence.connector.store.audit_chain.preflight_check import require_sound_record
from ringfence.connector.store.lifecycle import tables as lifecycle_tables
from ringfence.connector.store.shadow import coverage as shadow_coverage
from ringfence.jobs.auditing import audit
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.derivation import derived_shadow
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.promotion import run_promotion
from ringfence.jobs.lifecycle.versions import read_versions
from ringfence.jobs.scoring import score
from ringfence.jobs.scoring.score import run_scoring
from tests.end_to_end.restored_edits import EDITS, answered, configured, edit, go_on, zeros
from tests.project_copies import Stage, load_first, sample_parts, starts_from
from tests.stores import postgresql_later

pytestmark = [pytest.mark.slow, postgresql_later]


def refuse(verb, *given, **named):
    """Run a verb that has to refuse; return in which words."""
    with pytest.raises(StoreError) as refused:
        verb(*given, **named)
    assert refused.value.next_step == "ringfence verify"
    return str(refused.value)


def require_sound(workspace):
    assert run_verification(workspace).problems == ()


@answered
@pytest.mark.parametrize("name", EDITS)
def test_no_verb_rests_on_a_row_that_is_edited_and_put_back(workspace, sample, name):
    line = EDITS[name]
    line.before(workspace, sample)
    put_back = edit(workspace, line.column, line.change)
    refuse(line.verb, workspace)
    put_back()
    require_sound(workspace)
    line.verb(workspace)  # the control: as it was, the record is taken
    require_sound(workspace)


def remove_files(folder):
    for file in sorted(folder.rglob("*"), reverse=True):
        if file.is_file():
            file.unlink()


@answered
def test_a_mark_that_nobody_compares_hides_classes_for_good(workspace, sample, monkeypatch):
    """The control: what the line `mark of classes` was before, and no verification names it."""
    EDITS["mark of classes"].before(workspace, sample)
    line = EDITS["mark of classes"]
    edit(workspace, line.column, line.change)  # nobody has to put it back: the audit moves it on
    read = coverage.mark_of(workspace.store, workspace.project)
    monkeypatch.setattr(audit, "mark_on_record", lambda *_: read)
    assert audit_at_once(workspace).newly_known == 0
    monkeypatch.undo()
    require_sound(workspace)
    assert audit_at_once(workspace).newly_known == 0


def audit_at_once(workspace):
    """An audit that does not go back by an overlap, as one that comes days after the one before."""
    changed = {"graph": {"labelled_at": "labelled_at"}, "engine": {"overlap_seconds": 0.0}}
    with configured(workspace, **changed) as opened:
        return run_audit(opened)


class Killed(BaseException):
    """A process that ends at a point."""


def decide_alone(workspace, monkeypatch):
    """A run that is decided, whose process dies before the graph has it."""

    def die(name):
        if name == "decided":
            raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(fault_points, "reach", die)
        with pytest.raises(Killed):
            run_scoring(workspace)


def in_graph(workspace):
    rows = workspace.graph.read("MATCH ()-[e:EVALUATED]->() RETURN count(e) AS n")
    return rows[0]["n"]


@answered
def test_no_payload_is_replayed_that_is_not_the_one_decided(workspace, sample, monkeypatch):
    """Line `payload of a replay`."""
    go_on(workspace, sample)
    decide_alone(workspace, monkeypatch)
    before = in_graph(workspace)
    put_back = edit(workspace, tables.prediction.c.p_values, zeros)
    assert "predictions are not those" in refuse(run_scoring, workspace)
    assert in_graph(workspace) == before
    put_back()
    assert run_scoring(workspace).recovered  # the control
    assert in_graph(workspace) > before
    require_sound(workspace)


@answered
def test_no_payload_repairs_the_graph_that_is_not_the_one_decided(workspace):
    """Line `payload of a repair`."""
    before = in_graph(workspace)
    workspace.graph.run("MATCH ()-[e:EVALUATED]->() WITH e LIMIT 3 DELETE e")
    put_back = edit(workspace, tables.prediction.c.p_values, zeros)
    assert "predictions are not those" in refuse(run_reconcile, workspace, repair=True)
    assert in_graph(workspace) == before - 3
    put_back()
    run_reconcile(workspace, repair=True)  # the control
    assert in_graph(workspace) == before
    require_sound(workspace)


def begin_without_times(workspace, sample):
    from ringfence.jobs.training.train import run_training

    load_first(sample_parts(workspace, sample))
    with configured(workspace, graph={"created_at": None}) as opened:
        run_training(opened)
        run_scoring(opened)


@starts_from(Stage("without creation times", "migrated", begin_without_times))
def test_no_first_sighting_is_taken_over_that_is_not_the_one_recorded(workspace, sample):
    """Line `first sighting`: a mirror that is read anew takes the times from SQL."""
    grown = sample_parts(workspace, sample)
    grown.arrive(grown.later[0])
    with configured(workspace, graph={"created_at": None}) as opened:
        remove_files(opened.mirror)
        put_back = edit(workspace, tables.first_seen.c.seen_ns, lambda seen_ns: seen_ns - 10**15)
        assert "first_seen at" in refuse(run_scoring, opened)
        put_back()
        require_sound(opened)
        assert run_scoring(opened).evaluated == len(grown.later[0].nodes)  # the control
        require_sound(opened)


def with_shadow(workspace, **values):
    settings = workspace.settings
    model = settings.model.model_copy(update={"shadow": True, "max_epochs": 8, **values})
    conformal = settings.conformal.model_copy(update={"calibration_set": "growing"})
    changed = settings.model_copy(update={"model": model, "conformal": conformal})
    return replace(workspace, settings=changed)


def shadow_once(workspace, sample):
    """A run with a candidate in its shadow, half of whose nodes have a class."""
    from ringfence.jobs.training.train import run_training

    grown = sample_parts(workspace, sample)
    load_first(grown)
    run_training(with_shadow(workspace))
    run_scoring(with_shadow(workspace))
    run_training(with_shadow(workspace, seed=5))
    grown.arrive(grown.later[0])
    assert run_scoring(with_shadow(workspace)).shadow.sets
    grown.reveal(grown.later[0].nodes[::2])


shadowed = starts_from(Stage("shadowed once", "migrated", shadow_once))


def candidate_of(workspace):
    return read_versions(workspace.store, "test").versions[-1].version


@shadowed
def test_no_run_is_decided_by_a_version_that_was_in_use_for_a_moment(
    workspace, sample, monkeypatch
):
    """Line `version in use of a run`: edited after the start, put back before it decides."""
    version, restored = lifecycle_tables.activation.c.version, []
    grown = sample_parts(workspace, sample)
    grown.arrive(grown.later[1])

    def compare_and_edit(writer):
        require_sound_record(writer)
        candidate = candidate_of(workspace)
        restored.append(edit(workspace, version, lambda _: candidate))

    def put_back(name):
        if name == "graph read":
            restored.pop()()

    with monkeypatch.context() as edited:
        edited.setattr(score, "require_sound_record", compare_and_edit)
        edited.setattr(fault_points, "reach", put_back)
        assert "was read as such" in refuse(run_scoring, workspace)
    assert restored == []
    require_sound(workspace)
    assert run_scoring(workspace).evaluated  # the control
    require_sound(workspace)


@shadowed
def test_no_shadow_part_rests_on_shadow_sets_that_are_not_those_recorded(workspace, sample):
    """Line `shadow set of a run`: its run stands; the shadow part of it fails, and says why."""
    shadowing = with_shadow(workspace)
    run_audit(shadowing)
    grown = sample_parts(workspace, sample)
    grown.arrive(grown.later[1])
    known = tables.shadow_set.c.covered
    put_back = edit(workspace, known, lambda covered: None)
    done = run_scoring(shadowing)
    assert done.evaluated
    assert "the rows are not those that were recorded" in done.shadow.failed
    put_back()
    require_sound(workspace)


@shadowed
def test_no_audit_counts_shadow_sets_that_are_not_those_recorded(workspace):
    """Line `shadow set of an audit`."""
    put_back = edit(workspace, tables.shadow_set.c.size, lambda _: 1)
    assert "shadow_set of" in refuse(run_audit, with_shadow(workspace))
    put_back()
    run_audit(with_shadow(workspace))  # the control
    require_sound(workspace)
    assert derived_of_shadows(workspace) == [(1, {})]


def derived_of_shadows(workspace):
    derived = run_verification(workspace).derived
    return [(d.derived, d.not_derivable) for d in derived if d.subject == derived_shadow.SUBJECT]


@shadowed
def test_what_was_counted_of_other_shadow_sets_is_named(workspace, monkeypatch):
    """A program that compares nothing counts an edited size; the row does not follow then."""
    monkeypatch.setattr(shadow_coverage, "require_shadow_sets", lambda *_: None)
    put_back = edit(workspace, tables.shadow_set.c.size, lambda size: size + 1)
    run_audit(with_shadow(workspace))
    put_back()
    (problem,) = run_verification(workspace).problems
    assert "shadow_coverage of" in problem
    assert "size is " in problem


@shadowed
def test_no_promotion_rests_on_shadow_sets_that_are_not_those_recorded(workspace, sample):
    """Lines `shadow set of a promotion` and `consulted`: runs that helped to choose a version."""
    shadowing = with_shadow(workspace)
    run_audit(shadowing)
    put_back = edit(workspace, tables.shadow_set.c.covered, lambda covered: None)
    refuse(run_promotion, shadowing, candidate_of(workspace), "better")
    put_back()
    run_promotion(shadowing, candidate_of(workspace), "better")  # the control
    require_sound(workspace)
    grown = sample_parts(workspace, sample)
    grown.arrive(grown.later[1])
    with workspace.store.reading() as connection:
        rows = [row._asdict() for row in connection.execute(select(tables.consulted))]
    with workspace.store.transaction() as connection:
        connection.execute(delete(tables.consulted))
    assert "consulted" in refuse(run_scoring, shadowing)
    with workspace.store.transaction() as connection:
        connection.execute(tables.consulted.insert(), rows)
    assert run_scoring(shadowing).evaluated  # the control
    require_sound(workspace)
