"""Bearer tokens: a known token identifies its user; a request without a token is anonymous.

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

# Tokens must have one of these audiences; upstream: --api-audiences, whose default is
# --service-account-issuer
API_AUDIENCES: Final = ("https://kubernetes.default.svc.cluster.local",)
_OWN_AUDIENCES: Final = frozenset(API_AUDIENCES)


class Recognize(Protocol):
    """A function that authenticates a token."""

    def __call__(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> User | None:
        """Return the user of `token`; None if the token is not valid for any of `audiences`."""
        ...


def unauthorized() -> ApiError:
    """Return ApiError 401: the credentials are invalid."""
    return ApiError("Unauthorized", 401, "Unauthorized")


def authenticated(name: str, groups: tuple[str, ...] = (), uid: str = "") -> User:
    """Return the user `name`, a member of `groups` and of the group system:authenticated."""
    return User(name=name, groups=(*groups, AUTHENTICATED), uid=uid)


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the bearer token of a request; "" if the request has no token."""
    # The token is the text between the first and the second space, even if it is empty.
    scheme, _, rest = headers.get("authorization", "").strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == _SCHEME else ""


class TokenAuthenticator:
    """Authenticates requests by their bearer tokens.

    Tokens are looked up by digest, so that the lookup time does not reveal a token.
    """

    def __init__(self, users: Mapping[str, User], recognize: Recognize | None = None) -> None:
        """`users` are keyed by token. `recognize` authenticates the tokens that `users` lacks.

        If `recognize` is None, only the tokens in `users` are valid.
        """
        self._users = {_digest(token): user for token, user in users.items()}
        self._recognize = recognize

    def __call__(self, headers: Mapping[str, str]) -> User:
        """Return the user of a request. Raises ApiError 401 if its token is invalid.

        The header names are in lower case.
        """
        token = bearer_token(headers)
        if not token:
            return ANONYMOUS
        user = self.user_of(token)
        if user is None:
            raise unauthorized()
        return user

    def user_of(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> User | None:
        """Return the user of `token`; None if the token is not valid for any of `audiences`."""
        found = self._users.get(_digest(token))
        if found is None and self._recognize is not None:
            return self._recognize(token, audiences)
        return None if _OWN_AUDIENCES.isdisjoint(audiences) else found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
