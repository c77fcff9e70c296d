"""IP addresses and the ranges they are in.

upstream: apiserver/pkg/cel/library/{ip,cidr}.go
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv6Address,
    IPv6Interface,
    ip_address,
    ip_interface,
)
from typing import Final

from fairlead.cel.function import (
    TEXT,
    TRUTH,
    VALUE,
    WHOLE,
    Function,
    Value,
    free,
    is_readable,
    member,
    of,
)

_IP: Final = "net.IP"
_CIDR: Final = "net.CIDR"
_RANGE: Final = re.compile(r"[^/%]+/(0|[1-9][0-9]{0,2})")
_RANGE_PROBLEM: Final = "network address parse error during conversion from string"
_BROADCAST: Final = IPv4Address("255.255.255.255")

Address = IPv4Address | IPv6Address
Interface = IPv4Interface | IPv6Interface


def _address(text: str) -> Address:
    if "%" in text:
        raise ValueError(f'IP address "{text}" with zone value is not allowed')
    try:
        found = ip_address(text)
    except ValueError:
        why = f"ParseAddr({json.dumps(text, ensure_ascii=False)}): unable to parse IP"
        raise ValueError(
            f'IP Address "{text}" parse error during conversion from string: {why}'
        ) from None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        raise ValueError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def _interface(text: str) -> Interface:
    if not _RANGE.fullmatch(text):
        why = "no '/'" if "/" not in text else "bad bits after slash"
        told = f"netip.ParsePrefix({json.dumps(text, ensure_ascii=False)}): {why}"
        raise ValueError(f"{_RANGE_PROBLEM}: {_RANGE_PROBLEM}: {told}")
    bits = _address(text.partition("/")[0]).max_prefixlen
    if int(text.rpartition("/")[2]) > bits:
        told = f"netip.ParsePrefix({json.dumps(text)}): prefix length out of range"
        raise ValueError(f"{_RANGE_PROBLEM}: {_RANGE_PROBLEM}: {told}")
    return ip_interface(text)


def _ip(text: str) -> Value:
    return {_IP: str(_address(text))}


def _cidr(text: str) -> Value:
    return {_CIDR: str(_interface(text))}


def text_of(value: Value) -> str:
    """An address, or a range of them, as a text."""
    return str(of(value, _IP if _IP in value else _CIDR, "an address"))


def _ip_of(value: Value) -> Address:
    return _address(of(value, _IP, "an address"))


def _cidr_of(value: Value) -> Interface:
    return _interface(of(value, _CIDR, "a range of addresses"))


def _told(tell: Callable[[Address], bool]) -> Callable[[Value], bool]:
    return lambda value: tell(_ip_of(value))


def _contains(one: Value, other: Value | str) -> bool:
    """Whether an address is in a range."""
    address = _address(other) if isinstance(other, str) else _ip_of(other)
    return address in _cidr_of(one).network


def _contains_range(one: Value, other: Value | str) -> bool:
    inner = _interface(other) if isinstance(other, str) else _cidr_of(other)
    outer = _cidr_of(one).network
    return (
        inner.version == outer.version
        and inner.ip in outer
        and inner.network.prefixlen >= outer.prefixlen
    )


def _is_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return str(address).startswith("224.0.0.")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _is_global(address: Address) -> bool:
    """Addresses of private networks are global to Go."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == _BROADCAST
    )


FUNCTIONS: Final[tuple[Function, ...]] = (
    free("ip", VALUE, (TEXT,), _ip),
    free("isIP", TRUTH, (TEXT,), is_readable(_ip)),
    free("ip.isCanonical", TRUTH, (TEXT,), lambda text: str(_address(text)) == text),
    member("family", WHOLE, (VALUE,), lambda value: _ip_of(value).version),
    member("isUnspecified", TRUTH, (VALUE,), _told(lambda a: a.is_unspecified)),
    member("isLoopback", TRUTH, (VALUE,), _told(lambda a: a.is_loopback)),
    member("isLinkLocalUnicast", TRUTH, (VALUE,), _told(lambda a: a.is_link_local)),
    member("isLinkLocalMulticast", TRUTH, (VALUE,), _told(_is_local_multicast)),
    member("isGlobalUnicast", TRUTH, (VALUE,), _told(_is_global)),
    free("cidr", VALUE, (TEXT,), _cidr),
    free("isCIDR", TRUTH, (TEXT,), is_readable(_cidr)),
    member("containsIP", TRUTH, (VALUE, TEXT), _contains),
    member("containsIP", TRUTH, (VALUE, VALUE), _contains),
    member("containsCIDR", TRUTH, (VALUE, TEXT), _contains_range),
    member("containsCIDR", TRUTH, (VALUE, VALUE), _contains_range),
    member("ip", VALUE, (VALUE,), lambda value: {_IP: str(_cidr_of(value).ip)}),
    member("prefixLength", WHOLE, (VALUE,), lambda value: _cidr_of(value).network.prefixlen),
    member("masked", VALUE, (VALUE,), lambda value: {_CIDR: str(_cidr_of(value).network)}),
)
