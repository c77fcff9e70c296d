"""A local cluster with Cluster Autoscaler, which adds and removes simulated nodes."""

from __future__ import annotations

import pytest
import yaml
from msgspec.structs import replace

from fairlead.cli.commands.up.node_groups import read_local_autoscaling
from fairlead.whatif.configuration.autoscaling.autoscaler import AutoscaleOptions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.snapshot import parse_snapshot
from fairlead.worlds.local.control_plane import OBSERVED

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
ON = AutoscaleOptions("cluster-autoscaler")


def config(options=ON, zones=2):
    return read_local_autoscaling(options, 2, zones, None, 0).config


@pytest.mark.parametrize(
    ("dump", "notice"),
    [
        (True, "--autoscale auto: the dump has no autoscaler, so none is simulated."),
        (False, "--autoscale auto: without --snapshot, the cluster has no autoscaler, so none is"),
    ],
)
def test_a_note_says_that_auto_finds_no_autoscaler(dump, notice):
    text = b"{apiVersion: v1, kind: Node, metadata: {name: node-1}}"
    snapshot = parse_snapshot("dump.yaml", text) if dump else None
    found = read_local_autoscaling(AutoscaleOptions("auto"), 2, 2, snapshot, 0)
    assert found.config is None
    [note] = found.notes
    assert note.startswith(notice)


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
    """A cluster of two nodes in two zones, each of which is a node group."""
    return make_cluster(nodes=2, zones=2, engine=replace(OBSERVED, autoscaler=config()))


def test_nodes_are_added_for_pending_pods_and_removed_when_unneeded(elastic):
    elastic.ask("POST", DEPLOYMENTS, web(16))
    elastic.pass_time(180)
    assert len(elastic.list("node", "")) == 4
    pods = elastic.list("pod")
    assert all(pod["spec"].get("nodeName") for pod in pods)
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    reasons = {event["reason"] for event in elastic.list("event")}
    assert "TriggeredScaleUp" in reasons
    elastic.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}}, MERGE)
    elastic.pass_time(1800)
    assert len(elastic.list("node", "")) == 2


def test_new_nodes_have_addresses_of_their_own(elastic):
    """Pods with hostNetwork use the address, and other pods have an IP in the range."""
    elastic.ask("POST", DEPLOYMENTS, web(20))
    elastic.pass_time(180)
    nodes = elastic.list("node", "")
    assert len(nodes) > 3
    ranges = {node["spec"]["podCIDR"] for node in nodes}
    hosts = {node["status"]["addresses"][0]["address"] for node in nodes}
    assert len(ranges) == len(hosts) == len(nodes)
    for pod in elastic.list("pod"):
        node = elastic.find("node", pod["spec"]["nodeName"], "")
        assert pod["status"]["hostIP"] == node["status"]["addresses"][0]["address"]
        assert pod["status"]["podIP"].rpartition(".")[0] in node["spec"]["podCIDR"]


def status_of(cluster):
    found = cluster.find("configmap", "cluster-autoscaler-status", "kube-system")
    assert "cluster-autoscaler.kubernetes.io/last-updated" in found["metadata"]["annotations"]
    return yaml.safe_load(found["data"]["status"])


def test_the_status_config_map_shows_groups_as_upstream_writes_it(elastic):
    elastic.pass_time(30)
    status = status_of(elastic)
    assert list(status) == ["time", "autoscalerStatus", "clusterWide", "nodeGroups"]
    assert status["clusterWide"]["health"]["nodeCounts"] == {
        "registered": {
            "total": 2, "ready": 2, "notStarted": 0, "unready": {"total": 0, "resourceUnready": 0},
        },
        "longUnregistered": 0,
        "unregistered": 0,
    }  # fmt: skip
    [first, _] = status["nodeGroups"]
    assert first["name"] == "zone-a"
    assert first["health"] | {"status": "Healthy", "minSize": 1, "maxSize": 100} == first["health"]
    assert first["scaleUp"]["status"] == "NoActivity"
    elastic.ask("POST", DEPLOYMENTS, web(16))
    elastic.pass_time(30)
    growing = status_of(elastic)
    assert growing["clusterWide"]["scaleUp"]["status"] == "InProgress"
    assert sum(one["health"]["cloudProviderTarget"] for one in growing["nodeGroups"]) == 4
    elastic.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}}, MERGE)
    elastic.pass_time(240)
    assert status_of(elastic)["clusterWide"]["scaleDown"]["candidates"] == 3


def test_without_a_file_each_zone_is_a_group():
    groups = config().groups
    assert [(one.id, one.minimum, one.maximum) for one in groups] == [
        ("zone-a", 1, 100),
        ("zone-b", 1, 100),
    ]


def test_auto_finds_no_autoscaler_in_a_new_cluster():
    assert config(AutoscaleOptions("auto")) is None


def test_a_missing_file_is_refused():
    with pytest.raises(InputError) as refused:
        config(AutoscaleOptions("cluster-autoscaler", "/nowhere.yaml"))
    assert str(refused.value).startswith("/nowhere.yaml")
