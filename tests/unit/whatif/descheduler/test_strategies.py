"""Which pods each strategy of the descheduler evicts."""

from __future__ import annotations

import pytest
from tests.unit.whatif.descheduler.conftest import ZONE, names, node, pod

BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web"}]},
        },
    },
}
TAINT = {"key": "old", "value": "yes", "effect": "NoSchedule"}
ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname",
             "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}  # fmt: skip


def required(zone):
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {kind: {"nodeSelectorTerms": terms}}}


def preferred(zone):
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    kind = "preferredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {kind: [{"weight": 10, "preference": term}]}}


# --- single pods --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "evicted"),
    [
        ({}, ["a"]),
        ({"excludedTaints": ["old"]}, []),
        ({"excludedTaints": ["old=no"]}, ["a"]),
        ({"includedTaints": ["new"]}, []),
        ({"includedTaints": ["old=yes"]}, ["a"]),
        ({"namespaces": {"exclude": ["default"]}}, []),
        ({"labelSelector": {"matchLabels": {"app": "other"}}}, []),
    ],
)
def test_pods_that_violate_node_taints_are_evicted(run, args, evicted) -> None:
    objects = [
        node("one", taints=[TAINT]),
        node("two"),
        pod("a", "one"),
        pod("b", "one", tolerations=[{"key": "old", "operator": "Exists"}]),
        pod("c", "two"),
    ]
    assert names(run(objects, "RemovePodsViolatingNodeTaints", args)) == evicted


def test_equal_pods_are_handled_by_name_whatever_their_order_in_the_dump(run) -> None:
    """Upstream's order is random, but each form of a dump must have the same answer."""
    objects = [node("busy"), node("idle"), *(pod(name, "busy") for name in "fbdace")]
    for order in (objects, objects[::-1]):
        found = names(run(order, "LowNodeUtilization", LOW, point="balance"))
        assert found == sorted("abcdef")[: len(found)] != []


def test_prefer_no_schedule_taints_count_if_the_policy_includes_them(run) -> None:
    objects = [
        node("one", taints=[{"key": "slow", "effect": "PreferNoSchedule"}]),
        node("two"),
        pod("a", "one"),
    ]
    name = "RemovePodsViolatingNodeTaints"
    assert names(run(objects, name)) == []
    assert names(run(objects, name, {"includePreferNoSchedule": True})) == ["a"]


def test_pods_that_violate_required_node_affinity_are_evicted(run) -> None:
    args = {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]}
    objects = [
        node("one", "a"),
        node("two", "b"),
        pod("stays", "one", affinity=required("a")),
        pod("goes", "one", affinity=required("b")),
        pod("nowhere", "one", affinity=required("c")),
        pod("free", "one"),
    ]
    assert names(run(objects, "RemovePodsViolatingNodeAffinity", args)) == ["goes"]


def test_pods_that_violate_preferred_node_affinity_are_evicted(run) -> None:
    args = {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]}
    objects = [
        node("one", "a"),
        node("two", "b"),
        pod("stays", "one", affinity=preferred("a")),
        pod("goes", "one", affinity=preferred("b")),
    ]
    assert names(run(objects, "RemovePodsViolatingNodeAffinity", args)) == ["goes"]


def test_one_of_two_pods_with_mutual_anti_affinity_is_evicted(run) -> None:
    objects = [
        node("one"),
        node("two"),
        pod("high", "one", priority=5, affinity=ANTI),
        pod("low", "one", priority=1, affinity=ANTI),
        pod("other", "one", owner="db"),
    ]
    assert names(run(objects, "RemovePodsViolatingInterPodAntiAffinity")) == ["low"]


def test_the_oldest_pods_are_evicted_first(run) -> None:
    objects = [node("one"), node("two"), pod("a", "one"), pod("b", "one"), pod("young", "two")]
    objects[2]["metadata"]["creationTimestamp"] = "2024-09-02T00:00:00Z"
    objects[3]["metadata"]["creationTimestamp"] = "2024-09-01T00:00:00Z"
    objects[4]["metadata"]["creationTimestamp"] = "2024-10-04T00:00:00Z"
    day = 86_400  # now is 2024-10-04
    args = {"maxPodLifeTimeSeconds": 5 * day}
    assert names(run(objects, "PodLifeTime", args)) == ["b", "a"]
    assert names(run(objects, "PodLifeTime", {**args, "states": ["Pending"]})) == []


def test_pods_with_too_many_restarts_are_evicted(run) -> None:
    statuses = [{"name": "main", "restartCount": 60}, {"name": "side", "restartCount": 40}]
    init = [{"name": "init", "restartCount": 10}]
    often = {"containerStatuses": statuses, "initContainerStatuses": init}
    objects = [node("one"), node("two"), pod("a", "one", status=often), pod("b", "one")]
    name = "RemovePodsHavingTooManyRestarts"
    assert names(run(objects, name, {"podRestartThreshold": 100})) == ["a"]
    assert names(run(objects, name, {"podRestartThreshold": 101})) == []
    args = {"podRestartThreshold": 110, "includingInitContainers": True}
    assert names(run(objects, name, args)) == ["a"]


def test_failed_pods_are_evicted(run) -> None:
    objects = [node("one"), node("two"), pod("a", "one", status={"phase": "Failed"}),
               pod("b", "one"), pod("c", "two", owner="", status={"phase": "Failed"})]  # fmt: skip
    assert names(run(objects, "RemoveFailedPods")) == ["a"]
    bare = {"evictFailedBarePods": True}
    assert names(run(objects, "RemoveFailedPods", evictor=bare)) == ["a", "c"]
    assert names(run(objects, "RemoveFailedPods", {"excludeOwnerKinds": ["ReplicaSet"]})) == []


def waiting(reason: str) -> dict:
    return {"name": "main", "restartCount": 7, "state": {"waiting": {"reason": reason}}}


def test_states_select_pods_by_phase_and_reason(run) -> None:
    """Container reasons and completed pods count, as in upstream's pod_lifetime.go."""
    done = {"phase": "Succeeded"}
    lost = {"phase": "Failed", "reason": "NodeLost"}
    loop = {"containerStatuses": [waiting("CrashLoopBackOff")]}
    init = {"phase": "Pending", "initContainerStatuses": [waiting("ImagePullBackOff")]}
    objects = [node("one"), node("two"), pod("runs", "one"), pod("done", "one", status=done),
               pod("lost", "one", status=lost), pod("loop", "one", status=loop),
               pod("init", "one", status=init)]  # fmt: skip

    def old(*states: str, **more: bool) -> list[str]:
        args = {"maxPodLifeTimeSeconds": 1, "states": list(states), **more}
        return sorted(names(run(objects, "PodLifeTime", args)))

    assert old() == ["done", "init", "loop", "lost", "runs"]
    assert old("Succeeded") == ["done"]
    assert old("NodeLost") == ["lost"]
    assert old("CrashLoopBackOff", "ImagePullBackOff") == ["loop"]
    assert old("ImagePullBackOff", includingInitContainers=True) == ["init"]


def test_states_select_pods_with_many_restarts(run) -> None:
    """Of two pods with many restarts, only the one that waits for its next restart is evicted."""
    runs = {"containerStatuses": [{"name": "main", "restartCount": 7}]}
    loop = {"containerStatuses": [waiting("CrashLoopBackOff")]}
    objects = [node("one"), node("two"), pod("a", "one", status=runs), pod("b", "one", status=loop)]
    args = {"podRestartThreshold": 5}
    name = "RemovePodsHavingTooManyRestarts"
    assert names(run(objects, name, args)) == ["a", "b"]
    assert names(run(objects, name, {**args, "states": ["CrashLoopBackOff"]})) == ["b"]


def test_reasons_and_exit_codes_select_failed_pods(run) -> None:
    """The reasons of the pod and of its terminated containers count."""
    killed = [{"name": "main", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]
    objects = [node("one"), node("two"),
               pod("shut", "one", status={"phase": "Failed", "reason": "Shutdown"}),
               pod("oom", "one", status={"phase": "Failed", "containerStatuses": killed}),
               ]  # fmt: skip
    assert names(run(objects, "RemoveFailedPods", {"reasons": ["Shutdown"]})) == ["shut"]
    assert names(run(objects, "RemoveFailedPods", {"reasons": ["OOMKilled"]})) == ["oom"]
    assert names(run(objects, "RemoveFailedPods", {"exitCodes": [1, 137]})) == ["oom"]
    assert names(run(objects, "RemoveFailedPods", {"reasons": ["Evicted"]})) == []


def test_a_pod_without_a_start_time_has_no_minimum_age(run) -> None:
    """DefaultEvictor's minPodAge protects a pod whose kubelet has not started it."""
    started = {"startTime": "2024-10-01T00:00:00Z"}
    objects = [node("one"), node("two"), pod("a", "one", status=started), pod("b", "one")]
    found = run(objects, "PodLifeTime", {"maxPodLifeTimeSeconds": 1}, {"minPodAge": "1h"})
    assert names(found) == ["a"]


# --- spreading ----------------------------------------------------------------------------------


def test_duplicates_above_the_average_are_evicted(run) -> None:
    objects = [node("one"), node("two"), node("three"), *(pod(f"w{n}", "one") for n in range(5))]
    result = run(objects, "RemoveDuplicates", point="balance")
    assert names(result) == ["w2", "w3", "w4"]
    assert result.notes == ["The descheduler evicts 3 pods in one run: 3 by RemoveDuplicates."]


def test_duplicates_that_no_other_node_admits_are_not_evicted(run) -> None:
    selector = {"kubernetes.io/hostname": "one"}
    objects = [node("one"), node("two"), *(pod(f"w{n}", "one", nodeSelector=selector)
                                           for n in range(5))]  # fmt: skip
    assert names(run(objects, "RemoveDuplicates", point="balance")) == []
    kinds = {"excludeOwnerKinds": ["ReplicaSet"]}
    free = [node("one"), node("two"), *(pod(f"w{n}", "one") for n in range(5))]
    assert names(run(free, "RemoveDuplicates", kinds, point="balance")) == []


@pytest.mark.parametrize(
    ("sizes", "skew", "moved"),
    [((2, 5, 8), 1, 3), ((4, 4, 5), 1, 0), ((0, 3), 1, 1), ((0, 3), 3, 0), ((0, 0, 6), 1, 4)],
)
def test_topology_spread_is_balanced_to_the_average(run, sizes, skew, moved) -> None:
    spread = [{"maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "web"}}}]  # fmt: skip
    objects = [node(f"n{at}", f"zone-{at}") for at in range(len(sizes))]
    for at, size in enumerate(sizes):
        objects += [pod(f"p{at}-{n}", f"n{at}", cpu="10m", topologySpreadConstraints=spread)
                    for n in range(size)]  # fmt: skip
    name = "RemovePodsViolatingTopologySpreadConstraint"
    evicted = names(run(objects, name, point="balance"))
    assert len(evicted) == moved
    fullest = sizes.index(max(sizes))
    assert all(one.startswith(f"p{fullest}-") for one in evicted)


def test_soft_constraints_count_if_the_policy_includes_them(run) -> None:
    spread = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway",
               "labelSelector": {"matchLabels": {"app": "web"}}}]  # fmt: skip
    pods = [pod(f"w{n}", "one", topologySpreadConstraints=spread) for n in range(4)]
    objects = [node("one", "a"), node("two", "b"), *pods]
    name = "RemovePodsViolatingTopologySpreadConstraint"
    assert names(run(objects, name, point="balance")) == []
    soft = {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}
    assert len(names(run(objects, name, soft, point="balance"))) == 2


# --- utilization --------------------------------------------------------------------------------

LOW = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}


def test_pods_are_evicted_from_overutilized_nodes_until_the_target(run) -> None:
    """Eight pods request the 4 CPUs of a node; the target is half, so four go."""
    objects = [node("full"), node("empty"), *(pod(f"w{n}", "full", priority=n) for n in range(8))]
    assert names(run(objects, "LowNodeUtilization", LOW, point="balance")) == [
        "w0", "w1", "w2", "w3",
    ]  # fmt: skip


def test_evictions_stop_when_underutilized_nodes_reach_the_target(run) -> None:
    """The empty node takes 2 of its 4 CPUs: two pods of 1 CPU each, and no third."""
    objects = [node("full"), node("empty"), *(pod(f"w{n}", "full", cpu="1") for n in range(4))]
    tight = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 30}}
    assert len(names(run(objects, "LowNodeUtilization", LOW, point="balance"))) == 2
    assert len(names(run(objects, "LowNodeUtilization", tight, point="balance"))) == 2


def test_nothing_is_balanced_without_both_kinds_of_nodes(run) -> None:
    full = [node("one"), node("two"), *(pod(f"w{n}", ("one", "two")[n % 2]) for n in range(12))]
    assert names(run(full, "LowNodeUtilization", LOW, point="balance")) == []
    idle = [node("one"), node("two"), pod("a", "one")]
    assert names(run(idle, "LowNodeUtilization", LOW, point="balance")) == []
    many = {**LOW, "numberOfNodes": 1}
    uneven = [node("full"), node("empty"), *(pod(f"w{n}", "full") for n in range(8))]
    assert names(run(uneven, "LowNodeUtilization", many, point="balance")) == []


def test_thresholds_can_be_deviations_from_the_average(run) -> None:
    """The average is 50 %; with 10 points on either side, the full node is reduced to 60 %."""
    objects = [node("full"), node("empty"), *(pod(f"w{n}", "full") for n in range(8))]
    args = {"thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 10},
            "useDeviationThresholds": True}  # fmt: skip
    assert len(names(run(objects, "LowNodeUtilization", args, point="balance"))) == 4


def test_underutilized_nodes_are_emptied(run) -> None:
    objects = [node("busy"), node("idle"), *(pod(f"b{n}", "busy") for n in range(5)),
               pod("a", "idle")]  # fmt: skip
    args = {"thresholds": {"cpu": 30}}
    assert names(run(objects, "HighNodeUtilization", args, point="balance")) == ["a"]


def test_a_strategy_has_its_own_limit_for_each_node(run) -> None:
    """Four pods would go; evictionLimits allows three from each node."""
    objects = [node("full"), node("empty"), *(pod(f"w{n}", "full", priority=n) for n in range(8))]
    args = {**LOW, "evictionLimits": {"node": 3}}
    found = names(run(objects, "LowNodeUtilization", args, point="balance"))
    assert found == ["w0", "w1", "w2"]


def test_only_pods_that_request_a_resource_with_a_threshold_are_evicted(run) -> None:
    """With OnlyThresholdingResources, a pod without a request for CPU stays."""
    objects = [node("busy"), node("idle"), *(pod(f"b{n}", "busy") for n in range(5)),
               pod("a", "idle"), pod("none", "idle", cpu="0")]  # fmt: skip
    args = {"thresholds": {"cpu": 30}}
    every = names(run(objects, "HighNodeUtilization", args, point="balance"))
    assert sorted(every) == ["a", "none"]
    only = {**args, "evictionModes": ["OnlyThresholdingResources"]}
    assert names(run(objects, "HighNodeUtilization", only, point="balance")) == ["a"]


# --- what the evictor keeps ---------------------------------------------------------------------

OLD = ("PodLifeTime", {"maxPodLifeTimeSeconds": 1})


@pytest.mark.parametrize(
    ("one", "evictor", "evicted"),
    [
        (pod("a", "one"), {}, True),
        (pod("a", "one", owner=""), {}, False),
        (pod("a", "one", priority=2_000_000_000), {}, False),
        (pod("a", "one", priority=2_000_000_000), {"evictSystemCriticalPods": True}, True),
        (pod("a", "one", priority=100), {"priorityThreshold": {"value": 100}}, False),
        (pod("a", "one", priority=99), {"priorityThreshold": {"value": 100}}, True),
        (pod("a", "one", volumes=[{"name": "v", "emptyDir": {}}]), {}, False),
        (pod("a", "one", volumes=[{"name": "v", "emptyDir": {}}]),
         {"evictLocalStoragePods": True}, True),
        (pod("a", "one", volumes=[{"name": "v", "emptyDir": {}}]),
         {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}}, True),
        (pod("a", "one", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
         {"ignorePvcPods": True}, False),
        (pod("a", "one"), {"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}}, False),
        (pod("a", "one"), {"labelSelector": {"matchLabels": {"app": "db"}}}, False),
        (pod("a", "one"), {"minReplicas": 2}, False),
        (pod("a", "one", status={"startTime": "2024-10-03T23:59:00Z"}), {"minPodAge": "5m"}, False),
        (pod("a", "one", owner="", annotations={"descheduler.alpha.kubernetes.io/evict": ""}), {},
         True),
        (pod("a", "one", cpu="3"), {"nodeFit": True}, True),
        (pod("a", "one", cpu="5"), {"nodeFit": True}, False),
    ],
)  # fmt: skip
def test_protected_pods_are_not_evicted(run, one, evictor, evicted) -> None:
    result = run([node("one"), node("two"), one], *OLD, evictor=evictor)
    assert names(result) == (["a"] if evicted else [])


def test_budgets_limit_evictions_like_the_eviction_api(run) -> None:
    pods = [pod(f"w{n}", "one") for n in range(4)]
    result = run([node("one"), node("two"), *pods, REPLICA_SET, BUDGET], *OLD)
    assert names(result) == ["w0"]
    assert result.notes == [
        "The descheduler evicts 1 pod in one run: 1 by PodLifeTime.",
        "The budget default/web keeps 3 of the descheduler's pods.",
    ]


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({"maxNoOfPodsToEvictPerNode": 1}, 2),
        ({"maxNoOfPodsToEvictPerNamespace": 1}, 1),
        ({"maxNoOfPodsToEvictTotal": 3}, 3),
        ({"nodeSelector": "kubernetes.io/hostname in (one,three)"}, 2),
    ],
)
def test_the_policy_limits_the_number_of_evictions_and_the_nodes(run, limits, count) -> None:
    pods = [pod(f"w{n}", ("one", "two")[n % 2]) for n in range(4)]
    objects = [node("one"), node("two"), node("three"), *pods]
    assert len(names(run(objects, *OLD, **limits))) == count


def test_no_pod_of_a_single_node_is_evicted(run) -> None:
    result = run([node("one"), pod("a", "one")], *OLD)
    assert names(result) == []
    assert result.notes == ["The descheduler evicts nothing on 1 Ready node."]


def test_the_note_counts_evictions_although_another_profile_has_a_single_node(run) -> None:
    name, args = OLD
    configs = [{"name": name, "args": args}]
    plugins = {"deschedule": {"enabled": [name]}}
    narrow = {"name": "DefaultEvictor", "args": {"nodeSelector": "kubernetes.io/hostname=one"}}
    profiles = [
        {"pluginConfig": configs, "plugins": plugins},
        {"pluginConfig": [*configs, narrow], "plugins": plugins},
    ]
    result = run([node("one"), node("two"), pod("a", "one")], *OLD, profiles=profiles)
    assert result.notes == ["The descheduler evicts 1 pod in one run: 1 by PodLifeTime."]


def test_a_pod_that_two_profiles_select_is_evicted_once(run) -> None:
    name, args = OLD
    profile = {
        "pluginConfig": [{"name": name, "args": args}],
        "plugins": {"deschedule": {"enabled": [name]}},
    }
    objects = [node("one"), node("two"), pod("a", "one"), pod("b", "two")]
    assert names(run(objects, *OLD, profiles=[profile, profile])) == ["a", "b"]


def test_a_note_says_why_no_pod_is_evicted(run) -> None:
    """Local storage protects one pod and no controller owns another; no node is too full."""
    scratch = pod("b", "two", volumes=[{"name": "tmp", "emptyDir": {}}])
    objects = [node("one"), node("two"), pod("a", "one"), scratch, pod("c", "two", owner="")]
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
    result = run(objects, "LowNodeUtilization", args, point="balance")
    assert result.notes == [
        "The descheduler evicts 0 pods in one run.",
        (
            "Protected from the descheduler: PodsWithLocalStorage (1), no controller (1). "
            "Not protected: 1."
        ),
        (
            "LowNodeUtilization: 1 of 2 nodes is below its thresholds, and 0 above its target "
            "thresholds."
        ),
    ]
