"""What watches the assumption works as its page says, example by example, and without torch."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULES = (
    "exchangeability.advisor",
    "exchangeability.arrival_tests",
    "sample.block_model",
    "exchangeability.permutation_test",
    "exchangeability.martingales",
    "sample.accounts",
    "exchangeability.smoothed_pvalues",
    "exchangeability.monitor",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_show_what_comes_out(name):
    module = importlib.import_module(f"ringfence.models.{name}")
    assert doctest.testmod(module).failed == 0


def test_the_example_on_the_page_runs(capsys):
    page = (ROOT / "docs" / "watching.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(example, "docs/watching.md", "exec"), {})
    assert capsys.readouterr().out.startswith("no sign of a change in 500 labels")


def test_none_of_it_imports_torch():
    imports = "; ".join(f"import ringfence.models.{name}" for name in MODULES)
    check = f"{imports}; import sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
    control = "import sys; sys.modules['torch'] = sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", control], check=False).returncode == 1
