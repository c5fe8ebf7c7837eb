"""What a request says of itself: its token, its sender's address, the name that it asks for."""

from __future__ import annotations

import ipaddress

from starlette.requests import Request


def bearer_of(request: Request) -> str | None:
    """Return the token in the header of a request; None without one."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given if scheme.lower() == "bearer" else None


def address_of(request: Request) -> str:
    """Return what wrong tokens are counted by: the visitor's address, of IPv6 its network."""
    return network_of(request.client.host) if request.client else ""


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, of IPv6 the /64 of which one machine may use every address.

    >>> network_of("192.0.2.7"), network_of("2001:db8::1:2"), network_of("testclient")
    ('192.0.2.7', '2001:db8::/64', 'testclient')
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if known.version == 4:
        return address
    return str(ipaddress.ip_network(f"{known.compressed.partition('%')[0]}/64", strict=False))


def holds_nul(request: Request) -> bool:
    """Whether an address holds a character that no text of PostgreSQL can have."""
    return "\x00" in request.url.path or b"%00" in request.scope.get("query_string", b"")


def host_name(header: str) -> str:
    """Return the name in a Host header without its port.

    >>> host_name("Example.org:8470"), host_name("[::1]:8470"), host_name("127.0.0.1")
    ('example.org', '::1', '127.0.0.1')
    """
    header = header.strip().lower()
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
