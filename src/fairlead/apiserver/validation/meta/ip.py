"""Addresses and ranges of addresses: what is one, in which forms, and what is said of others.

What upstream's older reader takes and its newer one does not is refused with a reason of its own:
zeros before a number, IPv4 addresses in an IPv6 form, ranges that begin within themselves. Fields
that are newer want the shortest form besides.

upstream: apimachinery/pkg/util/validation/ip.go, k8s.io/utils/net/parse.go
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

from fairlead.apiserver.validation.meta.field import Causes, invalid

Address = IPv4Address | IPv6Address

NO_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NO_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_PADDED: Final = "must not have leading 0s"
_MAPPED: Final = "must not be an IPv4-mapped IPv6 address"
_PADDED_RANGE: Final = "must not have leading 0s in IP or prefix length"
_MAPPED_RANGE: Final = "must not have an IPv4-mapped IPv6 address"
_SPARE_BITS: Final = "must not have bits set beyond the prefix length"
_NUMBER: Final = re.compile("[0-9]+")
_OCTET: Final = re.compile(r"(?<![0-9A-Fa-f:])0+(?=[0-9])")
_OCTET_OF_6: Final = re.compile(r"(?<=:)0+(?=[0-9]+\.)|(?<=\.)0+(?=[0-9]+(?:\.|$))")
_GROUP: Final = re.compile("(?<![0-9A-Fa-f.])0+(?=[0-9A-Fa-f]{4}(?![0-9A-Fa-f.]))")
_IPV4: Final = re.compile(r"[0-9]+(\.[0-9]+){3}")
_MAPPED_BITS: Final = 96


@dataclass(frozen=True, slots=True)
class Written:
    """An address as somebody wrote it; `is_padded`: with zeros that only the older reader takes."""

    address: Address
    is_padded: bool

    @property
    def mapped(self) -> IPv4Address | None:
        """The IPv4 address that an IPv6 form stands for."""
        return self.address.ipv4_mapped if isinstance(self.address, IPv6Address) else None

    @property
    def plain(self) -> Address:
        """The address as the language prints it."""
        return self.mapped or self.address


@dataclass(frozen=True, slots=True)
class WrittenRange:
    """A range as somebody wrote it: an address in it, and how many bits count."""

    first: Written
    bits: int
    is_padded: bool

    @property
    def network(self) -> str:
        """The range as the language prints it."""
        network = ip_network((self.first.address, self.bits), strict=False)
        begin = Written(network.network_address, is_padded=False)
        if begin.mapped is not None and self.bits >= _MAPPED_BITS:
            return f"{begin.mapped}/{self.bits - _MAPPED_BITS}"
        return str(network)

    @property
    def begins_within(self) -> bool:
        """Whether its address is not its first one."""
        network = ip_network((self.first.address, self.bits), strict=False)
        return network.network_address != self.first.address


def written_ip(text: str) -> Written | None:
    """`text` as the older reader takes it, None for what is no address."""
    if "%" in text:  # a zone
        return None
    if _IPV4.fullmatch(text):
        plain = _OCTET.sub("", text)
        return _written(IPv4Address, plain, is_padded=plain != text)
    plain = _GROUP.sub("", _OCTET_OF_6.sub("", text)) if ":" in text else text
    return _written(IPv6Address, plain, is_padded=plain != text)


def written_range(text: str) -> WrittenRange | None:
    """`text` as the older reader takes it, None for what is no range."""
    address, slash, mask = text.partition("/")
    first = written_ip(address) if slash else None
    if first is None or not _NUMBER.fullmatch(mask):
        return None
    digits = mask.lstrip("0") or "0"
    if len(digits) > len("128") or int(digits) > first.address.max_prefixlen:
        return None
    return WrittenRange(first, int(digits), first.is_padded or digits != mask)


def is_ip(text: str) -> bool:
    """Whether it is an address of either family."""
    return written_ip(text) is not None


def check_ip(field: str, text: str) -> Causes:
    """An address of either family."""
    # upstream: ip.go:IsValidIPForLegacyField
    found = written_ip(text)
    if found is None:
        yield invalid(field, text, NO_IP)
    elif found.is_padded:
        yield invalid(field, text, _PADDED)
    elif found.mapped is not None:
        yield invalid(field, text, _MAPPED)


def check_strict_ip(field: str, text: str) -> Causes:
    """An address in its shortest form."""
    # upstream: ip.go:IsValidIP
    problems = tuple(check_ip(field, text))
    yield from problems
    found = written_ip(text)
    if not problems and found is not None and str(found.address) != text:
        yield invalid(field, text, f'must be in canonical form ("{found.address}")')


def check_cidr(field: str, text: str) -> Causes:
    """A range of addresses."""
    # upstream: ip.go:IsValidCIDRForLegacyField
    found = written_range(text)
    if found is None:
        yield invalid(field, text, NO_CIDR)
    elif found.is_padded:
        yield invalid(field, text, _PADDED_RANGE)
    elif found.first.mapped is not None:
        yield invalid(field, text, _MAPPED_RANGE)
    elif found.begins_within:
        yield invalid(field, text, _SPARE_BITS)


def check_strict_cidr(field: str, text: str) -> Causes:
    """A range in its shortest form."""
    # upstream: ip.go:IsValidCIDR
    problems = tuple(check_cidr(field, text))
    yield from problems
    found = written_range(text)
    if not problems and found is not None and found.network != text:
        yield invalid(field, text, f'must be in canonical form ("{found.network}")')


def _written(
    family: type[IPv4Address | IPv6Address], text: str, *, is_padded: bool
) -> Written | None:
    try:
        return Written(family(text), is_padded)
    except ValueError:
        return None
