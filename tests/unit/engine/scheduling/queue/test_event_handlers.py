"""Loads, and changes that do not concern pending pods, as events of the queue."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.storage_builders import make_claim

NODES = [make_node("n1"), make_node("n2", cpu="1")]


def near(app):
    """A pod spec with required affinity to pods with the label `app`."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAffinity": required}}


def load(scene, *objects):
    scene._handle(ObjectsLoaded(objects))


def replicas(app, **more):
    return [make_pod(f"{app}-{i}", node="n1", labels={"app": app}, **more) for i in range(2)]


@pytest.mark.parametrize(("app", "place"), [("web", "backoff"), ("db", "unschedulable")])
def test_loaded_pods_wake_the_pods_whose_affinity_selects_them(stage, app, place):
    scene = stage(*NODES, make_pod("p", spec=near("web")))
    scene.step()
    scene.all_done()
    assert scene.place("p") == "unschedulable"
    load(scene, *replicas(app))
    assert scene.place("p") == place


def test_loaded_pods_use_resources_that_an_active_pod_needs(stage):
    scene = stage(*NODES, make_pod("p", requests={"cpu": "2"}))
    load(scene, *replicas("web", requests={"cpu": "2"}))
    assert scene.place("p") == "active"
    assert scene.step()[0][1:3] == ("p", "FailedScheduling")


def test_a_load_removes_a_bound_pod_from_the_queue(stage):
    """It was bound by another client, and is not scheduled any more."""
    scene = stage(*NODES, make_pod("web-0", labels={"app": "web"}))
    load(scene, *replicas("web"))
    assert scene.place("web-0") is None
    assert scene.on("n1") == ["default/web-0", "default/web-1"]
    assert not scene.is_due()


def test_a_claim_wakes_no_pod_that_lacks_cpu(stage):
    """Neither does a PodGroup while the feature gates for pod groups are off."""
    scene = stage(make_claim("c"), *NODES, make_pod("p", requests={"cpu": "9"}))
    scene.step()
    scene.all_done()
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "uid": "g"},
        "spec": {"schedulingPolicy": {"basic": {}}},
    }
    scene.put(make_claim("c"), decode(group))
    scene.gone(decode(group))
    assert scene.place("p") == "unschedulable"
    assert not scene.is_due()
