"""Read `ringfence.toml`, then the environment, which wins (`RINGFENCE_<SECTION>_<KEY>`).

Secrets come from the environment only, or from files that it names (`…_FILE`). Where there is no
file and none was asked for, the environment alone is a configuration; relative paths are then those
of the working folder.
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
from ringfence.jobs.config.settings import SECRETS, TOP, Settings, tables
from ringfence.jobs.config.sources.injected_variables import is_injected
from ringfence.jobs.config.sources.secret_files import FILE_SUFFIX, read_secret_file
from ringfence.jobs.config.sources.server import complete_server

DEFAULT_FILE = "ringfence.toml"
PREFIX = "RINGFENCE_"
MAX_NAME_CHARS = 200  # of a setting in a message
NOT_SETTINGS = ("RINGFENCE_CONFIG", "RINGFENCE_MAVEN_URL", "RINGFENCE_TEST_")


def load(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the file, let the environment win, check everything; paths become absolute."""
    environment = os.environ if environment is None else environment
    asked = path or environment.get("RINGFENCE_CONFIG")
    path = Path(asked or DEFAULT_FILE)
    if not asked and not path.exists() and describes_graph(environment):
        return load_values({}, path, environment, has_file=False)
    values = _read(path)
    _refuse_secrets(values, path)
    return load_values(values, path, environment)


def load_values(
    values: dict[str, Any],
    path: Path,
    environment: Mapping[str, str],
    *,
    has_file: bool = True,
    is_new: bool = False,
) -> Settings:
    """Check `values` as if `path` held them, the environment's on top.

    A project `is_new` where this is to become its first file.
    """
    _override(values, environment)
    complete_server(values, path.resolve().parent, environment, is_new=is_new or not has_file)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise _explain(error, path, has_file=has_file) from None
    except RecursionError:
        raise _too_deep(path) from None
    return _anchored(settings, path.resolve().parent)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            found=f"there is no {path}",
            needed="a configuration file",
            next_step="ringfence init   (writes one from your graph), or name another by --config; "
            "RINGFENCE_GRAPH_* variables alone do too",
        ) from None
    except OSError as error:
        raise ConfigError(
            found=f"{path} can't be read ({error.strerror})",
            needed="a configuration file that this user may read",
            next_step=f"ls -l {shlex.quote(str(path))}",
        ) from None
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise ConfigError(
            found=f"{path} is not TOML: {error}",
            needed="a file in TOML",
            next_step=f"correct that line, then: {_doctor(path)}",
        ) from None


def _too_deep(path: Path) -> ConfigError:
    return ConfigError(
        found=f"{path} has tables or lists that are nested too deep to be read",
        needed="the settings in docs/configuration.md, which are nested three deep at most",
        next_step=f"correct the file, then: {_doctor(path)}",
    )


def _refuse_secrets(values: dict[str, Any], path: Path) -> None:
    for section, names in SECRETS.items():
        table = values if section == TOP else values.get(section)
        for name in names & set(table if isinstance(table, dict) else ()):
            raise ConfigError(
                found=f"{path} holds {f'[{section}] ' if section else ''}{name}",
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
    files = {f"{variable(table, key)}{FILE_SUFFIX}" for table in SECRETS for key in SECRETS[table]}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name.startswith(NOT_SETTINGS):
            continue
        if is_injected(name, environment[name]):
            continue
        if name in files:
            setting, value = name.removesuffix(FILE_SUFFIX), _secret(name, environment)
        else:
            setting, value = name, _plain(environment[name])
        if setting not in variables:
            raise ConfigError(
                found=f"the environment variable {name} is no setting",
                needed="RINGFENCE_<SECTION>_<KEY>" + _nearest(name, [*variables, *files]),
                next_step=f"unset {name}",
            )
        section, key = variables[setting]
        table = values.setdefault(section, {}) if section else values
        table[key] = value


def _secret(name: str, environment: Mapping[str, str]) -> str:
    """Return the secret in the file that a variable names; it may not be given twice."""
    plain = name.removesuffix(FILE_SUFFIX)
    if plain in environment:
        raise ConfigError(
            found=f"both {plain} and {name} are set",
            needed="one of them",
            next_step=f"unset {plain}, or: unset {name}",
        )
    return read_secret_file(name, environment[name])


def describes_graph(environment: Mapping[str, str]) -> bool:
    """Whether the environment says which nodes are meant, which no default can."""
    prefix = f"{variable('graph', '')}_"
    names = [name for name in environment if name.startswith(prefix)]
    return any(not is_injected(name, environment[name]) for name in names)


def _plain(text: str) -> Any:
    """A list or table is written as JSON; everything else stays text and pydantic reads it."""
    if text[:1] in "[{" and text:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):  # ValueError: no JSON, or a number without end
            return text
    return text


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _explain(error: ValidationError, path: Path, *, has_file: bool) -> ConfigError:
    lines = [_one_line(dict(item)) for item in error.errors()]
    needed = "the settings in docs/configuration.md"
    if not has_file:
        problem = f"there is no {path}; in the environment: " + "; ".join(lines)
        next_step = "correct the RINGFENCE_* variables, then: ringfence doctor"
    else:
        problem = f"{path}: " + "; ".join(lines)
        next_step = f"correct the file, then: {_doctor(path)}"
    return ConfigError(found=problem, needed=needed, next_step=next_step)


def _doctor(path: Path) -> str:
    return f"ringfence doctor --config {shlex.quote(str(path))}"


def _one_line(item: dict[str, Any]) -> str:
    where = [str(part) for part in item["loc"]]
    if item["type"] == "value_error" and where in [[name] for name, _ in tables()]:
        return f"[{where[0]}] {_message(item)}"
    name = f"[{where[0]}] {'.'.join(where[1:])}" if len(where) > 1 else where[-1] if where else ""
    name = name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}…"
    if item["type"] == "extra_forbidden":
        section = where[0] if len(where) > 1 else ""
        siblings = [key for table, key in known_keys() if table == section]
        if section in NESTED_TABLES:
            siblings = setting_names(NESTED_TABLES[section][0])
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
    pem = ("client_certificate", "client_key")
    paths = {name: getattr(settings.neo4j, name) for name in pem}
    files = {name: str(folder / path) for name, path in paths.items() if path}
    neo4j = settings.neo4j.model_copy(update=files)
    lineage = settings.telemetry.lineage
    if lineage and not lineage.startswith(("http://", "https://")):
        lineage = str(folder / lineage)
    telemetry = settings.telemetry.model_copy(update={"lineage": lineage})
    sections = {"engine": engine, "audit": audit, "neo4j": neo4j, "telemetry": telemetry}
    return settings.model_copy(update=sections)
