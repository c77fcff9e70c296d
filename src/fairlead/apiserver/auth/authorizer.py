"""The authorizer's interface, and the server's access to users and tokens.

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
    """What an authorizer decides on; for paths without a resource only `user`, `verb`, `path`.

    `selector` is the field selector of a collection request, as it was sent.
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
        """Whether the path names a resource."""
        return bool(self.resource)


# Raises ApiError 403 if the request is denied.
Authorize = Callable[[AuthorizationAttributes], None]


def allow_all(_: AuthorizationAttributes) -> None:
    """Allows everything."""


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether a request is allowed, and why."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides on requests, and lists the rules of users and roles."""

    def __call__(self, asked: AuthorizationAttributes) -> None:
        """Authorize. Raises ApiError 403."""
        ...

    def verdict(self, asked: AuthorizationAttributes) -> AccessDecision:
        """Whether the user is allowed, and why or why not."""
        ...

    def rules_for(self, user: User, namespace: str) -> Sequence[Json]:
        """All rules that apply to a user in a namespace, or ("") cluster-wide."""
        ...

    def rules_of(self, reference: Json, namespace: str) -> Sequence[Json] | None:
        """The rules of the role that a binding in `namespace` refers to; None: no such role."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """`recognize` authenticates a token; `issue` signs claims as a token (RFC 7519).

    `issuer` is the issuer of tokens and their default audience; `keys` are the public keys to
    verify them (RFC 7517).
    """

    rights: Authorizer
    recognize: Recognize
    issue: Callable[[Json], str] | None = None
    keys: tuple[Json, ...] = ()
    issuer: str = API_AUDIENCES[0]
