"""Runs `fairlead extender`, from its options to its exit code."""

from __future__ import annotations

import re
from typing import Final

from fairlead.cli import exit_code
from fairlead.cli.options.listen import listen_address, open_listener
from fairlead.cli.options.parameter import Names
from fairlead.whatif.configuration.extender_adviser import read_adviser
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.error import InputError
from fairlead.worlds.extender.address import Address
from fairlead.worlds.extender.answers import Answers
from fairlead.worlds.extender.server import serve_extender

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
    address = listen_address(listen, beyond_loopback=beyond_loopback)
    if api_server is not None and not _URL.fullmatch(api_server):
        raise InputError(API_SERVER, "must be an http or https URL", object_name=api_server)
    answers = Answers(read_adviser(config, UserPlugins(plugins), snapshot))
    with open_listener(address) as listening:
        at = Address(address.host, listening.getsockname()[1])

        def say_ready() -> None:
            print(f"listening on http://{at}", flush=True)

        serve_extender(answers, at, listening, api_server=api_server or "", on_ready=say_ready)
    return exit_code.SUCCESS
