"""Pods that are evicted and replaced repeatedly for the same reason."""

from __future__ import annotations

import pytest

from fairlead.whatif.outcome.eviction import eviction_loops
from fairlead.whatif.outcome.run_outcome import Evicted, PodEnd


@pytest.mark.parametrize(
    ("why", "is_loop"),
    [
        ("taint busy:NoExecute", True),
        ("drain", False),
        ("node scale down", False),
        ("karpenter drain", False),
        ("karpenter termination grace period", False),
    ],
)
def test_pods_that_are_evicted_from_different_nodes_are_not_in_a_loop(why: str, is_loop: bool):
    pod = PodEnd(namespace="shop", name="web")
    evicted = [Evicted(pod=pod, node=f"n{at}", at=at, why=why) for at in range(5)]
    assert bool(list(eviction_loops(evicted))) is is_loop
