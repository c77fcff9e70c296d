"""String formats of custom resource schemas; an unknown format allows any string.

upstream: k8s.io/kube-openapi/pkg/validation/strfmt/default.go, format.go
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from fairlead.api.timestamp import parse_duration, parse_timestamp

_HOSTNAME: Final = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9-]+)*")
_MAC: Final = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}")
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:|/)\S*")
_DURATION: Final = re.compile(r"\d+\s*(ns|us|µs|ms|s|m|h|d|w|\w+)")


def _parses_with(read: Callable[[str], object]) -> Callable[[str], bool]:
    """A predicate: whether `read` parses a text without an error."""

    def has_format_(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return has_format_


def _is_duration(text: str) -> bool:
    return _parses_with(parse_duration)(text) or _DURATION.fullmatch(text) is not None


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": _parses_with(lambda text: base64.b64decode(text, validate=True)),
    "cidr": _parses_with(lambda text: ipaddress.ip_network(text, strict=False)),
    "date": _parses_with(date.fromisoformat),
    "date-time": _parses_with(parse_timestamp),
    "duration": _is_duration,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _parses_with(ipaddress.IPv4Address),
    "ipv6": _parses_with(ipaddress.IPv6Address),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uri": lambda text: _URI.fullmatch(text) is not None,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
}


def has_format(text: str, name: str) -> bool:
    """Whether `text` has the format called `name`."""
    has_format_ = _FORMATS.get(name.replace("datetime", "date-time"))
    return has_format_ is None or has_format_(text)
