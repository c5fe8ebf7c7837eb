"""Environment variables that a cluster sets for its Services, which are no settings of ours.

Beside a Service `ringfence-serve` Kubernetes gives every pod `RINGFENCE_SERVE_PORT=tcp://10.0.0.1:80`
and some more: names that begin like ours, one of them that of a setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

CONFIG = "RINGFENCE_CONFIG"  # names a file, and no Service has a variable of this name
ADDRESS = re.compile(r"(tcp|udp|sctp)://", re.IGNORECASE)
SERVICE = re.compile(
    r"RINGFENCE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?"
    r"|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)"
)


def is_injected(name: str, value: str) -> bool:
    """Return whether a variable of our prefix comes from a cluster, by its name or its value.

    >>> is_injected("RINGFENCE_SERVE_PORT", "tcp://10.0.0.1:80")
    True
    >>> is_injected("RINGFENCE_SERVE_SERVICE_HOST", "10.0.0.1")
    True
    >>> is_injected("RINGFENCE_SERVE_PORT", "8470")
    False
    """
    return name != CONFIG and bool(ADDRESS.match(value) or SERVICE.fullmatch(name))


def find_injected(environment: Mapping[str, str]) -> list[str]:
    """Return the names of such variables, in order."""
    return sorted(
        name
        for name, value in environment.items()
        if name.startswith("RINGFENCE_") and is_injected(name, value)
    )


def describe_injected(names: list[str]) -> str:
    """Return a sentence about them.

    >>> describe_injected(["RINGFENCE_PORT", "RINGFENCE_SERVICE_HOST", "RINGFENCE_SERVICE_PORT"])
    'ignored as variables that a cluster sets for its Services: RINGFENCE_PORT and 2 more'
    """
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"ignored as variables that a cluster sets for its Services: {names[0]}{more}"
