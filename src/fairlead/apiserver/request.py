"""Request and Response, independent of the transport.

An HTTP server fills in a `Request` and sends a `Response`; tests use them without HTTP. Both are
msgspec structs, as is everything created for each request: a frozen dataclass takes six times as
long.
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
    """An authenticated user; `groups` include system:authenticated or system:unauthenticated."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ADMIN = User(name="kubernetes-admin", groups=(SYSTEM_MASTERS, AUTHENTICATED))


class Request(Struct, frozen=True):
    """One request; header names are in lower case, `query` is decoded and in order.

    The first value of a repeated header counts, except for list headers (`Impersonate-…`), whose
    values are joined by SEPARATOR.

    `notes` are for the audit log.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User = ADMIN
    notes: dict[str, str] = field(default_factory=dict)

    def parameter(self, name: str) -> str:
        """Return the first value of a query parameter, "" if it is absent."""
        for key, value in self.query:
            if key == name:
                return value
        return ""

    def has(self, name: str) -> bool:
        """Return whether a query parameter is present, even without a value (`?name`)."""
        return any(key == name for key, _ in self.query)


# The parts of a body. A tuple is complete; a long list is encoded while it is iterated.
Body = Iterable[bytes]


class Response(Struct, frozen=True):
    """One response; `warnings` become one Warning header each."""

    status: int
    body: Body = ()
    content_type: str = "application/json"
    headers: Headers = ()
    warnings: tuple[str, ...] = ()
