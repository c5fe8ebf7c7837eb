"""The wheel, built from the tracked files, installed in an environment of its own and imported.

The environment sees this one's dependencies by a path file. Path files inside that folder are not
read, so the editable install of ringfence that the tests run on stays out of it.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("connector", "jobs", "migrations", "models")
SCRIPTS = {
    "connector/neo4j/embedded/jvm.py",  # the main of the server's process: it starts a JVM
    "migrations/sql/env.py",  # Alembic runs it inside a migration
}
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
IMPORT = """
import importlib, pathlib, sys
import ringfence
home = pathlib.Path(ringfence.__file__).parent
assert home.is_relative_to(sys.prefix), home
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    assert pathlib.Path(module.__file__).is_relative_to(home), module.__file__
print(len(sys.argv) - 1)
"""


def run(*command, cwd):
    """Run a command that sees nothing of the tests' own environment variables."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*map(str, command)], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )


def tracked():
    """Names of the files that git knows and that are there."""
    told = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in told.stdout.split("\0") if name]
    return [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def product_files():
    roots = (*ROOMS, "__init__.py", "__main__.py", "py.typed")
    return {name for name in tracked() if name.split("/")[0] in roots}


def module_names(names):
    """What `import` calls the modules of these files."""
    paths = [Path("ringfence", name) for name in sorted(names) if name.endswith(".py")]
    paths = [path.parent if path.stem == "__init__" else path.with_suffix("") for path in paths]
    return [".".join(path.parts) for path in paths]


def copy_of_the_tracked_files(folder):
    """A source without an earlier build's leftovers, which setuptools would put into the wheel."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(source, into):
    into.mkdir()
    done = run(sys.executable, "-c", BUILD, into, cwd=source)
    assert done.returncode == 0, done.stderr[-3000:]
    (wheel,) = into.glob("*.whl")
    return wheel


def install(wheel, folder):
    """A new environment with the wheel in it; return its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=wheel.parent)
    programs = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install"]
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    done = run(*pip, *options, wheel, cwd=wheel.parent)
    assert done.returncode == 0, done.stderr[-3000:]
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    return build(copy_of_the_tracked_files(folder / "source"), folder / "wheel")


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    return install(wheel, tmp_path_factory.mktemp("installed") / "environment")


def test_the_wheel_holds_the_tracked_files_of_the_package_and_no_others(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert set(held) == {f"ringfence/{name}" for name in product_files()}
    for kind in (".html", ".css", ".js", ".cypher", ".mako", ".typed", "jars.lock"):
        assert [name for name in held if name.endswith(kind)], kind


@pytest.mark.slow
def test_every_module_of_the_installed_package_can_be_imported(programs, tmp_path):
    names = module_names(product_files() - SCRIPTS)
    done = run(programs / "python", "-c", IMPORT, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) == len(names) > 200


def test_the_installed_command_shows_its_help(programs, tmp_path):
    done = run(programs / "ringfence", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "score" in done.stdout


@pytest.mark.slow
def test_a_package_that_the_list_forgets_cannot_be_imported_from_the_wheel(tmp_path):
    """The negative control."""
    source = copy_of_the_tracked_files(tmp_path / "source")
    configuration = source / "pyproject.toml"
    text = configuration.read_text(encoding="utf-8")
    line = '    "ringfence.models.scores.kernels",\n'
    assert line in text
    configuration.write_text(text.replace(line, ""), encoding="utf-8")
    programs = install(build(source, tmp_path / "wheel"), tmp_path / "environment")
    kernels = [name for name in product_files() if name.startswith("models/scores/kernels/")]
    done = run(programs / "python", "-c", IMPORT, *module_names(kernels), cwd=tmp_path)
    assert done.returncode == 1
    assert "No module named 'ringfence.models.scores.kernels'" in done.stderr
