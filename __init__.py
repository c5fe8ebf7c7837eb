"""ringfence: the classes each new node of a Neo4j graph could be, with a guaranteed miss rate."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ringfence.jobs.python_api.project import Project

try:
    __version__ = version("ringfence")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__", "open"]


def open(path: str | Path | None = None) -> Project:
    """Open the project that a configuration file describes.

    Without a path it is the file of `RINGFENCE_CONFIG`, or `ringfence.toml` in the working folder.

    Its methods are the commands (`train`, `score`, `audit`); `coverage`, `runs`, `sets`,
    `worklist`, `explain` and `query` come back as pandas frames, and `figure` as plotly's.
    """
    from ringfence.jobs.python_api.project import open_project

    return open_project(path)
