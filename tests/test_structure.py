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


def test_names_of_fields_and_of_named_arguments_are_no_variables(structure, tmp_path):
    path = tmp_path / "models/x.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "class Row:\n    found: int\ndef f(*, found, rows: Mapping[str, Any]):\n    ...\n"
    )
    counted = structure.measure(tmp_path)
    assert counted.vague_names["found"] == 0
    assert counted.loose_dictionaries == 1
    path.write_text("def f(found):\n    found: int = 1\n")  # the control
    assert structure.measure(tmp_path).vague_names["found"] == 2


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("if mirror.typed is not None:", True),
        ("if mapping.features_are_strict:", True),
        ("strict = settings.mapping().features_are_strict", True),
        ("return rows if mirror.has_raw_columns else ()", True),
        ("network = typed_network(model)", True),
        ("facts = model.manifest.get(TYPED_KEY)", True),
        ("if TYPED_KEY in manifest:", True),
        ("if isinstance(plan, TypedPlan):", True),
        ("if type(network) is TypedNetwork:", True),
        ("return self.features_are_strict and self.columns", False),  # the answer
        ("features_are_strict: bool = False", False),
        ("network = network_of(model)", False),
        ("key = node.typed_key", False),
        ('TYPED_KEY: {"schema": schema}', False),
    ],
)
def test_every_way_of_asking_for_the_form_of_a_project_is_seen(structure, line, asks):
    assert bool(structure.ASKS_WHETHER_TYPED.search(line)) == asks


MAX_LOOSE_DICTIONARIES = 341
"""As many as at b008978: what crosses a module's border is a dataclass."""

MAX_FILES_THAT_ASK = 7
MAX_VAGUE_NAMES = 3


def test_this_tree_is_counted(structure):
    counted = structure.measure(ROOT)
    assert sum(counted.vague_names.values()) <= MAX_VAGUE_NAMES
    assert counted.loose_dictionaries <= MAX_LOOSE_DICTIONARIES
    assert len(counted.files_asking_beside_imports) <= MAX_FILES_THAT_ASK
    assert counted.folders_importing_each_other == []
    assert counted.modules == sum(counted.modules_by_room.values()) > 500
    assert counted.lines == sum(counted.lines_by_room.values())
