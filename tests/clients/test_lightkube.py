"""lightkube, unmodified: typed resources, apply with field managers, watches, waiting."""

from __future__ import annotations

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Node, Pod
from lightkube.types import PatchType


@pytest.fixture(scope="module")
def api(cluster):
    return Client(KubeConfig.from_file(str(cluster.kubeconfig)).get(), field_manager="lightkube")


def test_applied_fields_are_owned_by_the_field_manager(api, namespace) -> None:
    wanted = ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace), data={"a": "1"})
    applied = api.apply(wanted)
    assert applied.data == {"a": "1"}
    assert applied.metadata.managedFields[0].manager == "lightkube"
    with pytest.raises(ApiError, match='conflict with "lightkube"') as refusal:
        api.apply(
            ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace), data={"a": "2"}),
            field_manager="another",
        )
    assert refusal.value.status.code == 409


def test_wait_returns_when_a_pod_is_ready(api, namespace, pod) -> None:
    manifest = pod("p")
    manifest["metadata"]["namespace"] = namespace
    api.create(Pod.from_dict(manifest))
    ready = api.wait(Pod, "p", for_conditions=["Ready"], namespace=namespace)
    assert ready.spec.nodeName.startswith("node-")


def test_a_watch_receives_changes(api, namespace) -> None:
    api.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace)))
    seen = []
    for op, found in api.watch(ConfigMap, namespace=namespace, server_timeout=60):
        if found.metadata.name == "a":
            seen.append(op)
            if op == "ADDED":
                api.delete(ConfigMap, "a", namespace=namespace)
            if op == "DELETED":
                break
    assert seen == ["ADDED", "DELETED"]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (PatchType.MERGE, {"metadata": {"labels": {"a": "b"}}}),
        (PatchType.STRATEGIC, {"metadata": {"labels": {"a": "b"}}}),
        (PatchType.JSON, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
    ],
    ids=["merge", "strategic", "json"],
)
def test_patches_of_each_type_are_applied(api, namespace, kind, patch) -> None:
    api.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace)))
    found = api.patch(ConfigMap, "c", patch, namespace=namespace, patch_type=kind)
    assert found.metadata.labels == {"a": "b"}


def test_objects_of_all_namespaces_are_listed(api) -> None:
    assert [node.metadata.name for node in api.list(Node)] == ["node-1", "node-2", "node-3"]
    assert list(api.list(Deployment, namespace="*")) == []


def test_an_absent_object_is_not_found(api, namespace) -> None:
    with pytest.raises(ApiError) as refusal:
        api.get(Pod, "nobody", namespace=namespace)
    assert (refusal.value.status.code, refusal.value.status.reason) == (404, "NotFound")
