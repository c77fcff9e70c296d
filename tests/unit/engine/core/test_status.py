"""Status: the outcome of a plugin as a value."""

from __future__ import annotations

import pytest

from fairlead.engine.core.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)


@pytest.mark.parametrize(
    ("status", "succeeds", "rejects"),
    [
        (SUCCESS, True, False),
        (SKIP, False, False),
        (unschedulable("no"), False, True),
        (unresolvable("no"), False, True),
        (Status(Code.PENDING), False, True),
        (Status(Code.WAIT), False, False),
        (error("broken"), False, False),
    ],
)
def test_an_error_is_not_a_rejection(status, succeeds, rejects):
    """An error does not mean that the pod is unschedulable."""
    assert (status.is_success, status.is_rejected) == (succeeds, rejects)


def test_reasons_are_joined_as_in_upstream():
    """Setting the plugin of a status changes nothing else."""
    status = unschedulable("Too many pods", "Insufficient cpu")
    assert status.message == "Too many pods, Insufficient cpu"
    assert status.by("Fit") == Status(status.code, status.reasons, "Fit")
    assert status.plugin == ""
