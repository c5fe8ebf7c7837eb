"""Signed packs: a stranger checks them with the public key; a forger without it is named."""

import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ringfence.connector.errors import ConfigError, ServerError
from ringfence.connector.store.audit_chain.signature import (
    SigningKey,
    SigningKeys,
    key_facts,
    record_key,
    recorded_key,
)
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.signing_keys import read_public_key, signing_keys
from ringfence.jobs.report.pack import PackRequest, run_pack
from ringfence.jobs.report.time_stamp import fetch_time_stamp
from tests.jobs.report.packs import (
    check,
    make_record,
    read_lines,
    read_pack,
    with_lines,
    write_edited,
)


def make_key(settings):
    """Rotate the signing key as `ringfence key new` does, but for the graph."""
    store = open_store(settings.audit.url)
    held = acquire(store, settings.project, "test", 600)
    try:
        keys = signing_keys(settings)
        with store.reading() as connection:
            before = recorded_key(connection, settings.project)
        facts = key_facts(keys.write_next(), before, keys.read())
        record_key(Writer(store, held, chain_key(None, settings.engine.folder)), facts)
        with store.reading() as connection:
            keys.settle(recorded_key(connection, settings.project))
    finally:
        release(store, held)
        store.close()


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    found = make_record(tmp_path_factory.mktemp("record"))
    make_key(found)
    return found


@pytest.fixture
def packed(settings, tmp_path):
    path = tmp_path / "audit.zip"
    run_pack(settings, path)
    (tmp_path / "verify_pack.py").write_bytes(read_pack(path)["verify_pack.py"])
    return path


def verify(path, *options):
    """Run the script in this Python, which has `cryptography`, but not as part of ringfence."""
    script = Path(path).with_name("verify_pack.py")
    command = [sys.executable, "-I", str(script), str(path), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    return json.loads(done.stdout)


def unpack(path, folder):
    for name, content in read_pack(path).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


def test_a_signed_pack_fits_its_public_key_and_no_other(settings, packed):
    shown = read_public_key(settings)
    done = verify(packed, "--public-key", shown.public_key)
    assert done["problems"] == []
    assert any("over the chain's head and all files fits" in words for words in done["seen"])
    other = SigningKey(bytes(32)).public
    assert (
        "The pack was signed with another key than the one that was given."
        in (verify(packed, "--public-key", other)["problems"])
    )
    pem = packed.with_name("key.pem")
    pem.write_text(shown.pem)
    assert verify(packed, "--public-key", str(pem))["problems"] == []


def test_without_cryptography_openssl_checks_the_signature_by_the_printed_command(packed, tmp_path):
    done = check(packed, script=packed.with_name("verify_pack.py"))
    assert done.returncode == 0
    command = done.stdout.partition("openssl pkeyutl")[2].splitlines()[0].split()
    folder = unpack(packed, tmp_path / "unpacked")
    openssl = [shutil.which("openssl"), "pkeyutl", *command]
    assert subprocess.run(openssl, cwd=folder, capture_output=True).returncode == 0
    (folder / "head.json").write_bytes((folder / "head.json").read_bytes() + b" ")
    assert subprocess.run(openssl, cwd=folder, capture_output=True).returncode != 0


def _rewritten_chain(files):
    """Someone without the keys changes an entry, every keyless hash after it, and the manifest."""
    import hashlib

    rows, keyless = read_lines(files, "chain.jsonl"), ""
    for place, row in enumerate(rows):
        body = json.loads(row["body"])
        if place:
            body["chain_sha256"] = keyless
        if body["kind"] == "marked":
            body["labels_ns"] = 7
        row["body"] = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(row["body"].encode()).hexdigest()
        text = f"{keyless}\n{row['prev']}\n{digest}\n{row['hash']}"
        keyless = hashlib.sha256(text.encode()).hexdigest()
    manifest = json.loads(files["manifest.json"])
    manifest["chain"]["chain_sha256"] = keyless
    return with_lines(files, "chain.jsonl", rows) | {"manifest.json": json.dumps(manifest).encode()}


def test_a_chain_that_was_rewritten_whole_is_named_by_the_signature_alone(packed):
    files = _rewritten_chain(read_pack(packed))
    forged = write_edited(files, packed.with_name("forged.zip"))
    problems = verify(forged)["problems"]
    assert any("made over another pack: chain_sha256" in words for words in problems), problems
    unsigned = {name: files[name] for name in files if not name.startswith(("head", "public"))}
    bare = write_edited(unsigned, packed.with_name("bare.zip"))
    assert verify(bare)["problems"] == []  # the control: nothing else can tell
    assert verify(bare, "--public-key", "00" * 32)["problems"]


def test_a_forger_who_signs_with_a_key_of_their_own_is_named_by_the_given_key(settings, packed):
    import hashlib

    from ringfence.connector.store.audit_chain.signature import as_pem

    files, thief = read_pack(packed), SigningKey(b"\x07" * 32)
    files["report.html"] = b"all is well"
    forged = write_edited(files, packed.with_name("forged.zip"))
    files = read_pack(forged)
    head = json.loads(files["head.json"]) | {
        "sums_sha256": hashlib.sha256(files["SHA256SUMS"]).hexdigest(),
        "public_key": thief.public,
    }
    text = json.dumps(head).encode()
    files |= {"head.json": text, "head.json.sig": thief.sign(text)}
    files["public_key.pem"] = as_pem(thief.public).encode()
    forged = write_edited(files, forged)
    assert verify(forged)["problems"] == []  # the control: their own key fits their own pack
    assert verify(forged, "--public-key", read_public_key(settings).public_key)["problems"]


@pytest.mark.parametrize("file", ["head.json", "head.json.sig", "public_key.pem"])
def test_an_edited_part_of_the_signature_is_named(packed, file):
    files = read_pack(packed)
    content = bytearray(files[file])
    place = content.index(b'"entries":') + 10 if file == "head.json" else 60
    content[place] ^= 1
    files[file] = bytes(content)
    assert verify(write_edited(files, packed.with_name("forged.zip")))["problems"]


def test_after_a_rotation_packs_of_the_old_key_still_fit_and_new_ones_name_the_new(
    settings, packed
):
    old = read_public_key(settings)
    make_key(settings)
    new = read_public_key(settings)
    assert (new.was, new.public_key != old.public_key) == (old.public_key, True)
    assert verify(packed, "--public-key", old.public_key)["problems"] == []
    run_pack(settings, packed.with_name("new.zip"))
    assert verify(packed.with_name("new.zip"), "--public-key", new.public_key)["problems"] == []
    assert verify(packed.with_name("new.zip"), "--public-key", old.public_key)["problems"]


def test_a_missing_open_or_foreign_key_is_refused_with_what_to_do(settings, tmp_path):
    keys = signing_keys(settings)
    content = keys.file.read_text()
    assert keys.file.stat().st_mode & 0o777 == 0o600
    keys.file.chmod(0o644)
    with pytest.raises(ConfigError, match="open to other users") as raised:
        run_pack(settings, tmp_path / "a.zip")
    assert "chmod 600" in raised.value.next_step
    keys.file.chmod(0o600)
    for text, words in (("ab" * 32, "another key"), ("nothing", "holds no signing key")):
        keys.file.write_text(text)
        with pytest.raises(ConfigError, match=words):
            run_pack(settings, tmp_path / "a.zip")
    keys.file.unlink()
    with pytest.raises(ConfigError, match="is missing") as raised:
        run_pack(settings, tmp_path / "a.zip")
    assert "ringfence key new" in raised.value.next_step
    assert run_pack(settings, tmp_path / "a.zip", PackRequest(unsigned=True)).signed_by is None
    assert read_public_key(settings).file is None
    keys.file.write_text(content)
    keys.file.chmod(0o600)
    assert run_pack(settings, tmp_path / "a.zip").signed_by


@pytest.mark.parametrize("recorded", [False, True])
def test_an_interrupted_rotation_is_settled_by_what_the_chain_has(settings, recorded, tmp_path):
    keys = SigningKeys(tmp_path)
    shutil.copy(signing_keys(settings).file, keys.file)
    before = keys.read().public
    waiting = keys.write_next()
    store = open_store(settings.audit.url)
    with store.reading() as connection:
        known = recorded_key(connection, settings.project)
    store.close()
    if recorded:
        from dataclasses import replace

        known = replace(known, public=waiting.public)
    keys.settle(known)
    assert not keys.next_file.exists()
    assert keys.read().public == (waiting.public if recorded else before)


@pytest.fixture
def authority(tmp_path_factory):
    """A time-stamping authority of our own: certificates by openssl, answers by openssl ts."""
    folder = tmp_path_factory.mktemp("authority")
    openssl = shutil.which("openssl")
    (folder / "ts.cnf").write_text(
        "[req]\ndistinguished_name=n\n[n]\n[ext]\nextendedKeyUsage=critical,timeStamping\n"
        "[tsa]\ndefault_tsa=t\n[t]\nserial=serial\nsigner_cert=tsa.pem\ncerts=ca.pem\n"
        "signer_key=tsa.key\nsigner_digest=sha256\ndefault_policy=1.2.3.4.1\ndigests=sha256\n"
    )

    def run(*arguments):
        done = subprocess.run([openssl, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def subject(name):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", name)

    run("req", "-x509", *subject("/CN=ca"), "-keyout", "ca.key", "-out", "ca.pem")
    run("req", *subject("/CN=tsa"), "-keyout", "tsa.key", "-out", "tsa.csr", "-config", "ts.cnf")
    run("x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
        "-extfile", "ts.cnf", "-extensions", "ext", "-out", "tsa.pem")  # fmt: skip
    (folder / "serial").write_text("01\n")

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            if self.path == "/broken":
                self.send_error(500)
                return
            (folder / "query").write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/other":  # the answer is about another message than the request
                run("ts", "-query", "-data", "ts.cnf", "-sha256", "-out", "query")
            run("ts", "-reply", "-config", "ts.cnf", "-section", "t", "-queryfile", "query",
                "-out", "reply")  # fmt: skip
            self.send_response(200)
            self.end_headers()
            self.wfile.write((folder / "reply").read_bytes())

        def log_message(self, *arguments):
            del arguments

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", folder / "ca.pem"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_time_stamp_is_checked_by_the_command_that_the_script_prints(
    settings, packed, authority, tmp_path
):
    address, certificate = authority
    path = packed.with_name("stamped.zip")
    assert run_pack(settings, path, PackRequest(authority=address)).time_stamp == address
    done = verify(path)
    assert done["problems"] == []
    sentence = next(words for words in done["unchecked"] if "openssl ts -verify" in words)
    command = sentence.partition("openssl ts -verify")[2].partition(";")[0].split()
    command[command.index("authority.pem")] = str(certificate)
    folder = unpack(path, tmp_path / "unpacked")
    openssl = [shutil.which("openssl"), "ts", "-verify", *command]
    checked = subprocess.run(openssl, cwd=folder, capture_output=True, text=True)
    assert "Verification: OK" in checked.stdout, checked.stderr
    (folder / "head.json").write_bytes(b"{}")
    assert subprocess.run(openssl, cwd=folder, capture_output=True).returncode != 0


def test_a_time_stamp_of_another_message_is_refused_and_in_a_pack_it_is_named(
    settings, packed, authority
):
    address, _ = authority
    path = packed.with_name("stamped.zip")
    with pytest.raises(ServerError, match="is about another message"):
        run_pack(settings, path, PackRequest(authority=f"{address}other"))
    assert not path.exists()
    run_pack(settings, path, PackRequest(authority=address))
    assert "The time stamp is about the SHA-256 of head.json." in verify(path)["seen"]
    files = read_pack(path)
    other = fetch_time_stamp(address, b"another head")  # granted, and true of another text
    forged = write_edited(files | {"head.json.tsr": other}, packed.with_name("forged.zip"))
    problems = verify(forged)["problems"]
    assert "The time stamp is not about head.json: it has not its SHA-256." in problems


def test_an_authority_that_does_not_stamp_is_named_and_no_pack_is_left(
    settings, authority, tmp_path
):
    address, _ = authority
    for asked, error in ((f"{address}broken", ServerError), ("ftp://nobody", ConfigError)):
        with pytest.raises(error) as raised:
            run_pack(settings, tmp_path / "a.zip", PackRequest(authority=asked))
        assert raised.value.needed
        assert not (tmp_path / "a.zip").exists()
    request = PackRequest(unsigned=True, authority=address)
    with pytest.raises(ConfigError, match="--unsigned together"):
        run_pack(settings, tmp_path / "a.zip", request)
