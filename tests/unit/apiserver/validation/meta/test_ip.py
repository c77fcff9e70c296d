"""IP addresses and CIDRs; all results are recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest

from fairlead.apiserver.registry.warning.network import cidr_warnings, ip_warnings
from fairlead.apiserver.validation.meta.ip import (
    NO_CIDR,
    NO_IP,
    check_cidr,
    check_ip,
    check_strict_cidr,
    check_strict_ip,
)


def whys(check, text):
    return [cause.message.removeprefix(f'Invalid value: "{text}": ') for cause in check("f", text)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("010.0.0.1", "must not have leading 0s"),
        ("::ffff:1.2.3.04", "must not have leading 0s"),
        ("::ffff:0102:09304", "must not have leading 0s"),
        ("::ffff:0102:0304", "must not be an IPv4-mapped IPv6 address"),
        ("fe80::1%eth0", NO_IP),
        ("1.2.3", NO_IP),
        ("256.1.1.1", NO_IP),
        ("", NO_IP),
    ],
)
def test_invalid_addresses_are_refused(text, why):
    assert whys(check_ip, text) == [why]


def test_only_newer_fields_require_the_canonical_form():
    assert whys(check_ip, "2001:DB8::0001") == []
    assert whys(check_strict_ip, "2001:DB8::0001") == ['must be in canonical form ("2001:db8::1")']
    assert whys(check_strict_ip, "2001:db8::1") == []
    assert whys(check_strict_cidr, "2001:DB8::/64") == [
        'must be in canonical form ("2001:db8::/64")'
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
        ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
        ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
        ("10.0.0.0/33", NO_CIDR),
        ("10.0.0.0", NO_CIDR),
        ("::%1/64", NO_CIDR),
    ],
)
def test_invalid_cidrs_are_refused(text, why):
    assert whys(check_cidr, text) == [why]


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("1.2.3.4", []),
        ("::1", []),
        ("010.0.0.1", ['f: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"']),
        (
            "::ffff:1.2.1.4",
            ['f: non-standard IP address "::ffff:1.2.1.4" is invalid: use "1.2.1.4"'],
        ),
        (
            "2001:DB8::",
            ['f: IPv6 address "2001:DB8::" should be in RFC 5952 canonical format ("2001:db8::")'],
        ),
    ],
)
def test_warnings_about_addresses(text, warnings):
    assert list(ip_warnings("f", text)) == warnings


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("10.0.0.0/8", []),
        (
            "10.0.09.0/08",
            [
                (
                    'f: CIDR value "10.0.09.0/08" is ambiguous in this context (should be '
                    '"10.0.0.0/8" or "10.0.9.0/32"?)'
                ),
                'f: non-standard CIDR value "10.0.09.0/08" is invalid: use "10.0.0.0/8"',
            ],
        ),
        (
            "::ffff:10.0.0.0/14",
            [
                (
                    'f: CIDR value "::ffff:10.0.0.0/14" is ambiguous in this context (should be '
                    '"::/14" or "10.0.0.0/128"?)'
                ),
                'f: non-standard CIDR value "::ffff:10.0.0.0/14" is invalid: use "::/14"',
            ],
        ),
    ],
)
def test_warnings_about_cidrs(text, warnings):
    assert list(cidr_warnings("f", text)) == warnings
