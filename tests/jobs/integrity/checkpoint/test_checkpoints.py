"""Checkpoints of a real project: sealed, relied on, refused, and found wrong by those who check."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import text

from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.summary import describe_entry
from ringfence.connector.store.checkpoint.entries import (
    KIND,
    newest_checkpoint,
    record_checkpoint,
    why_not_trusted,
)
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.chain_check import chain_words
from ringfence.jobs.integrity.checkpoint import progress_file, seal
from ringfence.jobs.integrity.checkpoint.seal import verify_and_seal
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.signing_keys import run_new_signing_key
from ringfence.jobs.schedule import job_functions
from ringfence.jobs.scoring.score import run_scoring
from tests.jobs.integrity.sample_record import unguarded
from tests.stores import sqlite


def entries(workspace):
    with workspace.store.reading() as connection:
        return chain.read_entries(connection, workspace.project)


def sql(workspace, statement):
    with workspace.store.transaction() as connection, unguarded(connection):
        assert connection.execute(text(statement)).rowcount > 0


def drawing(workspace, nodes):
    audit = workspace.settings.audit.model_copy(update={"verify_sample_nodes": nodes})
    return replace(workspace, settings=workspace.settings.model_copy(update={"audit": audit}))


def test_a_checkpoint_is_sealed_relied_on_and_followed_by_the_next(scored):
    workspace = drawing(scored.workspace, 0)
    first = verify_and_seal(workspace)
    said = (first.kind, first.problems, first.why_full)
    assert said == ("full", (), "the chain has no checkpoint yet")
    assert first.sealed == entries(workspace)[-1].n
    nothing_new = verify_and_seal(workspace)
    assert (nothing_new.kind, nothing_new.problems, nothing_new.sealed) == ("since", (), None)
    assert (nothing_new.since.entry, nothing_new.since.runs) == (first.sealed, 0)
    scored.arrive(scored.later[0])
    run_scoring(workspace)
    scored.reveal(scored.first.nodes)
    run_audit(workspace)
    then = verify_and_seal(workspace)
    assert (then.kind, then.problems, then.why_full) == ("since", (), "")
    assert (then.since.runs, then.since.drawn, then.since.of) == (1, 0, 1)
    said = newest_checkpoint(entries(workspace)).checkpoint
    assert (said.how, said.base, said.full_entry) == ("since", first.sealed, first.sealed - 1)
    assert run_verification(workspace).problems == ()
    assert verify_and_seal(workspace, full=True).kind == "full"


def test_an_older_edit_is_found_by_the_full_one_and_by_a_sample_that_draws_its_run(scored):
    workspace = scored.workspace
    verify_and_seal(workspace)
    sql(workspace, "UPDATE prediction SET size = size + 1 WHERE seq = 1")
    assert verify_and_seal(drawing(workspace, 0)).problems == ()  # the control
    drawn = verify_and_seal(drawing(workspace, 1))
    assert (drawn.since.drawn, drawn.since.of, drawn.since.chances) == (1, 1, {1: 1.0})
    assert any("size is not as recorded" in problem for problem in drawn.problems)
    assert drawn.sealed is None
    full = verify_and_seal(workspace, full=True)
    assert any("size is not as recorded" in problem for problem in full.problems)
    assert full.sealed is None


@sqlite
def test_an_edit_of_what_came_since_is_named_without_a_sample(scored):
    workspace = drawing(scored.workspace, 0)
    verify_and_seal(workspace)
    scored.arrive(scored.later[0])
    run_scoring(workspace)
    scored.reveal(scored.first.nodes)
    run_audit(workspace)
    assert run_verification(workspace, since=True).problems == ()
    for edit, words in {
        "UPDATE prediction SET covered = NOT covered WHERE seq = 1 AND covered IS NOT NULL":
            "covered is not as recorded",
        "UPDATE worklist_entry SET known = NOT known WHERE seq = 1": "the row is not as the set",
        "UPDATE prediction SET in_graph = NOT in_graph WHERE seq = 2": "in_graph is not",
    }.items():  # fmt: skip
        sql(workspace, edit)
        problems = run_verification(workspace, since=True).problems
        assert any(words in problem for problem in problems), (edit, problems)
        sql(workspace, edit)  # NOT again
        assert run_verification(workspace, since=True).problems == ()
    sql(workspace, "UPDATE prediction SET scores = p_values WHERE seq = 2")
    problems = run_verification(workspace, since=True).problems
    assert any("run 2: its predictions" in problem for problem in problems)


@sqlite
def test_a_checkpoint_of_another_key_is_left_aside(scored):
    workspace = scored.workspace
    first = verify_and_seal(workspace)
    run_new_signing_key(workspace)
    again = verify_and_seal(workspace)
    assert again.kind == "full"
    assert "signed with another key" in again.why_full
    assert again.sealed > first.sealed
    assert verify_and_seal(workspace).kind == "since"  # the control: the new one counts


@sqlite
def test_a_forged_checkpoint_is_left_aside(scored):
    """Whoever has the chain's key, but not the signing key, can write one that nobody relies on."""
    workspace = scored.workspace
    verify_and_seal(workspace)
    sealed = newest_checkpoint(entries(workspace))
    forged = replace(sealed.checkpoint, predictions=7)

    class Forger:
        public = sealed.public_key

        def sign(self, _message):
            return bytes.fromhex(sealed.signature)

    with write_session(workspace, lambda *_: None) as session:
        record_checkpoint(session.writer, forged, Forger())
    done = run_verification(workspace, since=True)
    assert done.kind == "full"
    assert "does not fit" in done.why_full


@sqlite
def test_each_thing_that_a_checkpoint_names_is_compared(scored):
    workspace = scored.workspace
    verify_and_seal(workspace)
    every, sealed = entries(workspace), newest_checkpoint(entries(workspace))
    software = sealed.checkpoint.software

    def reason(**changes):
        other = replace(sealed, checkpoint=replace(sealed.checkpoint, **changes))
        return why_not_trusted(other, every, workspace.project, software)

    assert reason() is None
    assert "another chain" in reason(hash="0" * 64)
    assert "another chain" in reason(entry=sealed.n)
    assert "another chain" in reason(entry=0)
    assert "another hash" in reason(chain_sha256="0" * 64)
    assert "signature" in reason(full_ns=0)
    assert "ringfence" in why_not_trusted(sealed, every, workspace.project, "9.9")
    assert "signature" in why_not_trusted(sealed, every, "another", software)


@sqlite
def test_an_edited_or_deleted_checkpoint_breaks_the_chain_and_everything_is_compared(scored):
    workspace = scored.workspace
    sealed = verify_and_seal(workspace).sealed
    with workspace.store.reading() as connection:
        query = f"SELECT body FROM audit WHERE n = {sealed}"
        body = connection.execute(text(query)).scalar_one()
    sql(workspace, f"UPDATE audit SET body = replace(body, 'full', 'part') WHERE n = {sealed}")
    done = verify_and_seal(workspace)
    assert (done.kind, done.sealed) == ("full", None)
    assert any(f"broken at entry {sealed}" in problem for problem in done.problems)
    sql(workspace, f"UPDATE audit SET body = replace(body, 'part', 'full') WHERE n = {sealed}")
    assert json.loads(body)["kind"] == KIND
    assert run_verification(workspace).problems == ()
    sql(workspace, f"DELETE FROM audit WHERE n = {sealed}")
    done = verify_and_seal(workspace)
    assert done.kind == "full"
    assert any("ends before entry" in problem for problem in done.problems)


@sqlite
def test_an_older_store_with_its_checkpoint_is_refused(scored):
    """The graph remembers entries that came after the backup."""
    workspace = scored.workspace
    verify_and_seal(workspace)
    scored.arrive(scored.later[0])
    backup = [*entries(workspace)][-1].n
    run_scoring(workspace)
    sql(workspace, f"DELETE FROM audit WHERE n > {backup}")
    done = verify_and_seal(workspace)
    assert done.sealed is None
    assert any("ends before entry" in problem for problem in done.problems)


@sqlite
def test_without_a_signing_key_no_checkpoint_is_sealed_and_it_is_said(scored):
    workspace = scored.workspace
    workspace.signing_keys.file.unlink()
    done = verify_and_seal(workspace)
    assert (done.problems, done.sealed) == ((), None)
    assert any("no checkpoint was sealed" in note for note in done.notes)
    assert verify_and_seal(workspace).kind == "full"


class Interrupted(BaseException):
    pass


@sqlite
def test_an_interrupted_full_verification_goes_on_where_it_was(scored):
    workspace = scored.workspace
    scored.arrive(scored.later[0])
    run_scoring(workspace)
    total = sum(nodes_of(workspace).values())

    def stop(what, done, _total):
        if what.endswith("in the graph") and 0 < done < total:
            raise Interrupted

    with pytest.raises(Interrupted):
        verify_and_seal(workspace, stop, full=True)
    path = workspace.folder / progress_file.FILE
    assert path.exists()
    scored.reveal(scored.first.nodes[:3])
    run_audit(workspace)  # classes of nodes of the first run: it is compared again
    reported = []
    done = verify_and_seal(workspace, lambda *step: reported.append(step), full=True)
    assert (done.kind, done.problems, done.resumed) == ("full", (), 1)
    rows = [step for step in reported if step[0].endswith("in SQL")]
    assert rows[0][1] == nodes_of(workspace)[2]
    assert rows[-1][1] == rows[-1][2] == total
    assert not path.exists()
    assert done.sealed is not None


@sqlite
def test_the_file_of_an_interrupted_verification_counts_only_as_it_was_written(scored):
    workspace = scored.workspace

    def stop(what, _done, _total):
        if what.endswith("in the graph"):
            raise Interrupted

    def interrupted():
        with pytest.raises(Interrupted):
            verify_and_seal(workspace, stop, full=True)

    path = workspace.folder / progress_file.FILE
    interrupted()
    written = path.read_text()
    assert verify_and_seal(workspace, full=True).resumed == 1  # the control
    for other in (written.replace('\\"rows\\":[1]', '\\"rows\\":[1,2]'), "{}", "no JSON", "[]"):
        assert other != written
        path.write_text(other)
        assert verify_and_seal(workspace, full=True).resumed == 0
    sql(workspace, "UPDATE prediction SET size = size + 1 WHERE seq = 1")
    interrupted()
    done = verify_and_seal(workspace, full=True)  # what did not fit is no progress
    assert any("size is not as recorded" in problem for problem in done.problems)


def nodes_of(workspace):
    bodies = (entry.facts for entry in entries(workspace) if entry.kind == "decided")
    return {body["run"]["seq"]: body["run"]["n_evaluated"] for body in bodies}


@sqlite
def test_the_nightly_job_compares_everything_when_that_is_due_or_an_alarm_fires(scored):
    workspace = drawing(scored.workspace, 0)

    def verify(workspace=workspace):
        return job_functions.verify(workspace, lambda *_: None)

    assert verify().words.startswith("full: ")
    assert verify().words.startswith("since entry ")
    audit = workspace.settings.audit.model_copy(update={"verify_full_days": 0.0})
    settings = workspace.settings.model_copy(update={"audit": audit})
    assert verify(replace(workspace, settings=settings)).words.startswith("full: ")
    sql(workspace, "UPDATE prediction SET size = size + 1 WHERE seq = 1")
    assert verify().outcome == "done"  # the control: the older run is not read
    assert verify(replace(workspace, settings=settings)).outcome == "failed"
    assert verify().outcome == "failed"  # the alarm fires: nothing rests on the checkpoint
    sql(workspace, "UPDATE prediction SET size = size - 1 WHERE seq = 1")
    assert verify().words.startswith("full: ")
    assert verify().words.startswith("since entry ")


@sqlite
def test_beside_a_writer_no_checkpoint_is_sealed(scored):
    with scored.workspace.lease():
        done = seal.verify_and_seal(scored.workspace)
    assert (done.problems, done.sealed) == ((), None)
    assert any("no checkpoint was sealed" in note for note in done.notes)


@sqlite
def test_pages_and_the_trail_say_which_kind_of_verification_passed_last(scored):
    workspace = scored.workspace
    queries = ProjectQueries(workspace.store, workspace.project)
    assert "last verification" not in chain_words(queries, workspace.settings)[1]
    sealed = verify_and_seal(workspace).sealed
    sound, sentence = chain_words(queries, workspace.settings)
    assert sound is True
    assert f"verified in full up to entry {sealed - 1}." in sentence
    assert "verified in full up to entry" in describe_entry(entries(workspace)[-1])
