"""What comes in and what goes out, whatever carries it: one request, one answer.

An HTTP shell fills in a `Request` and sends a `Response`; a test does it without one. Both are
structs, as is whatever is made anew for every request: a frozen dataclass takes six times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct, field

SYSTEM_MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

Headers = tuple[tuple[str, str], ...]
# Between the values of a header that came more than once; it can be in none of them.
SEPARATOR: Final = "\n"


class User(Struct, frozen=True, kw_only=True):
    """Who asks; `groups` include system:authenticated or system:unauthenticated."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ADMIN = User(name="kubernetes-admin", groups=(SYSTEM_MASTERS, AUTHENTICATED))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAnswer:
    """What an admission webhook said: `body`, or why that is nothing.

    `is_reached`: it is the webhook that says so, or whoever stands before it.
    """

    body: bytes = b""
    failure: str = ""
    is_reached: bool = False


NO_ANSWERS: Final[Mapping[str, WebhookAnswer]] = {}


class Request(Struct, frozen=True):
    """One request; names of `headers` are in lower case, `query` is decoded and in order.

    Of a header that came several times the first counts, except where it is a list
    (`Impersonate-…`): its values are kept apart by SEPARATOR.
    `webhooks` are the answers of those that were asked about it already; `drawn` are the ids that
    it was given while it waited for them, and `sweep` is how far it came with a collection. `notes`
    are for the audit log.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User = ADMIN
    webhooks: Mapping[str, WebhookAnswer] = NO_ANSWERS
    drawn: tuple[str, ...] = ()
    progress: object | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def parameter(self, name: str) -> str:
        """The first value of a query parameter, "" when it is not given."""
        for key, value in self.query:
            if key == name:
                return value
        return ""

    def has(self, name: str) -> bool:
        """Whether a query parameter is given, if only as `?name`."""
        return any(key == name for key, _ in self.query)


class Response(Struct, frozen=True):
    """One answer; `body` comes in parts, so that a long list need not be copied into one piece.

    `warnings` become one Warning header each.
    """

    status: int
    body: tuple[bytes, ...] = ()
    content_type: str = "application/json"
    headers: Headers = ()
    warnings: tuple[str, ...] = ()
