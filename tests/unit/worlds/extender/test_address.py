"""Addresses that an extender can listen at."""

from __future__ import annotations

import pytest

from fairlead.worlds.extender.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "host", "is_loopback"),
    [
        ("127.0.0.1:8888", "127.0.0.1", True),
        ("127.8.0.1:8888", "127.8.0.1", True),
        ("localhost:8888", "localhost", True),
        ("[::1]:8888", "::1", True),
        ("0.0.0.0:8888", "0.0.0.0", False),
        ("[::]:8888", "::", False),
        ("10.0.0.1:8888", "10.0.0.1", False),
        ("node-1:8888", "node-1", False),
    ],
)
def test_an_address_is_a_host_and_a_port(text, host, is_loopback):
    address = parse_address(text)
    assert (address, address.is_loopback) == (Address(host, 8888), is_loopback)
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "8888", ":8888", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80", "a:b:1"]
)
def test_any_other_text_is_refused(text):
    with pytest.raises(ValueError, match="must be HOST:PORT"):
        parse_address(text)


def test_a_loopback_address_has_the_names_of_the_machine():
    assert parse_address("127.0.0.1:1").names == ("127.0.0.1", "localhost", "[::1]")
    assert "127.8.0.1" in parse_address("127.8.0.1:1").names
    assert parse_address("0.0.0.0:1").names == ()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_opened_address_listens_at_a_port(host):
    with Address(host, 0).open() as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        assert listening.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            Address(host, listening.getsockname()[1]).open()
