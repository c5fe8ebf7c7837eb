"""Wheel and sdist, built from a copy of the files that git knows, and what is in them."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("connector", "jobs", "migrations", "models")
BUILD = """
import os, sys
os.umask(0o022)  # a wheel has the modes of the files that setuptools writes
from setuptools import build_meta
build_meta.build_{kind}(sys.argv[1])
"""


def run(*command, cwd, **options):
    """Run a command that sees nothing of the environment variables of whoever called."""
    environment = clean_environment() | options.pop("variables", {})
    return subprocess.run(
        [*map(str, command)],
        cwd=cwd, env=environment, capture_output=True, text=True, check=False, **options,
    )  # fmt: skip


KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "M2_REPO", "PATH", "PYENV_ROOT", "TMPDIR", "USER")
KEPT_FOR_DOWNLOADS = (
    "PIP_CERT", "PIP_EXTRA_INDEX", "PIP_FIND_LINKS", "PIP_INDEX", "PIP_TRUSTED",
    "REQUESTS_CA", "SSL_CERT", "UV_CACHE", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX", "UV_FIND_LINKS",
    "UV_INDEX", "UV_INSECURE", "UV_NATIVE_TLS", "UV_OFFLINE",
)  # fmt: skip


def clean_environment():
    """A bare environment: where programs, home and packages are, and nothing that a program obeys.

    No settings of ours or of Neo4j's, no numbers of threads, no paths of Python, no virtual
    environment, no terminal.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name in KEPT
        or name.startswith(KEPT_FOR_DOWNLOADS)
        or name.lower() in ("http_proxy", "https_proxy", "no_proxy")
    }


def tracked():
    """Names of the files that git knows and that are there."""
    told = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in told.stdout.split("\0") if name]
    return [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def product_files():
    """The tracked files that belong to the package."""
    roots = (*ROOMS, "__init__.py", "__main__.py", "py.typed")
    return {name for name in tracked() if name.split("/")[0] in roots}


def copy_of_the_tracked_files(folder):
    """A source without an earlier build's leftovers, which setuptools would put into the wheel."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(source, into, kind="wheel", variables=None):
    """Build a `wheel` or an `sdist` of a source folder; return its file."""
    into.mkdir(exist_ok=True)
    code = BUILD.format(kind=kind)
    done = run(sys.executable, "-c", code, into, cwd=source, variables=variables or {})
    assert done.returncode == 0, done.stderr[-3000:]
    (built,) = into.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def unpack(sdist, into):
    """Unpack an sdist; return the folder of its source."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    (source,) = into.iterdir()
    return source


def sdist_files(sdist):
    """Names of the files in an sdist, without the folder that holds them all."""
    with tarfile.open(sdist) as archive:
        return {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}


def wheel_contents(wheel):
    """Name and bytes of every file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
