"""Address: the host and port on which an extender listens, by default a loopback address."""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

_ADDRESS: Final = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})")
_PORT_MAX: Final = 65535
# Names by which requests may address the loopback interface.
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Address(Struct, frozen=True):
    """A host and a port; port 0 means any free port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether `host` is a loopback address or `localhost`; False for every other host name."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a Host header may contain; () allows every name.

        Names are restricted only for a loopback address.
        """
        return tuple(dict.fromkeys((*LOOPBACK, self.host))) if self.is_loopback else ()

    def __str__(self) -> str:
        """Return `host:port` as in a URL, with brackets around an IPv6 host."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def open(self) -> socket.socket:
        """Return a listening socket on this address. Raises OSError."""
        host = "127.0.0.1" if self.host == "localhost" else self.host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, self.port), family=family)


def parse_address(text: str) -> Address:
    """Parse `127.0.0.1:8888`, `[::1]:8888` or `localhost:8888`. Raises ValueError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > _PORT_MAX:
        raise ValueError("must be HOST:PORT, such as 127.0.0.1:8888")
    return Address(found["v6"] or found["host"], int(found["port"]))
