"""Keyless chain, salt and signing keys: what does not follow is named, and refused before use."""

from types import SimpleNamespace

import pytest
from sqlalchemy import text

from ringfence.connector.errors import StoreError
from ringfence.connector.records import ChainEntry, KnownClass
from ringfence.connector.store import chain, labels
from ringfence.connector.store.audit_chain import keyless
from ringfence.connector.store.audit_chain.key_salt import RowSetDigest, current_salt
from ringfence.connector.store.audit_chain.signature import RecordedKey, SigningKey, key_facts
from ringfence.connector.store.engine import dumps
from ringfence.jobs.integrity.keyless_check import find_keyless_edits, find_signing_edits
from tests.jobs.integrity.sample_record import ENGINES, PLAN, project, writing
from tests.jobs.integrity.test_tampering import problems_of

OLD, NEW, OTHER = (SigningKey(bytes([n]) * 32) for n in (1, 2, 3))
EDIT = "UPDATE key_salt SET salt = 'another salt'"


def entries(*bodies):
    made, prev = [], ""
    for n, facts in enumerate(bodies, 1):
        body = {"n": n, "kind": "test", **facts}
        made.append(ChainEntry("p", n, dumps(body), prev, f"hmac {n}", body))
        prev = made[-1].hash
    return SimpleNamespace(entries=tuple(made), first_broken=None)


def recorded(key, n=1):
    return RecordedKey(n, None, key.public, None, None)


def test_a_key_that_the_one_before_signed_follows_and_others_do_not():
    first, second = key_facts(OLD, None, None), key_facts(NEW, recorded(OLD), OLD)
    assert list(find_signing_edits(entries(first, {}, second))) == []
    lost = key_facts(NEW, recorded(OLD), None)  # the old private key was not here any more
    assert list(find_signing_edits(entries(first, lost))) == []
    assert "follows another one" in next(find_signing_edits(entries(second)))
    forged = {"signing_key": {**second["signing_key"], "public_key": OTHER.public}}
    assert "did not sign" in next(find_signing_edits(entries(first, forged)))


def test_a_keyless_hash_that_is_not_of_the_entries_before_is_named():
    plain = entries({}, {}).entries
    head = keyless.hash_entries(plain)
    assert list(find_keyless_edits(entries({}, {}, {keyless.FIELD: head}))) == []
    wrong = entries({}, {"more": 1}, {keyless.FIELD: head})
    assert list(find_keyless_edits(wrong)) == [
        "entry 3 of the chain: chain_sha256 is not the hash of the entries before it"
    ]


def test_entries_of_an_older_version_are_covered_by_the_first_one_of_this():
    older, newer = entries({}, {}).entries, entries({}, {}, {}).entries
    assert keyless.hash_entries(newer) == keyless.next_hash(keyless.hash_entries(older), newer[2])
    assert list(keyless.find_wrong_hashes(newer)) == []


def test_the_digest_of_a_set_is_that_of_its_sorted_hashes():
    import hashlib

    digest, rows = RowSetDigest(), [f"[{n}]" for n in range(300)]
    for row in rows:
        digest.add(row)
    hashes = sorted(hashlib.sha256(row.encode()).digest() for row in rows)
    assert digest.hexdigest() == hashlib.sha256(b"".join(hashes)).hexdigest()


@pytest.fixture(params=ENGINES)
def sealed(request, tmp_path):
    with project(request, tmp_path, request.param) as opened:
        yield opened


def notice(writer):
    (evaluated,) = labels.predictions_of(writer.store, "p", ["s:account 1-3"])
    checked = labels.check_label(evaluated, KnownClass("retail"), PLAN.classes)
    labels.record_labels(writer, [checked])


def test_a_salt_that_was_changed_or_removed_is_refused_before_it_is_used(sealed):
    store, settings = sealed
    for edit, words in ((EDIT, "was changed in"), ("DELETE FROM key_salt", "is gone from")):
        with store.transaction() as connection:
            connection.execute(text(edit))
        with writing(store, settings) as writer, pytest.raises(StoreError, match=words):
            notice(writer)


def test_a_salt_that_was_changed_for_one_run_and_put_back_is_named(sealed, monkeypatch):
    """Were it not refused: the entry of that run names another salt for ever."""
    store, settings = sealed
    with writing(store, settings) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(labels, "current_salt", lambda *_: b"another salt")
            notice(writer)
        assert any("was made with another salt" in words for words in problems_of(store, settings))


def test_the_next_entry_holds_the_hash_of_all_before_it(sealed):
    store, settings = sealed
    with writing(store, settings) as writer, store.transaction() as connection:
        before = chain.read_entries(connection, "p")
        chain.append(connection, "p", writer.key, "test", {})
        newest = chain.read_entries(connection, "p")[-1]
        assert newest.facts[keyless.FIELD] == keyless.hash_entries(before)
        assert current_salt(connection, "p")
