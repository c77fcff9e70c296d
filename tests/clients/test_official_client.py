"""The official Python client (kubernetes), unmodified: snake case, models, watches, errors."""

from __future__ import annotations

import json

import pytest
from kubernetes import client, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.config import new_client_from_config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

pytestmark = [
    # A watch that is stopped leaves its connection to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def api(cluster):
    with new_client_from_config(str(cluster.kubeconfig)) as connected:
        yield connected


@pytest.fixture(scope="module")
def core(api):
    return client.CoreV1Api(api)


def test_a_pod_is_created_watched_and_deleted(core, namespace, pod) -> None:
    made = core.create_namespaced_pod(namespace, pod("p"))
    assert (made.metadata.name, made.status.phase) == ("p", "Pending")
    watching, phase = watch.Watch(), ""
    for event in watching.stream(core.list_namespaced_pod, namespace, timeout_seconds=60):
        phase = event["object"].status.phase
        if phase == "Running":
            watching.stop()
    assert phase == "Running"
    found = core.read_namespaced_pod("p", namespace)
    assert found.spec.node_name.startswith("node-")
    assert {c.type for c in found.status.conditions} >= {"PodScheduled", "Ready"}
    core.delete_namespaced_pod("p", namespace, grace_period_seconds=0)
    with pytest.raises(ApiException) as refusal:
        core.read_namespaced_pod("p", namespace)
    assert (refusal.value.status, json.loads(refusal.value.body)["reason"]) == (404, "NotFound")


def test_models_are_serialized_and_deserialized(api, cluster, namespace) -> None:
    container = client.V1Container(
        name="c",
        image="nginx",
        resources=client.V1ResourceRequirements(requests={"cpu": "0.5", "memory": "1024Mi"}),
        ports=[client.V1ContainerPort(container_port=80)],
    )
    labels = {"app": "web"}
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(
        replicas=2, selector=client.V1LabelSelector(match_labels=labels), template=template
    )
    apps = client.AppsV1Api(api)
    wanted = client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    made = apps.create_namespaced_deployment(namespace, wanted)
    [stored] = made.spec.template.spec.containers
    assert stored.resources.requests == {"cpu": "500m", "memory": "1Gi"}
    assert made.spec.strategy.rolling_update.max_surge == "25%"
    scaled = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 5}})
    assert scaled.spec.replicas == 5
    cluster.expect(
        lambda: cluster.get("deploy", "web", namespace)["status"].get("readyReplicas") == 5
    )
    read = apps.read_namespaced_deployment("web", namespace)
    read.spec.template.spec.containers[0].image = "nginx:2"
    replaced = apps.replace_namespaced_deployment("web", namespace, read)
    assert replaced.metadata.generation == read.metadata.generation + 1


def test_an_update_with_an_old_resource_version_is_a_conflict(core, namespace) -> None:
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c"), data={"a": "1"})
    old = core.create_namespaced_config_map(namespace, body)
    core.patch_namespaced_config_map("c", namespace, {"data": {"a": "2"}})
    old.data["a"] = "3"
    with pytest.raises(ApiException) as refusal:
        core.replace_namespaced_config_map("c", namespace, old)
    assert refusal.value.status == 409


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"data": {"b": None, "c": "3"}}, {"a": "1", "c": "3"}),
        ([{"op": "remove", "path": "/data/a"}], {"b": "2"}),
    ],
    ids=["a dict is strategic", "a list is a JSON patch"],
)
def test_patches_are_applied(core, namespace, patch, expected) -> None:
    core.create_namespaced_config_map(
        namespace, {"metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}
    )
    assert core.patch_namespaced_config_map("c", namespace, patch).data == expected


def test_lists_are_paginated(core, namespace) -> None:
    for number in range(5):
        core.create_namespaced_config_map(namespace, {"metadata": {"name": f"c{number}"}})
    selector = "metadata.name!=kube-root-ca.crt"
    first = core.list_namespaced_config_map(namespace, limit=2, field_selector=selector)
    rest = core.list_namespaced_config_map(
        namespace, _continue=first.metadata._continue, field_selector=selector
    )
    names = [item.metadata.name for item in first.items + rest.items]
    assert names == ["c0", "c1", "c2", "c3", "c4"]


def test_an_eviction_may_be_refused(core, api, namespace, pod, cluster) -> None:
    core.create_namespaced_pod(namespace, pod("p"))
    cluster.expect_running("p", namespace=namespace)
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    policy = client.PolicyV1Api(api)
    policy.create_namespaced_pod_disruption_budget(namespace, budget)
    cluster.expect(lambda: cluster.get("pdb", "b", namespace).get("status", {}).get("expectedPods"))
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p", namespace=namespace))
    with pytest.raises(ApiException) as refusal:
        core.create_namespaced_pod_eviction("p", namespace, eviction)
    assert refusal.value.status == 429
    policy.delete_namespaced_pod_disruption_budget("b", namespace)
    core.create_namespaced_pod_eviction("p", namespace, eviction)
    assert core.read_namespaced_pod("p", namespace).metadata.deletion_timestamp is not None


def test_a_custom_resource_is_defined_and_created(api, name) -> None:
    plural = f"{name}s"
    definition = {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": name, "kind": name.title()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {"size": {"type": "integer", "minimum": 1}},
                                }
                            },
                        }
                    },
                }
            ],
        },
    }
    client.ApiextensionsV1Api(api).create_custom_resource_definition(definition)
    custom = client.CustomObjectsApi(api)
    where = ("example.com", "v1", "default", plural)
    body = {"apiVersion": "example.com/v1", "kind": name.title(), "metadata": {"name": "w"}}
    made = custom.create_namespaced_custom_object(*where, {**body, "spec": {"size": 3}})
    assert made["spec"] == {"size": 3}
    with pytest.raises(ApiException) as refusal:
        custom.create_namespaced_custom_object(*where, {**body, "spec": {"size": 0}})
    assert refusal.value.status == 422


def test_the_dynamic_client_discovers_kinds_and_applies_objects(api, namespace) -> None:
    found = dynamic.DynamicClient(api)
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    applied = maps.server_side_apply(
        body={
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c"},
            "data": {"a": "b"},
        },
        namespace=namespace,
        field_manager="me",
    )
    assert applied.data.to_dict() == {"a": "b"}
    [entry] = applied.metadata.managedFields
    assert (entry.manager, entry.operation) == ("me", "Apply")


def test_a_manifest_is_created_from_yaml(api, core, namespace) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"a": "b"},
    }
    utils.create_from_dict(api, manifest, namespace=namespace)
    assert core.read_namespaced_secret("s", namespace).data == {"a": "Yg=="}


def test_leader_election_elects_one_leader(api, cluster, namespace) -> None:
    client.Configuration.set_default(api.configuration)
    config = electionconfig.Config(
        ConfigMapLock("lock", namespace, "me"),
        lease_duration=17,
        renew_deadline=15,
        retry_period=5,
        onstarted_leading=lambda: None,
        onstopped_leading=lambda: None,
    )
    election = leaderelection.LeaderElection(config)
    assert election.try_acquire_or_renew()
    record = cluster.get("cm", "lock", namespace)["metadata"]["annotations"]
    assert json.loads(record["control-plane.alpha.kubernetes.io/leader"])["holderIdentity"] == "me"
