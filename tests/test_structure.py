"""The counts of the source tree (`benchmarks.structure`), on a small tree of known numbers."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "connector/mirror.py": "def rows(mirror):\n    one = mirror.typed\n    return one\n",
    "jobs/a/first.py": "from PACKAGE.jobs.b import second\nfound: dict[str, Any] = {}\n",
    "jobs/b/second.py": "from PACKAGE.jobs.a.first import found\n" + "x = 1\n" * 70,
    "jobs/b/third.py": "import PACKAGE.jobs.b.second\nfrom PACKAGE.models.typed.x import own\n",
    "models/typed/x.py": "own = [one for one in ()]\n",
    "models/kinds/registry.py": "import PACKAGE.models.kinds.variant\n",
    "models/kinds/variant.py": "",
}


@pytest.fixture
def structure(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.structure")


def test_a_small_tree_is_counted(structure, tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("PACKAGE", "ringfence"), encoding="utf-8")
    counted = structure.measure(tmp_path)
    assert (counted.lines, counted.modules) == (80, 7)
    assert counted.files_asking_whether_typed == ["connector/mirror.py", "jobs/b/third.py"]
    assert counted.files_asking_beside_imports == ["connector/mirror.py"]
    assert counted.loose_dictionaries == 1
    assert counted.vague_names == {"one": 2, "found": 1, "own": 1}
    assert "jobs/b/third.py" in counted.fragments
    assert "jobs/b/second.py" not in counted.fragments  # more than 60 lines, two importers
    assert "models/kinds/variant.py" in counted.fragments
    # not those without an importer, nor the one that a registry names
    assert counted.fragments_of_a_story == ["jobs/a/first.py", "models/typed/x.py"]
    assert counted.folders_importing_each_other == ["a <-> b"]


def test_this_tree_is_counted(structure):
    counted = structure.measure(ROOT)
    assert counted.modules == sum(counted.modules_by_room.values()) > 500
    assert counted.lines == sum(counted.lines_by_room.values())
