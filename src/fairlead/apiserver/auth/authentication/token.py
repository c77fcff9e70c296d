"""Bearer tokens: a known token identifies its user; a request without a token is anonymous.

Browsers cannot set the Authorization header of a WebSocket. Browsers send the token, encoded as
base64url, in one of the sub-protocols. Browsers must also send a second sub-protocol, because the
server must answer with a sub-protocol that does not contain the token.

upstream: apiserver/pkg/authentication/request/{bearertoken/bearertoken,anonymous/anonymous,
websocket/protocol}.go
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.request import AUTHENTICATED, SEPARATOR, UNAUTHENTICATED, User

ANONYMOUS: Final = User(name="system:anonymous", groups=(UNAUTHENTICATED,))
_SCHEME: Final = "bearer"
_SUBPROTOCOLS: Final = "sec-websocket-protocol"
_BEARER: Final = "base64url.bearer.authorization.k8s.io."
_BASE64URL: Final = re.compile("[A-Za-z0-9_-]*")

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


def is_websocket_request(headers: Mapping[str, str]) -> bool:
    """Return whether a request with these headers asks for a WebSocket."""
    # upstream: apimachinery/pkg/util/httpstream/wsstream/conn.go:IsWebSocketRequest
    is_requested = headers.get("upgrade", "").lower() == "websocket"
    return is_requested and "upgrade" in headers.get("connection", "").lower()


def websocket_token(headers: Mapping[str, str]) -> str:
    """Return the bearer token in the sub-protocols of a request; "" if there is none.

    The sub-protocols of a request that does not open a WebSocket are ignored. Raises ValueError if
    the token is malformed, given twice or the only sub-protocol.
    """
    if _SUBPROTOCOLS not in headers or not is_websocket_request(headers):
        return ""
    names = _subprotocols(headers)
    encoded = [name.removeprefix(_BEARER) for name in names if name.startswith(_BEARER)]
    if not encoded:
        return ""
    if len(encoded) > 1:
        raise ValueError("multiple base64.bearer.authorization tokens specified")
    try:
        token = _decoded(encoded[0])
    except ValueError:
        raise ValueError("invalid base64.bearer.authorization token encoding") from None
    if token and len(names) == 1:
        raise ValueError("missing additional subprotocol")
    return token


def subprotocols_without_token(headers: Mapping[str, str]) -> list[str]:
    """Return the sub-protocols of a request in order, except those that contain a token."""
    return [name for name in _subprotocols(headers) if not name.startswith(_BEARER)]


def _decoded(text: str) -> str:
    """Return the text whose base64url encoding without padding is `text`. Raises ValueError."""
    if not _BASE64URL.fullmatch(text):
        raise ValueError(text)
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def _subprotocols(headers: Mapping[str, str]) -> list[str]:
    texts = headers.get(_SUBPROTOCOLS, "").replace(SEPARATOR, ",").split(",")
    return [text.strip() for text in texts if text.strip()]


class TokenAuthenticator:
    """Authenticates requests by their bearer tokens.

    Tokens are looked up by digest, so that the lookup time does not reveal a token.
    """

    def __init__(self, users: Mapping[str, User], recognize: Recognize | None = None) -> None:
        """`users` maps tokens to users; `recognize` authenticates the tokens that `users` lacks.

        If `recognize` is None, only the tokens in `users` are valid.
        """
        self._users = {_digest(token): user for token, user in users.items()}
        self._recognize = recognize

    def __call__(self, headers: Mapping[str, str]) -> User:
        """Return the user of a request. Raises ApiError 401 if the request has only invalid tokens.

        The Authorization header and the sub-protocols may each contain a token. If only one of the
        two tokens is valid, it identifies the user. The header names are in lower case.

        upstream: apiserver/pkg/authentication/request/union/union.go: AuthenticateRequest
        """
        is_refused = False
        for token_in in (bearer_token, websocket_token):
            try:
                token = token_in(headers)
            except ValueError:
                is_refused = True
                continue
            if not token:
                continue
            user = self.user_of(token)
            if user is not None:
                return user
            is_refused = True
        if is_refused:
            raise unauthorized()
        return ANONYMOUS

    def user_of(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> User | None:
        """Return the user of `token`; None if the token is not valid for any of `audiences`."""
        found = self._users.get(_digest(token))
        if found is None and self._recognize is not None:
            return self._recognize(token, audiences)
        return None if _OWN_AUDIENCES.isdisjoint(audiences) else found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
