"""The summary of a FailedScheduling message."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.preemption.default_preemption import NOT_HELPFUL
from fairlead.engine.scheduling.preemption.dry_run.victims import NO_VICTIMS
from fairlead.whatif.outcome.scheduling_message import reasons_of, short_reason

GROUP = "pod group is unschedulable"
NONE = "0/5 nodes are available: "
TAINT = "node(s) had taint {a: b}, that the pod didn't tolerate"
PREEMPTION = "no new claims to deallocate, preemption: "
WITHOUT_VICTIMS = NO_VICTIMS.message
AFFINITY = "node(s) didn't match pod affinity rules"
NEVER = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", "not tried yet"),
        ("no nodes available to schedule pods", "no nodes available to schedule pods"),
        ('pod "ns/p": ResourceClaim not created yet', "ResourceClaim not created yet"),
        (
            f"{NONE}12 Insufficient cpu, 3 node(s) were unschedulable. preemption: {NONE}5 x.",
            "Insufficient cpu, node(s) were unschedulable; after preemption: x",
        ),
        (
            f"{NONE}3 node(s) were unschedulable, 2 Insufficient cpu. {NEVER}",
            "Insufficient cpu, node(s) were unschedulable; preemptionPolicy is Never",
        ),
        ("0/1 nodes are available: 1 Too many pods.", "Too many pods"),
        (  # as kube-batch writes it
            "0/1 nodes are available, 1 insufficient cpu, 1 insufficient nvidia.com/gpu.",
            "Insufficient cpu, Insufficient nvidia.com/gpu",
        ),
        (
            f"{NONE}5 Insufficient cpu. {PREEMPTION}{NONE}1 Insufficient cpu, 3 {WITHOUT_VICTIMS}.",
            "Insufficient cpu",
        ),
        (
            f"{NONE}2 x. {PREEMPTION}{NONE}2 {NOT_HELPFUL.message}.",
            "x",
        ),
        (
            f"{NONE}5 Insufficient cpu. {PREEMPTION}{NONE}2 {AFFINITY}, 3 {WITHOUT_VICTIMS}.",
            f"Insufficient cpu; after preemption: {AFFINITY}",
        ),
        (f'{GROUP}, one or more plugins asked to wait and no plugin rejected pod "p"', GROUP),
        (  # as Kubernetes 1.19 writes it
            f"{NONE}2 node(s) were unschedulable, 3 {TAINT}.",
            f"{TAINT}, node(s) were unschedulable",
        ),
    ],
)
def test_equal_causes_have_equal_summaries(message, expected):
    assert short_reason(message) == expected


def test_the_reason_of_1_19_for_a_taint_is_one_reason():
    taint = "node(s) had taint {a: b}, that the pod didn't tolerate"
    message = f"0/3 nodes are available: 1 Insufficient cpu, 2 {taint}."
    assert reasons_of(message) == ["Insufficient cpu", taint]
