"""Defaults of workloads, autoscalers, Namespaces and Secrets.

upstream: pkg/apis/{apps,batch,autoscaling}/*/defaults.go, pkg/apis/core/v1/conversion.go
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.defaulting.fill import Rule, filled, replaced

OWN_NAME: Final = "kubernetes.io/metadata.name"
GENERATION: Final = "deprecated.daemonset.template.generation"
_ROLLING: Final = "RollingUpdate"
PARALLELISM: Final = 1
COMPLETION_MODE: Final = "NonIndexed"
_BACKOFF_LIMIT: Final = 6
_BACKOFF_MAX: Final = 2**31 - 1
_PERIOD_S: Final = 15
_CPU: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_BY_PERCENT: Final = {"type": "Percent", "value": 100, "periodSeconds": _PERIOD_S}
_BY_PODS: Final = {"type": "Pods", "value": 4, "periodSeconds": _PERIOD_S}


def _with_defaults(update: Json | None, rolling: Mapping[str, Any]) -> Json:
    """Return the update strategy `update` with its defaults.

    `rolling` are the default parameters of a rolling update.
    """
    update = filled(update or {}, {"type": _ROLLING})
    if update["type"] != _ROLLING:
        return update
    return replaced(update, "rollingUpdate", filled(update.get("rollingUpdate") or {}, rolling))


def deployment_strategy(spec: Json) -> Json:
    """Return the strategy of a Deployment's `spec`, with its defaults."""
    return _with_defaults(spec.get("strategy"), {"maxUnavailable": "25%", "maxSurge": "25%"})


def stateful_set_strategy(spec: Json) -> Json:
    """Return the update strategy of a StatefulSet's `spec`, with its defaults."""
    return _with_defaults(spec.get("updateStrategy"), {"partition": 0})


def daemon_set_strategy(spec: Json) -> Json:
    """Return the update strategy of a DaemonSet's `spec`, with its defaults."""
    return _with_defaults(spec.get("updateStrategy"), {"maxUnavailable": 1, "maxSurge": 0})


def _deployment(spec: Json) -> Json:
    return replaced(spec, "strategy", deployment_strategy(spec))


def _stateful_set(spec: Json) -> Json:
    spec = replaced(spec, "updateStrategy", stateful_set_strategy(spec))
    retained = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    retention = filled(spec.get("persistentVolumeClaimRetentionPolicy") or {}, retained)
    spec = replaced(spec, "persistentVolumeClaimRetentionPolicy", retention)
    claims = spec.get("volumeClaimTemplates")
    if claims:
        # Another apiVersion or kind is overwritten. upstream: pkg/apis/apps/v1/conversion.go
        named = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        spec = replaced(spec, "volumeClaimTemplates", [{**one, **named} for one in claims])
    return spec


def _daemon_set(spec: Json) -> Json:
    return replaced(spec, "updateStrategy", daemon_set_strategy(spec))


def _daemon_set_object(obj: Json) -> Json:
    """Return a DaemonSet in which the annotation for the template generation defaults to "0"."""
    # upstream: pkg/apis/apps/v1/conversion.go:Convert_apps_DaemonSet_To_v1_DaemonSet
    meta = obj["metadata"]
    annotations = meta.get("annotations", {})
    if GENERATION in annotations:
        return obj
    return {**obj, "metadata": {**meta, "annotations": {**annotations, GENERATION: "0"}}}


def _replication_controller(obj: Json) -> Json:
    """Return a ReplicationController; its selector and labels default to its template's labels."""
    spec = obj["spec"]
    labels = (spec.get("template") or {}).get("metadata", {}).get("labels", {})
    if labels:
        spec = spec if spec.get("selector") else {**spec, "selector": labels}
        obj = _labelled(obj, labels)
    return replaced(obj, "spec", spec)


def with_own_name(namespace: Json) -> Json:
    """Return `namespace` with its name in the label `kubernetes.io/metadata.name`."""
    # upstream: pkg/apis/core/v1/defaults.go:SetDefaults_Namespace
    meta = namespace.get("metadata", {})
    labels = meta.get("labels") or {}
    if not meta.get("name") or labels.get(OWN_NAME) == meta["name"]:
        return namespace
    return {**namespace, "metadata": {**meta, "labels": {**labels, OWN_NAME: meta["name"]}}}


def _labelled(obj: Json, labels: Json) -> Json:
    meta = obj["metadata"]
    return obj if meta.get("labels") else {**obj, "metadata": {**meta, "labels": labels}}


def _job(obj: Json) -> Json:
    spec = with_completions(obj["spec"])
    replacement = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    defaults = {
        "parallelism": PARALLELISM,
        "backoffLimit": backoff_limit(spec),
        "completionMode": COMPLETION_MODE,
        "suspend": False,
        "podReplacementPolicy": replacement,
        "manualSelector": False,
    }
    labels = spec["template"]["metadata"].get("labels")
    return replaced(_labelled(obj, labels) if labels else obj, "spec", filled(spec, defaults))


def with_completions(spec: Json) -> Json:
    """Return a Job's spec, in which completions defaults to 1 if parallelism is not set."""
    if "completions" in spec or "parallelism" in spec:
        return spec
    return {**spec, "completions": 1}


def backoff_limit(spec: Json) -> int:
    """Return the default backoffLimit of a Job's spec.

    If backoffLimitPerIndex is set, the default is so high that only the limit of each index
    matters.
    """
    return _BACKOFF_LIMIT if spec.get("backoffLimitPerIndex") is None else _BACKOFF_MAX


def with_metrics_and_rules(spec: Json) -> Json:
    """Return a HorizontalPodAutoscaler's spec with the defaults of its metrics and behavior.

    The default metric is a CPU utilization of 80%. The defaults of the scaling rules are set only
    if `spec` has a behavior.
    """
    if not spec.get("metrics"):
        spec = {**spec, "metrics": [_CPU]}
    behavior = spec.get("behavior")
    if behavior is None:
        return spec
    up = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [_BY_PODS, _BY_PERCENT],
    }
    down = {"selectPolicy": "Max", "policies": [_BY_PERCENT]}
    sides = {
        "scaleUp": filled(behavior.get("scaleUp") or {}, up),
        "scaleDown": filled(behavior.get("scaleDown") or {}, down),
    }
    return replaced(spec, "behavior", {**behavior, **sides})


def _secret(secret: Json) -> Json:
    """Return a Secret whose stringData is encoded and moved into data."""
    texts = secret.get("stringData")
    if texts is None:
        return secret
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    rest = {key: value for key, value in secret.items() if key != "stringData"}
    data = {**(secret.get("data") or {}), **encoded}
    return {**rest, "data": data} if data else rest


WORKLOAD_RULES: Final[Mapping[str, Rule]] = {
    "v1.DeploymentSpec": _deployment,
    "v1.StatefulSetSpec": _stateful_set,
    "v1.DaemonSet": _daemon_set_object,
    "v1.DaemonSetSpec": _daemon_set,
    "v1.ReplicationController": _replication_controller,
    "v1.Job": _job,
    "v2.HorizontalPodAutoscalerSpec": with_metrics_and_rules,
    "v1.Secret": _secret,
    "v1.Namespace": with_own_name,
}
