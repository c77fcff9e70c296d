"""The listening socket of `fairlead up` and its TLS certificate."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair
from fairlead.apiserver.http.listener import BACKLOG, Certificate
from fairlead.cli.commands.up.private_folder import private_folder
from fairlead.whatif.input.error import InputError
from fairlead.worlds.extender.address import Address
from fairlead.worlds.local.kubeconfig import write_secret

# Wildcard addresses, each with the loopback address at which clients on this machine reach it.
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only where that is asked for

# Errors for a port that is in use, or that is below 1024 and reserved for root.
_ABOUT_PORTS: Final = (errno.EADDRINUSE, errno.EACCES)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises InputError if the port or the address is not available."""
    address = Address(host, port)
    try:
        listening = address.open()
    except (OSError, UnicodeError) as cause:
        problem = getattr(cause, "strerror", None) or str(cause)
        option = "--port" if getattr(cause, "errno", None) in _ABOUT_PORTS else "--host"
        problem = problem.partition(" (while")[0]  # The rest of the message repeats the address.
        raise InputError(option, problem, object_name=str(address)) from None
    listening.listen(BACKLOG)
    return listening


def client_address(host: str, listening: socket.socket) -> Address:
    """Return the address at which clients on this machine reach the server.

    `listening` is the server's socket, which was opened for `host`.
    """
    return Address(_ANY.get(host, host), listening.getsockname()[1])


def host_names(host: str) -> tuple[str, ...]:
    """Return the names and addresses at which clients can reach a server that listens on `host`."""
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
    """Yield the paths of temporary files with the server's certificate, its key, and `authority`.

    `authority` is the certificate (PEM) of the CA that signs client certificates.
    """
    with private_folder() as folder:
        names = ("server.crt", "server.key", "clients.crt")
        chain, key, clients = (folder / name for name in names)
        write_secret(chain, pair.certificate)
        write_secret(key, pair.key)
        write_secret(clients, authority)
        yield Certificate(str(chain), str(key), str(clients))
