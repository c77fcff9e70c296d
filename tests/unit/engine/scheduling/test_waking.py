"""Which changes wake a rejected pod: one line per plugin and kind of change.

The scheduler really rejects a pod, then something changes, and the pod is woken or not. upstream:
the plugins' EventsToRegister and hints; pkg/scheduler/eventhandlers.go
"""

from __future__ import annotations

import pytest

from fairlead.testing.builders import make_budget, make_node, make_pod

GPU = "nvidia.com/gpu"
SMALL = make_node("n1", devices={GPU: 1}, cpu="1")
TAINTED = make_node("n1", taints=["k=v:NoSchedule"])
CORDONED = make_node("n1", unschedulable=True)
HDD = make_node("n1", labels={"disk": "hdd"})

BIG = make_pod("p", requests={"cpu": "2"})
WANTS_SSD = make_pod("p", spec={"nodeSelector": {"disk": "ssd"}})
PLAIN = make_pod("p")
WANTS_PORT = make_pod("p", host_ports=[80])
HOLDS_PORT = make_pod("x", node="n1", host_ports=[80])
TOLERANT = {"tolerations": [{"key": "k", "operator": "Exists"}]}
CORDON_TOLERANT = {
    "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
}


CASES = {
    # NodeResourcesFit
    "fit: any departure": ([SMALL], BIG, [make_pod("x", node="n1")], ["-x"], True),
    "fit: a pod that finished": (
        [SMALL],
        BIG,
        [make_pod("x", node="n1")],
        [make_pod("x", node="n1", status={"phase": "Succeeded"})],
        True,
    ),
    "fit: a request to leave": (
        [SMALL],
        BIG,
        [make_pod("x", node="n1")],
        [make_pod("x", node="n1", terminating=True)],
        False,
    ),
    "fit: an arrival": ([SMALL], BIG, [], [make_pod("x", node="n1")], False),
    "fit: a neighbour scaled down in what is wanted": (
        [SMALL],
        BIG,
        [make_pod("x", node="n1", requests={"cpu": "1"})],
        [make_pod("x", node="n1", requests={"cpu": "500m"})],
        True,
    ),
    "fit: a neighbour scaled down in something else": (
        [SMALL],
        BIG,
        [make_pod("x", node="n1", requests={GPU: 1})],
        [make_pod("x", node="n1")],
        False,
    ),
    "fit: a neighbour scaled up": (
        [SMALL],
        BIG,
        [make_pod("x", node="n1")],
        [make_pod("x", node="n1", requests={"cpu": "1"})],
        False,
    ),
    "fit: the pod itself scaled down": (
        [SMALL],
        BIG,
        [],
        [make_pod("p", requests={"cpu": "1500m"})],
        True,
    ),
    "fit: a node large enough": ([SMALL], BIG, [], [make_node("n2")], True),
    "fit: a node too small": ([SMALL], BIG, [], [make_node("n2", cpu="1")], False),
    "fit: a full node that is large enough": (
        [SMALL],
        BIG,
        [make_pod("x", node="n2", requests={"cpu": "9"})],
        [make_node("n2")],
        True,
    ),
    "fit: more of what is wanted": (
        [SMALL],
        BIG,
        [],
        [make_node("n1", devices={GPU: 1}, cpu="3")],
        True,
    ),
    "fit: more, and not enough": (
        [SMALL],
        BIG,
        [],
        [make_node("n1", devices={GPU: 1}, cpu="1500m")],
        False,
    ),
    "fit: more of something else": (
        [SMALL],
        BIG,
        [],
        [make_node("n1", devices={GPU: 9}, cpu="1")],
        False,
    ),
    "fit: other labels": (
        [SMALL],
        BIG,
        [],
        [make_node("n1", devices={GPU: 1}, cpu="1", labels={"a": "b"})],
        False,
    ),
    "fit: any change of taints": (
        [SMALL],
        BIG,
        [],
        [make_node("n1", devices={GPU: 1}, cpu="1", taints=["k:NoSchedule"])],
        True,
    ),
    "fit: a cordon": (
        [SMALL],
        BIG,
        [],
        [make_node("n1", devices={GPU: 1}, cpu="1", unschedulable=True)],
        False,
    ),
    "fit: a node that goes": ([SMALL, make_node("n2", cpu="1")], BIG, [], ["-n2"], False),
    "fit: own labels": (
        [SMALL],
        BIG,
        [],
        [make_pod("p", requests={"cpu": "2"}, labels={"a": "b"})],
        False,
    ),
    "fit: a budget": ([SMALL], BIG, [], [make_budget("b", {"a": "b"}, allowed=1)], False),
    # NodeAffinity
    "affinity: a node that matches": (
        [HDD],
        WANTS_SSD,
        [],
        [make_node("n2", labels={"disk": "ssd"})],
        True,
    ),
    "affinity: a node that does not": ([HDD], WANTS_SSD, [], [make_node("n2")], False),
    "affinity: labels that match now": (
        [HDD],
        WANTS_SSD,
        [],
        [make_node("n1", labels={"disk": "ssd"})],
        True,
    ),
    "affinity: labels that still do not": (
        [HDD],
        WANTS_SSD,
        [],
        [make_node("n1", labels={"disk": "no"})],
        False,
    ),
    "affinity: a departure": ([HDD], WANTS_SSD, [make_pod("x", node="n1")], ["-x"], False),
    "affinity: any change of taints": (
        [HDD],
        WANTS_SSD,
        [],
        [make_node("n1", labels={"disk": "hdd"}, taints=["k:NoSchedule"])],
        True,
    ),
    "affinity: more resources": (
        [HDD],
        WANTS_SSD,
        [],
        [make_node("n1", labels={"disk": "hdd"}, cpu="9")],
        False,
    ),
    # TaintToleration
    "taints: a node without": ([TAINTED], PLAIN, [], [make_node("n2")], True),
    "taints: a node with one": (
        [TAINTED],
        PLAIN,
        [],
        [make_node("n2", taints=["x:NoExecute"])],
        False,
    ),
    "taints: gone": ([TAINTED], PLAIN, [], [make_node("n1")], True),
    "taints: one more": (
        [TAINTED],
        PLAIN,
        [],
        [make_node("n1", taints=["k=v:NoSchedule", "x:NoSchedule"])],
        False,
    ),
    "taints: softened": (
        [TAINTED],
        PLAIN,
        [],
        [make_node("n1", taints=["k=v:PreferNoSchedule"])],
        True,
    ),
    "taints: own toleration": ([TAINTED], PLAIN, [], [make_pod("p", spec=TOLERANT)], True),
    "taints: a departure": ([TAINTED], PLAIN, [make_pod("x", node="n1")], ["-x"], False),
    # NodeUnschedulable
    "cordon: lifted": ([CORDONED], PLAIN, [], [make_node("n1")], True),
    "cordon: another taint": (
        [CORDONED],
        PLAIN,
        [],
        [make_node("n1", unschedulable=True, taints=["k:NoSchedule"])],
        False,
    ),
    "cordon: a free node": ([CORDONED], PLAIN, [], [make_node("n2")], True),
    "cordon: another cordoned node": (
        [CORDONED],
        PLAIN,
        [],
        [make_node("n2", unschedulable=True)],
        False,
    ),
    "cordon: own toleration": ([CORDONED], PLAIN, [], [make_pod("p", spec=CORDON_TOLERANT)], True),
    "cordon: another toleration": ([CORDONED], PLAIN, [], [make_pod("p", spec=TOLERANT)], False),
    # NodePorts
    "ports: the holder goes": ([make_node("n1")], WANTS_PORT, [HOLDS_PORT], ["-x"], True),
    "ports: another pod goes": (
        [make_node("n1")],
        WANTS_PORT,
        [HOLDS_PORT, make_pod("y", node="n1")],
        ["-y"],
        False,
    ),
    "ports: another port is freed": (
        [make_node("n1")],
        WANTS_PORT,
        [HOLDS_PORT, make_pod("y", node="n1", host_ports=[81])],
        ["-y"],
        False,
    ),
    "ports: a node": ([make_node("n1")], WANTS_PORT, [HOLDS_PORT], [make_node("n2")], True),
    # whatever the plugin
    "an unbound pod comes and goes": (
        [SMALL],
        BIG,
        [],
        [make_pod("x", spec={"schedulingGates": [{"name": "g"}]}), "-x"],
        False,
    ),
    "nothing of a node changed": ([SMALL], BIG, [], [SMALL], False),
}


@pytest.mark.parametrize(
    ("nodes", "pod", "others", "changes", "is_woken"), CASES.values(), ids=CASES
)
def test_a_rejected_pod_is_woken_only_by_relevant_changes(
    stage, nodes, pod, others, changes, is_woken
):
    """The changes that the rejecting plugins registered, and no others."""
    scene = stage(*others, *nodes, pod)
    assert scene.step()[0][2] == "FailedScheduling"
    scene.all_done()
    assert scene.place("p") == "unschedulable"
    known = {one.metadata.name: one for one in (*nodes, *others)}
    for change in changes:
        if isinstance(change, str):
            scene.gone(known[change[1:]])
        else:
            known[change.metadata.name] = change
            scene.put(change)
    assert scene.place("p") == ("backoff" if is_woken else "unschedulable")
