"""CEL functions for IP addresses and CIDRs.

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
from math import ceil
from typing import ClassVar, Final

from msgspec import Struct

from fairlead.cel.cost.runtime_cost import TEXT_COST, reading
from fairlead.cel.function import Function, free, is_readable, member, scan, scan_twice

_RANGE: Final = re.compile(r"[^/%]+/(0|[1-9][0-9]{0,2})")
_RANGE_PROBLEM: Final = "network address parse error during conversion from string"
_BROADCAST: Final = IPv4Address("255.255.255.255")

Address = IPv4Address | IPv6Address
Interface = IPv4Interface | IPv6Interface


class IP(Struct, frozen=True):
    """An IP address."""

    address: Address
    type_name: ClassVar[str] = "net.IP"

    @property
    def size(self) -> int:
        """The number of bytes of the address."""
        return len(self.address.packed)


class CIDR(Struct, frozen=True):
    """A CIDR: an address and a prefix length."""

    interface: Interface
    type_name: ClassVar[str] = "net.CIDR"

    @property
    def size(self) -> int:
        """The number of bytes of the prefix, rounded up."""
        return ceil(self.interface.network.prefixlen / 8)


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
        message = f"netip.ParsePrefix({json.dumps(text, ensure_ascii=False)}): {why}"
        raise ValueError(f"{_RANGE_PROBLEM}: {_RANGE_PROBLEM}: {message}")
    bits = _address(text.partition("/")[0]).max_prefixlen
    if int(text.rpartition("/")[2]) > bits:
        message = f"netip.ParsePrefix({json.dumps(text)}): prefix length out of range"
        raise ValueError(f"{_RANGE_PROBLEM}: {_RANGE_PROBLEM}: {message}")
    return ip_interface(text)


def _ip(text: str) -> IP:
    return IP(_address(text))


def _cidr(text: str) -> CIDR:
    return CIDR(_interface(text))


def _property(of: Callable[[Address], bool]) -> Callable[[IP], bool]:
    return lambda value: of(value.address)


def _contains(one: CIDR, other: IP | str) -> bool:
    """Return whether an IP address is in a CIDR."""
    address = _address(other) if isinstance(other, str) else other.address
    return address in one.interface.network


def _contains_cost(one: CIDR, other: IP | str) -> int:
    parsing = reading(other) if isinstance(other, str) else 0
    return ceil(2 * one.size * TEXT_COST) + parsing


def _contains_range(one: CIDR, other: CIDR | str) -> bool:
    inner = _interface(other) if isinstance(other, str) else other.interface
    outer = one.interface.network
    return (
        inner.version == outer.version
        and inner.ip in outer
        and inner.network.prefixlen >= outer.prefixlen
    )


def _contains_range_cost(one: CIDR, other: CIDR | str) -> int:
    parsing = reading(other) if isinstance(other, str) else 0
    return ceil(2 * one.size * TEXT_COST) + reading(one) + 1 + parsing


def _is_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return str(address).startswith("224.0.0.")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _is_global(address: Address) -> bool:
    """Return the result of Go's IsGlobalUnicast, which is True also for private addresses."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == _BROADCAST
    )


FUNCTIONS: Final[tuple[Function, ...]] = (
    free("ip", (str,), _ip, scan),
    free("isIP", (str,), is_readable(_ip), scan),
    free("ip.isCanonical", (str,), lambda text: str(_address(text)) == text, scan_twice),
    free("string", (IP,), lambda value: str(value.address)),
    member("family", (IP,), lambda value: value.address.version),
    member("isUnspecified", (IP,), _property(lambda a: a.is_unspecified)),
    member("isLoopback", (IP,), _property(lambda a: a.is_loopback)),
    member("isLinkLocalUnicast", (IP,), _property(lambda a: a.is_link_local)),
    member("isLinkLocalMulticast", (IP,), _property(_is_local_multicast)),
    member("isGlobalUnicast", (IP,), _property(_is_global)),
    free("cidr", (str,), _cidr, scan),
    free("isCIDR", (str,), is_readable(_cidr), scan),
    free("string", (CIDR,), lambda value: str(value.interface)),
    member("containsIP", (CIDR, str), _contains, _contains_cost),
    member("containsIP", (CIDR, IP), _contains, _contains_cost),
    member("containsCIDR", (CIDR, str), _contains_range, _contains_range_cost),
    member("containsCIDR", (CIDR, CIDR), _contains_range, _contains_range_cost),
    member("ip", (CIDR,), lambda value: IP(ip_address(str(value.interface.ip)))),
    member("prefixLength", (CIDR,), lambda value: value.interface.network.prefixlen),
    member("masked", (CIDR,), lambda value: CIDR(ip_interface(str(value.interface.network)))),
)
