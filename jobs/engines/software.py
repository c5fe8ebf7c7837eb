"""Package versions that decide the bits of a pass: every worker's machine must have the same."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from ringfence.connector.errors import ServerError

PACKAGES = ("ringfence", "numpy", "numba", "llvmlite")


def own_software() -> dict[str, str]:
    """Return the installed versions of what computes a pass, by package.

    >>> sorted(own_software())
    ['llvmlite', 'numba', 'numpy', 'ringfence']
    """
    return {package: _version_of(package) for package in PACKAGES}


def require_same_software(machine: str, software: Mapping[str, str]) -> None:
    """Raise `ServerError` where a worker's machine has another version of something."""
    for package, here in own_software().items():
        there = software.get(package, "none")
        if there != here:
            raise other_software(machine, f"{package} {there}, and {here} is installed here")


def other_software(machine: str, difference: str) -> ServerError:
    """Return the error that names a machine and how its software differs."""
    return ServerError(
        found=f"other software on {machine}: {difference}",
        needed="the same versions of Python and all packages on every machine of the cluster",
        next_step=f"pip install 'ringfence[ray]=={_version_of('ringfence')}'   (on {machine})",
    )


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # a source tree that was never installed
        return "unknown"
