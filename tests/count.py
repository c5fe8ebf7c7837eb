"""How many tests there are, by marker and by folder (`make test-count`).

A move or a split of test files must not lose a test: compare the numbers before and after.
"""

import sys
from collections import Counter
from pathlib import Path

import pytest

MARKERS = ("neo4j", "postgres", "browser", "slow", "long", "statistics")
LANES = {
    "make test": lambda marks: not marks & {"statistics", "long"},
    "make test-fast": lambda marks: not marks & {"neo4j", "postgres", "browser", "slow"},
}
ROOT = Path(__file__).resolve().parents[1]


class Collected:
    """The plugin that takes the tests pytest has collected."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = list(items)


def main() -> int:
    collected = Collected()
    options = ["--collect-only", "-qq", "--no-summary", f"--rootdir={ROOT}", str(ROOT / "tests")]
    code = pytest.main(options, plugins=[collected])
    marks = [{mark.name for mark in item.iter_markers()} for item in collected.items]
    folders = Counter(item.path.parent.relative_to(ROOT).as_posix() for item in collected.items)
    print(f"\n{len(marks):6} tests")
    for lane, has in LANES.items():
        print(f"{sum(map(has, marks)):6} {lane}")
    for marker in MARKERS:
        print(f"{sum(marker in mine for mine in marks):6} {marker}")
    for folder, count in sorted(folders.items()):
        print(f"{count:6} {folder}")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
