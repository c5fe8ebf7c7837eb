"""Encoders by the kind that a configuration names, one line each."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from ringfence.models.encoders.base import Encoder, EncoderRefused
from ringfence.models.encoders.boolean import BooleanEncoder
from ringfence.models.encoders.calendar import CalendarEncoder, DateEncoder, TimeEncoder
from ringfence.models.encoders.category import CategoryEncoder
from ringfence.models.encoders.duration import DurationEncoder
from ringfence.models.encoders.number import NumberEncoder
from ringfence.models.encoders.point import PointEncoder
from ringfence.models.encoders.text import TextEncoder, TokensEncoder
from ringfence.models.encoders.vector import NumbersEncoder, VectorEncoder

__all__ = ["ENCODERS", "check_options", "encoder_class"]

ENCODERS: dict[str, type[Encoder]] = {
    "number": NumberEncoder,
    "integer": NumberEncoder,
    "boolean": BooleanEncoder,
    "category": CategoryEncoder,
    "date": DateEncoder,
    "datetime": CalendarEncoder,
    "time": TimeEncoder,
    "duration": DurationEncoder,
    "point": PointEncoder,
    "text": TextEncoder,
    "numbers": NumbersEncoder,
    "texts": TokensEncoder,
    "vector": VectorEncoder,
}


def encoder_class(kind: str) -> type[Encoder]:
    """Return the encoder of a kind; ``package.module:Class`` is a user's own.

    >>> encoder_class("category").__name__
    'CategoryEncoder'
    """
    if ":" in kind:
        return _own_class(kind)
    if kind not in ENCODERS:
        raise EncoderRefused(
            f"no column kind is called {kind!r}; there are {', '.join(ENCODERS)}, "
            'or an encoder of your own as "package.module:Class"'
        )
    return ENCODERS[kind]


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the kind doesn't have.

    >>> check_options("text", {"buckets": 16})
    """
    known = encoder_class(kind).options
    for name in options:
        if name not in known:
            has = f"it takes {', '.join(known)}" if known else "it takes none"
            raise EncoderRefused(f"columns of the kind {kind} have no option {name!r}; {has}")


def _own_class(path: str) -> type[Encoder]:
    module_name, _, class_name = path.partition(":")
    try:
        encoder = getattr(importlib.import_module(module_name), class_name, None)
    except (ImportError, ValueError) as error:
        raise EncoderRefused(
            f"{path} could not be imported: {error}; install the package that holds it into "
            "ringfence's environment, or put its folder on PYTHONPATH"
        ) from error
    if not (isinstance(encoder, type) and issubclass(encoder, Encoder)):
        raise EncoderRefused(
            f"{path} is no encoder; name a subclass of ringfence.models.encoders.Encoder"
        )
    return encoder
