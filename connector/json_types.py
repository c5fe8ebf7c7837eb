"""Types of JSON values, checked where chain entries, manifests and `--json` are made.

Code that reads JSON back takes `Mapping[str, Any]` and turns it into a record at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

JsonValue = None | bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
JsonObject = dict[str, JsonValue]
