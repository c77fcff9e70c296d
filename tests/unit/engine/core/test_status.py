"""Status: outcomes as values."""

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
def test_a_failure_is_no_rejection(status, succeeds, rejects):
    """An error says nothing about the pod, so it must not count as a verdict on it."""
    assert (status.is_success, status.is_rejected) == (succeeds, rejects)


def test_reasons_are_joined_as_upstream_joins_them():
    """And attribution changes nothing else."""
    status = unschedulable("Too many pods", "Insufficient cpu")
    assert status.message == "Too many pods, Insufficient cpu"
    assert status.by("Fit") == Status(status.code, status.reasons, "Fit")
    assert status.plugin == ""
