"""RefusedError: raised if the API server refuses a request of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.api.json import Json

if TYPE_CHECKING:
    import pytest


class RefusedError(Exception):
    """Raised if the API server refuses a request; `status` is the Status object of the response."""

    def __init__(self, status: Json) -> None:
        """Use the message of `status` as the error message."""
        super().__init__(status.get("message", "refused"))
        self.status = status


def hides_traceback(failure: pytest.ExceptionInfo[BaseException]) -> bool:
    """Return whether pytest hides the frames of this package when it shows `failure`.

    Modules assign this function to `__tracebackhide__`, and pytest calls it.
    """
    return failure.errisinstance((AssertionError, RefusedError))
