"""What a test hears when the API server refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.api.json import Json

if TYPE_CHECKING:
    import pytest


class RefusedError(Exception):
    """The API server said no; `status` is its Status."""

    def __init__(self, status: Json) -> None:
        """The message is the server's."""
        super().__init__(status.get("message", "refused"))
        self.status = status


def speaks_for_itself(failure: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether `failure` is to be shown at the test's own line, not where it arose in here.

    Modules name it as `__tracebackhide__`, where pytest looks for it.
    """
    return failure.errisinstance((AssertionError, RefusedError))
