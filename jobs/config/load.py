"""Read `ringfence.toml`, then the environment, which wins (`RINGFENCE_<SECTION>_<KEY>`).

Secrets come from the environment only.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.nested import NESTED_TABLES, setting_names
from ringfence.jobs.config.settings import SECRETS, Settings, tables

DEFAULT_FILE = "ringfence.toml"
PREFIX = "RINGFENCE_"
NOT_SETTINGS = ("RINGFENCE_CONFIG", "RINGFENCE_MAVEN_URL", "RINGFENCE_TEST_")


def load(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the file, let the environment win, check everything; paths become absolute."""
    environment = os.environ if environment is None else environment
    path = path or Path(environment.get("RINGFENCE_CONFIG", DEFAULT_FILE))
    values = _read(path)
    _refuse_secrets(values, path)
    return load_values(values, path, environment)


def load_values(values: dict[str, Any], path: Path, environment: Mapping[str, str]) -> Settings:
    """Check `values` as if `path` held them, the environment's on top."""
    _override(values, environment)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise _explain(error, path) from None
    return _anchored(settings, path.resolve().parent)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            found=f"there is no {path}",
            needed="a configuration file",
            next_step="ringfence init   (writes one from your graph), or name another by --config",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            found=f"{path} is not TOML: {error}",
            needed="a file in TOML",
            next_step=f"correct that line, then: {_doctor(path)}",
        ) from None


def _refuse_secrets(values: dict[str, Any], path: Path) -> None:
    for section, names in SECRETS.items():
        table = values.get(section)
        for name in names & set(table if isinstance(table, dict) else ()):
            raise ConfigError(
                found=f"{path} holds [{section}] {name}",
                needed="secrets in the environment, and none in files that are committed or mailed",
                next_step=f"take that line out, then: export {variable(section, name)}=…",
            )


def known_keys() -> Iterator[tuple[str, str]]:
    """Yield every (section, key); section is empty for keys at the top of the file."""
    sections = dict(tables())
    for name in Settings.model_fields:
        if name in sections:
            yield from ((name, key) for key in sections[name].model_fields)
        else:
            yield "", name


def variable(section: str, key: str) -> str:
    """Return the environment variable of a setting.

    >>> variable("conformal", "alpha")
    'RINGFENCE_CONFORMAL_ALPHA'
    """
    return PREFIX + "_".join(part for part in (section, key) if part).upper()


def _override(values: dict[str, Any], environment: Mapping[str, str]) -> None:
    variables = {variable(section, key): (section, key) for section, key in known_keys()}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name.startswith(NOT_SETTINGS):
            continue
        if name not in variables:
            raise ConfigError(
                found=f"the environment variable {name} is no setting",
                needed="RINGFENCE_<SECTION>_<KEY>" + _nearest(name, list(variables)),
                next_step=f"unset {name}",
            )
        section, key = variables[name]
        table = values.setdefault(section, {}) if section else values
        table[key] = _plain(environment[name])


def _plain(text: str) -> Any:
    """A list or table is written as JSON; everything else stays text and pydantic reads it."""
    if text[:1] in "[{" and text:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text
    return text


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _explain(error: ValidationError, path: Path) -> ConfigError:
    lines = [_one_line(dict(item)) for item in error.errors()]
    return ConfigError(
        found=f"{path}: " + "; ".join(lines),
        needed="the settings in docs/configuration.md",
        next_step=f"correct the file, then: {_doctor(path)}",
    )


def _doctor(path: Path) -> str:
    return f"ringfence doctor --config {shlex.quote(str(path))}"


def _one_line(item: dict[str, Any]) -> str:
    where = [str(part) for part in item["loc"]]
    if item["type"] == "value_error" and where in [[name] for name, _ in tables()]:
        return f"[{where[0]}] {_message(item)}"
    name = f"[{where[0]}] {'.'.join(where[1:])}" if len(where) > 1 else where[-1] if where else ""
    if item["type"] == "extra_forbidden":
        section = where[0] if len(where) > 1 else ""
        siblings = [key for table, key in known_keys() if table == section]
        if not section:
            siblings += list(Settings.model_fields)
        elif len(where) > 2 and (nested := NESTED_TABLES.get(f"{where[0]}.{where[1]}")):
            siblings = setting_names(nested[0])
        return f"there is no setting {name}" + _nearest(where[-1], siblings)
    if item["type"] == "missing":
        return f"{name} is missing"
    message = _message(item)
    return f"{name}: {message[:1].lower()}{message[1:]}" if name else message


def _message(item: dict[str, Any]) -> str:
    return str(item["msg"]).removeprefix("Value error, ")


def _anchored(settings: Settings, folder: Path) -> Settings:
    engine = settings.engine.model_copy(update={"folder": folder / settings.engine.folder})
    url = settings.audit.url
    if url.startswith("sqlite:///") and url != "sqlite:///:memory:":
        url = f"sqlite:///{folder / url.removeprefix('sqlite:///')}"
    audit = settings.audit.model_copy(update={"url": url})
    return settings.model_copy(update={"engine": engine, "audit": audit})
