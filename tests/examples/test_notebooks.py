"""The notebooks run from beginning to end, and what is committed is their text with its outputs."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPT = SimpleNamespace(**runpy.run_path(str(EXAMPLES / "make_notebooks.py")))
MACHINE = re.compile(
    r"/(home|root|tmp|work|Users|var)/|\.venv|site-packages|password", re.IGNORECASE
)


def committed(name):
    return nbformat.read(EXAMPLES / name, as_version=4)


@pytest.mark.parametrize("name", SCRIPT.NOTEBOOKS)
def test_the_committed_notebook_is_the_scripts_text_executed(name):
    notebook, text = committed(name), SCRIPT.build(SCRIPT.NOTEBOOKS[name])
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in text.cells]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code), "run: make notebooks"
    shown = [one for cell in code for one in cell.outputs]
    assert len(shown) >= 5
    assert {one.output_type for one in shown} <= {"execute_result", "display_data", "stream"}
    assert "application/vnd.plotly.v1+json" in str([one.get("data", {}) for one in shown])


@pytest.mark.parametrize("name", SCRIPT.NOTEBOOKS)
def test_no_output_tells_of_the_machine(name):
    outputs = [str(one) for cell in committed(name).cells for one in cell.get("outputs", ())]
    assert [found[0] for one in outputs if (found := MACHINE.search(one))] == []


def test_a_path_in_an_output_would_be_noticed():
    """The negative control."""
    assert MACHINE.search("{'text': 'sqlite:////home/ann/audit.db'}")


@pytest.mark.long
@pytest.mark.neo4j
@pytest.mark.parametrize("name", SCRIPT.NOTEBOOKS)
def test_a_notebook_runs_from_beginning_to_end(name, tmp_path):
    done = SCRIPT.execute(SCRIPT.build(SCRIPT.NOTEBOOKS[name]), tmp_path)
    errors = [
        one for cell in done.cells for one in cell.get("outputs", ()) if one.output_type == "error"
    ]
    assert errors == []
