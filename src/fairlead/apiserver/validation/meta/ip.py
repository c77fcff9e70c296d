"""IP addresses and CIDRs: parsers, and checks for fields of older and of newer kinds.

Go's old parser (`ParseIPSloppy`) accepts leading zeros, IPv4-mapped IPv6 addresses, and CIDRs with
host bits set. `parse_ip` and `parse_cidr` accept them too. `check_ip` and `check_cidr` are for
fields of older kinds. These checks refuse all three, each with its own error message.
`check_strict_ip` and `check_strict_cidr` are for fields of newer kinds. The strict checks also
refuse a text that is not in canonical form, such as `2001:DB8::1` instead of `2001:db8::1`.

upstream: apimachinery/pkg/util/validation/ip.go, k8s.io/utils/net/parse.go
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from msgspec import Struct

from fairlead.api.text.text_cache import text_cache
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
_CACHE_SIZE: Final = 1 << 13  # A NetworkPolicy can have thousands of CIDRs; each is parsed twice.


class ParsedIP(Struct, frozen=True):
    """An IP address as the client wrote it. `is_padded` is True if it has leading zeros."""

    address: Address
    is_padded: bool

    @property
    def mapped(self) -> IPv4Address | None:
        """The IPv4 address in an IPv4-mapped IPv6 address; None for other addresses."""
        return self.address.ipv4_mapped if isinstance(self.address, IPv6Address) else None

    @property
    def plain(self) -> Address:
        """The address as Go prints it: without the IPv6 prefix of a mapped IPv4 address."""
        return self.mapped or self.address


class ParsedCIDR(Struct, frozen=True):
    """A CIDR as the client wrote it: the address `first` and the prefix length `bits`.

    `is_padded` is True if the address or the prefix length has leading zeros.
    """

    first: ParsedIP
    bits: int
    is_padded: bool

    @property
    def network(self) -> str:
        """The CIDR as Go prints it, with all host bits 0."""
        address = self.first.address
        begin = ParsedIP(type(address)(int(address) - self._host), is_padded=False)
        if begin.mapped is not None and self.bits >= _MAPPED_BITS:
            return f"{begin.mapped}/{self.bits - _MAPPED_BITS}"
        return f"{begin.address}/{self.bits}"

    @property
    def interface(self) -> str:
        """The address and the prefix length, as Go prints them. The host bits are kept."""
        is_mapped = self.first.mapped is not None and self.bits > _MAPPED_BITS
        bits = self.bits - _MAPPED_BITS if is_mapped else self.bits
        return f"{self.first.plain}/{bits}"

    @property
    def begins_within(self) -> bool:
        """True if at least one host bit of the address is 1."""
        return self._host != 0

    @property
    def _host(self) -> int:
        """The value of the host bits of the address."""
        address = self.first.address
        return int(address) & ((1 << (address.max_prefixlen - self.bits)) - 1)


@text_cache(maxsize=_CACHE_SIZE)
def parse_ip(text: str) -> ParsedIP | None:
    """Return `text` as Go's old parser reads it; None if it is not an address."""
    if "%" in text:  # The address has a zone.
        return None
    if _IPV4.fullmatch(text):
        plain = _OCTET.sub("", text)
        return _parsed(IPv4Address, plain, is_padded=plain != text)
    plain = _GROUP.sub("", _OCTET_OF_6.sub("", text)) if ":" in text else text
    return _parsed(IPv6Address, plain, is_padded=plain != text)


@text_cache(maxsize=_CACHE_SIZE)
def parse_cidr(text: str) -> ParsedCIDR | None:
    """Return `text` as Go's old parser reads it; None if it is not a CIDR."""
    address, slash, mask = text.partition("/")
    first = parse_ip(address) if slash else None
    if first is None or not _NUMBER.fullmatch(mask):
        return None
    digits = mask.lstrip("0") or "0"
    if len(digits) > len("128") or int(digits) > first.address.max_prefixlen:
        return None
    return ParsedCIDR(first, int(digits), first.is_padded or digits != mask)


def is_ip(text: str) -> bool:
    """Return whether `text` is an IPv4 or IPv6 address."""
    return parse_ip(text) is not None


def check_ip(field: str, text: str) -> Causes:
    """Yield the errors of an IP address; a non-canonical form (`2001:DB8::1`) is no error."""
    # upstream: ip.go:IsValidIPForLegacyField
    found = parse_ip(text)
    if found is None:
        yield invalid(field, text, NO_IP)
    elif found.is_padded:
        yield invalid(field, text, _PADDED)
    elif found.mapped is not None:
        yield invalid(field, text, _MAPPED)


def check_strict_ip(field: str, text: str) -> Causes:
    """Yield the errors of an IP address, which must be in canonical form."""
    # upstream: ip.go:IsValidIP
    problems = tuple(check_ip(field, text))
    yield from problems
    found = parse_ip(text)
    if not problems and found is not None and str(found.address) != text:
        yield invalid(field, text, f'must be in canonical form ("{found.address}")')


def check_cidr(field: str, text: str) -> Causes:
    """Yield the errors of a CIDR; a non-canonical form (`2001:DB8::/32`) is no error."""
    # upstream: ip.go:IsValidCIDRForLegacyField
    found = parse_cidr(text)
    if found is None:
        yield invalid(field, text, NO_CIDR)
    elif found.is_padded:
        yield invalid(field, text, _PADDED_RANGE)
    elif found.first.mapped is not None:
        yield invalid(field, text, _MAPPED_RANGE)
    elif found.begins_within:
        yield invalid(field, text, _SPARE_BITS)


def check_strict_cidr(field: str, text: str) -> Causes:
    """Yield the errors of a CIDR, which must be in canonical form."""
    # upstream: ip.go:IsValidCIDR
    problems = tuple(check_cidr(field, text))
    yield from problems
    found = parse_cidr(text)
    if not problems and found is not None and found.network != text:
        yield invalid(field, text, f'must be in canonical form ("{found.network}")')


def _parsed(
    family: type[IPv4Address | IPv6Address], text: str, *, is_padded: bool
) -> ParsedIP | None:
    try:
        return ParsedIP(family(text), is_padded)
    except ValueError:
        return None
