"""Karpenter: drains that are blocked, an API server that refuses writes, and restarts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode, decode_as
from fairlead.api.objects import (
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PodSpec,
    PodStatus,
)
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.controller import Karpenter
from fairlead.engine.core.command import (
    CreateObject,
    DeleteObject,
    EvictPod,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.testing.torture.karpenter_scenario import karpenter_config, node_pools

START = seconds(1_767_225_600)
TAINT = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
LABELS = {
    "karpenter.sh/nodepool": "general",
    "karpenter.sh/capacity-type": "on-demand",
    "karpenter.sh/initialized": "true",
    "karpenter.sh/registered": "true",
    "node.kubernetes.io/instance-type": "general-2",
    "topology.kubernetes.io/zone": "a",
}
NOT_INITIALIZED = {"karpenter.sh/initialized": ""}
SIZE = {"cpu": "2", "memory": "8Gi", "pods": "110"}


def node(*taints, name="m", **labels):
    return decode(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"node-{name}", "labels": LABELS | labels},
            "spec": {"providerID": f"fairlead:///{name}", "taints": list(taints)},
            "status": {
                "capacity": SIZE,
                "allocatable": SIZE,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )


def claim(node_name="m", *, name="m", **meta):
    created = {"creationTimestamp": "2026-01-01T00:00:00Z", "labels": LABELS, **meta}
    status = {"providerID": f"fairlead:///{name}", "nodeName": node_name, "capacity": SIZE}
    return decode(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": name, "finalizers": ["karpenter.sh/termination"], **created},
            "spec": {"expireAfter": "Never"},
            "status": status,
        }
    )


def pool(disruption=None, **status):
    (manifest, _) = node_pools(1)
    manifest["metadata"]["name"] = "general"
    manifest["spec"]["disruption"] |= disruption or {}
    manifest["spec"]["template"]["spec"]["expireAfter"] = "Never"
    return decode({**manifest, "status": status})


def pod(node_name="m", *, name="p", cpu="1", selector=None):
    return decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "ns", "uid": f"pod-{name}"},
            "spec": {
                "nodeName": node_name,
                "nodeSelector": selector or {},
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            },
            "status": {"phase": "Running"},
        }
    )


class Controller:
    """Karpenter, and the commands that it has sent since the last call of `sent`."""

    def __init__(self, *objects):
        self.now_s = 0
        config = karpenter_config(("a",))
        self.karpenter = Karpenter(config, SilentReporter(), seed=1, start=START)
        self.commands = []
        self.history = []
        self.tell(ObjectsLoaded(objects))

    def tell(self, stimulus):
        self.commands += self.karpenter.handle(stimulus, START + seconds(self.now_s))

    def refuse(self, command, reason=FailureReason.INTERNAL_ERROR):
        self.tell(CommandFailed(command, reason, "not now"))

    def run(self, until_s):
        while (due := self.karpenter.next_deadline()) is not None:
            if due > START + seconds(until_s):
                break
            self.now_s = max(self.now_s, (due - START) / seconds(1))
            self.commands += self.karpenter.handle_deadline(START + seconds(self.now_s))
        self.now_s = until_s

    def run_with_nodes(self, until_s):
        """Run until `until_s`, store each Node that registers, and refuse each eviction."""
        while self.now_s < until_s:
            self.run(self.now_s + 5)
            done, self.commands = self.commands, []
            for command in done:
                self.history.append(command)
                if isinstance(command, CreateObject) and command.target.kind == "Node":
                    created = command.manifest
                    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
                    size = {"capacity": SIZE, "allocatable": SIZE}
                    spec = {**created["spec"], "taints": []}
                    made = {**created, "spec": spec, "status": {**ready, **size}}
                    self.tell(ObjectChanged(decode(made)))
                elif isinstance(command, EvictPod):
                    self.refuse(command, FailureReason.TOO_MANY_REQUESTS)

    def kept_nodes(self):
        return self.karpenter.kept_nodes(START + seconds(self.now_s))

    def count(self, kind, target):
        """Return how many commands of a type about a kind `run_with_nodes` has seen."""
        return sum(isinstance(c, kind) and c.target.kind == target for c in self.history)

    def sent(self, kind, target):
        """Return the commands of a type about a kind, and clear all recorded commands."""
        found = [c for c in self.commands if isinstance(c, kind) and c.target.kind == target]
        self.commands.clear()
        return found


@pytest.fixture
def deleted():
    """A NodeClaim that a user deletes, with its Node."""
    controller = Controller(pool(), claim(), node())
    controller.run(1)
    controller.tell(ObjectChanged(claim(deletionTimestamp="2026-01-01T00:00:01Z")))
    return controller


@pytest.fixture
def blocked(deleted):
    """A Node whose deletion waits for a pod that cannot be evicted."""
    deleted.tell(ObjectChanged(pod()))
    deleted.tell(ObjectChanged(node(TAINT)))
    return deleted


def test_a_pod_on_a_disrupted_node_gets_a_new_node_before_it_is_evicted(blocked):
    blocked.run_with_nodes(120)
    assert any(isinstance(one, EvictPod) for one in blocked.history)
    assert blocked.count(CreateObject, "NodeClaim") == 1
    assert blocked.count(CreateObject, "Node") == 1


def evictions(controller, until_s):
    """Run until `until_s`, refuse each eviction, and return how many were tried."""
    before = len(controller.history)
    controller.run_with_nodes(controller.now_s + until_s)
    return sum(isinstance(one, EvictPod) for one in controller.history[before:])


def labelled(**status):
    """The pod `p`, which the budget `b` selects."""
    made = pod(cpu="100m")
    return replace(
        made,
        metadata=replace(made.metadata, labels={"app": "a"}),
        status=decode_as(PodStatus, {"phase": "Running", **status}),
    )


@pytest.fixture
def guarded(deleted):
    """A Node whose deletion waits for a pod that a budget protects; its eviction was refused."""
    deleted.tell(ObjectChanged(budget(0)))
    deleted.tell(ObjectChanged(labelled()))
    deleted.tell(ObjectChanged(node(TAINT)))
    assert evictions(deleted, 60)
    return deleted


def test_an_eviction_that_a_budget_refuses_is_repeated_after_the_budget_has_changed(guarded):
    assert evictions(guarded, 600) == 0
    guarded.tell(ObjectChanged(budget(1)))
    assert evictions(guarded, 5)


def test_a_refused_eviction_is_repeated_after_its_budget_selects_other_pods(guarded):
    other = decode_as(PodDisruptionBudgetSpec, {"selector": {"matchLabels": {"app": "b"}}})
    guarded.tell(ObjectChanged(replace(budget(0), spec=other)))
    assert evictions(guarded, 5)


def test_a_refused_eviction_is_repeated_after_its_budget_is_deleted(guarded):
    guarded.tell(ObjectDeleted(budget(0)))
    assert evictions(guarded, 5)


def test_a_refused_eviction_is_repeated_after_the_pod_has_changed(guarded):
    guarded.tell(ObjectChanged(labelled(conditions=[{"type": "Ready", "status": "False"}])))
    assert evictions(guarded, 60)
    assert not evictions(guarded, 600)


def test_a_refused_eviction_of_an_unready_pod_is_repeated_when_its_budget_is_computed(deleted):
    """With the first status, no pod is needed; then the one healthy pod is enough."""
    unready = labelled(conditions=[{"type": "Ready", "status": "False"}])
    deleted.tell(ObjectChanged(budget(0)))
    deleted.tell(ObjectChanged(unready))
    deleted.tell(ObjectChanged(node(TAINT)))
    assert evictions(deleted, 60)
    status = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}
    computed = replace(budget(0), status=decode_as(PodDisruptionBudgetStatus, status))
    deleted.tell(ObjectChanged(computed))
    assert evictions(deleted, 600)


def test_a_refusal_that_no_known_budget_explains_is_repeated(guarded):
    """The budget changed while the refusal was on its way."""
    guarded.tell(ObjectChanged(budget(1)))
    assert evictions(guarded, 60) > 10


def test_an_empty_node_is_kept_while_a_blocked_pod_is_expected_there(blocked):
    blocked.run_with_nodes(3600)
    assert blocked.count(CreateObject, "NodeClaim") == 1
    assert blocked.count(DeleteObject, "NodeClaim") == 0


def test_an_empty_node_is_removed_after_the_blocked_pod_has_ended(blocked):
    blocked.run_with_nodes(3600)
    blocked.tell(ObjectDeleted(pod()))
    blocked.tell(ObjectDeleted(node(TAINT)))
    blocked.run_with_nodes(3608)  # a nomination lasts 20 s and was renewed every 10 s
    assert blocked.count(DeleteObject, "Node") == 0
    blocked.run_with_nodes(3700)
    assert blocked.count(DeleteObject, "Node") == 1


def test_a_node_that_becomes_consolidatable_is_considered_after_five_minutes():
    """A NodeClaim that becomes Consolidatable does not change the consolidation state."""
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "60s",
        "budgets": [{"nodes": "100%"}],
    }
    controller = Controller(
        pool(disruption), claim(), node(only="m"), pod(cpu="1900m", selector={"only": "m"})
    )
    controller.run_with_nodes(100)
    controller.tell(ObjectChanged(claim("n", name="n")))
    controller.tell(ObjectChanged(node(name="n")))
    controller.tell(ObjectChanged(pod("n", name="q", cpu="100m")))
    controller.run_with_nodes(390)
    assert controller.count(DeleteObject, "NodeClaim") == 0
    controller.run_with_nodes(430)
    assert [c.target.name for c in controller.history if isinstance(c, DeleteObject)] == ["n"]


def test_consolidation_waits_from_the_start_of_a_pods_termination():
    """upstream: podevents/controller.go, which ignores the deletion of the object."""
    controller = Controller(pool(), claim(), node(), pod())
    controller.run(30)
    ending = replace(
        pod(), metadata=replace(pod().metadata, deletion_timestamp="2026-01-01T00:01:00Z")
    )
    controller.tell(ObjectChanged(ending))
    controller.run(60)
    controller.tell(ObjectDeleted(ending))
    (known,) = controller.karpenter.cluster.node_claims.values()
    assert known.status.last_pod_event_time == "2026-01-01T00:00:30Z"


def test_a_node_has_the_annotations_of_its_nodepools_template():
    """upstream: registration.go:syncNode; do-not-disrupt protects the nodes of such a pool."""
    stated = {"karpenter.sh/do-not-disrupt": "true", "team": "shop"}
    (manifest, _) = node_pools(1)
    manifest["spec"]["template"]["metadata"] = {"annotations": stated}
    controller = Controller(decode(manifest))
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    unschedulable = replace(pod(""), status=decode_as(PodStatus, {"conditions": [waiting]}))
    controller.tell(ObjectChanged(unschedulable))
    controller.run(200)
    (created,) = controller.sent(CreateObject, "Node")
    assert created.manifest["metadata"]["annotations"].items() >= stated.items()


def test_the_greatest_use_of_a_limited_pool_is_known_after_its_nodes_are_removed():
    """The limits must allow the nodes that Karpenter creates first and consolidates later."""
    (manifest, _) = node_pools(1)
    manifest["metadata"]["name"] = "general"
    manifest["spec"]["disruption"] |= {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    manifest["spec"]["limits"] = {"cpu": "90"}
    controller = Controller(decode(manifest))
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pending = replace(pod(""), status=decode_as(PodStatus, {"conditions": [waiting]}))
    controller.tell(ObjectChanged(pending))
    controller.run_with_nodes(90)
    controller.tell(ObjectDeleted(pending))
    controller.run_with_nodes(3600)
    assert controller.count(DeleteObject, "NodeClaim") == 1
    uses = [
        controller.karpenter.limited_use(START + seconds(since), START + seconds(3600))
        for since in (0, 3600)
    ]
    assert uses == [{"general": {"cpu": 2000}}, {"general": {"cpu": 0}}]


def test_a_budget_that_ends_lets_disruption_continue():
    """upstream: the loop runs every ten seconds, whether the cluster changes or not."""
    budget = {"nodes": "0", "schedule": "0 0 * * *", "duration": "2h"}
    idle = Controller(pool({"consolidateAfter": "0s", "budgets": [budget]}), claim(), node())
    idle.run_with_nodes(2 * 3600 - 10)
    assert idle.count(DeleteObject, "NodeClaim") == 0
    assert not idle.karpenter.is_working()
    assert not idle.karpenter.removal_times
    idle.run_with_nodes(2 * 3600 + 60)
    assert idle.count(DeleteObject, "NodeClaim") == 1


EAGER = {
    "consolidateAfter": "0s",
    "consolidationPolicy": "WhenEmptyOrUnderutilized",
    "budgets": [{"nodes": "100%"}],
}


def protected(value="true"):
    """A pod with the annotation do-not-disrupt, on the Node `m`."""
    stated = {"karpenter.sh/do-not-disrupt": value}
    status = {"phase": "Running", "startTime": "2026-01-01T00:30:00Z"}
    return replace(
        pod(cpu="100m"),
        metadata=replace(pod().metadata, annotations=stated),
        status=decode_as(PodStatus, status),
    )


def two_nodes(*objects):
    """The Nodes `m`, whose pods fit elsewhere, and `n`, whose pod does not."""
    pinned = pod("n", name="q", cpu="1500m", selector={"only": "n"})
    others = (claim("n", name="n"), node(name="n", only="n"), pinned)
    return Controller(pool(EAGER), claim(), node(), *objects, *others)


def budget(allowed):
    manifest = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"maxUnavailable": 1, "selector": {}},
        "status": {"disruptionsAllowed": allowed},
    }
    return decode(manifest)


@pytest.mark.parametrize(
    ("objects", "freed"),
    [
        ((protected(),), pod(cpu="100m")),
        ((pod(cpu="100m"), budget(0)), budget(1)),
    ],
)
def test_a_change_that_frees_a_node_lets_disruption_continue(objects, freed):
    controller = two_nodes(*objects)
    controller.run_with_nodes(1000)
    assert controller.count(DeleteObject, "NodeClaim") == 0
    controller.tell(ObjectChanged(freed))
    controller.run_with_nodes(1800)
    assert [c.target.name for c in controller.history if isinstance(c, DeleteObject)] == ["m"]


def test_the_next_loop_considers_a_change_during_a_validation():
    """The validation rejects the decision, because one node is protected; the other is empty."""
    second = (claim("n", name="n"), node(name="n"), pod("n", name="q", cpu="100m"))
    controller = Controller(pool(EAGER), claim(), node(), pod(cpu="100m"), *second)
    controller.run_with_nodes(15)
    controller.tell(ObjectChanged(protected()))
    controller.tell(ObjectDeleted(pod("n", name="q", cpu="100m")))
    controller.run_with_nodes(100)
    assert {c.target.name for c in controller.history if isinstance(c, DeleteObject)} == {"n"}


def test_an_annotation_that_ends_lets_disruption_continue():
    controller = two_nodes(protected("1h"))
    controller.run_with_nodes(5000)
    assert controller.count(DeleteObject, "NodeClaim") == 0
    controller.run_with_nodes(5800)
    assert [c.target.name for c in controller.history if isinstance(c, DeleteObject)] == ["m"]


@pytest.mark.parametrize("ports", [[], [{"containerPort": 80, "hostPort": 80}]])
def test_the_reasons_to_keep_nodes_leave_out_errors_that_no_longer_hold(ports):
    """The pod of `m` fits only `n`; a pod with a host port needs a simulation."""
    container = {"name": "c", "ports": ports, "resources": {"requests": {"cpu": "1"}}}
    spec = decode_as(PodSpec, {"nodeName": "m", "containers": [container]})
    ready = node(name="n")
    starting = replace(ready, metadata=replace(ready.metadata, labels=LABELS | NOT_INITIALIZED))
    others = (claim("n", name="n"), starting)
    controller = Controller(pool(EAGER), claim(), node(), replace(pod(), spec=spec), *others)
    controller.run(15)
    found = [controller.kept_nodes()]
    for change in (ready, claim(deletionTimestamp="2026-01-01T00:00:15Z")):
        controller.tell(ObjectChanged(change))
        found.append(controller.kept_nodes())
    uninitialized = "ns/p => would schedule against uninitialized nodeclaim/n, node/n "
    assert found == [
        {"m": f"Not all pods would schedule, {uninitialized}", "n": "Node isn't initialized"},
        {},
        {},
    ]


def test_the_reasons_to_keep_nodes_leave_out_a_replacement_that_is_no_longer_needed():
    """The pod of the spot node `m` needs a new node until there is the node `n`."""
    spot = {"karpenter.sh/capacity-type": "spot"}
    controller = Controller(pool(EAGER), claim(labels=LABELS | spot), node(**spot), pod())
    controller.run(15)
    [(name, text)] = controller.kept_nodes().items()
    assert name == "m"
    assert text.startswith("SpotToSpotConsolidation is disabled")
    controller.tell(ObjectChanged(claim("n", name="n")))
    controller.tell(ObjectChanged(node(name="n")))
    assert "m" not in controller.kept_nodes()


def test_a_refused_deletion_of_a_node_is_repeated(deleted):
    deleted.tell(ObjectChanged(node(TAINT)))
    deleted.run(2)
    (deletion,) = deleted.sent(DeleteObject, "Node")
    deleted.refuse(deletion)
    deleted.run(8)
    assert deleted.sent(DeleteObject, "Node") == [deletion]


def test_a_refused_taint_is_repeated(deleted):
    (taint,) = deleted.sent(PatchObject, "Node")
    assert taint.patch["spec"]["taints"] == [TAINT]
    deleted.refuse(taint)
    deleted.run(4)
    assert deleted.sent(PatchObject, "Node") == []
    deleted.run(7)
    assert taint in deleted.sent(PatchObject, "Node")


def test_the_finalizer_is_removed_until_the_nodeclaim_is_gone(deleted):
    deleted.commands.clear()
    deleted.tell(ObjectDeleted(node(TAINT)))
    (release,) = deleted.sent(PatchObject, "NodeClaim")
    assert release.patch == {"metadata": {"finalizers": None}}
    deleted.refuse(release)
    deleted.run(3)
    assert deleted.sent(PatchObject, "NodeClaim") == [release]
    deleted.refuse(release)
    deleted.tell(ObjectDeleted(claim()))
    deleted.run(9)
    assert deleted.sent(PatchObject, "NodeClaim") == []


def test_a_refused_status_is_repeated_with_its_newest_content():
    controller = Controller(pool(), claim(), node())
    (write,) = controller.sent(PatchStatus, "NodeClaim")
    controller.refuse(write)
    controller.run(2)
    assert controller.sent(PatchStatus, "NodeClaim")[-1] == write


def test_a_kubelet_registers_again():
    controller = Controller(pool(), claim(node_name=""))
    controller.run(100)
    (creation,) = controller.sent(CreateObject, "Node")
    controller.refuse(creation)
    controller.run(110)
    (again,) = controller.sent(CreateObject, "Node")
    assert again.manifest["metadata"] == creation.manifest["metadata"]
    controller.refuse(again, FailureReason.ALREADY_EXISTS)
    controller.run(120)
    assert controller.sent(CreateObject, "Node") == []


def test_a_nodeclaim_is_initialized_when_pods_can_run_on_its_node():
    """The nodes that it replaces are drained then. Before, their pods would not fit on it."""
    controller = Controller(pool(), claim(""))
    controller.run(90)
    (registered,) = controller.sent(CreateObject, "Node")
    starting = registered.manifest
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    ready = {**starting["status"], "conditions": [{"type": "Ready", "status": "True"}]}
    tainted = {**starting, "status": ready, "spec": {**starting["spec"], "taints": [not_ready]}}
    initialized = []
    for seen in (starting, tainted, {**starting, "status": ready}):
        controller.tell(ObjectChanged(decode(seen)))
        initialized.append(controller.karpenter.cluster.node_claims["m"].is_true("Initialized"))
    assert initialized == [False, False, True]


def test_a_nodeclaim_without_its_node_is_removed_after_a_restart():
    controller = Controller(pool(), claim())
    assert len(controller.commands) > 0
    (deletion,) = controller.sent(DeleteObject, "NodeClaim")
    assert deletion.target.name == "m"


def test_the_taint_of_an_unfinished_disruption_is_removed_after_a_restart():
    controller = Controller(pool(), claim(), node(TAINT))
    controller.run(15)
    (patch,) = controller.sent(PatchObject, "Node")
    assert patch.patch["spec"]["taints"] == []


def test_a_restart_keeps_the_health_of_a_nodepool():
    healthy = {"type": "NodeRegistrationHealthy", "status": "True"}
    controller = Controller(pool(conditions=[healthy]))
    (write,) = controller.sent(PatchStatus, "NodePool")
    assert "NodeRegistrationHealthy" not in [one.type for one in write.conditions]


def test_a_configured_claim_without_a_creation_time_is_as_old_as_the_run():
    """A file written by hand has no creation times; expireAfter counts from this time."""
    stated = {"metadata": {"name": "m", "labels": LABELS}, "spec": {"expireAfter": "1h"}}
    config = replace(karpenter_config(("a",)), claims=(decode_as(NodeClaim, stated),))
    karpenter = Karpenter(config, SilentReporter(), seed=0, start=START)
    known = karpenter.cluster.node_claims["m"]
    assert known.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
