"""A local cluster with Karpenter, NodePools and NodeClaims."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.cli.commands.up.karpenter_setup import karpenter_setup
from fairlead.whatif.configuration.autoscaling.provider_settings import provision_times
from fairlead.worlds.local.control_plane import OBSERVED, ControlPlane

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
MERGE = "application/merge-patch+json"


def web(replicas):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container]},
            },
        },
    }


@pytest.fixture
def elastic(make_cluster):
    """Two nodes that Karpenter does not manage, and the default NodePool."""
    return make_cluster(nodes=2, zones=2, engine=with_karpenter())


def with_karpenter():
    config = karpenter_setup(None, ["zone-a", "zone-b"], None, provision_times(["30s"]))
    return replace(OBSERVED, karpenter=config)


def items(cluster, path):
    return cluster.ask("GET", path)["items"]


def settled(cluster, replicas=16):
    """Return (node names, NodeClaim names), two minutes after a Deployment was created."""
    cluster.ask("POST", DEPLOYMENTS, web(replicas))
    cluster.pass_time(120)
    nodes = {one["metadata"]["name"] for one in cluster.list("node", "")}
    return nodes, [one["metadata"]["name"] for one in items(cluster, CLAIMS)]


def statuses(claim):
    return {one["type"]: one["status"] for one in claim["status"]["conditions"]}


def test_a_nodeclaim_is_launched_then_ready(elastic):
    elastic.ask("POST", DEPLOYMENTS, web(16))
    elastic.pass_time(5)
    [claim] = items(elastic, CLAIMS)
    assert statuses(claim) | {"Launched": "True", "Ready": "Unknown"} == statuses(claim)
    assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "compute-8"
    assert claim["status"]["capacity"] == {
        "cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110",
    }  # fmt: skip
    elastic.pass_time(60)
    [claim] = items(elastic, CLAIMS)
    assert statuses(claim)["Ready"] == "True"
    assert claim["status"]["nodeName"] in {
        one["metadata"]["name"] for one in elastic.list("node", "")
    }
    assert all(pod["spec"].get("nodeName") for pod in elastic.list("pod"))


def test_new_nodes_have_the_version_of_the_others(elastic):
    settled(elastic)
    versions = [one["status"]["nodeInfo"]["kubeletVersion"] for one in elastic.list("node", "")]
    assert len(versions) == 3
    assert len(set(versions)) == 1


def test_the_nodepool_has_resources_and_conditions(elastic):
    settled(elastic)
    [pool] = items(elastic, POOLS)
    assert statuses(pool) == {
        "ValidationSucceeded": "True", "NodeClassReady": "True", "Ready": "True",
        "NodeRegistrationHealthy": "True",
    }  # fmt: skip
    assert pool["status"]["resources"] == {
        "cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110", "nodes": "1",
    }  # fmt: skip


def test_events_have_upstreams_messages(elastic):
    _, [claim] = settled(elastic)
    elastic.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}}, MERGE)
    elastic.pass_time(120)
    found = {(one["involvedObject"]["kind"], one["reason"], one["message"])
             for one in elastic.list("event", "default")}  # fmt: skip
    assert {
        ("Pod", "Nominated", f"Pod should schedule on: nodeclaim/{claim}"),
        (
            "NodeClaim",
            "Registered",
            (
                "Status condition transitioned, Type: Registered, Status: Unknown -> True, "
                "Reason: Registered"
            ),
        ),
        ("Node", "DisruptionTerminating", "Disrupting Node: Empty/Delete"),
        ("NodeClaim", "DisruptionTerminating", "Disrupting NodeClaim: Empty/Delete"),
    } <= found


def test_an_unneeded_node_is_deleted_with_its_nodeclaim(elastic):
    settled(elastic)
    elastic.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}}, MERGE)
    elastic.pass_time(300)
    assert items(elastic, CLAIMS) == []
    assert len(elastic.list("node", "")) == 2
    [pool] = items(elastic, POOLS)
    assert pool["status"]["resources"]["nodes"] == "0"


def test_names_of_nodeclaims_do_not_repeat_after_a_restart(elastic):
    _, [before] = settled(elastic)
    elastic.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}}, MERGE)
    elastic.pass_time(300)
    assert items(elastic, CLAIMS) == []
    store, now = elastic.local.store, elastic.clock.now()
    elastic.local.control_plane = ControlPlane(store, now, config=with_karpenter())
    elastic.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 16}}, MERGE)
    elastic.pass_time(120)
    [after] = items(elastic, CLAIMS)
    assert after["metadata"]["name"] != before


def test_a_deleted_nodeclaim_is_drained_and_replaced(elastic):
    _, [claim] = settled(elastic)
    elastic.ask("DELETE", f"{CLAIMS}/{claim}")
    elastic.pass_time(240)
    [other] = [one["metadata"]["name"] for one in items(elastic, CLAIMS)]
    assert other != claim
    assert claim not in {one["metadata"]["name"] for one in elastic.list("node", "")}
    assert all(pod["spec"].get("nodeName") for pod in elastic.list("pod"))


def test_a_deleted_node_is_drained_and_replaced(elastic):
    before, [claim] = settled(elastic)
    [name] = [one["metadata"]["name"] for one in elastic.list("node", "") if
              one["metadata"].get("finalizers") == ["karpenter.sh/termination"]]  # fmt: skip
    elastic.ask("DELETE", f"/api/v1/nodes/{name}")
    elastic.pass_time(0)
    [node] = [one for one in elastic.list("node", "") if one["metadata"]["name"] == name]
    assert "karpenter.sh/disrupted" in [taint["key"] for taint in node["spec"]["taints"]]
    elastic.pass_time(240)
    after = {one["metadata"]["name"] for one in elastic.list("node", "")}
    assert (name in after, len(after)) == (False, len(before))
    assert claim not in [one["metadata"]["name"] for one in items(elastic, CLAIMS)]
    assert all(pod["spec"].get("nodeName") for pod in elastic.list("pod"))


def test_nodes_of_a_deleted_nodepool_are_deleted(elastic):
    settled(elastic)
    elastic.ask("DELETE", f"{POOLS}/default")
    elastic.pass_time(240)
    assert items(elastic, CLAIMS) == []
    assert len(elastic.list("node", "")) == 2


def test_the_limit_of_a_nodepool_is_respected(elastic):
    elastic.ask("PATCH", f"{POOLS}/default", {"spec": {"limits": {"cpu": "4"}}}, MERGE)
    settled(elastic, 40)
    assert [one["status"]["capacity"]["cpu"] for one in items(elastic, CLAIMS)] == ["4"]


def test_a_changed_template_makes_nodes_drift(elastic):
    """The hash of the NodePool's template differs from that of the NodeClaim."""
    _, [claim] = settled(elastic)
    labels = {"spec": {"template": {"metadata": {"labels": {"team": "shop"}}}}}
    elastic.ask("PATCH", f"{POOLS}/default", labels, MERGE)
    elastic.pass_time(600)
    [other] = items(elastic, CLAIMS)
    assert other["metadata"]["name"] != claim
    assert other["metadata"]["labels"]["team"] == "shop"


def test_a_nodepool_with_another_node_class_is_used(elastic):
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "other"},
        "spec": {
            "weight": 10,
            "template": {
                "spec": {
                    "requirements": [],
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "x",
                    },
                }
            },
        },
    }  # fmt: skip
    elastic.ask("POST", POOLS, pool)
    settled(elastic)
    [claim] = items(elastic, CLAIMS)
    assert claim["metadata"]["labels"]["karpenter.sh/nodepool"] == "other"
    assert claim["spec"]["expireAfter"] == "720h"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"disruption": {"consolidateAfter": "soon"}}, "spec.disruption.consolidateAfter"),
        ({"limits": {"cpu": "many"}}, "spec.limits.cpu"),
    ],
)
def test_an_invalid_nodepool_is_refused(elastic, spec, field):
    answer = elastic.ask("PATCH", f"{POOLS}/default", {"spec": spec}, MERGE)
    assert answer["code"] == 422
    assert field in answer["message"]


def own_claim(requirements, cpu="3"):
    """Return a NodeClaim that a user creates, without a NodePool."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "mine", "labels": {"team": "shop"}},
        "spec": {
            "nodeClassRef": {"group": "fairlead.dev", "kind": "NodeClass", "name": "default"},
            "requirements": requirements,
            "resources": {"requests": {"cpu": cpu}},
            "taints": [{"key": "mine", "effect": "NoSchedule"}],
        },
    }


IN_ZONE_B = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}


def test_a_nodeclaim_of_a_user_is_launched_without_a_nodepool(elastic):
    size = {"key": "size", "operator": "In", "values": ["large"]}
    elastic.ask("POST", CLAIMS, own_claim([IN_ZONE_B, size]))
    elastic.pass_time(60)
    [claim] = items(elastic, CLAIMS)
    assert statuses(claim)["Ready"] == "True"
    assert claim["metadata"]["finalizers"] == ["karpenter.sh/termination"]
    labels = claim["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "compute-4"
    assert (labels["topology.kubernetes.io/zone"], labels["size"]) == ("zone-b", "large")
    [node] = [one for one in elastic.list("node", "") if one["metadata"]["name"] == "mine"]
    assert node["metadata"]["labels"].items() >= labels.items()
    assert [one["key"] for one in node["spec"]["taints"]] == ["mine"]
    elastic.pass_time(600)
    assert len(items(elastic, CLAIMS)) == 1  # consolidation needs a NodePool
    elastic.ask("DELETE", f"{CLAIMS}/mine")
    elastic.pass_time(60)
    assert items(elastic, CLAIMS) == []
    assert len(elastic.list("node", "")) == 2


def test_a_nodeclaim_of_a_user_that_no_machine_fits_is_deleted(elastic):
    elastic.ask("POST", CLAIMS, own_claim([IN_ZONE_B], cpu="500"))
    elastic.pass_time(5)
    assert items(elastic, CLAIMS) == []
    reasons = {one["reason"] for one in items(elastic, "/apis/events.k8s.io/v1/events")}
    assert "InsufficientCapacityError" in reasons


def test_a_static_nodepool_keeps_its_number_of_nodes(elastic):
    """Also after a restart of the control plane."""

    def count():
        return len(items(elastic, CLAIMS)), len(elastic.list("node", "")) - 2

    [default] = items(elastic, POOLS)
    spec = {"template": default["spec"]["template"], "replicas": 2}
    elastic.ask("POST", POOLS, {"metadata": {"name": "static"}, "spec": spec})
    elastic.pass_time(600)
    assert count() == (2, 2)
    store, now = elastic.local.store, elastic.clock.now()
    elastic.local.control_plane = ControlPlane(store, now, config=with_karpenter())
    elastic.pass_time(600)
    assert count() == (2, 2)
    elastic.ask("PATCH", f"{POOLS}/static", {"spec": {"replicas": 1}}, MERGE)
    elastic.pass_time(300)
    assert count() == (1, 1)
    [claim] = items(elastic, CLAIMS)
    elastic.ask("DELETE", f"{CLAIMS}/{claim['metadata']['name']}")
    elastic.pass_time(300)
    assert count() == (1, 1)
    [other] = items(elastic, CLAIMS)
    assert other["metadata"]["name"] != claim["metadata"]["name"]
