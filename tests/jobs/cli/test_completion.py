"""The shell completes verbs and options."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("ringfence")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("ringfence wor", {"worklist"}), ("ringfence worklist --m", {"--min-p", "--max-size"}),
     ("ringfence models co", {"compare"}), ("ringfence no-such", set())],
)  # fmt: skip
def test_a_word_is_completed(typed, offered):
    asked = {
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
        "_RINGFENCE_COMPLETE": "complete_bash",
    }
    done = subprocess.run([PROGRAM], env={**os.environ, **asked}, capture_output=True, text=True)
    assert set(done.stdout.split()) == offered


def test_the_lines_for_a_shell_call_this_program():
    # the program looks for a shell among its parents, and a service has none: so one is there
    line = f"{shlex.quote(str(PROGRAM))} --show-completion; exit $?"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert "_RINGFENCE_COMPLETE=complete_bash" in done.stdout
