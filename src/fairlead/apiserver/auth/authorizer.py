"""The authorizer interface: what users may do, and how the server identifies them.

upstream: apiserver/pkg/authorization/authorizer/interfaces.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.auth.authentication.token import API_AUDIENCES, Recognize
from fairlead.apiserver.request import User


class AuthorizationAttributes(Struct, frozen=True):
    """The attributes of a request to authorize; for non-resource URLs all but `path` are "".

    `selector` is the field selector of a request for many objects, as it was sent.
    """

    user: User
    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    selector: str = ""

    @property
    def is_resource(self) -> bool:
        """Whether this is a request for a resource."""
        return bool(self.resource)


# Raises ApiError 403 unless the request is allowed.
Authorize = Callable[[AuthorizationAttributes], None]


def allow_all(_: AuthorizationAttributes) -> None:
    """Allows every request."""


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether a request is allowed, and why."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides whether requests are allowed, and lists the rules behind the decisions."""

    def __call__(self, attributes: AuthorizationAttributes) -> None:
        """Return None if the request is allowed. Raises ApiError 403 otherwise."""
        ...

    def verdict(self, attributes: AuthorizationAttributes) -> AccessDecision:
        """Return whether the request is allowed, and why."""
        ...

    def rules_for(self, user: User, namespace: str) -> Sequence[Json]:
        """Return all rules that apply to the user in a namespace, or cluster-wide for ""."""
        ...

    def rules_of(self, reference: Json, namespace: str) -> Sequence[Json] | None:
        """Return the rules of the role that a roleRef in `namespace` names; None if missing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The authorizer, and the functions that authenticate and issue tokens.

    `recognize` finds the user of a token; `issue` signs claims (RFC 7519). `issuer` is the issuer
    of tokens, and their audience if they name none; `keys` are the public keys (RFC 7517).
    """

    rights: Authorizer
    recognize: Recognize
    issue: Callable[[Json], str] | None = None
    keys: tuple[Json, ...] = ()
    issuer: str = API_AUDIENCES[0]
