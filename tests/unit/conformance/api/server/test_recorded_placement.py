"""Pods of the recorded session are placed on their recorded nodes, among equal nodes only."""

from __future__ import annotations

import pytest

from fairlead.conformance.api.server.own_cluster import OwnCluster
from fairlead.conformance.api.server.recorded_placement import PLACES, as_recorded
from fairlead.engine.core.instant import seconds


@pytest.fixture(scope="module")
def cluster():
    return OwnCluster(scheduler=as_recorded())


def node_of(cluster, name, **spec):
    """Create a pod, return its node, and delete the pod."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
    kind = cluster.store.create(pod, cluster.now)["kind"]
    cluster.now += seconds(2)
    cluster.settle()
    (found,) = (
        obj
        for each in cluster.store.storage.kinds()
        if each.kind == kind
        for obj in cluster.store.storage.items(each, "default")
        if obj["metadata"]["name"] == name
    )
    return found["spec"].get("nodeName")


@pytest.mark.parametrize("name", ["late", "unk2", "gn-abcde", "j2-abcde"])
def test_pods_are_placed_on_their_recorded_nodes(name, cluster):
    prefix = name if name in PLACES else name[:3]
    assert node_of(cluster, name) == PLACES[prefix]


IN_3 = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-3"]}
PREFERRED = {"weight": 1, "preference": {"matchExpressions": [IN_3]}}


@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("p1", {"nodeSelector": {"kubernetes.io/hostname": "node-3"}}),
        (
            "p3",
            {
                "affinity": {
                    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}
                }
            },
        ),
    ],
)
def test_requirements_of_a_pod_have_precedence_over_the_recording(name, requirements, cluster):
    """The recording decides among equal nodes only."""
    assert PLACES[name] != "node-3"
    assert node_of(cluster, name, **requirements) == "node-3"
