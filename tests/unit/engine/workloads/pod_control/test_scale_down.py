"""Which pods are deleted first: upstream's order, and the rule that decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.pod_control.scale_down import (
    deletion_cost,
    job_pods_to_delete,
    pods_to_delete,
)

NOW = seconds(10_000)
SIDECAR = [{"name": "s", "restartPolicy": "Always"}]


def pod(
    name,
    *,
    node="n",
    phase="Running",
    ready=True,
    ready_at=0,
    created=0,
    cost=None,
    uid="",
    restarts=(),
):
    metadata = {"name": name, "uid": uid or name}
    if cost is not None:
        metadata["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": cost}
    if created is not None:
        metadata["creationTimestamp"] = format_timestamp(seconds(created))
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    if ready_at is not None:
        condition["lastTransitionTime"] = format_timestamp(seconds(ready_at))
    return decode_as(
        Pod,
        {
            "metadata": metadata,
            "spec": {"initContainers": SIDECAR, **({"nodeName": node} if node else {})},
            "status": {
                "phase": phase,
                "conditions": [condition],
                "containerStatuses": [
                    {"name": "c", "restartCount": count} for count in restarts[:1]
                ],
                "initContainerStatuses": [
                    {"name": "s", "restartCount": count} for count in restarts[1:]
                ],
            },
        },
    )


RULES = [
    ("unassigned < assigned", pod("z", node=""), pod("a")),
    ("pending < running", pod("z", phase="Pending"), pod("a")),
    ("unknown < running", pod("z", phase="Unknown"), pod("a")),
    ("not ready < ready", pod("z", ready=False), pod("a")),
    ("lower cost < higher cost", pod("z", cost="-5"), pod("a")),
    ("ready for no known time < ready", pod("z", ready_at=None), pod("a", ready_at=9_000)),
    ("ready later < ready earlier", pod("z", ready_at=9_990), pod("a", ready_at=0)),
    ("more restarts < fewer", pod("z", restarts=(3,)), pod("a", restarts=(2, 9))),
    ("sidecars' restarts come second", pod("z", restarts=(2, 5)), pod("a", restarts=(2, 4))),
    ("no creation time < any", pod("z", created=None), pod("a")),
    ("created later < created earlier", pod("z", created=9_990), pod("a", created=10)),
    (
        "of the same magnitude: smaller uid",
        pod("z", created=100, uid="1"),
        pod("a", created=10, uid="2"),
    ),
    ("all equal: by name", pod("a", uid="2"), pod("b", uid="1")),
]


@pytest.mark.parametrize(("rule", "first", "second"), RULES, ids=[rule for rule, *_ in RULES])
def test_each_rule_of_the_deletion_order(rule, first, second):
    """The first pod is deleted, in any order of the pods."""
    assert pods_to_delete([first, second], 1, NOW) == [first]
    assert pods_to_delete([second, first], 1, NOW) == [first]


def test_pods_on_nodes_with_more_replicas_are_deleted_first():
    """More replicas on the node count more than a longer ready time."""
    pods = [pod("a", node="n1", ready_at=9_000), pod("b", node="n2"), pod("c", node="n2")]
    assert [one.metadata.name for one in pods_to_delete(pods, 1, NOW)] == ["b"]


def test_replicas_of_other_replica_sets_of_the_deployment_count():
    pods = [pod("a", node="n1", ready_at=9_000), pod("b", node="n2")]
    assert pods_to_delete(pods, 1, NOW, [*pods, pod("new", node="n2")]) == [pods[1]]


def test_a_job_ignores_deletion_costs_and_other_pods_of_the_node():
    """The ages of younger pods are not rounded for Jobs either."""
    pods = [pod("a", node="n2", created=11), pod("b", node="n2", created=10, cost="-9")]
    assert [one.metadata.name for one in job_pods_to_delete(pods, 1)] == ["a"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("10", 10),
        ("-10", -10),
        ("-05", -5),
        ("0", 0),
        ("+5", 0),
        ("05", 0),
        ("x", 0),
        ("2147483648", 0),
    ],
)
def test_deletion_cost(text, cost):
    assert deletion_cost(pod("a", cost=text)) == cost


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "n1", "n2"]),
            st.sampled_from(["Pending", "Running"]),
            st.booleans(),
            st.integers(0, 3),
        ),
        max_size=12,
    ),
    st.randoms(use_true_random=False),
    st.data(),
)
def test_the_choice_does_not_depend_on_the_order_of_the_pods(rows, random, data):
    """The same pods are deleted, and exactly as many as requested."""
    pods = [
        pod(f"p{place:02}", node=node, phase=phase, ready=ready, created=age)
        for place, (node, phase, ready, age) in enumerate(rows)
    ]
    count = data.draw(st.integers(0, len(pods)))
    shuffled = random.sample(pods, len(pods))
    names = sorted(one.metadata.name for one in pods_to_delete(pods, count, NOW))
    assert names == sorted(one.metadata.name for one in pods_to_delete(shuffled, count, NOW))
    assert len(names) == count
