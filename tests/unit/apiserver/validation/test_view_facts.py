"""The fields that decisions read must have known values within their bounds."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.api.codec import decode
from fairlead.api.objects import ApiObject
from fairlead.apiserver.validation.simulation import check_simulated
from fairlead.apiserver.validation.view_facts import check_view_facts


def obj(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def nested(path: str, value: Any) -> Any:
    """Return `value` below the fields of the dotted `path`; a field with [] is a list."""
    for name in reversed(path.split(".")):
        value = {name.removesuffix("[]"): [value] if name.endswith("[]") else value}
    return value


REQUEST = "devices.requests[].exactly"
ENUMS = [
    ("v1", "PersistentVolume", "spec.persistentVolumeReclaimPolicy", "Recycle"),
    ("v1", "PersistentVolume", "spec.volumeMode", "Block"),
    ("v1", "PersistentVolumeClaim", "spec.volumeMode", "Block"),
    ("v1", "PersistentVolume", "spec.accessModes[]", "ReadWriteMany"),
    ("v1", "PersistentVolumeClaim", "spec.accessModes[]", "ReadWriteMany"),
    ("v1", "Service", "spec.ports[].protocol", "SCTP"),
    ("apps/v1", "Deployment", "spec.strategy.type", "Recreate"),
    ("apps/v1", "StatefulSet", "spec.podManagementPolicy", "Parallel"),
    ("apps/v1", "StatefulSet", "spec.updateStrategy.type", "OnDelete"),
    ("apps/v1", "StatefulSet", "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Delete"),
    ("apps/v1", "DaemonSet", "spec.updateStrategy.type", "OnDelete"),
    ("batch/v1", "Job", "spec.completionMode", "Indexed"),
    ("batch/v1", "Job", "spec.podReplacementPolicy", "Failed"),
    ("batch/v1", "Job", "spec.podFailurePolicy.rules[].action", "Ignore"),
    ("batch/v1", "CronJob", "spec.concurrencyPolicy", "Forbid"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "spec.metrics[].type", "Pods"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "spec.behavior.scaleUp.selectPolicy", "Min"),
    ("storage.k8s.io/v1", "StorageClass", "reclaimPolicy", "Retain"),
    ("storage.k8s.io/v1", "StorageClass", "volumeBindingMode", "WaitForFirstConsumer"),
    ("resource.k8s.io/v1", "ResourceClaim", f"spec.{REQUEST}.allocationMode", "All"),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule", "spec.taint.effect", "NoExecute"),
]  # fmt: skip


def view_of(api_version: str, kind: str, path: str, value: str | int) -> ApiObject:
    key = {"taint": {"key": "k", "effect": value}} if path == "spec.taint.effect" else None
    fields = {"spec": key} if key else nested(path, value)
    return decode(obj(api_version, kind, **fields))


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "value"), ENUMS, ids=[f"{e[1]} {e[2]}" for e in ENUMS]
)
def test_an_unknown_value_is_refused_and_a_known_value_is_not(api_version, kind, path, value):
    """The error names the field, the value and the supported values."""
    assert not list(check_view_facts(view_of(api_version, kind, path, value)))
    (cause,) = check_view_facts(view_of(api_version, kind, path, "Foo"))
    # upstream: validation.go: ValidatePersistentVolumeClaimSpec names the list, not the item
    assert cause.field == path.removesuffix("[]").replace("[]", "[0]")
    assert 'Unsupported value: "Foo"' in cause.message
    assert f'"{value}"' in cause.message


@pytest.mark.parametrize("source", ["resource", "containerResource", "pods", "object", "external"])
def test_an_unknown_type_of_a_metric_s_target_is_refused(source):
    """The error has the text of the API server."""
    path = f"spec.metrics[].{source}.target.type"
    hpa = ("autoscaling/v2", "HorizontalPodAutoscaler")
    assert not list(check_view_facts(view_of(*hpa, path, "AverageValue")))
    (cause,) = check_view_facts(view_of(*hpa, path, "Foo"))
    assert cause.field == path.replace("[]", "[0]")
    assert cause.message == (
        'Invalid value: "Foo": must be either Utilization, Value, or AverageValue'
    )


NUMBERS = [
    ("batch/v1", "Job", "spec.ttlSecondsAfterFinished"),
    ("batch/v1", "Job", "spec.activeDeadlineSeconds"),
    ("batch/v1", "CronJob", "spec.startingDeadlineSeconds"),
    ("batch/v1", "CronJob", "spec.successfulJobsHistoryLimit"),
    ("apps/v1", "Deployment", "spec.revisionHistoryLimit"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "spec.behavior.scaleUp.policies[].periodSeconds"),
]  # fmt: skip


@pytest.mark.parametrize(("api_version", "kind", "path"), NUMBERS)
def test_a_number_out_of_bounds_is_refused(api_version, kind, path):
    assert not list(check_view_facts(view_of(api_version, kind, path, 5)))
    (cause,) = check_view_facts(view_of(api_version, kind, path, -5))
    assert cause.field == path.replace("[]", "[0]")
    assert "Invalid value: -5" in cause.message


def test_a_zero_is_refused_if_it_does_not_stand_for_an_absent_field():
    """A HorizontalPodAutoscaler would divide by the percentage 0; a Service may lack its port."""
    path = "spec.metrics[].resource.target.averageUtilization"
    (cause,) = check_view_facts(view_of("autoscaling/v2", "HorizontalPodAutoscaler", path, 0))
    assert (cause.field, cause.message) == (
        path.replace("[]", "[0]"), "Invalid value: 0: must be greater than 0"
    )  # fmt: skip
    assert not list(check_view_facts(view_of("v1", "Service", "spec.ports[].name", "http")))


def test_a_number_in_a_status_is_not_checked():
    """The Eviction API refuses evictions if disruptionsAllowed is negative."""
    status = {"disruptionsAllowed": -1}
    assert not list(
        check_view_facts(decode(obj("policy/v1", "PodDisruptionBudget", status=status)))
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("v1", "PersistentVolumeClaim", "status.phase"),
        ("v1", "PersistentVolume", "status.phase"),
        (
            "resource.k8s.io/v1",
            "ResourceClaim",
            "status.allocation.devices.results[].tolerations[].operator",
        ),
    ],
)
def test_an_unknown_value_in_a_status_is_not_refused(api_version, kind, path):
    """A newer release may report it, and a dump must remain usable."""
    assert not list(check_view_facts(view_of(api_version, kind, path, "Foo")))


TIMES = [
    ("batch/v1", "Job", "status.startTime"),
    ("resource.k8s.io/v1", "ResourceClaim", "status.allocation.allocationTimestamp"),
    ("coordination.k8s.io/v1", "Lease", "spec.renewTime"),
]  # fmt: skip


@pytest.mark.parametrize(("api_version", "kind", "path"), TIMES)
def test_a_malformed_time_is_refused(api_version, kind, path):
    assert not list(check_view_facts(view_of(api_version, kind, path, "2026-01-01T00:00:00Z")))
    (cause,) = check_view_facts(view_of(api_version, kind, path, "yesterday"))
    assert cause.field == path
    assert "RFC 3339" in cause.message


def test_absent_and_empty_enums_are_not_checked():
    """In a view, an empty string stands for an absent field."""
    spec = {"podManagementPolicy": "", "updateStrategy": {}}
    assert not list(check_view_facts(decode(obj("apps/v1", "StatefulSet", spec=spec))))
    assert not list(check_view_facts(decode(obj("batch/v1", "Job"))))


def test_an_error_of_the_kinds_own_rules_is_reported_alone():
    """The rules of a kind report some enums with upstream's own texts."""
    budget = obj("policy/v1", "PodDisruptionBudget", spec={"unhealthyPodEvictionPolicy": "Foo"})
    assert len(list(check_simulated(budget, decode(budget)))) == 1


AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
POD_ENUMS = [
    ("spec.preemptionPolicy", "Foo"),
    ("spec.restartPolicy", "Foo"),
    ("spec.containers[]", {"name": "c", "ports": [{"containerPort": 1, "protocol": "Foo"}]}),
    ("spec.initContainers[]", {"name": "c", "restartPolicy": "Foo"}),
    ("spec.containers[]", {
        "name": "c", "restartPolicy": "Never", "restartPolicyRules": [{"action": "Foo"}]}),
    ("spec.tolerations[]", {"key": "k", "operator": "Foo"}),
    ("spec.tolerations[]", {"key": "k", "operator": "Exists", "effect": "Foo"}),
    ("spec.topologySpreadConstraints[]", {
        "maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "Foo"}),
    ("spec.topologySpreadConstraints[]", {
        "maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Foo"}),
    ("spec.topologySpreadConstraints[]", {
        "maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Foo"}),
    (f"{AFFINITY}.nodeSelectorTerms[].matchExpressions[]", {"key": "k", "operator": "Foo"}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), POD_ENUMS)
def test_the_rules_of_pods_check_their_enums(path, value):
    """So the enums of pods, which are most of the objects, are not checked a second time."""
    pod = obj("v1", "Pod", **nested(path, value))
    assert list(check_simulated(pod, decode(pod)))


def test_the_rules_of_nodes_check_the_effects_of_taints():
    node = obj("v1", "Node", spec={"taints": [{"key": "k", "effect": "Foo"}]})
    assert list(check_simulated(node, decode(node)))
