"""Identity: what a server knows of its users: their rights, their tokens, and new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.auth.authentication.token import API_AUDIENCES, Recognize
from fairlead.apiserver.request import User


class AuthorizationAttributes(Struct, frozen=True):
    """What an authorizer looks at; for paths that are no resources, all but `path` are "".

    `selector` is the one of fields, of requests about many objects, as it was sent.
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
        """Whether this is about a resource."""
        return bool(self.resource)


# Raises ApiError 403 or gives nothing.
Authorize = Callable[[AuthorizationAttributes], None]


def allow_all(_: AuthorizationAttributes) -> None:
    """Everybody may do everything."""


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether something is allowed, and why."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """An authorizer that tells what it knows."""

    def __call__(self, asked: AuthorizationAttributes) -> None:
        """Let it pass, or raise ApiError 403."""
        ...

    def verdict(self, asked: AuthorizationAttributes) -> AccessDecision:
        """Whether the user may do what is asked, and why (not)."""
        ...

    def rules_for(self, user: User, namespace: str) -> Sequence[Json]:
        """All rules that the user has in a namespace, or ("") in the cluster."""
        ...

    def rules_of(self, reference: Json, namespace: str) -> Sequence[Json] | None:
        """The rules of the role that a binding in `namespace` refers to; None: there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """`recognize` finds the user of a token; `issue` makes a token of claims (RFC 7519).

    `issuer` is who says so, and the audience of tokens that name none; `keys` are the public ones
    by which others can tell (RFC 7517).
    """

    rights: Authorizer
    recognize: Recognize
    issue: Callable[[Json], str] | None = None
    keys: tuple[Json, ...] = ()
    issuer: str = API_AUDIENCES[0]
