"""The authorizer interface: decisions on requests, and the identification of users.

upstream: apiserver/pkg/authorization/authorizer/interfaces.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.auth.authentication.token import API_AUDIENCES, Recognize
from fairlead.apiserver.request import User


class AuthorizationAttributes(Struct, frozen=True):
    """What an authorizer knows about a request.

    For a non-resource request, all attributes except `user`, `verb` and `path` are "". `selector`
    is the field selector that the client sent with a request for many objects.
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
        """True if the request is for a resource."""
        return bool(self.resource)


# A function that raises ApiError 403 unless the request is allowed.
Authorize = Callable[[AuthorizationAttributes], None]


def allow_all(_: AuthorizationAttributes) -> None:
    """Allow every request."""


class AccessDecision(Struct, frozen=True):
    """A decision on a request: whether it is allowed, and the reason."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides whether requests are allowed, and lists the rules that apply to a user."""

    def __call__(self, attributes: AuthorizationAttributes) -> None:
        """Return None if the request is allowed. Raises ApiError 403 if it is not."""
        ...

    def verdict(self, attributes: AuthorizationAttributes) -> AccessDecision:
        """Return the decision on a request: whether it is allowed, and the reason."""
        ...

    def rules_for(self, user: User, namespace: str) -> Sequence[Json]:
        """Return all rules that apply to the user in `namespace`.

        If `namespace` is "", return only the rules that apply to the whole cluster.
        """
        ...

    def rules_of(self, reference: Json, namespace: str) -> Sequence[Json] | None:
        """Return the rules of the role in `reference`, the roleRef of a binding in `namespace`.

        Return None if the role does not exist.
        """
        ...


class Identity(Struct, frozen=True, kw_only=True):
    """The authorizer (`rights`), and the functions that authenticate and issue tokens.

    `recognize` returns the user of a token. `issue` signs claims and returns the token (RFC 7519).
    If `issue` is None, the server issues no tokens. `issuer` is the claim `iss` of issued tokens.
    `issuer` is also the audience of a token if the client requests no audience. `keys` are the
    public keys that verify tokens (RFC 7517).
    """

    rights: Authorizer
    recognize: Recognize
    issue: Callable[[Json], str] | None = None
    keys: tuple[Json, ...] = ()
    issuer: str = API_AUDIENCES[0]
