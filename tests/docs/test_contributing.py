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


def test_every_decision_has_its_four_parts_and_a_place_in_the_list():
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    listed = LINK.findall((ROOT / "docs/decisions/README.md").read_text(encoding="utf-8"))
    assert [page.name for page in decisions] == [link for link in listed if link[0].isdigit()]
    assert [int(page.name[:4]) for page in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        parts = re.findall(r"^\*\*(\w+)\.\*\*", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert parts == ["Context", "Decision", "Measurement", "Consequences"], page.name
