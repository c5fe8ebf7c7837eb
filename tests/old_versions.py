"""Trees of earlier versions, taken out of the repository's history.

They stay in `build/versions` from one test run to the next, with what Python and numba compiled
of them: that is most of what a short process of an earlier version costs.
"""

import subprocess
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ROOT / "build" / "versions"


def open_version(revision: str) -> Path:
    """Return the folder from which a revision is imported as `ringfence`."""
    git = ["git", "-C", str(ROOT)]
    known = subprocess.run(
        [*git, "cat-file", "-e", revision], check=False, capture_output=True
    ).returncode
    if known != 0:
        pytest.skip(f"this copy has no history with {revision} in it")
    place = VERSIONS / revision
    if not place.exists():
        VERSIONS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=VERSIONS) as folder:
            archive = Path(folder, "tree.tar")
            subprocess.run([*git, "archive", "-o", str(archive), revision], check=True)
            with tarfile.open(archive) as tree:
                tree.extractall(Path(folder, "whole", "ringfence"), filter="data")
            with suppress(OSError):  # another process was first
                Path(folder, "whole").rename(place)
    return place
