"""A pod is ready if its containers are ready and its readiness gates are True."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.engine.core.command import Condition
from fairlead.engine.core.instant import seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.pod_lifecycle import Act, NextAct, has_ready_containers, next_act
from fairlead.engine.kubelet.pod_status import is_readiness_current, readiness

NOW = seconds(1_000)
MISSING = 'corresponding condition of pod readiness gate "a/b" does not exist.'
CLOSED = 'the status of pod readiness gate "c/d" is not "True", but Unknown'


def row(name, status, message=""):
    return {"type": name, "status": status, "message": message}


def pod(*conditions, gates=(), generation=0, observed=0, containers=("c",)):
    return decode_as(
        Pod,
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "generation": generation},
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "c"}],
                "readinessGates": [{"conditionType": gate} for gate in gates],
            },
            "status": {
                "phase": "Running",
                "observedGeneration": observed,
                "containerStatuses": [{"name": name} for name in containers],
                "conditions": list(conditions),
            },
        },
    )


def act_of(one, *, looks=False):
    config = KubeletConfig(accepts_pods=looks, applies_readiness_gates=True)
    whens = {"bound_at": NOW, "started_at": NOW, "terminating_at": NOW, "ready_at": NOW}
    return next_act(one, config=config, **whens)


def test_missing_and_false_readiness_gates_have_upstreams_message():
    one = pod(row("c/d", "Unknown"), row("e/f", "True"), gates=("a/b", "c/d", "e/f"))
    assert readiness(one, applies_readiness_gates=True) == (
        Condition("Ready", "False", "ReadinessGatesNotReady", f"{MISSING}, {CLOSED}"),
        Condition("ContainersReady", "True"),
    )


@pytest.mark.parametrize("gates", [(), ("a/b",)])
def test_a_pod_is_ready_if_all_its_readiness_gates_are_true(gates):
    one = pod(row("a/b", "True"), gates=gates)
    assert readiness(one, applies_readiness_gates=True)[0] == Condition("Ready", "True")


def test_readiness_gates_are_ignored_if_configured():
    one = pod(gates=("a/b",))
    assert readiness(one, applies_readiness_gates=False)[0] == Condition("Ready", "True")
    assert is_readiness_current(
        pod(row("Ready", "True"), gates=("a/b",)), applies_readiness_gates=False
    )


@pytest.mark.parametrize(
    ("case", "conditions", "gates", "is_current"),
    [
        ("nothing is said", (), (), False),
        ("it is ready", (row("Ready", "True"),), (), True),
        ("others say it is not", (row("Ready", "False"),), (), False),
        ("a gate closed", (row("Ready", "True"),), ("a/b",), False),
        ("its gate is told of", (row("Ready", "False", MISSING),), ("a/b",), False),
        (
            "so are its containers",
            (row("Ready", "False", MISSING), row("ContainersReady", "True")),
            ("a/b",),
            True,
        ),
        (
            "the gate is another",
            (row("Ready", "False", MISSING), row("ContainersReady", "True")),
            ("c/d",),
            False,
        ),
    ],
)
def test_current_readiness_conditions_are_not_written_again(case, conditions, gates, is_current):
    one = pod(*conditions, gates=gates)
    assert is_readiness_current(one, applies_readiness_gates=True) is is_current, case
    due = NextAct(Act.READY, NOW) if conditions and not is_current else None
    assert act_of(one) == due, case


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((row("Ready", "True"),), True),
        ((row("Ready", "False"), row("ContainersReady", "True")), True),
        ((row("Ready", "False"), row("ContainersReady", "False")), False),
        ((row("Ready", "False"),), False),
        ((), False),
    ],
)
def test_ready_containers_are_recognised(conditions, expected):
    """A readiness gate, or the failure of the node, can make only Ready False."""
    assert has_ready_containers(pod(*conditions)) is expected


@pytest.mark.parametrize(
    ("generation", "observed", "looks", "acts"),
    [(2, 1, True, True), (2, 2, True, False), (2, 1, False, False)],
)
def test_the_observed_generation_is_written_only_if_a_component_reads_it(
    generation, observed, looks, acts
):
    one = pod(row("Ready", "True"), generation=generation, observed=observed)
    assert act_of(one, looks=looks) == (NextAct(Act.OBSERVE, NOW) if acts else None)


def test_the_missing_statuses_of_containers_are_written_only_if_a_component_reads_them():
    one = pod(row("Ready", "True"), containers=())
    assert act_of(one, looks=True) == NextAct(Act.OBSERVE, NOW)
    assert act_of(one) is None
