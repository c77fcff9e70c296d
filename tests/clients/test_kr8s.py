"""kr8s, unmodified: its objects wait for conditions, are scaled, patched and deleted."""

from __future__ import annotations

import kr8s
import pytest
from kr8s.objects import ConfigMap, Deployment, Node, Pod

pytestmark = [
    # It warns about releases of Kubernetes that it was not tested with, and leaves sockets to the
    # garbage collector.
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def api(cluster):
    return kr8s.api(kubeconfig=str(cluster.kubeconfig))


def deployment(name, namespace, replicas):
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    }


def test_a_pod_becomes_ready(api, namespace, pod) -> None:
    manifest = pod("p")
    manifest["metadata"]["namespace"] = namespace
    running = Pod(manifest, api=api)
    running.create()
    running.wait("condition=Ready", timeout=60)
    assert running.ready()
    running.label({"tier": "front"})
    [found] = api.get("pods", namespace=namespace, label_selector={"tier": "front"})
    assert found.name == "p"
    running.delete()
    running.wait("delete", timeout=60)
    assert not running.exists()


def test_a_deployment_is_scaled(api, cluster, namespace) -> None:
    web = Deployment(deployment("web", namespace, 2), api=api)
    web.create()
    web.wait("condition=Available", timeout=60)
    web.scale(4)
    cluster.expect(lambda: len(cluster.list("pod", namespace)) == 4)
    assert len(web.pods()) == 4


def test_a_node_is_cordoned(api) -> None:
    node = Node.get("node-1", api=api)
    node.cordon()
    assert Node.get("node-1", api=api).unschedulable
    node.uncordon()
    assert not Node.get("node-1", api=api).unschedulable


def test_an_absent_object_is_not_found(api, namespace) -> None:
    with pytest.raises(kr8s.NotFoundError):
        ConfigMap.get("nothing", namespace=namespace, api=api)


def test_kinds_and_version_are_discovered(api) -> None:
    kinds = {(kind["version"], kind["kind"]) for kind in api.api_resources()}
    assert {("v1", "Pod"), ("apps/v1", "Deployment"), ("policy/v1", "PodDisruptionBudget")} <= kinds
    assert api.version()["major"] == "1"
