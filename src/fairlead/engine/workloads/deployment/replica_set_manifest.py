"""The manifest of a Deployment's new ReplicaSet.

upstream: pkg/controller/deployment/sync.go:getNewReplicaSet
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import Deployment, OwnerReference
from fairlead.engine.workloads.pod_control.pod_template import (
    TEMPLATE_HASH_LABEL,
    controller_reference,
    with_labels,
)


def replica_set_manifest(
    deployment: Deployment, name: str, digest: str, replicas: int, annotations: Mapping[str, str]
) -> Json:
    """The ReplicaSet `name` with `replicas` pods; `digest` is its pod-template-hash."""
    meta, spec = deployment.metadata, deployment.spec
    label = {TEMPLATE_HASH_LABEL: digest}
    template = with_labels(spec.template, label)
    body: Json = {
        "replicas": replicas,
        "selector": _selector(deployment, label),
        "template": template,
    }
    if spec.min_ready_seconds:
        body["minReadySeconds"] = spec.min_ready_seconds
    owner = OwnerReference(api_version="apps/v1", kind="Deployment", name=meta.name, uid=meta.uid)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": dict(annotations),
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": body,
    }


def _selector(deployment: Deployment, label: dict[str, str]) -> Json:
    selector = deployment.spec.selector
    if selector is None:
        return {"matchLabels": label}
    own: Json = {"matchLabels": {**selector.match_labels, **label}}
    if selector.match_expressions:
        own["matchExpressions"] = [as_json(one) for one in selector.match_expressions]
    return own
