"""Authenticates clients by certificate.

TLS has already verified the certificate. The certificate's common name is the user name, and its
organizations are the user's groups.

upstream: apiserver/pkg/authentication/request/x509/x509.go:CommonNameUserConversion
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import structs

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.request import User

# The key of the user in the state of a connection.
PEER: Final = "fairlead.peer"
CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_NAME: Final = "commonName"
_GROUP: Final = "organizationName"


class Connection(Protocol):
    """An asyncio transport."""

    def get_extra_info(self, name: str) -> Any:
        """Return the property `name` of the transport; None if the transport does not have it."""
        ...


def peer_of(transport: Connection) -> User | None:
    """Return the user in the client certificate; None if there is no client certificate."""
    user = user_of_certificate(transport.get_extra_info("peercert") or {})
    shown = transport.get_extra_info("ssl_object")
    if user is None or shown is None:
        return user
    digest = hashlib.sha256(shown.getpeercert(binary_form=True)).hexdigest()
    return structs.replace(user, extra={CREDENTIAL: (f"X509SHA256={digest}",)})


def user_of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """Return the user in a certificate that `ssl` has decoded; None if it has no common name."""
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    name = next((text for kind, text in subject if kind == _NAME), "")
    if not name:
        return None
    return authenticated(name, tuple(text for kind, text in subject if kind == _GROUP))
