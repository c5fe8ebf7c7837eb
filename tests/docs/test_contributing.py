"""Every path, link and import that a page names is there."""

import ast
import importlib
import re
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/decisions").glob("*.md")]
)
TOP = ("benchmarks", "connector", "docs", "examples", "jobs", "migrations", "models", "tests")
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PLACEHOLDER = re.compile(r"<\w+>|NNNN|…")
FENCE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def named_paths(text):
    """Paths of the tree in a page's code words; braces opened, placeholders as `*`."""
    for word in CODE.findall(text):
        if word.split("/")[0] in TOP and "/" in word and " " not in word:
            yield from (PLACEHOLDER.sub("*", path) for path in opened(word.rstrip("/")))


def opened(word):
    """`a/{b,c}` as `a/b` and `a/c`."""
    parts = re.split(r"\{([^}]*)\}", word)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(chosen) for chosen in product(*choices)]


def is_there(path):
    return any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page):
    paths = sorted(set(named_paths(page.read_text(encoding="utf-8"))))
    assert [path for path in paths if not is_there(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_there(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    local = [link for link in links if not re.match(r"\w+:", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_import_in_a_pages_python_works(page):
    for block in FENCE.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("ringfence"):
                module = importlib.import_module(node.module)
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_a_wrong_path_would_be_noticed():
    """The negative control."""
    text = "`models/scores/<name>.py` and `connector/nothing.py` and `docs/{design,nothing}.md`"
    paths = list(named_paths(text))
    assert paths == [
        "models/scores/*.py", "connector/nothing.py", "docs/design.md", "docs/nothing.md",
    ]  # fmt: skip
    assert [is_there(path) for path in paths] == [True, False, True, False]


NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven")
STEP = re.compile(r"^(\d)\. ", re.MULTILINE)
RECIPES = {
    name: text
    for name, _, text in (
        part.partition("\n\n")
        for part in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n### ")[1:]
    )
}


def counted_files(recipe):
    """How many files a recipe says it takes, where it says so, and how many more in a case."""
    said = recipe.split(".")[0]
    counts = [
        NUMBERS.index(w.capitalize()) for w in re.findall(r"\w+", said) if w.capitalize() in NUMBERS
    ]
    return counts[0] if said.split()[0] in NUMBERS else 0


def steps(recipe):
    return [int(number) for number in STEP.findall(recipe)]


@pytest.mark.parametrize("name", [name for name, text in RECIPES.items() if steps(text)])
def test_a_recipe_has_a_step_for_each_file_that_it_counts(name):
    recipe = RECIPES[name]
    in_some_cases = recipe.count("; four where") + recipe.count("; three with")
    tests_of_its_own = recipe.count("and two of the tests")
    assert max(steps(recipe)) == counted_files(recipe) + in_some_cases + tests_of_its_own


def test_a_recipe_that_counts_wrongly_would_be_noticed():
    """The negative control."""
    assert counted_files("Two files; three with a template of its own.\n\n1. `a`\n2. `b`") == 2
    assert steps("Two files.\n\n1. `a`\n2. `b`\n   and so on\n3. `c`\n") == [1, 2, 3]
    assert counted_files("What it is for: two files.") == 0


def test_every_registry_is_named_where_variants_are_listed():
    pages = [ROOT / "docs/architecture.md", ROOT / "CONTRIBUTING.md"]
    found = [str(path.relative_to(ROOT)) for room in ("connector", "jobs", "models")
             for path in sorted((ROOT / room).rglob("registry.py"))]  # fmt: skip
    assert len(found) >= 8
    for page in pages:
        text = page.read_text(encoding="utf-8")
        named = set(named_paths(text))
        assert [path for path in found if path not in named | OPENED_BY_NAME] == [], page.name


OPENED_BY_NAME = {"jobs/engines/registry.py"}
"""It opens what another file lists."""


def test_every_decision_has_its_four_parts_and_a_place_in_the_list():
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    listed = LINK.findall((ROOT / "docs/decisions/README.md").read_text(encoding="utf-8"))
    assert [page.name for page in decisions] == [link for link in listed if link[0].isdigit()]
    assert [int(page.name[:4]) for page in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        parts = re.findall(r"^\*\*(\w+)\.\*\*", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert parts == ["Context", "Decision", "Measurement", "Consequences"], page.name
