"""Pod templates: builds pod manifests from them, and compares two templates.

Manifests share parts with their template; worlds must not modify the content of a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import OwnerReference, Pod
from fairlead.engine.workloads.annotation import REPLACES
from fairlead.engine.workloads.pod_control.priority_class import class_name

TEMPLATE_HASH_LABEL: Final = "pod-template-hash"
# The API server copies these from the node to the pod when it is bound (PodTopologyLabels).
BOUND_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
# Set by the scheduler, and by admission from the PriorityClass.
RESOLVED_FIELDS: Final = ("nodeName", "priority", "preemptionPolicy")
# What the API server fills in when it is absent (pkg/apis/core/v1/defaults.go), below spec.
DEFAULTS: Final[Mapping[str, Any]] = {
    "defaultMode": 420,
    "dnsPolicy": "ClusterFirst",
    "failureThreshold": 3,
    "periodSeconds": 10,
    "protocol": "TCP",
    "resources": {},
    "schedulerName": "default-scheduler",
    "scheme": "HTTP",
    "securityContext": {},
    "successThreshold": 1,
    "terminationGracePeriodSeconds": 30,
    "timeoutSeconds": 1,
}
# Defaulted too, but from other fields, and without effect in a simulation.
IGNORED: Final = (
    TEMPLATE_HASH_LABEL,
    "creationTimestamp",
    "imagePullPolicy",
    "serviceAccount",
    "terminationMessagePath",
    "terminationMessagePolicy",
)


def pod_manifest(
    template: Json,
    *,
    name: str,
    namespace: str,
    owner: OwnerReference,
    replaces: str = "",
    prefix: str = "",
) -> Json:
    """The pod `name` from `template`, controlled by `owner`.

    `replaces` is the original name of the pod that it replaces, if any; `prefix` is the
    generateName that the name came from, if it is to be shown.
    """
    # upstream: pkg/controller/controller_utils.go:GetPodFromTemplate
    described = template.get("metadata", {})
    metadata: Json = {"name": name, "namespace": namespace}
    if prefix:
        metadata["generateName"] = prefix
    if described.get("labels"):
        metadata["labels"] = described["labels"]
    annotations = described.get("annotations", {}) | ({REPLACES: replaces} if replaces else {})
    if annotations:
        metadata["annotations"] = annotations
    metadata["ownerReferences"] = [controller_reference(owner)]
    if described.get("finalizers"):
        metadata["finalizers"] = described["finalizers"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec", {}),
    }


def controller_reference(owner: OwnerReference) -> Json:
    """`owner` as the ownerReferences entry of the managing controller."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def template_of(pod: Pod) -> Json:
    """A template that `pod` could have been created from, without what others added to it.

    Only fields that Fairlead reads are kept; commands, probes and environments are dropped.
    """
    spec = msgspec.json.decode(msgspec.json.encode(pod.spec))
    for resolved in RESOLVED_FIELDS:
        spec.pop(resolved, None)
    if name := class_name(pod.spec):
        spec["priorityClassName"] = name
    meta = pod.metadata
    return {
        "metadata": {
            "labels": {key: text for key, text in meta.labels.items() if key not in BOUND_LABELS},
            "annotations": {key: one for key, one in meta.annotations.items() if key != REPLACES},
        },
        "spec": spec,
    }


def with_labels(template: Json, labels: Mapping[str, str]) -> Json:
    """`template` with `labels` added."""
    metadata = template.get("metadata", {})
    labelled = metadata | {"labels": {**metadata.get("labels", {}), **labels}}
    return template | {"metadata": labelled}


def with_annotations(template: Json, annotations: Mapping[str, str]) -> Json:
    """`template` with `annotations` added."""
    metadata = template.get("metadata", {})
    annotated = metadata | {"annotations": {**metadata.get("annotations", {}), **annotations}}
    return template | {"metadata": annotated}


def with_finalizer(template: Json, finalizer: str) -> Json:
    """`template` with `finalizer` added."""
    metadata = template.get("metadata", {})
    held = metadata | {"finalizers": [*metadata.get("finalizers", []), finalizer]}
    return template | {"metadata": held}


def same_template(one: Json, other: Json) -> bool:
    """Whether two templates are equal, apart from the hash label and explicit defaults."""
    # upstream: pkg/controller/deployment/util/deployment_util.go:EqualIgnoreHash
    meant, asked = _without_restart_default(one), _without_restart_default(other)
    return bool(_essence(meant) == _essence(asked))


def resembles(template: Json, pod: Pod) -> bool:
    """Whether `pod` could come from `template`, judged by the fields that affect scheduling."""
    made = read_template(template)
    return made is not None and (
        [(one.name, one.image, one.resources) for one in made.spec.containers]
        == [(one.name, one.image, one.resources) for one in pod.spec.containers]
        and made.spec.priority_class_name in ("", pod.spec.priority_class_name)
        and made.spec.node_selector == pod.spec.node_selector
    )


def read_template(template: Json) -> Pod | None:
    """`template` as a Pod, None if it does not describe one."""
    try:
        return decode_as(
            Pod, {key: template[key] for key in ("metadata", "spec") if key in template}
        )
    except DecodeError:
        return None


def _without_restart_default(template: Json) -> Json:
    """`template` without the default restartPolicy (on an init container it makes a sidecar)."""
    spec = template.get("spec", {})
    if spec.get("restartPolicy") != "Always":
        return template
    return template | {"spec": {key: part for key, part in spec.items() if key != "restartPolicy"}}


def _essence(value: Any) -> Any:
    """`value` without nulls, defaults and ignored fields, recursively."""
    match value:
        case dict():
            return {
                key: _essence(part)
                for key, part in value.items()
                if part is not None
                and key not in IGNORED
                and not (key in DEFAULTS and part == DEFAULTS[key])
            }
        case list() | tuple():
            return [_essence(part) for part in value]
        case _:
            return value
