"""Peer: who a client is by the certificate that it shows, if it shows one.

The authority that signed it was checked when the connection was made. The common name is the
user's, organizations are groups.

upstream: apiserver/pkg/authentication/request/x509/x509.go:CommonNameUserConversion
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import structs

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.request import User

# Where a connection's state holds it.
PEER: Final = "fairlead.peer"
CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_NAME: Final = "commonName"
_GROUP: Final = "organizationName"


class Connection(Protocol):
    """As an event loop holds it."""

    def get_extra_info(self, name: str) -> Any:
        """What is known of it under `name`, None where that is nothing."""
        ...


def peer_of(transport: Connection) -> User | None:
    """Who is at the other end; None where no certificate says it."""
    user = user_of_certificate(transport.get_extra_info("peercert") or {})
    shown = transport.get_extra_info("ssl_object")
    if user is None or shown is None:
        return user
    digest = hashlib.sha256(shown.getpeercert(binary_form=True)).hexdigest()
    return structs.replace(user, extra={CREDENTIAL: (f"X509SHA256={digest}",)})


def user_of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """The user that a certificate, as the module ssl shows it, names; None where it names none."""
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    name = next((text for kind, text in subject if kind == _NAME), "")
    if not name:
        return None
    return authenticated(name, tuple(text for kind, text in subject if kind == _GROUP))
