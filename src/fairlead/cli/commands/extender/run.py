"""Runs `fairlead extender`: reads the configuration, listens, serves until a signal."""

from __future__ import annotations

import re
from socket import socket
from typing import Final

from fairlead.cli import exit_code
from fairlead.cli.options.parameter import Names
from fairlead.whatif.configuration.extender_adviser import read_adviser
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.error import InputError
from fairlead.worlds.extender.address import Address, parse_address
from fairlead.worlds.extender.answers import Answers
from fairlead.worlds.extender.server import serve_extender

LISTEN: Final = "--listen"
API_SERVER: Final = "--api-server"
_URL: Final = re.compile(r"https?://[^/?#\s]+[^?#\s]*")


def serve(
    config: str | None,
    plugins: Names,
    snapshot: str | None,
    listen: str,
    *,
    api_server: str | None,
    beyond_loopback: bool,
) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code. Raises InputError."""
    address = _address(listen, beyond_loopback=beyond_loopback)
    if api_server is not None and not _URL.fullmatch(api_server):
        raise InputError(API_SERVER, "must be an http or https URL", object_name=api_server)
    answers = Answers(read_adviser(config, UserPlugins(plugins), snapshot))
    with _open(address) as listening:
        at = Address(address.host, listening.getsockname()[1])

        def say_ready() -> None:
            print(f"listening on http://{at}", flush=True)

        serve_extender(answers, at, listening, api_server=api_server or "", on_ready=say_ready)
    return exit_code.SUCCESS


def _address(text: str, *, beyond_loopback: bool) -> Address:
    try:
        address = parse_address(text)
    except ValueError as cause:
        raise InputError(LISTEN, str(cause), object_name=text) from None
    if not address.is_loopback and not beyond_loopback:
        problem = "other machines could reach this address; add --beyond-loopback to allow it"
        raise InputError(LISTEN, problem, object_name=text)
    return address


def _open(address: Address) -> socket:
    try:
        return address.open()
    except OSError as cause:
        problem = cause.strerror or str(cause)
        raise InputError(LISTEN, problem, object_name=str(address)) from None
