"""What the dashboard says about displaced pods that no longer exist, and about waiting pods."""

from __future__ import annotations

import pytest

from fairlead.cli.commands.dashboard.live_recording import _replaced, _why_waiting
from fairlead.testing.builders import make_pod
from fairlead.whatif.outcome.run_outcome import Evicted, PodEnd, RunOutcome
from fairlead.whatif.outcome.workload import WorkloadRef

WEB, OTHER = WorkloadRef("Deployment", "a", "web"), WorkloadRef("Deployment", "a", "other")
OLD, NEW = True, False


def pod(name, *, is_initial=NEW, owner=WEB, node="n", is_terminating=False):
    return PodEnd(
        namespace="a",
        name=name,
        owner=owner,
        node=node,
        is_initial=is_initial,
        is_terminating=is_terminating,
    )


@pytest.mark.parametrize(
    ("displaced", "existing", "count"),
    [
        ([pod("1", is_initial=OLD)], [pod("2")], 1),
        ([pod("1", is_initial=OLD)], [pod("2"), pod("3")], 1),
        ([pod("1", is_initial=OLD), pod("2")], [pod("3")], 2),
        ([pod("1", is_initial=OLD)], [pod("2", is_initial=OLD)], 0),
        ([pod("1", is_initial=OLD)], [pod("2", owner=OTHER)], 0),
        ([pod("1", is_initial=OLD)], [pod("2", node="")], 0),
        ([pod("web-0", is_initial=OLD)], [pod("web-0")], 0),
        ([pod("1", is_initial=OLD)], [pod("1", is_initial=OLD, is_terminating=True), pod("2")], 1),
        ([pod("1", is_initial=OLD)], [pod("1", is_initial=OLD, is_terminating=True)], 0),
    ],
    ids=[
        "a new pod replaces it",
        "only one of two new pods replaces it",
        "its replacement was displaced and replaced, too",
        "old pods replace nothing",
        "pods of other workloads replace nothing",
        "a pending pod does not replace it yet",
        "a pod of the same name is not counted, because the page finds it by name",
        "a new pod replaces a pod that terminates, for example on a failed node",
        "a pod that terminates is not replaced yet",
    ],
)
def test_replacements_of_displaced_pods_are_counted(displaced, existing, count):
    evicted = tuple(Evicted(at=0, pod=one, node="n", why="drain") for one in displaced)
    outcome = RunOutcome(
        started_at=0,
        ended_at=1,
        settled=False,
        pods={one.key: one for one in existing},
        preempted=(),
        evicted=evicted,
        pdb_breaches=(),
        undrained=(),
        skipped=(),
        errors=(),
        recurrences=(),
        nodes=(),
        allocations={},
        priority_names={},
        samples=(),
        choices_among_equals=0,
    )
    assert _replaced(outcome) == count


@pytest.mark.parametrize(
    ("message", "nominated", "why"),
    [
        ("0/2 nodes are available", "", "0/2 nodes are available"),
        ("0/2 nodes are available", "n", "0/2 nodes are available"),
        ("", "n", "Nominated to a node, not bound yet"),
        ("", "", ""),
    ],
    ids=["refused", "refused, then nominated", "nominated before its binding", "not tried"],
)
def test_the_reason_of_a_waiting_pod_is_the_schedulers_message_or_its_nomination(
    message, nominated, why
):
    refused = {"type": "PodScheduled", "status": "False", "message": message}
    status = {"conditions": [refused] if message else [], "nominatedNodeName": nominated}
    assert _why_waiting(make_pod("p", status=status)) == why
