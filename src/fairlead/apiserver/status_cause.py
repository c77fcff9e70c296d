"""Cause: one error in a refused request.

upstream: apimachinery/pkg/apis/meta/v1/types.go:StatusCause
"""

from __future__ import annotations

from msgspec import Struct


class Cause(Struct, frozen=True):
    """One error of a refused request.

    `field` is a path such as `spec.containers[0].name`, or "" for the whole object.
    """

    reason: str
    message: str
    field: str = ""

    def __str__(self) -> str:
        """Return the error as text for the message of a refused request."""
        return f"{self.field}: {self.message}" if self.field else self.message
