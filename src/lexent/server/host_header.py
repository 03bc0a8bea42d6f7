"""The Host header: which name the client believes to have reached."""

from __future__ import annotations

import ipaddress
import re

from lexent.server.problems import ServerError

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._~-]+))(?::(?P<port>[0-9]{1,5}))?")
HIGHEST_PORT = 65_535
LONGEST_NAME = 253
"""Characters of a name, as DNS has them."""


def host_name(given: list[str]) -> str:
    """The name or address in the Host headers of a request: lower case, without port, brackets and a last dot.

    There must be exactly one, a name or an address with at most a port.
    """
    if len(given) != 1:
        raise _refused(f"{len(given)} Host headers")
    (value,) = given
    found = _HOST.fullmatch(value)
    if found is None or int(found["port"] or 0) > HIGHEST_PORT:
        raise _refused(f'the Host header "{value[:100]}"')
    if found["ipv6"] is not None:
        try:
            return str(ipaddress.IPv6Address(found["ipv6"]))
        except ValueError:
            raise _refused(f'the Host header "{value[:100]}"') from None
    name = found["name"].lower().removesuffix(".")
    if len(name) > LONGEST_NAME or not all(name.split(".")):
        raise _refused(f'the Host header "{value[:100]}"')
    return name


def is_loopback(name: str) -> bool:
    """Whether a name, as `host_name` gives it, is one of this machine alone."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _refused(what: str) -> ServerError:
    detail = f"{what} cannot be used; a request has one, such as localhost:7777 or [::1]:7777"
    return ServerError(detail, status=400, slug="host")
