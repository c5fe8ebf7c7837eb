"""The wheel, built from the tracked files, installed in an environment of its own and imported.

The environment sees this one's dependencies by a path file. Path files inside that folder are not
read, so the editable install of ringfence that the tests run on stays out of it.
"""

import sys
import sysconfig
from pathlib import Path

import pytest

from tests.packaging.distribution import (
    build,
    copy_of_the_tracked_files,
    product_files,
    run,
    wheel_contents,
)

SCRIPTS = {
    "connector/neo4j/embedded/jvm.py",  # the main of the server's process: it starts a JVM
    "migrations/sql/env.py",  # Alembic runs it inside a migration
}
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


def module_names(names):
    """What `import` calls the modules of these files."""
    paths = [Path("ringfence", name) for name in sorted(names) if name.endswith(".py")]
    paths = [path.parent if path.stem == "__init__" else path.with_suffix("") for path in paths]
    return [".".join(path.parts) for path in paths]


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


@pytest.mark.slow
def test_the_wheel_holds_the_tracked_files_of_the_package_and_no_others(wheel):
    held = [name for name in wheel_contents(wheel) if ".dist-info/" not in name]
    assert set(held) == {f"ringfence/{name}" for name in product_files()}
    for kind in (".html", ".css", ".js", ".cypher", ".mako", ".typed", "jars.lock"):
        assert [name for name in held if name.endswith(kind)], kind


@pytest.mark.slow
def test_every_module_of_the_installed_package_can_be_imported(programs, tmp_path):
    names = module_names(product_files() - SCRIPTS)
    done = run(programs / "python", "-c", IMPORT, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) == len(names) > 200


@pytest.mark.slow
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
