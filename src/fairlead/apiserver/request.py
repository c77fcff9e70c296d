"""Request and Response, which are independent of the transport.

The two classes are msgspec structs, because creating a frozen dataclass for each request would take
six times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

SYSTEM_MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

Headers = tuple[tuple[str, str], ...]
# Separates the values of a repeated header; no header value can contain it.
SEPARATOR: Final = "\n"


class User(Struct, frozen=True, kw_only=True):
    """A user.

    Authentication puts the anonymous user into the group system:unauthenticated, and all other
    users into the group system:authenticated.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ADMIN = User(name="kubernetes-admin", groups=(SYSTEM_MASTERS, AUTHENTICATED))


class Request(Struct, frozen=True):
    """One request.

    Header names are in lower case. `query` contains the decoded parameters in their order. If a
    header is repeated, only its first value is kept. Exception: the values of list headers
    (`Impersonate-…` and `Sec-WebSocket-Protocol`) are joined by SEPARATOR. `notes` become
    annotations in the audit log.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User = ADMIN
    notes: dict[str, str] = field(default_factory=dict)

    def parameter(self, name: str) -> str:
        """Return the first value of the query parameter `name`; "" if it is absent."""
        for key, value in self.query:
            if key == name:
                return value
        return ""

    def has(self, name: str) -> bool:
        """Return whether the query parameter `name` is present; it may have no value (`?name`)."""
        return any(key == name for key, _ in self.query)


# The parts of a body: a tuple, or an iterable that encodes a long list part by part.
Body = Iterable[bytes]


class Response(Struct, frozen=True):
    """One response. Each of `warnings` is sent as a Warning header.

    The changes that a response shows must be durable before the response is sent. If the response
    shows only one object, `version` is the resourceVersion of this object. If `version` is None,
    the response may show any change made so far.
    """

    status: int
    body: Body = ()
    content_type: str = "application/json"
    headers: Headers = ()
    warnings: tuple[str, ...] = ()
    version: int | None = None
