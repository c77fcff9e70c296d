"""Sessions: who may use the dashboard, by a link that works once and then by a cookie.

A link holds a code. The first request with the code gets a session token in a cookie, and the code
is void. Only digests are kept, so that neither codes nor tokens can be read from memory dumps.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from fairlead.worlds.local.random_ids import new_token

CODES_MAX: Final = 8  # links that were not used yet
SESSIONS_MAX: Final = 64


class Sessions:
    """The open sessions; of too many codes or sessions, the oldest are void."""

    def __init__(self, cookie: str) -> None:
        """`cookie` is the name of the cookie."""
        self._cookie = cookie
        self._codes: dict[bytes, None] = {}
        self._tokens: dict[bytes, None] = {}

    def new_code(self) -> str:
        """Return a new code, which can be used once."""
        code = new_token()
        _add(self._codes, code, CODES_MAX)
        return code

    def log_in(self, code: str) -> str | None:
        """Return the Set-Cookie header for a valid code, which is void from now on; else None."""
        if self._codes.pop(_digest(code), b"") == b"":
            return None
        token = new_token()
        _add(self._tokens, token, SESSIONS_MAX)
        return f"{self._cookie}={token}; Path=/; HttpOnly; SameSite=Strict"

    def is_open(self, cookies: str) -> bool:
        """Return whether a Cookie header holds the token of an open session.

        Other servers on this machine share the header, so their cookies may have any form.
        """
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
