"""What-ifs with Karpenter: nodes are added and removed in both runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.apiserver.kind import DEPLOYMENT, POD_DISRUPTION_BUDGET
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.core.instant import seconds, to_seconds
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.kept_node import changes_removal
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    KARPENTER,
    KARPENTER_IDLE,
    AutoscaleOptions,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.verdict import verdict_of
from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.snapshot import parse_snapshot

Json = dict[str, Any]
TYPES = "name,cpu,memory,zones,price\nsmall,2,8Gi,z-a;z-b,0.1\nlarge,8,32Gi,z-a;z-b,0.4\n"


def node(name: str) -> Json:
    """A small node of the pool."""
    size = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "finalizers": ["karpenter.sh/termination"],
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": "z-a",
                "node.kubernetes.io/instance-type": "small",
                "karpenter.sh/capacity-type": "on-demand",
                "karpenter.sh/nodepool": "default",
                "karpenter.sh/registered": "true",
                "karpenter.sh/initialized": "true",
            },
        },
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def node_claim(name: str, **meta: Any) -> Json:
    """The launched NodeClaim of the node `name`."""
    size = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    done = [{"type": kind, "status": "True"} for kind in ("Launched", "Registered", "Initialized")]
    created = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "creationTimestamp": created,
            "labels": node(name)["metadata"]["labels"],
            "finalizers": ["karpenter.sh/termination"],
            **meta,
        },
        "spec": {"requirements": [], "expireAfter": "Never"},
        "status": {
            "providerID": f"fairlead:///{name}",
            "nodeName": name,
            "capacity": size,
            "allocatable": size,
            "conditions": [{**one, "lastTransitionTime": created} for one in done],
        },
    }


def pool(**spec: Any) -> Json:
    """The NodePool `default`, which removes nodes after half a minute."""
    disruption = {"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": []}}, "disruption": disruption, **spec},
    }


def web(replicas: int) -> Json:
    """A Deployment whose pods need a core each."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "d1"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container]},
            },
        },
    }


def ask(
    tmp_path: Path,
    objects: list[Json],
    change: ClusterChange,
    offered: str = TYPES,
    node_pools: str | None = None,
) -> WhatIfAnswer:
    """Return the answer with Karpenter, the instance types `offered` and a file of NodePools."""
    types = tmp_path / "types.csv"
    types.write_text(offered)
    listing = {"apiVersion": "v1", "kind": "List", "items": objects}
    snapshot = parse_snapshot("dump.json", json.dumps(listing).encode())
    karpenter = AutoscaleOptions(KARPENTER, instance_types=str(types), node_pools=node_pools)
    return what_if(snapshot, change, Conditions(autoscale=karpenter))


def test_costs_are_the_sums_of_the_prices_of_the_nodes_in_their_zones(tmp_path: Path) -> None:
    """A node of the same type costs five times as much in another zone."""
    offers = [
        {
            "Price": price,
            "Available": True,
            "Requirements": [
                {"key": key, "operator": "In", "values": [value]}
                for key, value in (
                    ("karpenter.sh/capacity-type", "on-demand"),
                    ("topology.kubernetes.io/zone", zone),
                )
            ],
        }
        for zone, price in (("z-a", 0.2), ("z-b", 1.0))
    ]
    size = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    offered = {
        "name": "small",
        "resources": size,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "offerings": offers,
    }
    types = tmp_path / "types.json"
    types.write_text(json.dumps([offered]))
    workload = web(0)
    workload["spec"]["template"]["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": "z-b"}
    objects = [pool(disruption={"consolidateAfter": "Never"}), node("n1"), node("n2"), workload]
    listing = {"apiVersion": "v1", "kind": "List", "items": objects}
    snapshot = parse_snapshot("dump.json", json.dumps(listing).encode())
    karpenter = AutoscaleOptions(KARPENTER, instance_types=str(types))
    change = ClusterChange(scale=("deploy/default/web=1",))
    answer = what_if(snapshot, change, Conditions(autoscale=karpenter))
    found = answer.changed.autoscaling
    assert found is not None
    (group,) = found.groups
    assert (group.before, group.after, group.added) == (2, 3, 1)
    assert found.cost_per_hour == pytest.approx(1.4)
    (added,) = found.transitions
    hours = (answer.changed.ended_at - answer.changed.started_at) / seconds(3600)
    lived = (answer.changed.ended_at - added.at) / seconds(3600)
    assert found.cost == pytest.approx(0.4 * hours + 1.0 * lived)


def test_pending_pods_get_a_node(tmp_path: Path) -> None:
    """The cheapest node for all six pods, about a minute later."""
    objects = [pool(), node("n1"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=8",)))
    assert len([one for one in answer.changed.pods.values() if one.is_placed]) == 8
    found = answer.changed.autoscaling
    assert found is not None
    assert (found.autoscaler, found.added) == ("karpenter", 1)
    first = found.transitions[0]
    assert (first.came, first.reason) == (True, "Provisioned")
    assert found.cost_per_hour is not None
    assert found.node_hours > 0
    assert answer.changed.settled


@pytest.mark.parametrize("with_csi_node", [True, False])
@pytest.mark.parametrize(
    "driver", ["topology.ebs.csi.aws.com", "topology.disk.csi.azure.com", "topology.gke.io"]
)
def test_a_pod_whose_volume_is_in_a_zone_gets_a_node_there(
    tmp_path: Path, driver: str, *, with_csi_node: bool
) -> None:
    """The volume requires the zone label of its driver, which new nodes of the zone get."""
    key = f"{driver}/zone"
    full = node("n1")
    full["metadata"]["labels"][key] = "z-a"
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": "d", "nodeID": "i", "topologyKeys": [key]}]},
    }
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": ["z-b"]}]}
    size = {"storage": "1Gi"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "c1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": size},
            "volumeName": "pv",
        },
        "status": {"phase": "Bound"},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": size,
            "csi": {"driver": "d", "volumeHandle": "v"},
            "claimRef": {"name": "data", "namespace": "default", "uid": "c1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Bound"},
    }
    used = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    workload = web(1)
    workload["spec"]["template"]["spec"]["volumes"] = [used]
    found = [full, pool(), claim, volume, workload, *([csi_node] if with_csi_node else [])]

    answer = ask(tmp_path, found, ClusterChange())

    [new] = [one for one in answer.changed.nodes if one.name != "n1"]
    assert new.labels["topology.kubernetes.io/zone"] == new.labels[key] == "z-b"
    assert not answer.changed.pending


UNCHANGED = "Nothing changes for any pod"
REPLACE = "nodepool/default:spec.template.metadata.annotations.replace=now"


def ec2_node_class(name: str) -> Json:
    """An EC2NodeClass without a spec."""
    kind = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass"}
    return {**kind, "metadata": {"name": name}}


@pytest.mark.parametrize(("kubelet", "added"), [({}, 1), ({"maxPods": 2}, 3)])
def test_max_pods_of_the_node_class_limits_the_pods_of_new_nodes(
    tmp_path: Path, kubelet: Json, added: int
) -> None:
    """The existing node has 110 pods; a large node has room for six pods more."""
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    node_class = {**ec2_node_class("default"), "spec": {"kubelet": kubelet}}
    template = {"spec": {"requirements": [], "nodeClassRef": ref}}
    objects = [pool(template=template), node_class, node("n1"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=8",)))
    found = answer.changed.autoscaling
    assert found is not None
    assert found.added == added
    note = "The change of EC2NodeClass default has no effect on nodes here"
    assert not any(note in one for one in answer.changed.notes)
    change = ClusterChange(set=("ec2nodeclass/default:spec.kubelet.maxPods=3",))
    changed = ask(tmp_path, objects, change)
    [found_note] = [one for one in changed.changed.notes if note in one]
    assert "In the cluster, Karpenter may replace 1 node, which drift" in found_note
    but = "Nothing changes for any pod, but the change of EC2NodeClass default is not simulated."
    assert changed.verdict.first.sentence == but


def test_an_annotation_of_the_template_simulates_the_replacement_of_drifted_nodes(
    tmp_path: Path,
) -> None:
    """A note about a node class names this option."""
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    objects = [
        pool(template={"spec": {"requirements": [], "nodeClassRef": ref}}),
        {**ec2_node_class("default"), "spec": {"role": "r"}},
        *(node("n1"), node_claim("n1"), web(2)),
    ]
    change = ClusterChange(set=("ec2nodeclass/default:spec.role=other",))
    [note] = [one for one in ask(tmp_path, objects, change).changed.notes if "To simulate" in one]
    assert note.endswith(f": --autoscale karpenter --set {REPLACE}")
    found = ask(tmp_path, objects, ClusterChange(set=(REPLACE,))).changed.autoscaling
    assert found is not None
    assert [one.reason for one in found.transitions if not one.came] == ["Drifted"]


def test_a_change_can_apply_the_first_node_pool_and_its_node_class(tmp_path: Path) -> None:
    """The class allows two pods on a node; in the run without the change, pods are pending."""
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "new"}
    spec = {"requirements": [], "nodeClassRef": ref}
    new_class = {**ec2_node_class("new"), "spec": {"kubelet": {"maxPods": 2}}}
    path = tmp_path / "karpenter.json"
    items = [new_class, pool(template={"spec": spec})]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    plain = node("n1")
    plain["metadata"].pop("finalizers")
    labels = plain["metadata"]["labels"]
    labels = {key: value for key, value in labels.items() if not key.startswith("karpenter.sh/")}
    plain["metadata"]["labels"] = labels
    answer = ask(tmp_path, [plain, web(6)], ClusterChange(apply=(str(path),)))
    found = answer.changed.autoscaling
    assert found is not None
    assert (len(answer.without.pending), len(answer.changed.pending)) == (4, 0)
    assert found.added == 2
    assert not [one for one in answer.changed.notes if "no effect" in one]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (
            ClusterChange(set=("ec2nodeclass/default:spec.role=r",)),
            f"{UNCHANGED}.",
        ),
        (
            ClusterChange(delete=("ec2nodeclass/default",)),
            f"{UNCHANGED}, but the deletion of EC2NodeClass default is not simulated.",
        ),
        (
            ClusterChange(set=("nodepool/default:spec.disruption.consolidateAfter=30s",)),
            f"{UNCHANGED}.",
        ),
    ],
)
def test_only_objects_that_differ_are_not_simulated(change: ClusterChange, verdict: str) -> None:
    """Karpenter is not simulated."""
    objects = [pool(), {**ec2_node_class("default"), "spec": {"role": "r"}}, node("n1"), web(1)]
    listing = {"apiVersion": "v1", "kind": "List", "items": objects}
    snapshot = parse_snapshot("dump.json", json.dumps(listing).encode())
    assert what_if(snapshot, change).verdict.first.sentence == verdict


def bound(name: str, node_name: str, **meta: Any) -> Json:
    """A running pod of one core without a controller."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": {"nodeName": node_name, "containers": [container]},
        "status": {"phase": "Running"},
    }


def test_a_pending_pod_of_a_daemonset_has_a_reason(tmp_path: Path) -> None:
    """The node is full, and Karpenter creates no node for the pod."""
    agent = web(1)
    agent["kind"] = "DaemonSet"
    agent["metadata"]["name"] = "agent"
    agent["spec"].pop("replicas")
    objects = [pool(), node("n1"), node_claim("n1"), bound("a", "n1"), bound("b", "n1"), agent]
    found = ask(tmp_path, objects, ClusterChange()).changed.autoscaling
    assert found is not None
    assert set(found.waiting.values()) == {"pods of DaemonSets trigger no scale-up"}
    assert found.added == 0


@pytest.mark.parametrize("gates", ["", "NodeOverlay=false,StaticCapacity=false"])
def test_new_overlays_and_static_pools_take_effect_or_get_a_note(
    tmp_path: Path, gates: str
) -> None:
    """With the gates of Karpenter's Helm chart, they have no effect."""
    karpenter = web(0)
    container = karpenter["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "karpenter/controller:1", "env": [{"name": "FEATURE_GATES"}]}
    container["env"][0]["value"] = gates
    overlay = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "half"},
        "spec": {"requirements": [], "priceAdjustment": "-50%"},
    }
    static = {**pool(replicas=2), "metadata": {"name": "static"}}
    path = tmp_path / "new.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [overlay, static]}))
    objects = [pool(disruption=NEVER), node("n1"), *([karpenter] if gates else [])]
    found = ask(tmp_path, objects, ClusterChange(apply=(str(path),))).changed
    notes = [one for one in found.notes if "has no effect" in one]
    assert found.autoscaling is not None
    if not gates:
        assert found.autoscaling.nodes_after == 3
        assert found.autoscaling.cost_per_hour == pytest.approx(0.15)
        assert notes == []
        return
    assert (found.autoscaling.nodes_after, found.autoscaling.cost_per_hour) == (1, 0.1)
    end = "because Karpenter's feature gate {0} is off in the dump."
    assert notes == [
        f"NodeOverlay half has no effect, {end.format('NodeOverlay')}",
        f"NodePool static has no effect, {end.format('StaticCapacity')}",
    ]


def test_a_static_pool_of_the_dump_gets_no_note_that_it_has_no_effect(tmp_path: Path) -> None:
    """Also if it has no replicas; the change does not create it."""
    karpenter = web(0)
    container = karpenter["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "karpenter/controller:1"}
    container["env"] = [{"name": "FEATURE_GATES", "value": "StaticCapacity=false"}]
    empty = {**pool(replicas=0), "metadata": {"name": "empty"}}
    found = ask(tmp_path, [empty, node("n1"), karpenter], ClusterChange()).changed
    assert not [one for one in found.notes if "no effect" in one]


def test_an_overlay_sets_the_price_of_the_nodes_of_a_static_pool(tmp_path: Path) -> None:
    """Also that of nodes that were added since the change."""
    overlay = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "half"},
        "spec": {"requirements": [], "priceAdjustment": "-50%"},
    }
    static = {**pool(replicas=0), "metadata": {"name": "static"}}
    change = ClusterChange(set=("nodepool/static:spec.replicas=2",))
    found = ask(tmp_path, [pool(disruption=NEVER), node("n1"), static, overlay], change)
    autoscaling = found.changed.autoscaling
    assert autoscaling is not None
    assert autoscaling.added == 2
    assert autoscaling.cost_per_hour == pytest.approx(0.15)


def test_a_node_claim_that_the_change_creates_gets_a_machine(tmp_path: Path) -> None:
    """It belongs to no NodePool, so Karpenter keeps its empty node."""
    size = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["large"]}
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "mine"},
        "spec": {"requirements": [size], "expireAfter": "Never"},
    }
    path = tmp_path / "claim.json"
    path.write_text(json.dumps(claim))
    objects = [pool(disruption=NEVER), node("n1"), bound("a", "n1")]
    found = ask(tmp_path, objects, ClusterChange(apply=(str(path),))).changed
    assert found.autoscaling is not None
    assert [(one.node, one.reason) for one in found.autoscaling.transitions] == [
        ("mine", "Created by a user")
    ]
    assert "mine" in {one.name for one in found.nodes}


@pytest.mark.parametrize("change", ["apply", "add_nodes"])
def test_a_node_that_the_change_adds_to_a_pool_is_in_the_history(
    tmp_path: Path, change: str
) -> None:
    """It has no NodeClaim. It is empty, so Karpenter removes it."""
    path = tmp_path / "new.json"
    path.write_text(json.dumps(node("n2")))
    option = {"apply": (str(path),)} if change == "apply" else {"add_nodes": 1, "like": "n1"}
    objects = [pool(), node("n1"), bound("a", "n1"), bound("b", "n1")]
    found = ask(tmp_path, objects, ClusterChange(**option)).changed.autoscaling
    assert found is not None
    assert [(one.came, one.reason) for one in found.transitions] == [
        (True, "Created by a user"),
        (False, "Empty"),
    ]
    assert (found.added, found.removed, found.nodes_after) == (1, 1, 1)


NEVER = {"consolidateAfter": "Never"}
EMPTY_ONLY = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"}
NO_BUDGET = {"consolidateAfter": "0s", "budgets": [{"nodes": "0"}]}
NONE_ALLOWED = "No allowed disruptions for disruption reason {} due to blocking budget"


@pytest.mark.parametrize(
    ("disruption", "of_full", "of_empty"),
    [
        (NEVER, 'NodePool "default" has consolidation disabled', None),
        (EMPTY_ONLY, 'NodePool "default" has non-empty consolidation disabled', ""),
        (NO_BUDGET, NONE_ALLOWED.format("Underutilized"), NONE_ALLOWED.format("Empty")),
    ],
    ids=["never", "only if empty", "no budget"],
)
def test_each_node_that_is_kept_has_a_reason(
    tmp_path: Path, disruption: Json, of_full: str, of_empty: str | None
) -> None:
    """The pods of two nodes fit on one node. An annotation protects another pod."""
    annotations = {"karpenter.sh/do-not-disrupt": "true"}
    names = ("n1", "n2", "n3", "empty")
    objects = [
        pool(disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", **disruption}),
        *(one for name in names for one in (node(name), node_claim(name))),
        bound("a", "n1"),
        bound("b", "n2"),
        bound("protected", "n3", annotations=annotations),
    ]
    found = ask(tmp_path, objects, ClusterChange(cordon=("n3",))).changed.autoscaling
    assert found is not None
    expected = {
        "n1": of_full,
        "n2": of_full,
        "n3": 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/protected)',
        "empty": of_full if of_empty is None else of_empty,
    }
    assert found.staying == {name: why for name, why in expected.items() if why}


def test_a_node_that_is_kept_is_listed_once_by_its_own_name(tmp_path: Path) -> None:
    """Karpenter states some reasons for the NodeClaim and some for the node."""
    claim = node_claim("n1")
    claim["metadata"]["name"] = "default-abcde"
    objects = [pool(), node("n1"), claim, bound("a", "n1")]
    taint = "nodepool/default:spec.template.spec.taints=[{key: a, effect: NoSchedule}]"
    found = ask(tmp_path, objects, ClusterChange(set=(taint,))).changed.autoscaling
    assert found is not None
    assert list(found.staying) == ["n1"]


@pytest.mark.parametrize(
    ("requirement", "also"),
    [
        ({"operator": "In", "values": ["smal"]}, ""),
        ({"operator": "Exists", "minValues": 9}, " and minValues"),
    ],
    ids=["misspelled", "too few types"],
)
def test_node_pools_without_a_type_are_named(tmp_path: Path, requirement: Json, also: str) -> None:
    objects = [pool(), node("n1"), node_claim("n1"), bound("a", "n1")]
    found = {"key": "node.kubernetes.io/instance-type", **requirement}
    edit = f"nodepool/default:spec.template.spec.requirements={json.dumps([found])}"
    note = (
        f"No instance type meets the requirements{also} of NodePool default, so Karpenter creates "
        "no nodes from it."
    )
    assert note in ask(tmp_path, objects, ClusterChange(set=(edit,))).changed.notes
    assert note not in ask(tmp_path, objects, ClusterChange()).changed.notes


def window(schedule: str, duration: str) -> Json:
    return {"budgets": [{"nodes": "0", "schedule": schedule, "duration": duration}]}


@pytest.mark.parametrize(
    ("disruption", "change_at"),
    [
        (window("0 0 * * *", "8h"), "2026-01-01T08:00:00Z"),
        (window("0 2 * * *", "8h"), None),
        (NO_BUDGET, None),
    ],
    ids=["a window without disruptions", "outside the window", "no disruption at any time"],
)
def test_a_note_names_the_nodes_that_a_budget_protects_at_the_end(
    tmp_path: Path, disruption: Json, change_at: str | None
) -> None:
    """The simulation ends when nothing changes any more, so the budget changes after its end."""
    settings = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    objects = [pool(disruption={**settings, **disruption}), node("n1"), node_claim("n1"), web(0)]
    notes = ask(tmp_path, objects, ClusterChange()).changed.notes
    expected = "Karpenter's disruption budgets allow no disruption of n1 at the end."
    found = [note for note in notes if note.startswith(expected)]
    assert len(found) == (change_at is not None)
    assert all(f"change next at {change_at};" in note for note in found)
    assert found == list(notes[: len(found)])  # before the notes about instance types


def test_an_empty_node_is_removed(tmp_path: Path) -> None:
    """Karpenter removes it after consolidateAfter, also without a change."""
    objects = [pool(), node("n1"), node("n2"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange())
    assert len(answer.without.nodes) == 1
    found = answer.without.autoscaling
    assert found is not None
    [group] = found.groups
    assert (group.group, group.instance_type) == ("default small on-demand", "small")
    assert (group.before, group.after, group.removed) == (2, 1, 1)
    assert [one.reason for one in found.transitions] == ["Underutilized"]


@pytest.mark.parametrize(
    ("event", "pods_bound", "pods_ended", "removed"),
    [
        ("2026-01-01T01:00:00Z", "2026-01-01T01:00:00Z", None, 1),
        ("2026-01-01T23:00:00Z", "2026-01-01T01:00:00Z", None, 0),
        (None, "2026-01-01T01:00:00Z", None, 1),
        (None, "2026-01-01T23:00:00Z", None, 0),
        ("2026-01-01T01:00:00Z", "2026-01-01T23:00:00Z", None, 0),
        (None, "2026-01-01T01:00:00Z", "2026-01-01T01:30:00Z", 1),
        (None, "2026-01-01T01:00:00Z", "2026-01-01T23:00:00Z", 0),
    ],
    ids=[
        "an old event",
        "a new event",
        "old pods",
        "new pods",
        "an old event, new pods",
        "pods that ended long ago",
        "pods that have just ended",
    ],
)
def test_consolidate_after_begins_before_the_dump_was_taken(
    tmp_path: Path, event: str | None, pods_bound: str, pods_ended: str | None, removed: int
) -> None:
    """The pods of two nodes fit on one node. Karpenter was not restarted when the dump was taken.

    A NodeClaim is not Consolidatable until consolidateAfter has passed since its lastPodEventTime
    and since the last event of one of its pods.
    """
    objects = [pool(disruption={"consolidateAfter": "6h", "budgets": [{"nodes": "100%"}]})]
    for name in ("n1", "n2"):
        machine, claim, tenant = node(name), node_claim(name), bound(f"on-{name}", name)
        machine["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-02T00:00:00Z"
        if event:
            claim["status"]["lastPodEventTime"] = event
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": pods_bound}
        tenant["status"]["conditions"] = [scheduled]
        objects += [machine, claim, tenant]
        if pods_ended:
            done, end = bound(f"done-{name}", name), {"exitCode": 0, "finishedAt": pods_ended}
            container = {"name": "c", "state": {"terminated": end}}
            done["status"] = {**tenant["status"], "phase": "Succeeded"}
            done["status"]["containerStatuses"] = [container]
            objects.append(done)
    answer = ask(tmp_path, objects, ClusterChange())
    found = answer.without.autoscaling
    assert found is not None
    assert len(found.earlier) + found.removed == removed
    waiting = 'consolidateAfter (6h) of NodePool "default" has not passed yet'
    why = "Can't replace with a cheaper node" if removed else waiting
    assert set(found.staying.values()) == {why}
    if not removed:
        note = answer.changed.unsettled("--horizon")
        assert "only the autoscaler waited: consolidateAfter of 2 nodes passes at 2026" in note


def test_nodes_that_are_removed_before_the_change_are_in_a_note(tmp_path: Path) -> None:
    """Karpenter removes one of four half-empty nodes, then the pods of another node move."""
    disruption = {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}
    nodes = [node(f"n{number}") for number in range(4)]
    objects = [pool(disruption=disruption), *nodes, web(4)]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=4",)))
    found = answer.without.autoscaling
    assert found is not None
    assert [(one.came, one.reason) for one in found.earlier] == [(False, "Underutilized")]
    note = "Before the change is made, karpenter removes 1 node; all numbers count from the change."
    assert note in answer.changed.notes
    assert found.nodes_after == 4 - len(found.earlier) - found.removed
    first = ask(tmp_path, objects, ClusterChange())
    words = "Nothing changes for any pod. In both runs, karpenter removes 2 nodes."
    assert first.verdict.first.sentence == words
    unchanged = first.without
    assert unchanged.autoscaling is not None
    assert (len(unchanged.autoscaling.earlier), unchanged.autoscaling.removed) == (0, 2)
    assert unchanged.started_at < answer.without.started_at


def budget(**spec: Any) -> Json:
    """A PodDisruptionBudget of the pods of `web`."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("consolidationPolicy=WhenEmpty", 'NodePool "default" has non-empty consolidation'),
        ("consolidateAfter=Never", 'NodePool "default" has consolidation disabled'),
        ('budgets=[{"nodes": "0"}]', "No allowed disruptions for disruption reason"),
        ("PodDisruptionBudget", "Pdb prevents pod evictions"),
        ("pod", 'Pod has "karpenter.sh/do-not-disrupt" annotation'),
    ],
)
def test_a_change_of_consolidation_is_made_before_nodes_are_consolidated(
    tmp_path: Path, setting: str, why: str
) -> None:
    """Without the change, Karpenter removes two of four half-empty nodes."""
    change = ClusterChange(set=(f"nodepool/default:spec.disruption.{setting}",))
    if setting == "PodDisruptionBudget":
        path = tmp_path / "budget.json"
        path.write_text(json.dumps(budget(maxUnavailable=0)))
        change = ClusterChange(apply=(str(path),))
    if setting == "pod":
        pods = (f"pod/web-{number}" for number in range(4))
        annotation = "metadata.annotations[karpenter.sh/do-not-disrupt]=true"
        change = ClusterChange(set=tuple(f"{pod}:{annotation}" for pod in pods))
    without, changed, verdict = consolidated(tmp_path, change)
    assert (without.earlier, without.removed, changed.removed) == ((), 2, 0)
    assert sorted(changed.staying) == ["n0", "n1", "n2", "n3"]
    assert all(one.startswith(why) for one in changed.staying.values())
    assert (
        verdict == "2 pods of rs/default/web stay on their nodes, and move only without the change."
    )


def test_the_deletion_of_a_budget_decides_which_nodes_may_be_removed() -> None:
    listing = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [node("n1"), budget(maxUnavailable=0), web(1)],
    }
    dump = parse_snapshot("dump.json", json.dumps(listing).encode())
    of_pods, workload = (
        [one for one in samples(dump.manifests) if one.kind is kind]
        for kind in (POD_DISRUPTION_BUDGET, DEPLOYMENT)
    )
    assert changes_removal((), of_pods, dump.manifests)
    assert not changes_removal((), workload, dump.manifests)


def consolidated(
    tmp_path: Path, change: ClusterChange
) -> tuple[AutoscalingOutcome, AutoscalingOutcome, str]:
    """Return the autoscaling without and with `change`, and the first sentence of the answer.

    The cluster has four nodes, each with one pod that needs half of it.
    """
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "d1"}
    owned = {"labels": {"app": "web"}, "ownerReferences": [{**owner, "controller": True}]}
    pods = [bound(f"web-{number}", f"n{number}", **owned) for number in range(4)]
    for one in pods:
        one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    nodes = [one for number in range(4) for one in (node(f"n{number}"), node_claim(f"n{number}"))]
    objects = [pool(), *nodes, web(4) | {"kind": "ReplicaSet"}, *pods]
    answer = ask(tmp_path, objects, change)
    without, changed = answer.without.autoscaling, answer.changed.autoscaling
    assert without is not None
    assert changed is not None
    return without, changed, answer.verdict.first.sentence


@pytest.mark.parametrize(
    "change",
    [
        lambda name: ClusterChange(drain=(name,)),
        lambda name: ClusterChange(cordon=(name,)),
        lambda name: ClusterChange(delete=(f"node/{name}",)),
        lambda name: ClusterChange(failures=Failures(fail_node=(name,))),
        lambda name: ClusterChange(cordon=(f"kubernetes.io/hostname={name}",)),
        lambda name: ClusterChange(set=(f"node/{name}:spec.unschedulable=true",)),
    ],
)
@pytest.mark.parametrize("stated", [None, "false"])
def test_a_node_that_the_change_names_is_kept_until_the_change(
    tmp_path: Path, change: Callable[[str], ClusterChange], stated: str | None
) -> None:
    disruption = {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}
    nodes = [node(f"n{number}") for number in range(4)]
    for one in nodes:
        if stated:
            one["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": stated}
    objects = [pool(disruption=disruption), *nodes, web(4)]
    unchanged = ask(tmp_path, objects, ClusterChange()).without.autoscaling
    assert unchanged is not None
    removed = unchanged.transitions[0]
    answer = ask(tmp_path, objects, change(removed.node))
    assert not answer.changed.skipped
    assert any(f"Until then, it keeps {removed.node}," in note for note in answer.changed.notes)


def test_the_node_of_a_claim_that_the_change_deletes_is_kept_until_the_change(
    tmp_path: Path,
) -> None:
    disruption = {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}
    names = [f"n{number}" for number in range(4)]
    claims = [node_claim(name) for name in names]
    for one in claims:
        one["metadata"]["name"] = f"default-{one['metadata']['name']}"
    objects = [pool(disruption=disruption), *map(node, names), *claims, web(4)]
    unchanged = ask(tmp_path, objects, ClusterChange()).without.autoscaling
    assert unchanged is not None
    removed = unchanged.transitions[0].node
    answer = ask(tmp_path, objects, ClusterChange(delete=(f"nodeclaim/default-{removed}",)))
    assert any(f"Until then, it keeps {removed}," in note for note in answer.changed.notes)


@pytest.mark.parametrize(
    ("age", "says"),
    [
        ("Never", "To keep such a node until the change, name it in --drain instead of its label"),
        ("1h", "It has expired"),
    ],
)
def test_a_drain_of_a_node_that_was_removed_before_is_not_recommended(
    tmp_path: Path, age: str, says: str
) -> None:
    """The answer does not show what happens if the node is drained now."""
    disruption = {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}
    nodes = [node(f"n{number}") for number in range(4)]
    claims = [node_claim(f"n{number}") for number in range(4)]
    for one in nodes:
        one["metadata"]["labels"]["slot"] = one["metadata"]["name"]
    objects = [pool(disruption=disruption), *nodes, *claims, web(4)]
    if age == "Never":
        unchanged = ask(tmp_path, objects, ClusterChange()).without.autoscaling
        assert unchanged is not None
        gone = unchanged.transitions[0]
        name = gone.node
    else:
        name = "n2"
        claims[2]["spec"]["expireAfter"] = age
        claims[2]["metadata"]["creationTimestamp"] = "2025-12-31T00:00:00Z"
        objects = [pool(disruption=NEVER), *nodes, *claims, web(8)]
    answer = ask(tmp_path, objects, ClusterChange(drain=(f"slot={name}",)))
    [note] = [one for one in answer.changed.notes if "The change was to drain" in one]
    assert note.endswith(f"The change was to drain 1 of the removed nodes. {says}.")
    assert [one.what for one in answer.changed.skipped] == [name]
    assert not any("kubectl drain" in (one.command or "") for one in answer.next_steps)


def test_the_failure_of_a_node_that_is_then_removed_is_an_effect(tmp_path: Path) -> None:
    """Its DaemonSet pod is down until Karpenter removes the node, as it does in both runs."""
    tolerations = [{"operator": "Exists"}]
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"tolerations": tolerations, "containers": [{"name": "c", "image": "i"}]},
    }
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default", "uid": "ds"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }
    answer = ask(
        tmp_path,
        [pool(), node("n1"), agent],
        ClusterChange(failures=Failures(fail_node=("n1",))),
    )
    assert "n1" not in {one.name for one in (*answer.without.nodes, *answer.changed.nodes)}
    assert not answer.effect.is_none
    sentences = [one.sentence for one in verdict_of(answer.effect).findings]
    assert sentences == ["1 pod is down with its node and needs no replacement."]


def test_a_removal_that_the_change_does_not_cause_is_no_effect(tmp_path: Path) -> None:
    """Karpenter removes the empty node in both runs as soon as the change is made."""
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"}
    single = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    single["spec"] = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    single["status"] = {"phase": "Running"}
    objects = [pool(disruption=disruption), node("n0"), node("n1"), single]
    answer = ask(tmp_path, objects, ClusterChange(cordon=("n0",)))
    without, changed = answer.without.autoscaling, answer.changed.autoscaling
    assert without is not None
    assert changed is not None
    assert [one.node for one in without.transitions] == ["n0"]
    assert without.cost_per_hour == changed.cost_per_hour


def test_a_named_node_that_expires_before_the_change_is_skipped_once(tmp_path: Path) -> None:
    claim = node_claim("n0", creationTimestamp="2025-01-01T00:00:00Z")
    claim["spec"]["expireAfter"] = "1h"
    objects = [pool(), node("n0"), claim, node("n1"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange(drain=("n0",)))
    assert len(answer.changed.skipped) == 1
    assert not any("Until then, it keeps" in note for note in answer.changed.notes)


@pytest.mark.parametrize("is_claimed", [True, False])
def test_a_note_counts_the_nodes_that_expire_in_both_runs(
    tmp_path: Path, *, is_claimed: bool
) -> None:
    """A dump without NodeClaims does not say when its nodes expire."""
    keeping = pool(disruption={"consolidateAfter": "Never"})
    keeping["spec"]["template"]["spec"]["expireAfter"] = "1h"
    old = node("n0")
    old["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    claim = node_claim("n0", creationTimestamp="2025-01-01T00:00:00Z")
    claim["spec"]["expireAfter"] = "1h"
    objects = [keeping, old, node("n1"), *([claim] if is_claimed else []), web(2)]
    notes = ask(tmp_path, objects, ClusterChange(scale=("deploy/web=3",))).changed.notes
    [note] = [one for one in notes if "expireAfter" in one]
    assert note.startswith("In both runs, 1 node expires (expireAfter).")
    assumed = (
        "The dump has no NodeClaims of 1 of them, so expireAfter of their NodePool is assumed."
    )
    assert note.endswith(assumed) != is_claimed


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param(Failures(fail_zone=("z-a",)), id="all nodes of a zone"),
        pytest.param(Failures(fail_node=("karpenter.sh/nodepool=default",)), id="a label"),
        pytest.param(Failures(fail_fraction=("100%",)), id="a fraction"),
    ],
)
def test_nodes_that_are_added_before_the_change_fail_too(
    tmp_path: Path, failures: Failures
) -> None:
    """The change begins when the new node for the waiting pods is Ready."""
    keeping = pool(disruption={"consolidateAfter": "Never"})
    answer = ask(tmp_path, [keeping, node("n1"), web(6)], ClusterChange(failures=failures))
    present = {one.name for one in answer.without.nodes}
    assert len(present) > 1
    outage = answer.changed.outage
    assert outage is not None
    assert {one.node for one in outage.nodes} == present
    assert not answer.changed.skipped


def test_nodes_that_are_added_before_the_change_are_drained(tmp_path: Path) -> None:
    """The selector also matches the new node."""
    change = ClusterChange(drain=("karpenter.sh/nodepool=default",))
    answer = ask(tmp_path, [pool(), node("n1"), web(6)], change)
    assert {one.name for one in answer.changed.nodes}.isdisjoint(
        one.name for one in answer.without.nodes
    )


@pytest.mark.parametrize("provider_id", ["", "aws:///z-a/i-1"])
def test_a_nodeclaim_without_a_node_gets_a_node(tmp_path: Path, provider_id: str) -> None:
    """It may have been launched before the dump; its pods leave the smaller node."""
    on_demand = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "mine", "labels": {"team": "shop"}},
        "spec": {"requirements": [on_demand], "resources": {"requests": {"cpu": "4"}}},
    }
    if provider_id:
        size = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        claim["status"] = {"providerID": provider_id, "capacity": size, "allocatable": size}
    objects = [pool(), node("n1"), web(2), claim]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=8",)))
    assert [one.name for one in answer.changed.nodes] == ["mine"]
    assert len([one for one in answer.changed.pods.values() if one.is_placed]) == 8


def test_the_verdict_names_a_topology_constraint_that_no_new_node_meets(tmp_path: Path) -> None:
    """Two zones for three pods that exclude each other; the node in z-a is full."""
    apart = {
        "topologyKey": "topology.kubernetes.io/zone",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    workload = web(0)
    workload["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": required}
    full = [bound("a", "n1"), bound("b", "n1")]
    change = ClusterChange(scale=("deploy/default/web=3",))
    answer = ask(tmp_path, [pool(), node("n1"), node_claim("n1"), *full, workload], change)
    assert answer.verdict.first.sentence.endswith(
        "For this pod, karpenter adds no node: unsatisfiable topology constraint for pod "
        "anti-affinity, key=topology.kubernetes.io/zone."
    )
    template = {"spec": {"requirements": [], "taints": [{"key": "x", "effect": "NoSchedule"}]}}
    tainted = {**pool(template=template), "metadata": {"name": "tainted"}}
    objects = [pool(), tainted, node("n1"), node_claim("n1"), *full, workload]
    first = ask(tmp_path, objects, change).verdict.first
    assert "topology" not in first.sentence  # one NodePool refuses the pod because of its taint


def test_no_node_is_added_beyond_the_limits(tmp_path: Path) -> None:
    """The answer says in upstream's words why a pod triggers no scale-up."""
    objects = [pool(limits={"cpu": "2"}), node("n1"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=3",)))
    text = "all available instance types exceed limits for nodepool (NodePool=default)"
    found = answer.changed.autoscaling
    assert found is not None
    assert [text in why for why in found.waiting.values()] == [True]
    words = "The limit of NodePool default allows no further node: cpu 2, 2 in use."
    assert words in answer.verdict.first.sentence
    [step] = [one for one in answer.next_steps if "NodePool" in one.words]
    assert step.words == (
        "ask again with higher limits of NodePool default (cpu 4); no pod then stays pending"
    )
    assert step.options == "--set 'nodepool/default:spec.limits[cpu]=4'"


def test_a_higher_limit_is_suggested_for_applied_pods(tmp_path: Path) -> None:
    """The limit is rounded up to whole Gi."""
    limited = pool(limits={"cpu": "100", "memory": "8100Mi"})
    new = tmp_path / "web.json"
    new.write_text(json.dumps(web(3)))
    answer = ask(tmp_path, [limited, node("n1")], ClusterChange(apply=(str(new),)))
    words = "The limit of NodePool default allows no further node: memory 8100Mi, 8Gi in use."
    assert words in answer.verdict.first.sentence
    [step] = [one for one in answer.next_steps if "NodePool" in one.words]
    assert step.options == "--set 'nodepool/default:spec.limits[memory]=16Gi'"


def test_limits_that_only_together_allow_no_node_are_all_named(tmp_path: Path) -> None:
    """Each of the two limits excludes one of the two instance types."""
    limits = {"cpu": "6", "memory": "24Gi", "nodes": "9"}
    types = "name,cpu,memory,zones,price\nwide,8,8Gi,z-a,0.1\nhigh,2,64Gi,z-a,0.4\n"
    objects = [pool(limits=limits), node("n1"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=3",)), types)
    words = "NodePool default allows no further node: cpu 6, 2 in use; memory 24Gi, 8Gi in use."
    assert words in answer.verdict.first.sentence


def test_no_higher_limit_is_suggested_if_the_change_sets_the_limits(tmp_path: Path) -> None:
    """The same edit cannot be given twice."""
    objects = [pool(), node("n1"), web(2)]
    lower = ("nodepool/default:spec.limits={cpu: 2}",)
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=3",), set=lower))
    assert "The limit of NodePool default" in answer.verdict.first.sentence
    assert not [one for one in answer.next_steps if "NodePool" in one.words]


def test_only_limits_of_pools_whose_nodes_suit_the_pods_are_named(tmp_path: Path) -> None:
    """Karpenter compares pods with the limits of a NodePool before the rest of the NodePool."""
    tainted, small = pool(limits={"cpu": "1"}), pool(limits={"cpu": "1", "nodes": "9"})
    tainted["metadata"], small["metadata"] = {"name": "tainted"}, {"name": "small"}
    tainted["spec"]["template"]["spec"]["taints"] = [{"key": "gpu", "effect": "NoSchedule"}]
    objects = [pool(limits={"cpu": "2"}), tainted, small, node("n1"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=3",)))
    found = answer.changed.autoscaling
    assert found is not None
    [reason] = found.waiting.values()
    assert reason.count("exceed limits") == 3
    assert (
        "The limits of 2 NodePools allow no further node: small (cpu 1, 0 in use), "
        "default (cpu 2, 2 in use)." in answer.verdict.first.sentence
    )


def test_pods_that_are_alike_are_compared_with_the_limits_once(tmp_path: Path, monkeypatch) -> None:
    """A pass with thousands of pods takes seconds, and there is a pass for each NodePool."""
    passes = []
    examine = Provisioner.fitting_without_limits

    def counted(provisioner, pool, pods, now, kept=()):
        passes.append(len(pods))
        return examine(provisioner, pool, pods, now, kept)

    monkeypatch.setattr(Provisioner, "fitting_without_limits", counted)
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": web(1)["spec"]["template"]["spec"]}
    alone = [pod | {"metadata": {"name": f"p{n}", "namespace": "default"}} for n in range(20)]
    objects = [pool(limits={"cpu": "2"}), node("n1"), *alone]
    answer = ask(tmp_path, objects, ClusterChange())
    found = answer.changed.autoscaling
    assert found is not None
    assert len(found.limits) == len(found.waiting) > 10
    assert set(passes) == {1}


def test_a_change_of_limits_takes_effect(tmp_path: Path) -> None:
    """The user edits the NodePool; equal templates do not cause drift."""
    upstream = {"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v3"}
    limited = pool(limits={"cpu": "2"})
    limited["metadata"]["annotations"] = upstream
    objects = [limited, node_claim("n1", annotations=upstream), node("n1"), web(2)]
    raised = ("nodepool/default:spec.limits.cpu=100",)
    answer = ask(tmp_path, objects, ClusterChange(set=raised, scale=("deploy/default/web=3",)))
    assert len([one for one in answer.changed.pods.values() if one.is_placed]) == 3
    found = answer.changed.autoscaling
    assert found is not None
    assert {one.reason for one in found.transitions} == {"Provisioned"}


@pytest.mark.parametrize("hashes", [{}, {"hash": "1", "hash-version": "v3"}])
def test_a_change_of_the_template_makes_nodes_drift(tmp_path: Path, hashes: dict[str, str]) -> None:
    """The dump may lack Karpenter's hashes."""
    annotations = {f"karpenter.sh/nodepool-{name}": text for name, text in hashes.items()}
    old = pool()
    old["metadata"]["annotations"] = annotations
    objects = [old, node_claim("n1", annotations=annotations), node("n1"), web(2)]
    labelled = ("nodepool/default:spec.template.metadata.labels.team=shop",)
    answer = ask(tmp_path, objects, ClusterChange(set=labelled))
    assert [one.name for one in answer.without.nodes] == ["n1"]
    assert "n1" not in [one.name for one in answer.changed.nodes]
    found = answer.changed.autoscaling
    assert found is not None
    assert {one.reason for one in found.transitions} == {"Drifted"}


def test_a_note_names_the_drifted_nodes_that_are_not_replaced(tmp_path: Path) -> None:
    """An annotation protects the pod of the node n1."""
    kept = bound("a", "n1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    objects = [pool(disruption=NEVER), *(node(name) for name in ("n1", "n2")), kept]
    objects += [node_claim(name) for name in ("n1", "n2")]
    labelled = ("nodepool/default:spec.template.metadata.labels.team=shop",)
    answer = ask(tmp_path, objects, ClusterChange(set=labelled))
    note = "At the end, Karpenter has not replaced 1 drifted node: n1."
    assert (note in answer.changed.notes, note in answer.without.notes) == (True, False)


@pytest.mark.parametrize(
    ("pods", "guards", "budgets", "why"),
    [
        pytest.param(
            {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            (),
            "100%",
            'Pod has "karpenter.sh/do-not-disrupt" annotation (2 nodes)',
            id="an annotation",
        ),
        pytest.param(
            {"labels": {"app": "a"}},
            ({"minAvailable": "100%", "selector": {"matchLabels": {"app": "a"}}},),
            "100%",
            "Pdb prevents pod evictions (PodDisruptionBudget=[default/a]) (2 nodes)",
            id="a PodDisruptionBudget",
        ),
        pytest.param(
            {},
            (),
            "0",
            "No allowed disruptions for disruption reason Drifted due to blocking budget (2 nodes)",
            id="a budget of the NodePool",
        ),
    ],
)
def test_the_verdict_says_why_drifted_nodes_are_not_replaced(
    tmp_path: Path, pods: Json, guards: tuple[Json, ...], budgets: str, why: str
) -> None:
    """An upgrade of the nodes that stops half-way must not look complete."""
    names = ("n1", "n2")
    objects = [pool(disruption={"consolidateAfter": "Never", "budgets": [{"nodes": budgets}]})]
    objects += [*map(node, names), *map(node_claim, names)]
    objects += [bound(f"p-{name}", name, **pods) for name in names]
    meta = {"name": "a", "namespace": "default"}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    objects += [{**kind, "metadata": meta, "spec": spec} for spec in guards]
    labelled = ("nodepool/default:spec.template.metadata.labels.team=shop",)
    answer = ask(tmp_path, objects, ClusterChange(set=labelled))
    first = answer.verdict.first
    assert first.sentence == f"At the end, Karpenter has not replaced 2 drifted nodes: {why}."
    assert (first.kind, answer.effect.is_none) == ("unfinished", False)


@pytest.mark.parametrize("deleted", ["nodepool/default", "nodeclaim/n1", "node/n1"])
def test_a_deletion_removes_the_nodes(tmp_path: Path, deleted: str) -> None:
    """Only a NodePool that still exists gets new nodes."""
    objects = [pool(), node_claim("n1"), node("n1"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange(delete=(deleted,)))
    placed = [one for one in answer.changed.pods.values() if one.is_placed]
    assert "n1" not in [one.name for one in answer.changed.nodes]
    assert len(placed) == (0 if deleted == "nodepool/default" else 2)


@pytest.mark.parametrize(
    ("deleted", "earlier"), [("nodepool/default", []), ("nodepool/other", ["n1"])]
)
def test_the_nodes_of_a_deleted_node_pool_are_not_consolidated_before_the_deletion(
    tmp_path: Path, deleted: str, earlier: list[str]
) -> None:
    """The change waits until a pod has a new node. Meanwhile, the empty node n1 could go."""
    big = web(1)
    big["metadata"] |= {"name": "big", "uid": "d2"}
    big["spec"]["selector"]["matchLabels"] = {"app": "big"}
    big["spec"]["template"]["metadata"]["labels"] = {"app": "big"}
    [container] = big["spec"]["template"]["spec"]["containers"]
    container["resources"]["requests"]["cpu"] = "7"
    other = pool() | {"metadata": {"name": "other"}}
    objects = [pool(), other, node("n1"), node_claim("n1"), big]
    found = ask(tmp_path, objects, ClusterChange(delete=(deleted,))).changed.autoscaling
    assert found is not None
    assert [one.node for one in found.earlier if not one.came] == earlier


def test_an_applied_node_pool_gets_nodes(tmp_path: Path) -> None:
    """Its weight puts it before the other NodePools."""
    path = tmp_path / "pool.json"
    path.write_text(json.dumps(pool(weight=10) | {"metadata": {"name": "better"}}))
    change = ClusterChange(apply=(str(path),), scale=("deploy/default/web=4",))
    answer = ask(tmp_path, [pool(), node("n1"), web(2)], change)
    found = answer.changed.autoscaling
    assert found is not None
    assert [one.group.split()[0] for one in found.groups if one.added] == ["better"]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec.disruption.consolidateAfter", "soon", "'soon' is not a duration"),
        ("spec.disruption", "soon", "Expected `object`, got `str`"),
    ],
)
def test_an_invalid_change_is_refused(tmp_path: Path, path: str, value: str, problem: str) -> None:
    """The error names the NodePool and the field."""
    change = ClusterChange(set=(f"nodepool/default:{path}={value}",))
    with pytest.raises(InputError, match=re.escape(f"NodePool default: {path}: {problem}")):
        ask(tmp_path, [pool(), node("n1")], change)


def test_an_invalid_applied_node_pool_is_refused(tmp_path: Path) -> None:
    """The message names the file."""
    path = tmp_path / "pool.json"
    path.write_text(json.dumps(pool(weight=1000) | {"metadata": {"name": "heavy"}}))
    with pytest.raises(InputError, match=r"pool\.json: NodePool heavy: spec\.weight: 1000 is not"):
        ask(tmp_path, [pool(), node("n1")], ClusterChange(apply=(str(path),)))


def test_an_invalid_node_pool_is_refused_without_karpenter(tmp_path: Path) -> None:
    """A NodePool of an older version has other fields, so it is not checked."""
    path = tmp_path / "pool.json"
    heavy = pool(weight=1000) | {"metadata": {"name": "heavy"}}
    path.write_text(json.dumps(heavy))
    snapshot = parse_snapshot("dump.json", json.dumps(node("n1")).encode())
    change = ClusterChange(apply=(str(path),))
    with pytest.raises(InputError, match=r"pool\.json: NodePool heavy: spec\.weight: 1000 is not"):
        what_if(snapshot, change, Conditions())
    path.write_text(json.dumps(heavy | {"apiVersion": "karpenter.sh/v1beta1"}))
    assert not what_if(snapshot, change, Conditions()).without.pending


def test_an_unknown_field_of_an_applied_node_pool_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pool.json"
    path.write_text(json.dumps(pool(limit={"cpu": "8"}) | {"metadata": {"name": "new"}}))
    with pytest.raises(InputError, match=r"pool\.json: NodePool new: spec\.limit: unknown field"):
        ask(tmp_path, [pool(), node("n1")], ClusterChange(apply=(str(path),)))


def test_an_edit_of_a_node_pool_sets_no_unknown_field(tmp_path: Path) -> None:
    """A field that the NodePool of the cluster has already is no problem of the edit."""
    cluster = [pool(newer=True), node("n1")]
    ask(tmp_path, cluster, ClusterChange(set=("nodepool/default:spec.weight=7",)))
    with pytest.raises(InputError, match=r"NodePool default: spec\.wieght: unknown field"):
        ask(tmp_path, cluster, ClusterChange(set=("nodepool/default:spec.wieght=7",)))


def test_a_file_of_node_pools_has_an_unknown_field_only_if_it_comes_from_a_cluster(
    tmp_path: Path,
) -> None:
    """A cluster may have a newer version of Karpenter."""
    path = tmp_path / "pools.json"
    new = pool(limit={"cpu": "8"}) | {"metadata": {"name": "new"}}
    path.write_text(json.dumps(new))
    with pytest.raises(InputError, match=r"pools\.json: NodePool new: spec\.limit: unknown field"):
        ask(tmp_path, [pool(), node("n1")], ClusterChange(), node_pools=str(path))
    path.write_text(json.dumps(new | {"metadata": {"name": "new", "uid": "u"}}))
    ask(tmp_path, [pool(), node("n1")], ClusterChange(), node_pools=str(path))


def test_a_budget_keeps_pods_and_their_node(tmp_path: Path) -> None:
    """A drain does not violate a PodDisruptionBudget."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    objects = [pool(), node("n1"), node("n2"), node("n3"), web(4)]
    assert len(ask(tmp_path, objects, ClusterChange()).without.nodes) == 2
    answer = ask(tmp_path, [*objects, budget], ClusterChange())
    assert answer.without.evicted == ()
    assert len(answer.without.nodes) == 3


@pytest.mark.parametrize("deleted", ["node/n1", "nodeclaim/n1", "nodepool/default"])
def test_a_budget_that_blocks_the_drain_of_a_deletion_is_named(
    tmp_path: Path, deleted: str
) -> None:
    """The pod of n1 may not be evicted, so n1 stays."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    guarded = bound("guarded", "n1", labels={"app": "web"})
    objects = [pool(), node("n1"), node_claim("n1"), guarded, budget]
    answer = ask(tmp_path, objects, ClusterChange(delete=(deleted,)))
    assert [one.pod.key for one in answer.changed.undrained] == ["default/guarded"]
    assert verdict_of(answer.effect).first.sentence == (
        "The drain does not complete: 1 pod on 1 node cannot be evicted because of budget "
        "default/b."
    )


def test_a_pod_that_stays_on_a_deleted_node_does_not_count_as_waiting_for_a_node(
    tmp_path: Path,
) -> None:
    """Karpenter can create no node for the pod, which keeps its node because of a budget.

    Another pod was evicted before, and waits for a node.
    """
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    objects = [pool(limits={"cpu": "0"}), node("n1"), node_claim("n1"), web(2), budget]
    answer = ask(tmp_path, objects, ClusterChange(delete=("node/n1",)))
    assert len(answer.changed.undrained) == 1
    assert answer.changed.autoscaling is not None
    pending = [pod for pod in answer.changed.pods.values() if pod.is_pending]
    assert len(answer.changed.autoscaling.waiting) == len(pending) == 1


@pytest.mark.parametrize("deleted", ["node/n1", "nodeclaim/n1"])
def test_a_drain_that_waits_for_a_protected_pod_is_not_complete(
    tmp_path: Path, deleted: str
) -> None:
    """Node n2 has room for the other pod, but Karpenter does not evict the protected pod."""
    protected = bound("protected", "n1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    other = bound("other", "n1")
    objects = [pool(), *(of(name) for name in ("n1", "n2") for of in (node, node_claim))]
    answer = ask(tmp_path, [*objects, protected, other], ClusterChange(delete=(deleted,)))
    assert [one.pod.key for one in answer.difference.evicted] == ["default/other"]
    assert [one.pod.key for one in answer.changed.undrained] == ["default/protected"]
    assert verdict_of(answer.effect).first.sentence == (
        "The drain does not complete: 1 pod on 1 node stays: Karpenter evicts no pod with the "
        "annotation karpenter.sh/do-not-disrupt."
    )


def test_pods_of_a_removed_node_are_evicted(tmp_path: Path) -> None:
    """Pods of DaemonSets leave with their node and are not displaced."""
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }
    objects = [pool(), node("n1"), node("n2"), web(4), agent]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/web=2",)))
    assert len(answer.changed.nodes) == 1
    [evicted] = answer.difference.evicted
    assert (str(evicted.pod.workload), evicted.why) == ("deploy/default/web", "karpenter drain")
    assert [one.pod.key for one in answer.difference.moved] == [evicted.pod.key]
    assert [str(one.workload) for one in answer.difference.gone] == []


def test_a_termination_grace_period_breaches_budgets(tmp_path: Path) -> None:
    """Pods that would end too late are deleted, whatever their budget allows."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    claim = node_claim("n1")
    claim["spec"]["terminationGracePeriod"] = "20s"
    objects = [pool(), node("n1"), node("n2"), claim, node_claim("n2"), web(4), budget]
    answer = ask(tmp_path, objects, ClusterChange(delete=("nodeclaim/n1",)))
    why = "karpenter termination grace period"
    assert [(one.node, one.why) for one in answer.difference.evicted] == [("n1", why)] * 2
    assert [(one.pdb, one.by) for one in answer.difference.pdb_breaches] == [("default/b", why)]


def test_an_unsettled_run_says_whether_the_autoscaler_still_acts(tmp_path: Path) -> None:
    """The nodes were added in the first two minutes."""
    objects = [pool(), node("n1"), web(2)]
    answer = ask(tmp_path, objects, ClusterChange(scale=("deploy/default/web=8",)))
    assert answer.changed.unsettled("--horizon") == ""
    found = replace(answer.changed, settled=False)
    acts = "karpenter was still adding or removing nodes."
    assert found.unsettled("--horizon").endswith(acts)
    later = replace(found, ended_at=found.ended_at + seconds(600))
    assert later.unsettled("--horizon").endswith("changes continue.")


def test_a_snapshot_without_node_pools_is_refused(tmp_path: Path) -> None:
    """Karpenter would have nothing to do."""
    with pytest.raises(InputError, match="contains no NodePool"):
        ask(tmp_path, [node("n1"), web(1)], ClusterChange())


def test_a_bad_duration_is_refused(tmp_path: Path) -> None:
    """The error names the NodePool and the field."""
    bad = pool(disruption={"consolidateAfter": "soon"})
    with pytest.raises(InputError, match=r"NodePool default: spec\.disruption\.consolidateAfter"):
        ask(tmp_path, [bad, node("n1")], ClusterChange())


def test_karpenter_is_off_unless_an_option_enables_it() -> None:
    """If the dump contains Karpenter, the answer says so."""
    listing = {"apiVersion": "v1", "kind": "List", "items": [pool(), node("n1")]}
    snapshot = parse_snapshot("dump.json", json.dumps(listing).encode())
    assert KARPENTER_IDLE in what_if(snapshot, ClusterChange()).without.notes


@pytest.mark.parametrize(
    ("change", "verdict", "note"),
    [
        (
            ClusterChange(delete=("nodepool/default",)),
            "Nothing changes for any pod, but the deletion of NodePool default is not simulated.",
            "In the cluster, Karpenter drains and deletes 2 nodes.",
        ),
        (
            ClusterChange(delete=("nodeclaim/n1",)),
            "Nothing changes for any pod, but the deletion of NodeClaim n1 is not simulated.",
            "In the cluster, Karpenter drains and deletes 1 node.",
        ),
        (
            ClusterChange(set=("nodepool/default:spec.template.metadata.labels.a=b",)),
            "Nothing changes for any pod, but the change of NodePool default is not simulated.",
            "In the cluster, Karpenter may replace 2 nodes.",
        ),
        (
            ClusterChange(set=("nodepool/default:spec.limits.cpu=500",)),
            "Nothing changes for any pod, but the change of NodePool default is not simulated.",
            "because Karpenter is not simulated; --autoscale karpenter simulates it.",
        ),
    ],
)
def test_a_change_of_node_pools_without_karpenter_is_named(
    change: ClusterChange, verdict: str, note: str
) -> None:
    """A pull request that deletes a NodePool must not look harmless."""
    objects = [pool(), node("n1"), node("n2"), node_claim("n1"), node_claim("n2"), web(1)]
    listing = {"apiVersion": "v1", "kind": "List", "items": objects}
    snapshot = parse_snapshot("dump.json", json.dumps(listing).encode())
    answer = what_if(snapshot, change)
    assert answer.verdict.first.sentence == verdict
    assert [one for one in answer.changed.notes if one.endswith(note)]


def test_a_note_names_the_other_autoscaler(tmp_path: Path) -> None:
    """A cluster may have both, Cluster Autoscaler for a group of system nodes."""
    other = web(1)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "cluster-autoscaler:v1.36.0"
    for is_noted, objects in ((False, [web(1)]), (True, [other])):
        notes = ask(tmp_path, [pool(), node("n1"), *objects], ClusterChange()).without.notes
        named = [one for one in notes if one.startswith("The dump has a Cluster Autoscaler")]
        assert bool(named) == is_noted


def expected(name: str, **meta: Any) -> Json:
    """The NodeClaim `name`, whose machine is launched, but has no Node yet."""
    claim = node_claim(name, **meta)
    del claim["status"]["nodeName"]
    claim["status"]["conditions"] = [{"type": "Launched", "status": "True"}]
    return claim


EXPECTED = "NodeClaim n2 has no Node yet, so this capacity is missing in the answer; "


@pytest.mark.parametrize(
    ("claim", "is_missing"),
    [
        pytest.param(expected("n2"), True, id="launched"),
        pytest.param({**expected("n2"), "status": {}}, True, id="created"),
        pytest.param(node_claim("n1"), False, id="with a Node"),
        pytest.param(node_claim("n2"), False, id="its Node is gone"),
        pytest.param(
            expected("n2", deletionTimestamp="2026-01-01T00:01:00Z"), False, id="being deleted"
        ),
        pytest.param({**expected("n2"), "status": {"nodeName": ["n2"]}}, False, id="malformed"),
    ],
)
def test_without_karpenter_a_note_names_nodes_that_do_not_exist_yet(
    claim: Json, *, is_missing: bool
) -> None:
    """Their capacity is missing in answers, so pending pods that wait for them stay pending."""
    listing = {"apiVersion": "v1", "kind": "List", "items": [pool(), node("n1"), claim]}
    snapshot = parse_snapshot("dump.json", json.dumps(listing).encode())
    notes = what_if(snapshot, ClusterChange()).without.notes
    assert (EXPECTED + "--autoscale karpenter adds it." in notes) == is_missing


def test_an_unregistered_node_counts_as_the_node_of_its_claim() -> None:
    """The NodeClaim gets the name of its Node at the registration."""
    unregistered = node("n2")
    unregistered["spec"] = {"providerID": "fairlead:///n2"}
    del unregistered["metadata"]["labels"]["karpenter.sh/registered"]
    objects = [pool(), node("n1"), unregistered, expected("n2")]
    listing = {"apiVersion": "v1", "kind": "List", "items": objects}
    snapshot = parse_snapshot("dump.json", json.dumps(listing).encode())
    assert not any(
        "has no Node yet" in one for one in what_if(snapshot, ClusterChange()).without.notes
    )


def test_karpenter_adds_nodes_that_do_not_exist_yet(tmp_path: Path) -> None:
    """The note is only about missing capacity."""
    answer = ask(tmp_path, [pool(), node("n1"), node_claim("n1"), expected("n2")], ClusterChange())
    assert not any("has no Node yet" in one for one in answer.without.notes)


def zone_of_new_nodes(answer: WhatIfAnswer) -> set[str]:
    """Return the zones of the nodes that Karpenter added because of the change."""
    return {one.zone for one in answer.changed.nodes if one.name.startswith("default-")}


def test_karpenter_creates_no_nodes_in_a_failed_zone(tmp_path: Path) -> None:
    """Both zones have the same price, so the first offering is in the failed zone z-a."""
    other = node("n2")
    other["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z-b"
    keeping = pool(disruption={"consolidateAfter": "Never"})
    objects = [keeping, node("n1"), other, web(4)]
    found = ask(tmp_path, objects, ClusterChange(failures=Failures(fail_zone=("z-a",))))
    assert zone_of_new_nodes(found) == {"z-b"}
    assert any(
        "While zone z-a is down, Karpenter gets no mach" in one for one in found.changed.notes
    )
    only_node = Failures(fail_node=("topology.kubernetes.io/zone=z-a",))
    found = ask(tmp_path, objects, ClusterChange(failures=only_node))
    assert zone_of_new_nodes(found) == {"z-a"}


def test_karpenter_waits_for_a_failed_zone_that_pods_need(tmp_path: Path) -> None:
    """The third pod waits until the zone is back and its offerings are tried again."""
    needs = {"topology.kubernetes.io/zone": "z-a"}
    workload = web(2)
    workload["spec"]["template"]["spec"]["nodeSelector"] = needs
    objects = [pool(), node("n1"), node_claim("n1"), workload]
    change = ClusterChange(
        failures=Failures(fail_zone=("z-a",)), lasts="4m", scale=("deploy/web=3",)
    )
    found = ask(tmp_path, objects, change)
    autoscaling = found.changed.autoscaling
    assert autoscaling is not None
    [came] = [one for one in autoscaling.transitions if one.came]
    after = to_seconds(came.at - found.changed.started_at)
    assert 4 * 60 < after < (4 + 3) * 60 + 20
    assert autoscaling.undelivered == {"default": 2}
    assert zone_of_new_nodes(found) == {"z-a"}


def test_pods_get_other_nodes_when_karpenter_gives_up_on_a_failed_zone(tmp_path: Path) -> None:
    """Machines in z-a start when it fails; after 15 minutes, their NodeClaims are deleted.

    The next pass, 10 s later, chooses the zone z-b.

    upstream: pkg/controllers/nodeclaim/lifecycle/liveness.go: registrationTimeout
    """
    other = node("n2")
    other["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z-b"
    keeping = pool(disruption={"consolidateAfter": "Never"})
    failures = Failures(fail_zone=("z-a",), at="30s")
    change = ClusterChange(failures=failures, scale=("deploy/web=8",))
    found = ask(tmp_path, [keeping, node("n1"), other, web(4)], change)
    autoscaling = found.changed.autoscaling
    assert autoscaling is not None
    gone = [one.reason for one in autoscaling.transitions if not one.came]
    assert gone == ["registration_timeout"]
    assert all(one.node for one in found.changed.pods.values())
    assert zone_of_new_nodes(found) == {"z-b"}


def test_nodes_that_karpenter_adds_before_a_zone_fails_fail_with_it(tmp_path: Path) -> None:
    """The change adds a node in z-a; the zone fails four minutes later, for two minutes."""
    keeping = pool(disruption={"consolidateAfter": "Never"})
    failures = Failures(fail_zone=("z-a",), at="4m")
    change = ClusterChange(failures=failures, lasts="2m", scale=("deploy/web=3",))
    found = ask(tmp_path, [keeping, node("n1"), web(2)], change)
    assert zone_of_new_nodes(found) == {"z-a"}
    outage = found.changed.outage
    assert outage is not None
    assert len(outage.nodes) == 2
    assert all(one.back_at is not None for one in outage.nodes)


def test_a_run_ends_when_karpenter_gets_no_machine_in_any_zone(tmp_path: Path) -> None:
    """Karpenter tries again every three minutes, but these attempts change nothing."""
    failures = Failures(fail_zone=("z-a", "z-b"))
    other = node("n2")
    other["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z-b"
    objects = [pool(), node("n1"), other, web(4)]
    found = ask(tmp_path, objects, ClusterChange(failures=failures, scale=("deploy/web=8",)))
    assert found.changed.settled
    assert to_seconds(found.changed.ended_at - found.changed.started_at) < 30 * 60


@pytest.mark.parametrize("on_node", [True, False], ids=["node and claim", "only the claim"])
def test_a_node_that_is_being_removed_in_the_dump_is_drained_and_removed(
    tmp_path: Path, on_node: bool
) -> None:
    """Karpenter had begun to remove n1, but its pod was not evicted yet."""
    deleted = {"deletionTimestamp": "2026-01-02T00:00:00Z"}
    leaving, keeping = node("n1"), pool(disruption={"consolidateAfter": "Never"})
    leaving["metadata"] |= deleted if on_node else {}
    leaving["spec"] = {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "p", "labels": {"app": "p"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running"},
        }
    ]
    objects = [keeping, leaving, node_claim("n1", **deleted), *pods, web(1)]
    found = ask(tmp_path, objects, ClusterChange(scale=("deploy/web=2",)))
    assert "n1" not in {one.name for one in found.changed.nodes}
    assert "default/p" not in found.changed.pods


def static_node(name: str, *pods: Json) -> list[Json]:
    """A node of the pool with its NodeClaim, and these pods."""
    return [node(name), node_claim(name), *pods]


def names_at_end(answer: WhatIfAnswer) -> list[str]:
    return sorted(one.name for one in answer.changed.nodes)


def test_a_static_node_pool_gets_the_nodes_that_are_missing(tmp_path: Path) -> None:
    """Its nodes do not need pods, and are not removed because they are empty."""
    objects = [pool(replicas=3), *static_node("n1")]
    answer = ask(tmp_path, objects, ClusterChange())
    found = answer.changed.autoscaling
    assert found is not None
    assert {(one.came, one.reason) for one in found.transitions} == {(True, "Provisioned")}
    assert (len(answer.changed.nodes), answer.changed.settled) == (3, True)


def test_a_static_node_pool_replaces_a_deleted_node(tmp_path: Path) -> None:
    objects = [pool(replicas=2), *static_node("n1"), *static_node("n2")]
    answer = ask(tmp_path, objects, ClusterChange(delete=("node/n1",)))
    assert len(answer.changed.nodes) == 2
    assert "n1" not in names_at_end(answer)


def test_a_static_node_pool_that_is_scaled_down_loses_empty_nodes_first(tmp_path: Path) -> None:
    objects = [
        pool(replicas=3),
        *static_node("n1", bound("a", "n1")),
        *static_node("n2"),
        *static_node("n3", bound("b", "n3")),
    ]
    fewer = ClusterChange(set=("nodepool/default:spec.replicas=2",))
    answer = ask(tmp_path, objects, fewer)
    found = answer.changed.autoscaling
    assert found is not None
    assert names_at_end(answer) == ["n1", "n3"]
    assert [one.reason for one in found.transitions] == ["Overprovisioned"]


def test_a_static_node_pool_replaces_drifted_nodes(tmp_path: Path) -> None:
    objects = [pool(replicas=2), *static_node("n1"), *static_node("n2")]
    labelled = ("nodepool/default:spec.template.metadata.labels.team=shop",)
    answer = ask(tmp_path, objects, ClusterChange(set=labelled))
    assert len(answer.changed.nodes) == 2
    assert not {"n1", "n2"} & set(names_at_end(answer))


def test_a_static_node_pool_respects_its_limit_on_nodes(tmp_path: Path) -> None:
    objects = [pool(replicas=5, limits={"nodes": "2"}), *static_node("n1")]
    assert len(ask(tmp_path, objects, ClusterChange()).changed.nodes) == 2


def test_a_static_node_pool_without_capacity_does_not_prevent_the_end(tmp_path: Path) -> None:
    """Karpenter tries again every three minutes, but these attempts change nothing."""
    other = node("n2")
    other["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z-b"
    objects = [pool(replicas=2), *static_node("n1"), other, node_claim("n2")]
    failures = Failures(fail_zone=("z-a", "z-b"))
    more = ClusterChange(failures=failures, set=("nodepool/default:spec.replicas=4",))
    answer = ask(tmp_path, objects, more)
    assert answer.changed.settled
    assert answer.changed.autoscaling is not None
    assert answer.changed.autoscaling.undelivered["default"] > 1


def test_a_static_node_pool_gets_its_nodes_when_capacity_returns(tmp_path: Path) -> None:
    objects = [pool(replicas=2), *static_node("n1"), *static_node("n2")]
    failures = Failures(fail_zone=("z-a",))
    more = ClusterChange(failures=failures, lasts="4m", set=("nodepool/default:spec.replicas=4",))
    template = objects[0]["spec"]["template"]["spec"]
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z-a"]}
    template["requirements"] = [zone]
    answer = ask(tmp_path, objects, more)
    found = answer.changed.autoscaling
    assert found is not None
    assert found.undelivered["default"] > 0
    assert (len(answer.changed.nodes), answer.changed.settled) == (4, True)


@pytest.mark.parametrize(
    ("gate", "claims", "count"), [("false", True, 1), ("true", True, 3), ("true", False, 1)]
)
def test_static_node_pools_need_their_feature_gate_and_nodeclaims(
    tmp_path: Path, gate: str, claims: bool, count: int
) -> None:
    """Without the NodeClaims, the pool would seem to have no nodes."""
    controller = web(1)
    controller["metadata"]["name"] = "karpenter"
    container = controller["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "karpenter/controller"
    container["env"] = [{"name": "FEATURE_GATES", "value": f"StaticCapacity={gate}"}]
    objects = [pool(replicas=3), node("n1"), controller]
    objects += [node_claim("n1")] if claims else []
    answer = ask(tmp_path, objects, ClusterChange())
    assert len(answer.changed.nodes) == count
    lacks = [one for one in answer.changed.notes if "lacks the NodeClaims of n1" in one]
    assert len(lacks) == (not claims)


def test_a_note_says_why_no_node_was_created_for_pods_that_are_bound_at_the_end(tmp_path):
    """The NodePool is at its limit while the node is down. Then the pods return to the node."""
    change = ClusterChange(failures=Failures(fail_node=("n1",)), lasts="20m")
    nodes = [node("n1"), node("n2"), node_claim("n1"), node_claim("n2")]
    limited = pool(limits={"cpu": "4"}, disruption={"consolidateAfter": "Never"})
    answer = ask(tmp_path, [*nodes, limited, web(4)], change)
    assert not answer.changed.autoscaling.waiting
    assert re.fullmatch(
        r"For up to 1\dm\d\ds, karpenter adds no node for 2 pods of deploy/default/web: "
        r"all available instance types exceed limits for nodepool.*",
        answer.causes[0],
    )
