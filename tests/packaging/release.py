"""What a release is: wheel, sdist and a bill of materials, the same bytes for everybody.

    python -m tests.packaging.release dist      # what `make release` types

All is made from the commit that is checked out and from nothing else: its files, its time
(SOURCE_DATE_EPOCH) and its lock files. Wheel and sdist are built twice, in different folders, and
compared; where a byte differs, nothing is written. `SHA256SUMS` has what others can compare with a
build of their own, by the same versions of Python and setuptools.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from tests.packaging.distribution import ROOT, build

LOCKS = ("requirements-scorer.lock", "requirements.lock")
"""A scorer's packages, and those of all that trains, shows and demonstrates."""

FILE_MODE, PROGRAM_MODE, FOLDER_MODE = 0o644, 0o755, 0o755
PIN = re.compile(
    r"^([\w.-]+)==([^ \\\n]+)(?: ; ([^\\\n]+?))? \\\n((?: +--hash=\S+(?: \\)?\n?)+)", re.MULTILINE
)


class NotReproducible(Exception):
    """Two builds of one commit that are not the same, or a tree that is not its commit."""


def read_commit():
    """Hash and time of the commit; raise where the tracked files are not as it has them."""
    if changed := _git("status", "--porcelain", "--untracked-files=no"):
        raise NotReproducible(f"the tree is not as committed: {changed.splitlines()[0].strip()} …")
    commit, seconds = _git("log", "-1", "--format=%H %ct").split()
    return commit, int(seconds)


def _git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def check_out(commit, folder):
    """The files of a commit, whatever is edited meanwhile."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        regular = [one for one in files if one.isfile()]
        files.extractall(folder, members=regular, filter="data")
    return folder


def build_release(source, into, seconds):
    """Build wheel and sdist of a source folder as of a time; return both files."""
    into.mkdir(parents=True)
    set_modes(source)
    variables = {"SOURCE_DATE_EPOCH": str(seconds)}
    wheel = build(source, into / "wheel", "wheel", variables)
    sdist = build(source, into / "sdist", "sdist", variables)
    normalize_sdist(sdist, seconds)
    return wheel, sdist


def set_modes(source):
    """Give files the modes that git knows, whatever the umask of whoever builds."""
    for path in source.rglob("*"):
        if path.is_dir():
            path.chmod(FOLDER_MODE)
        else:
            path.chmod(PROGRAM_MODE if os.access(path, os.X_OK) else FILE_MODE)


def normalize_sdist(sdist, seconds):
    """Write an archive anew: members in order, of one time and nobody's; no time in its header."""
    with tarfile.open(sdist) as archive:
        members = sorted(archive.getmembers(), key=lambda member: member.name)
        content = {one.name: archive.extractfile(one).read() for one in members if one.isfile()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.mtime = member.type, seconds
            plain.mode = PROGRAM_MODE if member.isdir() or member.mode & 0o100 else FILE_MODE
            plain.size = len(content.get(member.name, b""))
            archive.addfile(plain, io.BytesIO(content.get(member.name, b"")))
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=seconds) as zipped:
        zipped.write(packed.getvalue())


def find_differences(first, second):
    """Name the files that differ between two archives, or say that only the archives' bytes do."""
    if first.read_bytes() == second.read_bytes():
        return []
    before, after = contents(first), contents(second)
    names = [name for name in before | after if before.get(name) != after.get(name)]
    return sorted(names) or [f"{first.name}: order, times or modes of its files"]


def contents(archive):
    """Name and bytes of the files in a wheel or an sdist."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        return {one.name: sdist.extractfile(one).read() for one in sdist if one.isfile()}


def bill_of_materials(source, wheel, sdist, commit, seconds):
    """The packages of the lock files as a CycloneDX 1.6 document; it names no host."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    purl = f"pkg:pypi/{project['name']}@{project['version']}"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, sha256(wheel))}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": purl,
                "name": project["name"],
                "version": project["version"],
                "purl": purl,
                "licenses": [{"license": {"id": project["license"]}}],
                "externalReferences": [
                    _distribution(file.name, [sha256(file)]) for file in (wheel, sdist)
                ],
                "properties": [{"name": "ringfence:commit", "value": commit}],
            },
        },
        "components": list_components(source),
    }


def list_components(source):
    """Every package of the lock files, with the hashes of its distributions there."""
    components = {}
    for lock in LOCKS:
        for name, version, marker, hashes in read_lock((source / lock).read_text("utf-8")):
            pinned = components.setdefault((name, version), component(name, version, hashes))
            told = [("ringfence:lock", lock), *([("ringfence:marker", marker)] if marker else [])]
            more = [{"name": kind, "value": value} for kind, value in told]
            pinned["properties"] += [one for one in more if one not in pinned["properties"]]
    return [components[pin] for pin in sorted(components)]


def read_lock(text):
    """Name, version, marker and hashes of every pin.

    >>> read_lock("a==1 ; x < '4' \\\\\\n    --hash=sha256:ab \\\\\\n    --hash=sha256:cd")
    [('a', '1', "x < '4'", ['ab', 'cd'])]
    """
    return [
        (name, version, marker, re.findall(r"--hash=sha256:(\w+)", hashes))
        for name, version, marker, hashes in PIN.findall(text)
    ]


def component(name, version, hashes):
    """A package as CycloneDX has it."""
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "externalReferences": [_distribution(purl, hashes)],
        "properties": [],
    }


def _distribution(url, hashes):
    return {
        "type": "distribution",
        "url": url,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in hashes],
    }


def sha256(file):
    """The digest of a file, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_release(into):
    """Build twice, compare, and write everything; return the files."""
    commit, seconds = read_commit()
    with tempfile.TemporaryDirectory(prefix="ringfence-release-") as name:
        places = [Path(name) / "first", Path(name) / "second build"]
        sources = [check_out(commit, place / "source") for place in places]
        built = [
            build_release(source, place / "built", seconds)
            for source, place in zip(sources, places, strict=True)
        ]
        for first, second in zip(*built, strict=True):
            if different := find_differences(first, second):
                raise NotReproducible(f"two builds differ in {', '.join(different[:5])}")
        document = bill_of_materials(sources[0], *built[0], commit, seconds)
        into.mkdir(parents=True, exist_ok=True)
        files = [Path(shutil.copy(file, into)) for file in built[0]]
    bill = into / f"{files[0].name.split('-py3')[0]}.cdx.json"
    bill.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    files.append(bill)
    sums = "".join(f"{sha256(file)}  {file.name}\n" for file in files)
    (into / "SHA256SUMS").write_text(sums, encoding="utf-8")
    return files


def main(argv=None):
    """Write a release into a folder and say what it is."""
    parser = argparse.ArgumentParser(description="Build wheel, sdist and bill of materials.")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist")
    options = parser.parse_args(argv)
    try:
        files = write_release(options.folder)
    except NotReproducible as refused:
        print(f"no release: {refused}", file=sys.stderr)
        return 1
    commit, seconds = read_commit()
    print(f"commit {commit[:12]} of {datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC")
    print("wheel and sdist were built twice: the same bytes")
    for file in files:
        print(f"{sha256(file)}  {file.name}  {file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
