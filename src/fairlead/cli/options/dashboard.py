"""The options --dashboard and --dashboard-port."""

from __future__ import annotations

from socket import socket
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import integer
from fairlead.whatif.input.error import InputError
from fairlead.worlds.extender.address import Address

PORT_MAX: Final = 65_535
_PORT: Final = "--dashboard-port"

DashboardPort = Annotated[
    int,
    Parameter(
        help="With --dashboard: the dashboard's port on 127.0.0.1; 0 picks any free port.",
        converter=integer,
    ),
]


def check_dashboard_port(port: int, *, dashboard: bool) -> None:
    """Raise InputError if --dashboard-port is not a port, or is given without --dashboard."""
    if not 0 <= port <= PORT_MAX:
        raise InputError(_PORT, f"must be from 0 to {PORT_MAX}")
    if port and not dashboard:
        raise InputError(_PORT, "needs --dashboard")


def open_dashboard_port(port: int) -> socket:
    """Return a socket that listens on `port` of 127.0.0.1. Raises InputError."""
    address = Address("127.0.0.1", port)
    try:
        listening = address.open()
    except OSError as cause:
        problem = (cause.strerror or str(cause)).partition(" (while")[0]
        raise InputError(_PORT, problem, object_name=str(address)) from None
    listening.listen()
    return listening
