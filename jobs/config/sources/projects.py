"""Several projects for one process: a configuration each, with a file of variables of its own.

    ringfence serve --config a.toml --env-file a.env --config b.toml --env-file b.env

The process's own environment counts for all of them, a project's file for that project alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.config.sources.environment_file import with_environment_file

DOTS = (".", "..")  # an address with such a part leads elsewhere


def environments_of(
    files: Sequence[Path], environment_files: Sequence[Path]
) -> list[Mapping[str, str]]:
    """Return the environment of each project, in the order of the configurations."""
    count = max(1, len(files))
    if not environment_files:
        return [os.environ] * count
    if len(environment_files) != count:
        raise ConfigError(
            found=f"{count} --config and {len(environment_files)} --env-file",
            needed="one --env-file per --config, in the same order; an empty file gives nothing",
            next_step="name a file for each, such as: --config a.toml --env-file a.env",
        )
    return [with_environment_file(os.environ, path) for path in environment_files]


def load_projects(files: Sequence[Path], environment_files: Sequence[Path]) -> list[Settings]:
    """Read the configurations; without any the usual one."""
    environments = environments_of(files, environment_files)
    paths: list[Path | None] = list(files) or [None]
    return [load(path, given) for path, given in zip(paths, environments, strict=True)]


def require_addresses(projects: Sequence[Settings]) -> None:
    """Raise unless each project has a name of its own, which an address can have."""
    names = [settings.project for settings in projects]
    for name in names if len(names) > 1 else ():
        if names.count(name) > 1:
            raise ConfigError(
                found=f"two of the files are about project {name!r}",
                needed="one file per project, each with a name of its own: it is the address",
                next_step="leave out one of them, or change `project` in a new one; a "
                "RINGFENCE_PROJECT in the environment names them all",
            )
        if name in DOTS:
            raise ConfigError(
                found=f"project {name!r} among several",
                needed="a name that an address can have",
                next_step="serve this project by a process of its own: ringfence serve",
            )
