"""Packs of records with everything in them, of both SQL engines and of older versions."""

import gzip
import json
import zipfile

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from ringfence.connector.errors import ConfigError
from ringfence.connector.records import KnownClass
from ringfence.connector.store import chain, labels
from ringfence.connector.store.worklist import list_counts
from ringfence.jobs.auditing.alarms.rules import RECORD, Finding
from ringfence.jobs.auditing.alarms.state import raise_alarm
from ringfence.jobs.report import pack_rows as report_rows
from ringfence.jobs.report.pack import PackRequest, run_pack
from ringfence.jobs.report.verify_pack import Pack, check_pack
from tests.jobs.integrity.sample_record import (
    ENGINES,
    GONE,
    PLAN,
    RETURNED,
    drop_triggers,
    project,
    writing,
)
from tests.jobs.integrity.test_later_tables import later_record
from tests.jobs.report.packs import make_record, read_lines, read_pack, write_edited


def at_store(store, settings):
    """Settings that open the store by themselves, as `run_pack` does."""
    address = store.engine.url
    password = None if address.password is None else SecretStr(str(address.password))
    url = address._replace(password=None).render_as_string()
    audit = settings.audit.model_copy(update={"url": url, "password": password})
    return settings.model_copy(update={"audit": audit})


def pack_and_check(opened, path, **request):
    done = run_pack(at_store(*opened), path, PackRequest(**request))
    return done, check_pack(Pack(str(path)))[0]


@pytest.fixture(params=ENGINES)
def sealed(request, tmp_path):
    with project(request, tmp_path, request.param) as opened:
        yield opened


@pytest.mark.parametrize("salted", [False, True])
def test_a_record_with_nodes_that_left_and_marks_fits(sealed, salted, tmp_path):
    done, report = pack_and_check(sealed, tmp_path / "a.zip", salted_keys=salted)
    assert (done.sound, report.problems) == (True, [])
    assert (done.runs, done.predictions) == (3, 120)
    files = read_pack(tmp_path / "a.zip")
    bodies = [row["body"] for row in read_lines(files, "chain.jsonl")]
    assert bodies.count(None) == (3 if salted else 0)  # one node left, two marks
    for key in (GONE, RETURNED):
        assert any(key in (body or "") for body in bodies) != salted


def test_outcomes_are_in_the_pack_and_compared_with_the_chain(sealed, tmp_path):
    _, report = pack_and_check(sealed, tmp_path / "a.zip")
    assert any("2 marks of people" in words and "1 confirmed" in words for words in report.seen)
    files = read_pack(tmp_path / "a.zip")
    rows = read_lines(files, "marks.jsonl.gz")
    assert [(row["outcome"], row["about"], row["assignee"]) for row in rows] == [
        (None, None, "ben"), ("confirmed", "mule", None),
    ]  # fmt: skip
    for edited, words in (
        ([rows[0], rows[1] | {"outcome": "false alarm"}], "Mark 2: outcome is not what the chain"),
        (rows[:1], "Mark 2 is not in the pack"),
        ([*rows, rows[1] | {"n": 3}], "Mark 3 is not in the chain"),
    ):
        lines = "".join(json.dumps(row) + "\n" for row in edited).encode()
        changed = files | {"marks.jsonl.gz": gzip.compress(lines)}
        again = check_pack(Pack(str(write_edited(changed, tmp_path / "b.zip"))))[0]
        assert any(words in problem for problem in again.problems), again.problems


def test_salted_keys_withhold_who_said_what(sealed, tmp_path):
    _, report = pack_and_check(sealed, tmp_path / "a.zip", salted_keys=True)
    assert any("2 marks of people (1 confirmed)" in words for words in report.unchecked)
    files = read_pack(tmp_path / "a.zip")
    rows = read_lines(files, "marks.jsonl.gz")
    assert [row["outcome"] for row in rows] == [None, "confirmed"]
    assert not {"who", "note", "assignee"} & set(rows[0])
    assert RETURNED.encode() not in gzip.decompress(files["marks.jsonl.gz"])


def test_what_a_verification_found_is_withheld_where_keys_are_salted(sealed, tmp_path):
    with writing(*sealed) as writer:
        raise_alarm(writer, RECORD, Finding(True, f"1 problem: prediction {RETURNED} (run 1)"))
    for salted in (False, True):
        _, report = pack_and_check(sealed, tmp_path / "a.zip", salted_keys=salted)
        assert report.problems == []
        files = read_pack(tmp_path / "a.zip")
        named = [name for name in files if RETURNED.encode() in files[name]]
        assert bool(named) != salted, named


def test_an_edit_of_sql_is_named_without_any_key(sealed, tmp_path):
    store, _ = sealed
    with store.transaction() as connection:
        connection.execute(text("UPDATE prediction SET degree = degree + 1 WHERE seq = 2"))
        connection.execute(text("UPDATE label SET label = 'mule' WHERE label = 'retail'"))
    done, report = pack_and_check(sealed, tmp_path / "a.zip")
    assert done.sound is False
    assert any("Run 2: its predictions are not those" in words for words in report.problems)
    assert any("Classes noticed at" in words for words in report.problems)


def test_an_entry_edited_in_sql_is_named_by_the_keyless_chain(sealed, tmp_path):
    store, _ = sealed
    with store.transaction() as connection:
        drop_triggers(connection)
        connection.execute(
            text("UPDATE audit SET body = replace(body, 'anna', 'otto') WHERE body LIKE '%anna%'")
        )
    _, report = pack_and_check(sealed, tmp_path / "a.zip")
    assert any("of all entries before it is not so" in words for words in report.problems)


def before_packs(connection, project_, key, kind, facts, *, append=chain.append):
    """An entry as versions wrote it that knew neither salted digests nor a keyless chain."""
    facts = {name: value for name, value in facts.items() if name != "salted"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "keyless_head", lambda *_: None)
        return append(connection, project_, key, kind, facts)


def test_a_record_of_an_older_version_fits_as_far_as_it_can_be_checked(request, tmp_path):
    with project(request, tmp_path, "sqlite", before_packs) as opened:
        store, settings = opened
        with store.transaction() as connection:  # such a version had no table for it
            connection.execute(text("DELETE FROM key_salt"))
        done, report = pack_and_check(opened, tmp_path / "a.zip")
        assert (done.sound, report.problems) == (True, [])
        with pytest.raises(ConfigError, match="no run on record was decided by a version"):
            pack_and_check(opened, tmp_path / "b.zip", salted_keys=True)
        with writing(store, settings) as writer:
            notice_class_again(writer)
        done, report = pack_and_check(opened, tmp_path / "b.zip", salted_keys=True)
        assert (done.sound, report.problems) == (True, [])
        assert any("Predictions of 3 runs (1, 2, 3)" in words for words in report.unchecked)


def notice_class_again(writer):
    """This version notices a class of a node that the older one evaluated."""
    (evaluated,) = labels.predictions_of(writer.store, "p", ["s:account 1-3"])
    checked = labels.check_label(evaluated, KnownClass("retail"), PLAN.classes)
    labels.record_labels(writer, [checked])


class CountsOnce(list):
    """Counts of lists that may be walked through once."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        return super().__iter__()


def test_counts_of_lists_are_walked_through_once_however_many_runs_there_are(tmp_path, monkeypatch):
    walked = []

    def count(*arguments, **options):
        walked.append(CountsOnce(list_counts.list_counts(*arguments, **options)))
        return walked[-1]

    monkeypatch.setattr(report_rows, "list_counts", count)
    run_pack(make_record(tmp_path), tmp_path / "a.zip")
    rows = json.loads(read_pack(tmp_path / "a.zip")["lists.json"])["rows"]
    assert len({row["run"] for row in rows}) > 1
    assert [counts.walks for counts in walked] == [1]


def test_parquet_has_the_same_predictions(request, tmp_path):
    """Every column, the lists of nodes included; a node on none has no lists in the lines."""
    import pyarrow.parquet as parquet

    with later_record(request, tmp_path, "sqlite") as opened:
        pack_and_check(opened, tmp_path / "a.zip")
    files = read_pack(tmp_path / "a.zip")
    (tmp_path / "p.parquet").write_bytes(files["predictions.parquet"])
    rows = parquet.read_table(tmp_path / "p.parquet").to_pylist()
    for row in rows:
        lists = row.pop("lists")
        row |= {} if lists is None else {"lists": dict(lists)}
    lines = read_lines(files, "predictions.jsonl.gz")
    assert rows == lines
    assert [len(line["lists"]) for line in lines if "lists" in line] == [1, 2]
    assert len({tuple(sorted(line)) for line in lines}) == 2  # with lists, and without


def test_a_failure_leaves_neither_an_archive_nor_a_part_of_it(sealed, tmp_path):
    (tmp_path / "out").mkdir()

    def fail(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_pack(at_store(*sealed), tmp_path / "out" / "a.zip", progress=lambda what, *_: (
            fail() if what == "predictions packed" else None))  # fmt: skip
    assert list((tmp_path / "out").iterdir()) == []


def test_the_archive_is_a_zip_that_every_tool_reads(sealed, tmp_path):
    pack_and_check(sealed, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("manifest.json"))["keys"] == "plain"
