"""Authenticates clients by certificate.

TLS has already verified the certificate, except its expiry (see `listener`). The certificate
expires by the cluster's clock, as tokens do. Its common name is the user name, and its
organizations are the user's groups.

upstream: apiserver/pkg/authentication/request/x509/x509.go:CommonNameUserConversion
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

from cryptography import x509
from msgspec import Struct, structs

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.request import User

# The key of the client's certificate, a `Peer`, in the state of a connection.
PEER: Final = "fairlead.peer"
CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_NAME: Final = "commonName"
_GROUP: Final = "organizationName"


class Peer(Struct, frozen=True):
    """The user in a client certificate, which expires after `expires_at` (ns since 1970)."""

    user: User
    expires_at: int


class Connection(Protocol):
    """An asyncio transport."""

    def get_extra_info(self, name: str) -> Any:
        """Return the property `name` of the transport; None if the transport does not have it."""
        ...


def peer_of(transport: Connection) -> Peer | None:
    """Return the user in the client certificate; None if there is no client certificate."""
    user = user_of_certificate(transport.get_extra_info("peercert") or {})
    shown = transport.get_extra_info("ssl_object")
    if user is None or shown is None:
        return None
    encoded = shown.getpeercert(binary_form=True)
    expiry = x509.load_der_x509_certificate(encoded).not_valid_after_utc
    digest = hashlib.sha256(encoded).hexdigest()
    return Peer(
        structs.replace(user, extra={CREDENTIAL: (f"X509SHA256={digest}",)}),
        int(expiry.timestamp()) * NANOSECONDS_PER_SECOND,
    )


def user_of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """Return the user in a certificate that `ssl` has decoded; None if it has no common name."""
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    name = next((text for kind, text in subject if kind == _NAME), "")
    if not name:
        return None
    return authenticated(name, tuple(text for kind, text in subject if kind == _GROUP))
