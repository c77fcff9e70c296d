"""Warnings about IP addresses and CIDRs in non-canonical form.

upstream: apimachinery/pkg/util/validation/ip.go:GetWarningsForIP, GetWarningsForCIDR
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.apiserver.validation.meta.ip import parse_cidr, parse_ip

Warnings = Iterator[str]


def ip_warnings(field: str, text: str) -> Warnings:
    """Warns about a non-canonical address."""
    found = parse_ip(text)
    if found is None:
        return
    if found.is_padded or found.mapped is not None:
        why = f'is invalid: use "{found.plain}"'
        yield f'{field}: non-standard IP address "{text}" {why}'
    elif ":" in text and str(found.address) != text:
        why = f'should be in RFC 5952 canonical format ("{found.address}")'
        yield f'{field}: IPv6 address "{text}" {why}'


def cidr_warnings(field: str, text: str) -> Warnings:
    """Warns about a CIDR with host bits set, or in non-canonical form."""
    found = parse_cidr(text)
    if found is None:
        return
    address, network = found.first.plain, found.network
    if found.begins_within:
        alone = f"{address}/{found.first.address.max_prefixlen}"
        why = f'is ambiguous in this context (should be "{network}" or "{alone}"?)'
        yield f'{field}: CIDR value "{text}" {why}'
    if found.is_padded or found.first.mapped is not None:
        yield f'{field}: non-standard CIDR value "{text}" is invalid: use "{network}"'
    elif not found.begins_within and ":" in text and network != text:
        why = f'should be in RFC 5952 canonical format ("{network}")'
        yield f'{field}: IPv6 CIDR value "{text}" {why}'
