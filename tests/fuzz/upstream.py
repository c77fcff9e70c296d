"""Requests to which 5xx is the expected answer, mostly as upstream; any other 5xx is a defect."""

from __future__ import annotations

from typing import Final

_KNOWN_ERRORS: Final = (
    "failed to create typed patch object",
    "failed to convert new object",
    "failed to create manager for existing fields",
    "resourceVersion: Invalid value",
    "resourceVersion should not be set on objects to be created",
    "does not contain declared merge key",
    "list element types are not identical",
    "lists of lists are not supported",
    "The order in patch list",
    "expected a []interface {}",
    "target.kind",
    "target.name",
    "without impersonating a user",
    "Too large resource version",
    "Component not found",
    "failed calling webhook",
    "admission webhook",  # denied, with a code that the webhook chose
    "containers are simulated",  # 501: there is no backend to connect to
)


def is_upstreams_own(message: str) -> bool:
    """Return whether upstream also sends the `message` of a Status with a code of 5xx."""
    return any(known in message for known in _KNOWN_ERRORS)


def expect_said(refusal: Exception, *codes: int) -> None:
    """Check that a refusal has a message, and that the code of an ApiError is in `codes`."""
    assert str(refusal)
    assert not codes or getattr(refusal, "code", 0) in codes
