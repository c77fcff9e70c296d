"""Finds out whether the cluster of a kubeconfig still runs, before the file is replaced."""

from __future__ import annotations

import base64
import socket
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import yaml

from fairlead.api.client_tls import client_tls_context
from fairlead.whatif.input.error import InputError

TIMEOUT_S: Final = 2.0


def require_ended(path: Path) -> None:
    """Raise InputError if the cluster of the kubeconfig at `path` still runs.

    The cluster's server is recognised by its certificate. If the file is missing, or is not the
    kubeconfig of a local cluster, nothing is raised.
    """
    try:
        (cluster,) = yaml.safe_load(path.read_bytes())["clusters"]
        url = cluster["cluster"]["server"]
        authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
        address = urlsplit(url)
        host, port = address.hostname or "", address.port or 0
    except (OSError, yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError):
        return
    if _answers(host, port, authority):
        problem = (
            f"is the kubeconfig of a cluster that still runs ({url}); end that cluster, or choose "
            "another file"
        )
        raise InputError("--kubeconfig", problem, object_name=str(path))


def _answers(host: str, port: int, authority: str) -> bool:
    """Return whether a server at this address has a certificate of the CA `authority`."""
    try:
        context = client_tls_context(authority=authority)
        context.check_hostname = False  # only the authority matters
        with (
            socket.create_connection((host, port), timeout=TIMEOUT_S) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except (OSError, ValueError):  # SSLError is an OSError
        return False
