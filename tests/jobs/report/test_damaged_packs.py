"""Damaged and hostile packs: `verify_pack.py` says what it can't read, without tracebacks."""

import gzip
import json
import zipfile

import pytest

from ringfence.jobs.report.pack import run_pack
from tests.jobs.report.packs import check, make_record, read_pack, write_edited

DEEP = b"[" * 200_000
GZIPPED, PLAIN = "predictions.jsonl.gz", "coverage.json"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    run_pack(make_record(folder), folder / "audit.zip")
    return folder / "audit.zip"


@pytest.fixture(scope="module")
def script(packed):
    path = packed.with_name("verify_pack.py")
    path.write_bytes(read_pack(packed)["verify_pack.py"])
    return path


def _damaged_gzip(content):
    return content[:40] + bytes(byte ^ 0x55 for byte in content[40:80]) + content[80:]


def _line(text):
    return gzip.compress(text + b"\n")


def _nested_body(content):
    rows = [json.loads(line) for line in content.splitlines()]
    rows[2]["body"] = DEEP.decode()
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


CONTENTS = {
    "gzip damaged (zlib.error)": (GZIPPED, _damaged_gzip, "damaged or cut off"),
    "gzip cut off (EOFError)": (GZIPPED, lambda content: content[:-100], "damaged or cut off"),
    "gzip with another checksum (BadGzipFile)": (
        GZIPPED, lambda content: content[:-8] + b"\0" * 8, "damaged or cut off"),
    "no gzip": (GZIPPED, lambda _: b"nothing", "damaged or cut off"),
    "JSON nested deeply (RecursionError)": (PLAIN, lambda _: DEEP, "nested deeper"),
    "a line nested deeply": (GZIPPED, lambda _: _line(DEEP), "nested deeper"),
    "an entry nested deeply": ("chain.jsonl", _nested_body, "RecursionError"),
    "no JSON": (PLAIN, lambda _: b"{", "coverage.json can't be read"),
    "a line that is no JSON": (GZIPPED, lambda _: _line(b"{"), "line 1 is no JSON"),
    "a line that is no object": (GZIPPED, lambda _: _line(b"7"), "line 1 is no JSON object"),
    "an entry that is no object": ("chain.jsonl", lambda _: b"[]\n", "line 1 is no JSON object"),
    "no UTF-8": (PLAIN, lambda _: b"\xff\xfe\xfd", "no text in UTF-8"),
    "another form": (PLAIN, lambda _: b"[1]", "TypeError"),
    "an endless number": (GZIPPED, lambda _: _line(b"1" * 5_000), "line 1 is no JSON"),
    "nothing": ("chain.jsonl", lambda _: b"", "Manifest: entries of the chain's end"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_damaged_file_is_named_in_a_sentence(packed, script, kind, tmp_path):
    name, damage, words = CONTENTS[kind]
    files = read_pack(packed)
    done = check(
        write_edited(files | {name: damage(files[name])}, tmp_path / "a.zip"), script=script
    )
    assert (done.returncode, done.stderr) == (1, ""), done.stderr
    assert any(words in line for line in done.stdout.splitlines() if "DOES NOT FIT" in line), (
        done.stdout
    )


def _member_at(path, name):
    """Where the header of a member, and its entry in the archive's directory, begin."""
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo(name).header_offset
    content = path.read_bytes()
    place = content.rindex(b"PK\x01\x02", 0, content.rindex(name.encode()))
    return content, start, place


def _encrypted(path):
    """Set the flag of an encrypted member (RuntimeError)."""
    content, start, place = _member_at(path, PLAIN)
    edited = bytearray(content)
    edited[start + 6] |= 1
    edited[place + 8] |= 1
    return bytes(edited)


def _compressed_otherwise(path):
    """Say that a member has a compression that nobody knows (NotImplementedError)."""
    content, start, place = _member_at(path, PLAIN)
    edited = bytearray(content)
    edited[start + 8 : start + 10] = edited[place + 10 : place + 12] = (77).to_bytes(2, "little")
    return bytes(edited)


def _damaged_member(path):
    """Change the content of a member without its checksum (BadZipFile)."""
    content, start, _ = _member_at(path, PLAIN)
    edited = bytearray(content)
    edited[start + 30 + len(PLAIN) + 20] ^= 0x55
    return bytes(edited)


ARCHIVES = {
    "encrypted": (_encrypted, 1, "coverage.json can't be read: it is encrypted"),
    "compressed otherwise": (_compressed_otherwise, 1, "compressed in a way that packs are not"),
    "a damaged member": (_damaged_member, 1, "coverage.json can't be read: its compressed data"),
    "cut off": (lambda path: path.read_bytes()[:-3_000], 2, "damaged or cut off"),
    "empty": (lambda path: b"", 2, "damaged or cut off"),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_damaged_archive_is_named_in_a_sentence(packed, script, kind, tmp_path):
    damage, code, words = ARCHIVES[kind]
    whole = write_edited(read_pack(packed), tmp_path / "whole.zip")
    assert check(whole, script=script).returncode == 0
    (tmp_path / "a.zip").write_bytes(damage(whole))
    done = check(tmp_path / "a.zip", script=script)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert words in (done.stderr if code == 2 else done.stdout)


@pytest.mark.parametrize("content", [b"{", b"[]", b"null", DEEP, b"\xff"])
def test_a_manifest_that_is_none_is_said_without_a_traceback(packed, script, content, tmp_path):
    files = read_pack(packed) | {"manifest.json": content}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    done = check(tmp_path / "a.zip", script=script)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{tmp_path / 'a.zip'} is no audit pack: manifest.json can't")


def test_without_its_chain_a_pack_is_told_what_could_not_be_compared(packed, script, tmp_path):
    files = read_pack(packed)
    del files["chain.jsonl"]
    done = json.loads(
        check(write_edited(files, tmp_path / "a.zip"), "--json", script=script).stdout
    )
    assert done["problems"] == ["chain.jsonl can't be read: it is not in the pack."]
    skipped = [words for words in done["unchecked"] if "the chain, with which" in words]
    assert any(words.startswith("Predictions") for words in skipped)


def test_what_a_forger_wrote_adds_no_lines_to_the_output(packed, script, tmp_path):
    files = read_pack(packed)
    files["x\nfits:        everything\x1b[2J"] = b""
    files["caf\u00e9 \u2028"] = b""
    done = check(write_edited(files, tmp_path / "a.zip"), script=script)
    assert "\\nfits:" in done.stdout
    assert "\x1b" not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_public_key_in_a_pack_names_no_file_to_open(packed, script, tmp_path):
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    head = dict.fromkeys(("chain_sha256", "entries", "hmac_head", "project", "sums_sha256"), "")
    signed = {"head.json": json.dumps(head | {"public_key": "ab" * 32}).encode(),
              "head.json.sig": b"", "public_key.pem": str(key).encode()}  # fmt: skip
    done = check(write_edited(read_pack(packed) | signed, tmp_path / "a.zip"), script=script)
    assert "it holds no public key" in done.stdout
    given = check(packed, "--public-key", str(tmp_path / "none"), script=script)
    assert (given.returncode, "Traceback" in given.stderr) == (2, False)
    key.write_text(str(key))
    given = check(packed, "--public-key", str(key), script=script)
    assert (given.returncode, "it holds no public key" in given.stderr) == (2, True)
