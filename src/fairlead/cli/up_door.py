"""The door of `fairlead up`: where it listens, and what it shows there."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair
from fairlead.apiserver.http.listener import BACKLOG, Certificate
from fairlead.cli.own_folder import own_folder
from fairlead.whatif.input_error import InputError
from fairlead.worlds.extender.address import Address
from fairlead.worlds.local.kubeconfig import write_secret

# Listening there, a machine is reached by any of its addresses; by itself, best by the second.
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only where that is asked for

# It is taken, or below 1024 and so for the administrator of the machine.
_ABOUT_PORTS: Final = (errno.EADDRINUSE, errno.EACCES)


def open_door(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises InputError for a port that is taken, or a foreign address."""
    address = Address(host, port)
    try:
        listening = address.open()
    except (OSError, UnicodeError) as cause:
        problem = getattr(cause, "strerror", None) or str(cause)
        option = "--port" if getattr(cause, "errno", None) in _ABOUT_PORTS else "--host"
        problem = problem.partition(" (while")[0]  # what follows says the address again
        raise InputError(option, problem, object_name=str(address)) from None
    listening.listen(BACKLOG)
    return listening


def told_address(host: str, listening: socket.socket) -> Address:
    """What clients on this machine are told."""
    return Address(_ANY.get(host, host), listening.getsockname()[1])


def hosts_of(host: str) -> tuple[str, ...]:
    """By what names and addresses clients may call who listens at `host`."""
    if host not in _ANY:
        return (host,)
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        found = []
    addresses = (str(row[4][0]).partition("%")[0] for row in found)
    return tuple(dict.fromkeys((_ANY[host], name, *addresses)))


@contextmanager
def certificate_files(pair: CertificateKeyPair, authority: str) -> Iterator[Certificate]:
    """The server's certificate and key as files, for as long as they are needed.

    Clients may show certificates of `authority`, as PEM.
    """
    with own_folder() as folder:
        names = ("server.crt", "server.key", "clients.crt")
        chain, key, clients = (folder / name for name in names)
        write_secret(chain, pair.certificate)
        write_secret(key, pair.key)
        write_secret(clients, authority)
        yield Certificate(str(chain), str(key), str(clients))
