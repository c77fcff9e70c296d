"""Formats of texts that a custom resource's type may ask for; unknown formats ask for nothing.

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


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether `read` takes a text without complaint."""

    def fits(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return fits


def _is_duration(text: str) -> bool:
    return _reads(parse_duration)(text) or _DURATION.fullmatch(text) is not None


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": _reads(lambda text: base64.b64decode(text, validate=True)),
    "cidr": _reads(lambda text: ipaddress.ip_network(text, strict=False)),
    "date": _reads(date.fromisoformat),
    "date-time": _reads(parse_timestamp),
    "duration": _is_duration,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _reads(ipaddress.IPv4Address),
    "ipv6": _reads(ipaddress.IPv6Address),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uri": lambda text: _URI.fullmatch(text) is not None,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
}


def has_format(text: str, name: str) -> bool:
    """Whether `text` has the format called `name`."""
    fits = _FORMATS.get(name.replace("datetime", "date-time"))
    return fits is None or fits(text)
