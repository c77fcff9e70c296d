"""Pod templates: builds pod manifests from them, and compares two templates.

A manifest shares parts with its template. A world that receives a manifest in a command must
therefore not modify it.

Admission sets the priority of every new pod, also of a replacement, from its PriorityClass. A dump
of nodes and pods contains no PriorityClasses, so `missing_classes` recreates them from the
priorities of the pods. If a pod has a priority but no class, its replacement gets a generated class
with the same priority.

upstream: pkg/controller/controller_utils.go:GetPodFromTemplate,
plugin/pkg/admission/priority/admission.go, pkg/apis/scheduling/types.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Protocol

import msgspec

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.facts import default_of
from fairlead.api.json import Json
from fairlead.api.objects import OwnerReference, Pod, PodSpec, PriorityClass
from fairlead.api.pods.original import REPLACES
from fairlead.api.pods.replicas import Replicas
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.api.well_known_label import REGION, ZONE
from fairlead.engine.workloads.pod_control.pod_set import PodSet, Replacement
from fairlead.engine.workloads.pod_control.rule import DesiredPod

TEMPLATE_HASH_LABEL: Final = "pod-template-hash"
# The API server copies these labels of the node to a pod that is bound (PodTopologyLabels).
BOUND_LABELS: Final = (ZONE, REGION)
# Pod fields that the scheduler sets, or that admission sets from the PriorityClass.
RESOLVED_FIELDS: Final = ("nodeName", "priority", "preemptionPolicy")
# Fields that the API server sets when they are absent.
_DEFAULTED: Final = (
    ("core.v1.ConfigMapVolumeSource", "defaultMode"),
    ("core.v1.ContainerPort", "protocol"),
    ("core.v1.HTTPGetAction", "scheme"),
    ("core.v1.PodSpec", "dnsPolicy"),
    ("core.v1.PodSpec", "schedulerName"),
    ("core.v1.PodSpec", "securityContext"),
    ("core.v1.PodSpec", "terminationGracePeriodSeconds"),
    ("core.v1.Probe", "failureThreshold"),
    ("core.v1.Probe", "periodSeconds"),
    ("core.v1.Probe", "successThreshold"),
    ("core.v1.Probe", "timeoutSeconds"),
)
# Labels and fields that controllers or the API server set, partly from other fields. They have no
# effect in a simulation.
IGNORED: Final = (
    TEMPLATE_HASH_LABEL,
    "creationTimestamp",
    "imagePullPolicy",
    "serviceAccount",
    "terminationMessagePath",
    "terminationMessagePolicy",
)
# Fields that contain one quantity, and fields that contain a quantity for each key.
_AMOUNTS: Final = frozenset({"divisor", "sizeLimit"})
_AMOUNT_LISTS: Final = frozenset({"limits", "overhead", "requests"})
USER_VALUE_MAX: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
STAND_IN_PREFIX: Final = "fairlead-priority-"
NEVER: Final = "Never"


def pod_manifest(
    template: Json,
    *,
    name: str,
    namespace: str,
    owner: OwnerReference,
    replaces: str = "",
    prefix: str = "",
) -> Json:
    """Return the manifest of the pod `name` from `template`, controlled by `owner`.

    `replaces` is the name of the new pod's original, or "". The original is the pod that the new
    pod replaces, directly or through other replacements (`api.pods.original`). `prefix` is the
    generateName of the new pod, or "".
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
    """Return an entry for ownerReferences that names `owner` as the controller."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def template_of(pod: Pod) -> Json:
    """Return the template of `pod`, without fields that other components set.

    Only fields that Fairlead reads are kept. For example, the `command` of a container is dropped.
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
    """Return a copy of `template` with `labels` added."""
    metadata = template.get("metadata", {})
    labelled = metadata | {"labels": {**metadata.get("labels", {}), **labels}}
    return template | {"metadata": labelled}


def with_annotations(template: Json, annotations: Mapping[str, str]) -> Json:
    """Return a copy of `template` with `annotations` added."""
    metadata = template.get("metadata", {})
    annotated = metadata | {"annotations": {**metadata.get("annotations", {}), **annotations}}
    return template | {"metadata": annotated}


def with_finalizer(template: Json, finalizer: str) -> Json:
    """Return a copy of `template` with `finalizer` added."""
    metadata = template.get("metadata", {})
    held = metadata | {"finalizers": [*metadata.get("finalizers", []), finalizer]}
    return template | {"metadata": held}


def same_template(left: Json, right: Json) -> bool:
    """Return whether two templates are equal except for nulls, defaults and IGNORED fields."""
    # upstream: pkg/controller/deployment/util/deployment_util.go:EqualIgnoreHash
    if _images(left) != _images(right):
        return False  # the usual case for old revisions; checked first, because it is fast
    return _are_alike(_without_restart_default(left), _without_restart_default(right))


def changed_keys(left: Json, right: Json) -> list[str]:
    """Return the keys whose values differ, except for nulls, defaults and IGNORED fields."""
    left, right = _essence(left), _essence(right)
    return [
        key
        for key in sorted({*left, *right})
        if key not in left or key not in right or not _are_alike(left[key], right[key], key)
    ]


def _images(template: Json) -> list[Any]:
    """Return the images of the containers in `template`, which may be malformed."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(containers, list):
        return []
    return [one.get("image") for one in containers if isinstance(one, dict)]


def resembles(template: Json, pod: Pod) -> bool:
    """Return whether a pod created from `template` would be scheduled like `pod`.

    The node selectors must be equal, and so must the name, image and resources of each container.
    If `template` has a priority class, the priority classes must be equal, too.
    """
    made = read_template(template)
    return made is not None and (
        [(one.name, one.image, one.resources) for one in made.spec.containers]
        == [(one.name, one.image, one.resources) for one in pod.spec.containers]
        and made.spec.priority_class_name in ("", pod.spec.priority_class_name)
        and made.spec.node_selector == pod.spec.node_selector
    )


def read_template(template: Json) -> Pod | None:
    """Return `template` as a Pod, or None if it cannot be decoded as a pod."""
    try:
        return decode_as(
            Pod, {key: template[key] for key in ("metadata", "spec") if key in template}
        )
    except DecodeError:
        return None


def _without_restart_default(template: Json) -> Json:
    """Return `template` without the pod's restartPolicy if it is Always, the default."""
    spec = template.get("spec", {})
    if spec.get("restartPolicy") != "Always":
        return template
    return template | {"spec": {key: part for key, part in spec.items() if key != "restartPolicy"}}


@cache
def _defaults() -> Mapping[str, Any]:
    """Return the default values by field name; fields with the same name share one default."""
    found = {name: default_of(type_, name) for type_, name in _DEFAULTED}
    return {**found, "resources": {}}


def _are_alike(one: Any, other: Any, field: str = "") -> bool:
    """Return whether two values are equal except for nulls, defaults and ignored fields.

    `field` is the name of the field that contains the values. Quantities are equal if their amounts
    are equal, as in upstream's comparison (apimachinery/pkg/api/equality/semantic.go).
    """
    if one == other:
        return True
    match one, other:
        case dict(), dict():
            one, other = _essence(one), _essence(other)
            same = _are_equal_amounts if field in _AMOUNT_LISTS else _are_alike
            return one.keys() == other.keys() and all(
                same(part, other[key], key) for key, part in one.items()
            )
        case list() | tuple(), list() | tuple():
            return len(one) == len(other) and all(map(_are_alike, one, other))
        case _:
            return field in _AMOUNTS and _are_equal_amounts(one, other, field)


def _are_equal_amounts(one: Any, other: Any, _field: str) -> bool:
    """Return whether two different values are quantities of the same amount."""
    try:
        return parse_quantity(one) == parse_quantity(other)
    except (QuantityError, TypeError):  # TypeError: a list or an object, which is malformed here
        return False


def _essence(value: Json) -> Json:
    """Return `value` without nulls, defaults and ignored fields."""
    defaults = _defaults()
    return {
        key: part
        for key, part in value.items()
        if part is not None
        and key not in IGNORED
        and not (key in defaults and part == defaults[key])
    }


class PodFactory(Protocol):
    """Builds the manifests of the pods that controllers create."""

    def manifest(
        self, pods: PodSet, desired: DesiredPod, name: str, replacement: Replacement | None
    ) -> Json:
        """Return the manifest of the pod `name` for `desired`.

        `replacement` is the pod to replace, or None.
        """
        ...


class ServedPodFactory:
    """Creates pods as API clients expect them: a pod with a generated name has a generateName."""

    def manifest(
        self, pods: PodSet, desired: DesiredPod, name: str, replacement: Replacement | None
    ) -> Json:
        """Return the manifest as upstream creates it; `replacement` is ignored."""
        prefix = "" if desired.name else f"{desired.prefix or pods.owner.name}-"
        return pod_manifest(
            desired.template, name=name, namespace=pods.namespace, owner=pods.owner, prefix=prefix
        )


class SimulatedPodFactory:
    """Creates pods; a replacement gets an annotation with the original pod's name, for reports."""

    def manifest(
        self, pods: PodSet, desired: DesiredPod, name: str, replacement: Replacement | None
    ) -> Json:
        """Return the manifest of the pod `name`.

        If `replacement` is given, the manifest has the annotation `fairlead.dev/replaces`.
        """
        original = replacement.original if replacement is not None else ""
        return pod_manifest(
            desired.template,
            name=name,
            namespace=pods.namespace,
            owner=pods.owner,
            replaces=original,
        )


def class_name(spec: PodSpec) -> str:
    """Return the name of the priority class for a pod with `spec`, or "" if it needs no class.

    A pod with a priority other than 0 but without a class gets the name of a generated class.
    """
    if spec.priority_class_name or not spec.priority:
        return spec.priority_class_name
    sign = "minus-" if spec.priority < 0 else ""
    policy = "-never" if spec.preemption_policy == NEVER else ""
    return f"{STAND_IN_PREFIX}{sign}{abs(spec.priority)}{policy}"


def missing_classes(loaded: Iterable[Replicas], known: Iterable[PriorityClass]) -> list[Json]:
    """Return manifests of the PriorityClasses that `loaded` pods need and `known` lacks.

    The manifests are sorted by name. If pods of one class have different priorities, the priority
    of the newest pod is used. Classes that users cannot create are left out, such as the system's
    classes.
    """
    present = {one.metadata.name for one in known}
    latest: dict[str, Pod] = {}
    for replicas in loaded:
        spec = replicas[0].spec
        name = class_name(spec)
        if name and name not in present and _states_class_value(name, spec):
            latest[name] = max(latest.get(name, replicas[0]), *replicas, key=_age)
    return [_manifest(name, latest[name].spec) for name in sorted(latest)]


def _states_class_value(name: str, spec: PodSpec) -> bool:
    """Return whether users can create a PriorityClass `name` with the priority in `spec`."""
    is_system = name.startswith(SYSTEM_PREFIX)
    return spec.priority is not None and spec.priority <= USER_VALUE_MAX and not is_system


def _age(pod: Pod) -> tuple[str, str]:
    return (pod.metadata.creation_timestamp, pod.key)


def _manifest(name: str, spec: PodSpec) -> Json:
    manifest: Json = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": spec.priority,
    }
    if spec.preemption_policy:
        manifest["preemptionPolicy"] = spec.preemption_policy
    return manifest
