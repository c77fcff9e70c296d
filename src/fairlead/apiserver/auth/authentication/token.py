"""Tokens: whoever shows a known one is its user, whoever shows none is anonymous.

upstream: apiserver/pkg/authentication/request/{bearertoken/bearertoken,anonymous/anonymous}.go
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.request import AUTHENTICATED, UNAUTHENTICATED, User

ANONYMOUS: Final = User(name="system:anonymous", groups=(UNAUTHENTICATED,))
_SCHEME: Final = "bearer"

# Whom tokens must be for to be worth something here; upstream: --api-audiences, which is what
# --service-account-issuer says unless told otherwise
API_AUDIENCES: Final = ("https://kubernetes.default.svc.cluster.local",)
_OURS: Final = frozenset(API_AUDIENCES)


class Recognize(Protocol):
    """Tells whose token that is."""

    def __call__(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> User | None:
        """Its user, None where it means nothing to any of `audiences`."""
        ...


def unauthorized() -> ApiError:
    """401: the credentials mean nothing here."""
    return ApiError("Unauthorized", 401, "Unauthorized")


def authenticated(name: str, groups: tuple[str, ...] = (), uid: str = "") -> User:
    """A user who has shown who they are."""
    return User(name=name, groups=(*groups, AUTHENTICATED), uid=uid)


def bearer_token(headers: Mapping[str, str]) -> str:
    """The token of a request, "" when it shows none."""
    # Only what stands between the first blank and the second counts, even if that is nothing.
    scheme, _, rest = headers.get("authorization", "").strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == _SCHEME else ""


class Tokens:
    """Finds the user of a request.

    Tokens are looked up by digest, so how long that takes says nothing about what they are.
    """

    def __init__(self, users: Mapping[str, User], recognize: Recognize | None = None) -> None:
        """`users` by token; `recognize` is asked about any other token."""
        self._users = {_digest(token): user for token, user in users.items()}
        self._recognize = recognize

    def __call__(self, headers: Mapping[str, str]) -> User:
        """The user who shows `headers` (names in lower case). Raises ApiError 401."""
        token = bearer_token(headers)
        if not token:
            return ANONYMOUS
        user = self.user_of(token)
        if user is None:
            raise unauthorized()
        return user

    def user_of(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> User | None:
        """Whose token that is, None when it is nobody's or means nothing to any of `audiences`."""
        found = self._users.get(_digest(token))
        if found is None and self._recognize is not None:
            return self._recognize(token, audiences)
        return None if _OURS.isdisjoint(audiences) else found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
