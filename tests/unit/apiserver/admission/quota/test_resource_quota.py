"""ResourceQuota: charged usage, refusals and their messages."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.admission.quota.resource_quota import LimitedResource, ResourceQuota
from fairlead.apiserver.kind import RESOURCE_QUOTA, kind_of
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.instant import seconds


@pytest.fixture
def quota(obj):
    """Makes quotas whose status is complete and has no usage."""

    def made(hard, used=None, name="q", **spec):
        zero = dict.fromkeys(hard, "0")
        status = {"hard": hard, "used": {**zero, **(used or {})}}
        return obj("ResourceQuota", name, spec={"hard": hard, **spec}, status=status)

    return made


def device(device_class, count, mode="ExactCount"):
    """Return a device request for `count` devices of a class."""
    request = {"deviceClassName": device_class, "allocationMode": mode}
    return request if count is None else {**request, "count": count}


def used(gate, name="q"):
    return gate.storage.find(RESOURCE_QUOTA, "n", name)["status"]["used"]


def test_an_admitted_object_is_charged(gate, quota, pod):
    found = gate(ResourceQuota()).has(quota({"pods": "2", "requests.cpu": "1"}))
    found.admits(pod({"cpu": "300m"}))
    assert used(found) == {"pods": "1", "requests.cpu": "300m"}
    found.admits(pod({"cpu": "700m"}))
    assert used(found) == {"pods": "2", "requests.cpu": "1"}


def test_a_dry_run_charges_nothing(gate, quota, pod):
    found = gate(ResourceQuota()).has(quota({"pods": "1"}))
    found.admits(pod(), dry_run=True)
    assert used(found) == {"pods": "0"}


def test_a_refusal_names_only_the_exceeded_resources(gate, quota, pod):
    hard = {"pods": "5", "requests.cpu": "1", "limits.memory": "1Gi"}
    found = gate(ResourceQuota()).has(quota(hard, {"requests.cpu": "500m"}))
    assert found.refusal(pod({"cpu": "600m"}, {"memory": "512Mi"})) == (
        'pods "x" is forbidden: exceeded quota: q, requested: requests.cpu=600m, '
        "used: requests.cpu=500m, limited: requests.cpu=1"
    )
    assert used(found)["pods"] == "0"


def test_containers_must_specify_the_limited_resources(gate, quota, pod):
    found = gate(ResourceQuota()).has(quota({"requests.cpu": "1", "limits.memory": "1Gi"}))
    assert found.refusal(pod()) == (
        'pods "x" is forbidden: failed quota: q: must specify limits.memory for: c; '
        "requests.cpu for: c"
    )


def test_a_quota_without_a_status_limits_nothing(gate, obj, pod):
    found = gate(ResourceQuota()).has(obj("ResourceQuota", "q", spec={"hard": {"pods": "0"}}))
    found.admits(pod())


def test_a_resource_without_used_in_the_status_is_refused(gate, obj, pod):
    status = {"hard": {"pods": "1"}}
    found = gate(ResourceQuota()).has(obj("ResourceQuota", "q", spec={}, status=status))
    assert "status unknown for quota: q, resources: pods" in found.refusal(pod())


@pytest.mark.parametrize(
    ("scope", "spec", "requests", "counts"),
    [
        ({"scopes": ["BestEffort"]}, {}, None, True),
        ({"scopes": ["BestEffort"]}, {}, {"cpu": "1"}, False),
        ({"scopes": ["NotBestEffort"]}, {}, {"cpu": "1"}, True),
        ({"scopes": ["BestEffort"]}, {"overhead": {"cpu": "1"}}, None, True),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, None, True),
        ({"scopes": ["NotTerminating"]}, {"activeDeadlineSeconds": 5}, None, False),
        (("In", ["high"]), {"priorityClassName": "high"}, None, True),
        (("In", ["high"]), {"priorityClassName": "low"}, None, False),
        (("NotIn", ["high"]), {"priorityClassName": "low"}, None, True),
        (("Exists", []), {}, None, False),
        (("DoesNotExist", []), {}, None, True),
    ],
)
def test_a_quota_counts_only_the_pods_in_its_scopes(  # noqa: PLR0917
    gate, quota, pod, scope, spec, requests, counts
):
    if isinstance(scope, tuple):
        operator, values = scope
        wanted = {"scopeName": "PriorityClass", "operator": operator, "values": values}
        scope = {"scopeSelector": {"matchExpressions": [wanted]}}
    found = gate(ResourceQuota()).has(quota({"pods": "1"}, **scope))
    found.admits(pod(requests, **spec))
    assert used(found) == {"pods": "1" if counts else "0"}


@pytest.mark.parametrize(
    ("kind", "version", "fields", "charged"),
    [
        ("ConfigMap", "v1", {}, {"configmaps": "1", "count/configmaps": "1"}),
        ("Deployment", "apps/v1", {}, {"count/deployments.apps": "1"}),
        (
            "Service",
            "v1",
            {"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}},
            {"services": "1", "services.nodeports": "2", "services.loadbalancers": "1"},
        ),
        (
            "PersistentVolumeClaim",
            "v1",
            {"spec": {"storageClassName": "s", "resources": {"requests": {"storage": "2Gi"}}}},
            {
                "persistentvolumeclaims": "1",
                "requests.storage": "2Gi",
                "s.storageclass.storage.k8s.io/requests.storage": "2Gi",
            },
        ),
        (
            "PersistentVolumeClaim",
            "v1",
            {
                "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
                "spec": {"storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}},
                "status": {"allocatedResources": {"storage": "3Gi"}},
            },
            {"old.storageclass.storage.k8s.io/requests.storage": "3Gi", "requests.storage": "3Gi"},
        ),
        (
            "ResourceClaim",
            "resource.k8s.io/v1",
            {"spec": {"devices": {"requests": [{"exactly": device("gpu", 2)}]}}},
            {"gpu.deviceclass.resource.k8s.io/devices": "2"},
        ),
        (
            "ResourceClaim",
            "resource.k8s.io/v1",
            {
                "spec": {
                    "devices": {
                        "requests": [
                            {"exactly": device("gpu", None, "All")},
                            {
                                "firstAvailable": [
                                    device("gpu", 1),
                                    device("gpu", 4),
                                    device("nic", 3),
                                ]
                            },
                        ]
                    }
                }
            },
            {
                "count/resourceclaims.resource.k8s.io": "1",
                "gpu.deviceclass.resource.k8s.io/devices": "36",
                "nic.deviceclass.resource.k8s.io/devices": "3",
            },
        ),
    ],
)
def test_other_kinds_are_charged(gate, quota, obj, kind, version, fields, charged):  # noqa: PLR0917
    hard = dict.fromkeys(charged, "9Gi")
    found = gate(ResourceQuota()).has(quota(hard))
    found.admits(obj(kind, version=version, **fields))
    assert used(found) == charged


def test_an_update_is_charged_for_its_additional_usage(gate, quota, obj):
    found = gate(ResourceQuota()).has(quota({"services": "1", "services.nodeports": "3"}))
    old = obj("Service", spec={"type": "NodePort", "ports": [{"port": 1}]})
    new = obj("Service", spec={"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]})
    found.admits(new, Operation.UPDATE, old=old)
    assert used(found) == {"services": "0", "services.nodeports": "1"}


def test_a_limited_priority_class_needs_a_quota_that_covers_it(gate, quota, pod):
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    limited = LimitedResource(resource="pods", scopes=(scope,))
    found = gate(ResourceQuota([limited]))
    assert found.refusal(pod(priorityClassName="high")) == (
        'pods "x" is forbidden: insufficient quota to match these scopes: '
        "[{PriorityClass In [high]}]"
    )
    found.admits(pod(priorityClassName="low"))
    found.has(quota({"pods": "1"}, scopeSelector={"matchExpressions": [scope]}))
    found.admits(pod(priorityClassName="high"))
    assert "exceeded quota" in found.refusal(pod(priorityClassName="high"))


def test_resources_may_need_a_quota_that_covers_them(gate, quota, pod):
    limited = LimitedResource(resource="pods", contains=("cpu",))
    found = gate(ResourceQuota([limited]))
    found.admits(pod())
    requested = pod({"cpu": "1"})
    assert "insufficient quota to consume: cpu,requests.cpu" in found.refusal(requested)
    found.has(quota({"cpu": "2", "requests.cpu": "2"}))
    found.admits(requested)


@pytest.mark.parametrize(
    ("spec", "status", "counts"),
    [
        ({"volumeAttributesClassName": "gold"}, {}, True),
        ({"volumeAttributesClassName": "silver"}, {}, False),
        (
            {"volumeAttributesClassName": "silver"},
            {"currentVolumeAttributesClassName": "gold"},
            True,
        ),
        (
            {"volumeAttributesClassName": "silver"},
            {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}},
            True,
        ),
        ({}, {}, False),
    ],
)
def test_a_claim_is_in_the_scopes_of_its_current_and_target_classes(
    gate, quota, obj, spec, status, counts
):
    scope = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}
    hard = {"persistentvolumeclaims": "1"}
    found = gate(ResourceQuota()).has(quota(hard, scopeSelector={"matchExpressions": [scope]}))
    found.admits(obj("PersistentVolumeClaim", spec=spec, status=status))
    assert used(found) == {"persistentvolumeclaims": "1" if counts else "0"}


@pytest.mark.parametrize(("now", "pods"), [(61, "2"), (90, "2"), (90.5, "1")])
def test_a_stuck_terminating_pod_counts_only_as_an_object(obj, pod, now, pods):
    """Its deletion time is 1 min after 1970 began, and its grace period is 30 s."""
    storage = Storage()
    hard = {"pods": "2", "requests.cpu": "2", "count/pods": "2"}
    doomed = pod({"cpu": "1"})
    doomed["metadata"] |= {
        "name": "doomed",
        "deletionTimestamp": "1970-01-01T00:01:00Z",
        "deletionGracePeriodSeconds": 30,
    }
    for one in (obj("ResourceQuota", "q", spec={"hard": hard}), doomed, pod({"cpu": "1"})):
        storage.put(kind_of(one), one)
    ledgers = QuotaLedgers(storage)
    ledgers.status("n", "q", 0)
    status = ledgers.status("n", "q", seconds(now))
    assert status["used"] == {"pods": pods, "requests.cpu": pods, "count/pods": "2"}
