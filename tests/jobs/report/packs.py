"""Packs for tests: made from a made-up record, taken apart, edited and put together again."""

import gzip
import hashlib
import json
import subprocess
import sys
import zipfile

from ringfence.connector.store.engine import open_store
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.dashboard.conftest import settings_at

HEAD_FILES = {"SHA256SUMS", "head.json", "head.json.sig", "head.json.tsr", "public_key.pem"}
LISTS = [{"name": "investigate", "class": "mule", "may_be_wrong": 0.2}]
PLAN = Plan(runs=4, per_run=40, days_apart=60, calibration=60)


def make_record(folder, plan=PLAN):
    """Settings of a project with runs two months apart, classes, groups and audit samples."""
    settings = settings_at(folder, audit={"groups": ["region"], "sample_nodes": 7}, lists=LISTS)
    store = open_store(settings.audit.url)
    fill_store(store, settings, plan)
    store.close()
    return settings


def read_pack(path):
    """The files of a pack by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_edited(files, path):
    """Put a pack together whose hashes fit again, as a forger would."""
    listed = {name: content for name, content in files.items() if name not in HEAD_FILES}
    if "manifest.json" in listed:
        manifest = json.loads(listed["manifest.json"])
        manifest["files"] = {
            name: hashlib.sha256(content).hexdigest()
            for name, content in sorted(listed.items())
            if name != "manifest.json"
        }
        files = files | {"manifest.json": json.dumps(manifest).encode()}
        listed["manifest.json"] = files["manifest.json"]
    sums = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(listed.items())
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (files | {"SHA256SUMS": sums.encode()}).items():
            archive.writestr(name, content)
    return path


def read_lines(files, name):
    """The JSON objects of a file with one in each line."""
    content = gzip.decompress(files[name]) if name.endswith(".gz") else files[name]
    return [json.loads(line) for line in content.splitlines()]


def with_lines(files, name, rows):
    """The same files with other lines in one of them."""
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return files | {name: gzip.compress(content) if name.endswith(".gz") else content}


def check(path, *options, script):
    """Run the pack's own script in a Python that has its standard library alone."""
    bare = [sys.executable, "-I", "-S"]
    missing = subprocess.run([*bare, "-c", "import ringfence"], capture_output=True, cwd="/")
    assert missing.returncode, "ringfence must not be importable here"
    command = [*bare, str(script), str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd="/")
