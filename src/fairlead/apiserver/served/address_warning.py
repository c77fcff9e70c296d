"""Addresses and ranges that are written in another way than they should.

upstream: apimachinery/pkg/util/validation/ip.go:GetWarningsForIP, GetWarningsForCIDR
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_interface

Warnings = Iterator[str]


def ip_warnings(field: str, text: str) -> Warnings:
    """An address in one of its longer forms."""
    try:
        shortest = str(ip_address(text))
    except ValueError:
        return
    if ":" in text and shortest != text:
        why = f'should be in RFC 5952 canonical format ("{shortest}")'
        yield f'{field}: IPv6 address "{text}" {why}'


def cidr_warnings(field: str, text: str) -> Warnings:
    """A range that begins within itself, or is in one of its longer forms."""
    try:
        found = ip_interface(text)
    except ValueError:
        return
    if found.ip != found.network.network_address:
        alone = f"{found.ip}/{found.max_prefixlen}"
        why = f'is ambiguous in this context (should be "{found.network}" or "{alone}"?)'
        yield f'{field}: CIDR value "{text}" {why}'
    elif ":" in text and str(found.network) != text:
        why = f'should be in RFC 5952 canonical format ("{found.network}")'
        yield f'{field}: IPv6 CIDR value "{text}" {why}'
