"""The option --listen: the address that a command listens on."""

from __future__ import annotations

from socket import socket
from typing import Final

from fairlead.whatif.input.error import InputError
from fairlead.worlds.extender.address import Address, parse_address

LISTEN: Final = "--listen"


def listen_address(text: str, *, beyond_loopback: bool) -> Address:
    """Return the address in `text`.

    Raises InputError if the address is invalid, or if other machines can reach the address and
    `beyond_loopback` is False.
    """
    try:
        address = parse_address(text)
    except ValueError as cause:
        raise InputError(LISTEN, str(cause), object_name=text) from None
    if not address.is_loopback and not beyond_loopback:
        problem = "other machines could reach this address; add --beyond-loopback to allow it"
        raise InputError(LISTEN, problem, object_name=text)
    return address


def open_listener(address: Address) -> socket:
    """Return a socket that listens on `address`. Raises InputError."""
    try:
        return address.open()
    except OSError as cause:
        problem = cause.strerror or str(cause)
        raise InputError(LISTEN, problem, object_name=str(address)) from None
