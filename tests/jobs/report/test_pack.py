"""The audit pack: every question answered, no secret, the same bytes for the same record."""

import hashlib
import io
import json
import re
import zipfile
from html.parser import HTMLParser

import pytest
from sqlalchemy import text

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.report.pack import run_pack
from ringfence.jobs.report.pack_index import QUESTIONS
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.dashboard.conftest import HOSTILE, settings_at

TOKEN = "a token that nobody may read"
HOOK = "https://hooks.example.org/services/T0/veryhidden"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """A project whose class names are attacks, with secrets wherever one can stand."""
    found = settings_at(
        tmp_path_factory.mktemp("pack"),
        serve={"token": TOKEN},
        alarms={"webhook": HOOK, "webhook_secret": "also hidden"},
        audit={"groups": ["region"], "retention_days": 3650},
    )
    store = open_store(found.audit.url)
    fill_store(store, found, Plan(runs=3, per_run=30, classes=HOSTILE, regions=HOSTILE))
    store.close()
    return found


@pytest.fixture(scope="module")
def packed(settings, tmp_path_factory):
    path = tmp_path_factory.mktemp("out") / "audit.zip"
    done = run_pack(settings, path)
    with zipfile.ZipFile(path) as archive:
        return done, path.read_bytes(), {n: archive.read(n) for n in archive.namelist()}


def test_every_question_is_answered_by_files_that_are_there(packed):
    done, _, files = packed
    page = files["index.html"].decode()
    assert done.files == len(files)
    for question in QUESTIONS:
        assert question.ask in page
        for name in question.files:
            assert any(own == name or own.startswith(name) for own in files), name
    for link in re.findall(r'href="([^"]+)"', page):
        assert link in files, link
    assert "It must be kept for 3,650 days" in page
    HTMLParser().feed(page)
    assert "<script" not in page


def test_the_pack_holds_runs_cards_promotions_coverage_alarms_and_the_chain(packed):
    _, _, files = packed
    assert len(files["tables/runs.csv"].decode().splitlines()) == 4
    cards = [name for name in files if name.startswith("model-cards/")]
    assert {name.rpartition(".")[2] for name in cards} == {"html", "md", "json"}
    promotions = json.loads(files["promotions.json"])
    assert [one["how"] for one in promotions][:1] == ["first"] or promotions
    chain = [json.loads(line) for line in files["chain.jsonl"].decode().splitlines()]
    manifest = json.loads(files["manifest.json"])
    assert manifest["chain"]["entries"] == len(chain)
    assert manifest["chain"]["hash"] == chain[-1]["hash"]
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    later = {"manifest.json", "SHA256SUMS"}
    assert manifest["files"] == {name: digests[name] for name in set(files) - later}
    sums = dict(line.split("  ")[::-1] for line in files["SHA256SUMS"].decode().splitlines())
    assert sums == {name: digests[name] for name in set(files) - {"SHA256SUMS"}}
    verification = json.loads(files["verification.json"])
    assert verification["sound"] is True
    assert verification["problems"] == []


def test_no_secret_is_in_any_file(packed):
    _, _, files = packed
    for name, content in files.items():
        for secret in (TOKEN, "veryhidden", "also hidden"):
            assert secret.encode() not in content, name
    configuration = json.loads(files["configuration.json"])
    assert configuration["alarms"]["webhook"] == "https://hooks.example.org/…"
    assert "token" not in configuration["serve"]


def test_equal_records_give_equal_bytes_and_another_record_does_not(settings, packed, tmp_path):
    _, blob, _ = packed
    again = run_pack(settings, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == blob
    assert again.sha256 == hashlib.sha256(blob).hexdigest()
    other = settings.model_copy(
        update={"audit": settings.audit.model_copy(update={"retention_days": 10.0})}
    )
    assert run_pack(other, tmp_path / "other.zip").sha256 != again.sha256


def test_an_edited_record_is_packed_and_said_to_be_edited(settings, tmp_path):
    store = open_store(settings.audit.url)
    try:
        with store.transaction() as connection:
            (was,) = connection.execute(text("SELECT n_evaluated FROM run WHERE seq = 2")).one()
            connection.execute(text("UPDATE run SET n_evaluated = n_evaluated + 1 WHERE seq = 2"))
        done = run_pack(settings, tmp_path / "edited.zip")
        assert done.sound is False
        assert "run 2" in done.verification
        with zipfile.ZipFile(io.BytesIO((tmp_path / "edited.zip").read_bytes())) as archive:
            assert json.loads(archive.read("verification.json"))["problems"]
    finally:
        with store.transaction() as connection:
            connection.execute(text("UPDATE run SET n_evaluated = :n WHERE seq = 2"), {"n": was})
        store.close()


def test_a_pack_needs_a_file_name(settings, tmp_path):
    for place in (tmp_path, tmp_path / "nowhere" / "audit.zip"):
        with pytest.raises(ConfigError, match="folder"):
            run_pack(settings, place)
