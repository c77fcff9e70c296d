"""The gist of a FailedScheduling message."""

from __future__ import annotations

import pytest

from fairlead.cli.gist import gist


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", "not tried yet"),
        ("no nodes available to schedule pods", "no nodes available to schedule pods"),
        (
            "0/5 nodes are available: 12 Insufficient cpu, 3 node(s) were unschedulable. "
            "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.",
            "Insufficient cpu, node(s) were unschedulable",
        ),
        (
            "0/5 nodes are available: 3 node(s) were unschedulable, 2 Insufficient cpu. no new "
            "claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.",
            "Insufficient cpu, node(s) were unschedulable; may not preempt",
        ),
        ("0/1 nodes are available: 1 Too many pods.", "Too many pods"),
    ],
)
def test_equal_causes_have_an_equal_gist(message, expected):
    assert gist(message) == expected
