"""The page with `verify_pack.py` has the script as it stands in packs."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_script_that_packs_have():
    page = (ROOT / "docs/verify-pack.md").read_text(encoding="utf-8")
    script = (ROOT / "jobs/report/verify_pack.py").read_text(encoding="utf-8")
    assert page.partition("```python\n")[2] == f"{script}```\n"
