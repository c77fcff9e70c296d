"""A local cluster with Cluster Autoscaler: simulated nodes appear and vanish."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead.cli.commands.up.node_groups import autoscaler_config
from fairlead.whatif.configuration.autoscaler import AutoscaleOptions
from fairlead.whatif.input.error import InputError
from fairlead.worlds.local.control_plane import OBSERVED

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ON = AutoscaleOptions("cluster-autoscaler")


def config(options=ON, zones=2):
    return autoscaler_config(options, 2, zones, None, 0)


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
    """Two nodes in two zones, each of which is a node group."""
    return make_cluster(nodes=2, zones=2, engine=replace(OBSERVED, autoscaler=config()))


def test_nodes_come_for_pending_pods_and_go_when_unneeded(elastic):
    elastic.ask("POST", DEPLOYMENTS, web(16))
    elastic.pass_time(180)
    assert len(elastic.list("node", "")) == 4
    pods = elastic.list("pod")
    assert all(pod["spec"].get("nodeName") for pod in pods)
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    reasons = {event["reason"] for event in elastic.list("event")}
    assert "TriggeredScaleUp" in reasons
    scale = "application/merge-patch+json"
    elastic.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}}, scale)
    elastic.pass_time(1800)
    assert len(elastic.list("node", "")) == 2


def test_without_a_file_each_zone_is_a_group():
    groups = config().groups
    assert [(one.id, one.minimum, one.maximum) for one in groups] == [
        ("zone-a", 1, 100),
        ("zone-b", 1, 100),
    ]


def test_auto_finds_no_autoscaler_in_a_new_cluster():
    assert config(AutoscaleOptions("auto")) is None


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(InputError) as refused:
        config(AutoscaleOptions("cluster-autoscaler", "/nowhere.yaml"))
    assert str(refused.value).startswith("/nowhere.yaml")
