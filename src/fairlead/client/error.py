"""Errors of the API client: its exceptions, and which failures of a request may be temporary.

The text of each exception is one line for the user.
"""

from __future__ import annotations

from typing import Final

import msgspec

# The exceptions of decoding a response; RecursionError means that the JSON is nested too deeply.
UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# The reason of a RequestError about a response that is longer than the client's limit.
TOO_LONG: Final = "TooLong"
# The reason of a RequestError about a request that was not answered in time.
TIMED_OUT: Final = "TimedOut"


_TIMEOUT, _TOO_MANY_REQUESTS, _INTERNAL_ERROR = 408, 429, 500


def may_be_temporary(status: int) -> bool:
    """Return whether the same request may succeed later; status 0 means that no answer arrived."""
    return status in (0, _TIMEOUT, _TOO_MANY_REQUESTS) or status >= _INTERNAL_ERROR


class ConnectionConfigError(ValueError):
    """The configuration of a connection cannot be used.

    `source` is the kubeconfig, file or option that contains the error, or the name of the
    connection. `field` is a path in the kubeconfig, such as `users[admin].exec`, or "".
    """

    def __init__(self, source: str, problem: str, field: str = "") -> None:
        """Store the arguments; `str()` returns the non-empty ones, joined with colons."""
        super().__init__(": ".join(part for part in (source, field, problem) if part))
        self.source = source
        self.field = field
        self.problem = problem


class RequestError(Exception):
    """A request failed; `code` is the HTTP status, or 0 if no complete response arrived.

    `reason` and `message` come from the Status in the response. If the response has no Status, the
    client sets both. `reason` is then TOO_LONG if the response was longer than the client's limit,
    TIMED_OUT if it did not arrive in time, and otherwise "". `retry_after_s` is the number of
    seconds in the Retry-After header of the response; 0 if there is no such number.
    """

    def __init__(
        self, server: str, code: int, reason: str, message: str, retry_after_s: float = 0.0
    ) -> None:
        """Store the arguments; `server` is the URL of the server."""
        super().__init__(f"{server}: {message}")
        self.server = server
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
