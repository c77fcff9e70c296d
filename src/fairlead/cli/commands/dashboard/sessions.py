"""Sessions: the login links and the session cookies of the dashboard.

A link contains a login code. The response to the first request with the code sets a cookie with a
session token. Then the code is invalid. Codes and tokens are kept only as digests, so that a memory
dump does not reveal them.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from fairlead.worlds.local.random_ids import new_token

CODES_MAX: Final = 8  # links that were not used yet
SESSIONS_MAX: Final = 64


class Sessions:
    """The open sessions of the dashboard, and the login codes that were not used yet.

    If there are too many codes or sessions, the oldest ones become invalid.
    """

    def __init__(self, cookie: str) -> None:
        """`cookie` is the name of the cookie that contains the token of a session."""
        self._cookie = cookie
        self._codes: dict[bytes, None] = {}
        self._tokens: dict[bytes, None] = {}

    def new_code(self) -> str:
        """Return a new code, which is valid for one login."""
        code = new_token()
        _add(self._codes, code, CODES_MAX)
        return code

    def log_in(self, code: str) -> str | None:
        """Open a session and return the Set-Cookie header for it; None if `code` is not valid.

        Afterwards `code` is invalid.
        """
        if self._codes.pop(_digest(code), b"") == b"":
            return None
        token = new_token()
        _add(self._tokens, token, SESSIONS_MAX)
        return f"{self._cookie}={token}; Path=/; HttpOnly; SameSite=Strict"

    def is_open(self, cookies: str) -> bool:
        """Return whether `cookies`, a Cookie header, contains the token of an open session."""
        pairs = (pair.strip().partition("=") for pair in cookies.split(";"))
        return any(
            name == self._cookie and _digest(token) in self._tokens for name, _, token in pairs
        )


def _add(known: dict[bytes, None], secret: str, most: int) -> None:
    known[_digest(secret)] = None
    while len(known) > most:
        del known[next(iter(known))]


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()
