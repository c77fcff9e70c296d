"""WORKLOADS: upstream's benchmark workloads, with upstream's names, and Fairlead's own workloads.

Fairlead's own workloads are BATCH_WORKLOADS and LARGE_WORKLOADS.

upstream: test/integration/scheduler_perf/*/performance-config.yaml, Kubernetes 1.36
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.objects import ApiObject, Pod
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.bench.batch_workloads import BATCH_WORKLOADS
from fairlead.bench.large_workloads import LARGE_WORKLOADS
from fairlead.bench.templates import (
    affinity_term,
    claimed_volumes,
    claiming_pods,
    csi_nodes,
    light,
    namespaces,
    nodes,
    pods,
    preferred,
    requests,
    required,
    service,
)
from fairlead.bench.workload import Setting, Workload
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, Stimulus

_INIT: Final = "bench-init"
_BOTH_NAMESPACES: Final = {"namespaces": ["bench", _INIT]}


def _plain(nodes_count: int, initial: int, measured: int) -> Setting:
    return Setting(
        [*nodes(nodes_count)],
        list(pods("init", initial, _INIT)),
        list(pods("pod", measured)),
    )


def _daemon_set() -> Setting:
    names = {"key": "metadata.name", "operator": "In", "values": ["node-15000"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [names]}]}
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    roomy = nodes(1, allocatable={"cpu": "90000", "memory": "900Ti", "pods": "90000"}, start=15_000)
    spec = requests("100m", "500Mi", affinity={"nodeAffinity": node_affinity})
    return Setting([*nodes(15_000), *roomy], [], list(pods("pod", 30_000, spec=spec)))


def _node_affinity() -> Setting:
    zones = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    spec = requests("100m", "500Mi", affinity={"nodeAffinity": node_affinity})
    initial = pods("init", 5_000, _INIT, spec)
    return Setting([*nodes(5_000, 1)], list(initial), list(pods("pod", 10_000, spec=spec)))


def _pod_anti_affinity() -> Setting:
    term = affinity_term("green", HOSTNAME, **_BOTH_NAMESPACES)
    return _colored("green", 5_000, 0, 1_000, 2_000, required("podAntiAffinity", term))


def _matching_anti_affinity() -> Setting:
    term = affinity_term("green", HOSTNAME, **_BOTH_NAMESPACES)
    spec = requests("100m", "500Mi", affinity=required("podAntiAffinity", term))
    labels = {"color": "green"}
    initial = list(pods("init", 1_000, _INIT, spec, labels=labels))
    return Setting([*nodes(5_000)], initial, list(pods("pod", 5_000, labels=labels)))


def _pod_affinity() -> Setting:
    term = affinity_term("blue", ZONE, **_BOTH_NAMESPACES)
    return _colored("blue", 5_000, 1, 5_000, 5_000, required("podAffinity", term))


def _preferred_affinity(kind: str) -> Setting:
    term = affinity_term("red", HOSTNAME, **_BOTH_NAMESPACES)
    return _colored("red", 5_000, 0, 5_000, 5_000, preferred(kind, term))


def _colored(
    color: str, node_count: int, zones: int, initial: int, measured: int, affinity: object
) -> Setting:
    spec = requests("100m", "500Mi", affinity=affinity)
    labels = {"color": color}
    return Setting(
        [*nodes(node_count, zones)],
        list(pods("init", initial, _INIT, spec, labels=labels)),
        list(pods("pod", measured, spec=spec, labels=labels)),
    )


def _by_namespace_selector(kind: str, key: str, node_count: int, zones: int, each: int) -> Setting:
    term = affinity_term("green", key, namespaceSelector={"matchLabels": {"team": "devops"}})
    spec = requests("100m", "500Mi", affinity=required(kind, term))
    labels, teams = {"color": "green"}, namespaces(_INIT, 100, {"team": "devops"})
    initial: list[Pod] = []
    for team in teams:
        name = team.metadata.name
        initial += pods(f"{name}-pod", each, name, spec, labels=labels)
    own = namespaces("bench", 1, {"team": "devops"})
    measured = list(pods("pod", 2_000, own[0].metadata.name, spec, labels=labels))
    return Setting([*nodes(node_count, zones), *teams, *own], initial, measured)


def _mixed_base() -> Setting:
    kinds = (
        ("plain", None, None),
        ("affinity", "blue", required("podAffinity", affinity_term("blue", ZONE))),
        ("anti", "green", required("podAntiAffinity", affinity_term("green", HOSTNAME))),
        ("preferred", "red", preferred("podAffinity", affinity_term("red", HOSTNAME))),
        ("avoiding", "yellow", preferred("podAntiAffinity", affinity_term("yellow", HOSTNAME))),
    )
    initial: list[Pod] = []
    for name, color, affinity in kinds:
        spec = requests("100m", "500Mi", **({"affinity": affinity} if affinity else {}))
        labels = {"color": color} if color else {}
        initial += pods(name, 2_000, "bench", spec, labels=labels)
    return Setting([*nodes(5_000, 1)], initial, list(pods("pod", 5_000)))


def _spreading(when_unsatisfiable: str) -> Setting:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    spec = requests("100m", "500Mi", topologySpreadConstraints=[constraint])
    measured = pods("pod", 5_000, spec=spec, labels={"color": "blue"})
    return Setting([*nodes(5_000, 3)], list(pods("init", 5_000, _INIT)), list(measured))


def _default_spreading() -> Setting:
    labels = {"app": "web"}
    objects: list[ApiObject] = [*nodes(5_000, 3), service("web", "bench", labels)]
    measured = list(pods("pod", 10_000, labels=labels))
    return Setting(objects, list(pods("init", 5_000, _INIT)), measured)


def _low(count: int) -> list[Pod]:
    spec = requests("900m", "500Mi", terminationGracePeriodSeconds=0)
    return list(pods("low", count, spec=spec))


def _preemption_basic() -> Setting:
    high = pods("high", 1_000, spec=requests("3", "500Mi", priority=10))
    return Setting([*nodes(1_000)], _low(4_000), list(high))


def _preemption_async() -> Setting:
    spec = requests("3", "500Mi", priority=10)
    measured = list(pods("pod", 5_000))
    return Setting([*nodes(5_000)], _low(20_000), measured, lambda i: _create("high", i, spec))


def _create(prefix: str, i: int, spec: dict[str, object]) -> Iterable[Stimulus]:
    return (ObjectChanged(pod) for pod in pods(f"{prefix}-{i}", 1, spec=spec))


def _unschedulable() -> Setting:
    spec = requests("9", "500Mi", priority=10)
    setting = _plain(5_000, 100, 10_000)
    return Setting(
        setting.objects, setting.initial, setting.measured, lambda i: _create("huge", i, spec)
    )


def _mixed_churn() -> Setting:
    setting = _plain(5_000, 0, 10_000)
    return Setting(setting.objects, setting.initial, setting.measured, _recreate)


def _recreate(i: int) -> Iterable[Stimulus]:
    """Yield stimuli that recreate a node, an unschedulable high-priority pod and a Service.

    `i` is the number of the iteration. In iteration 0, the three objects do not exist yet, so they
    are only created.
    """
    node = nodes(1, start=90_000)[0]
    pod = next(pods("churn", 1, spec=requests("9", "500Mi", priority=10)))
    churned = (node, pod, service("churn", "bench", {"app": "churn"}))
    if i:
        yield from (ObjectDeleted(obj) for obj in churned)
    yield from (ObjectChanged(obj) for obj in churned)


def _csi_volumes() -> Setting:
    """Build 5,000 nodes with volume limits, and pods that each use their own volume."""
    objects: list[ApiObject] = [*nodes(5_000), *csi_nodes(5_000, limit=39)]
    objects += claimed_volumes("init", 5_000, _INIT)
    objects += claimed_volumes("pod", 5_000)
    initial = claiming_pods("init", 5_000, _INIT)
    return Setting(objects, list(initial), list(claiming_pods("pod", 5_000)))


def _while_gated() -> Setting:
    roomy = nodes(1, allocatable={"cpu": "90000", "memory": "900Ti", "pods": "90000"})
    gated = light(schedulingGates=[{"name": "example.com/wait"}])
    leaving = list(pods("leaving", 20_000, "bench", light(terminationGracePeriodSeconds=0)))
    initial = [*leaving, *pods("gated", 10_000, "bench", gated)]
    measured = list(pods("pod", 20_000, spec=light(terminationGracePeriodSeconds=0)))
    return Setting([*roomy], initial, measured, lambda i: [ObjectDeleted(leaving[i])])


WORKLOADS: Final[dict[str, Workload]] = {
    workload.name: workload
    for workload in (
        Workload("SchedulingBasic/5000Nodes_10000Pods", 270, lambda: _plain(5_000, 1_000, 10_000)),
        Workload("SchedulingBasic/5000Nodes_50000Pods", None, lambda: _plain(5_000, 5_000, 50_000)),
        Workload("SchedulingDaemonset/15000Nodes", 390, _daemon_set),
        Workload("SchedulingNodeAffinity/5000Nodes_10000Pods", 220, _node_affinity),
        Workload("SchedulingPodAntiAffinity/5000Nodes_2000Pods", 60, _pod_anti_affinity),
        Workload(
            "SchedulingPodMatchingAntiAffinity/5000Nodes_5000Pods", 600, _matching_anti_affinity
        ),
        Workload("SchedulingPodAffinity/5000Nodes_5000Pods", 35, _pod_affinity),
        Workload(
            "SchedulingPreferredPodAffinity/5000Nodes_5000Pods",
            90,
            lambda: _preferred_affinity("podAffinity"),
        ),
        Workload(
            "SchedulingPreferredPodAntiAffinity/5000Nodes_5000Pods",
            90,
            lambda: _preferred_affinity("podAntiAffinity"),
        ),
        Workload(
            "SchedulingRequiredPodAntiAffinityWithNSSelector/5000Nodes_2000Pods",
            24,
            lambda: _by_namespace_selector("podAntiAffinity", HOSTNAME, 6_000, 0, 40),
        ),
        Workload(
            "SchedulingRequiredPodAffinityWithNSSelector/5000Nodes_2000Pods",
            35,
            lambda: _by_namespace_selector("podAffinity", ZONE, 5_000, 1, 50),
        ),
        Workload("MixedSchedulingBasePod/5000Nodes_5000Pods", 140, _mixed_base),
        Workload("TopologySpreading/5000Nodes_5000Pods", 85, lambda: _spreading("DoNotSchedule")),
        Workload(
            "PreferredTopologySpreading/5000Nodes_5000Pods",
            125,
            lambda: _spreading("ScheduleAnyway"),
        ),
        Workload("DefaultTopologySpreading/5000Nodes_10000Pods", None, _default_spreading),
        Workload("PreemptionBasic/1000Nodes", None, _preemption_basic),
        Workload("PreemptionAsync/5000Nodes", 160, _preemption_async, 0.2),
        Workload("Unschedulable/5kNodes/100Init/10kPods", 140, _unschedulable, 0.2),
        Workload("SchedulingWithMixedChurn/5000Nodes_10000Pods", 265, _mixed_churn, 1.0),
        Workload("SchedulingWhileGated/1Node_10000GatedPods", 130, _while_gated, 0.02),
        Workload("SchedulingCSIPVs/5000Nodes_5000Pods", 48, _csi_volumes),
        *BATCH_WORKLOADS,
        *LARGE_WORKLOADS,
    )
}
