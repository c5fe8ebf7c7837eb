"""OpenLineage's published schema as the installed package has it, and what an event breaks of it.

The package's classes are generated from the published schema: each names its definition by URL, and
has its properties with their types, and which are required. They are made a JSON Schema again here,
so that an event is checked as the receiver gets it, as JSON, and not as an object of the package.
"""

import enum
import importlib
import inspect
import pkgutil
import types
import typing
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

import attr
import jsonschema
from openlineage.client import generated
from openlineage.client.generated import base

PRIMITIVES = {str: "string", int: "integer", float: "number", bool: "boolean"}
WRITTEN_BY_ALL = ("producer", "schemaURL", "_producer", "_schemaURL")
"""What the schema requires and a class fills in by itself."""


def _classes():
    for module in pkgutil.iter_modules(generated.__path__):
        loaded = importlib.import_module(f"{generated.__name__}.{module.name}")
        for _, kind in inspect.getmembers(loaded, inspect.isclass):
            if kind.__module__ == loaded.__name__ and hasattr(kind, "_get_schema"):
                yield kind


BY_URL = {kind._get_schema(): kind for kind in _classes()}


def schema_of(kind):
    """The JSON Schema of a type of the package; classes stand in it in full."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if kind in PRIMITIVES:
        return {"type": PRIMITIVES[kind]}
    if kind is type(None):
        return {"type": "null"}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in inside]}
    if origin is list:
        return {"type": "array", "items": schema_of(inside[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inside[1])}
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return {"enum": [one.value for one in kind]}
    return _schema_of_class(kind) if attr.has(kind) else {}


def _schema_of_class(kind):
    hints = typing.get_type_hints(kind)
    fields = attr.fields(kind)
    return {
        "type": "object",
        "properties": {field.name: schema_of(hints[field.name]) for field in fields},
        "required": [
            field.name
            for field in fields
            if field.default is attr.NOTHING or field.name in WRITTEN_BY_ALL
        ],
        # a facet may have properties of its producer; nothing else may
        "additionalProperties": issubclass(kind, base.BaseFacet),
    }


def broken_rules(event):
    """What of the schema an event breaks, in words; nothing where it is as published."""
    kind = BY_URL.get(event.get("schemaURL"))
    if kind is None:
        return [f"no published schema is {event.get('schemaURL')}"]
    broken = _differences(kind, event, "event")
    if not broken:
        broken += list(_wrong_formats(event))
    for name, facet in _facets(event):
        url = facet.get("_schemaURL") if isinstance(facet, dict) else None
        if (facet_kind := BY_URL.get(url)) is None:
            broken.append(f"{name}: no published schema is {url}")
        else:
            broken += _differences(facet_kind, facet, name)
    return broken


def _differences(kind, value, name):
    errors = jsonschema.Draft202012Validator(schema_of(kind)).iter_errors(value)
    return [f"{name}: {error.json_path} {error.message}" for error in errors]


def _facets(event):
    """Name and value of every facet, wherever it stands."""
    holders = [event.get("run"), event.get("job")]
    holders += [one for key in ("inputs", "outputs") for one in event.get(key) or ()]
    for holder in holders:
        for key, facets in holder.items() if isinstance(holder, dict) else ():
            if key.lower().endswith("facets"):
                yield from (facets or {}).items()


def _wrong_formats(event):
    try:
        UUID(event["run"]["runId"])
    except ValueError:
        yield "runId is no UUID"
    try:
        if datetime.fromisoformat(event["eventTime"]).tzinfo is None:
            yield "eventTime has no time zone"
    except ValueError:
        yield "eventTime is no time"
    uris = [("event", event["producer"]), ("event", event["schemaURL"])]
    uris += [(name, facet.get("_producer")) for name, facet in _facets(event)]
    for name, uri in uris:
        if not urlsplit(str(uri)).scheme:
            yield f"{name}: {uri} is no URI"
