"""Identity of owners and pods: references, keys, events and generated names.

Generated names have upstream's form and alphabet. Upstream draws suffixes at random. Here a suffix
is a hash of the owner and a serial number. So the same run has the same names on every machine.

upstream: staging/src/k8s.io/apiserver/pkg/storage/names/generate.go,
apimachinery/pkg/util/rand/rand.go:SafeEncodeString
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from fairlead.api.codec import VIEWS
from fairlead.api.objects import ApiObject, OwnerReference, Pod, Unstructured
from fairlead.engine.core.command import ObjectRef, RecordEvent

# reportingController of upstream's events (controller_names.go).
CONTROLLER_NAMES: Final = {
    "CronJob": "cronjob-controller",
    "DaemonSet": "daemonset-controller",
    "Deployment": "deployment-controller",
    "Endpoints": "endpoint-slice-mirroring-controller",
    "Job": "job-controller",
    "PodDisruptionBudget": "controllermanager",
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replicationcontroller-controller",
    "StatefulSet": "statefulset-controller",
}

DAEMON_SET: Final = "DaemonSet"
STATEFUL_SET: Final = "StatefulSet"
# by phase: reason of the event, and two words of its note
DAEMON_POD_ENDED: Final = {
    "Failed": ("FailedDaemonPod", "failed", "kill"),
    "Succeeded": ("SucceededDaemonPod", "succeeded", "delete"),
}
ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
GENERATED_LENGTH_MAX: Final = 63

# Groups and kinds with typed views. An ObjectRef names such a kind without its group.
_TYPED: Final = frozenset((version.rpartition("/")[0], kind) for version, kind in VIEWS)
TEMPLATE_HASH_LENGTH: Final = 10


def owner_key(kind: str, namespace: str, name: str, uid: str) -> str:
    """Return the key of an owner: its uid, or kind/namespace/name if the uid is unknown."""
    return uid or f"{kind}/{namespace}/{name}"


def owner_kind(reference: OwnerReference) -> str:
    """Return the kind of the owner to which `reference` refers, in the form that ObjectRef uses.

    For a custom kind, the group is appended, as in `Widget.example.com`, if `reference` has an
    apiVersion.
    """
    group, kind = reference.api_version.rpartition("/")[0], reference.kind
    return kind if not group or (group, kind) in _TYPED else f"{kind}.{group}"


def owner_event(
    owner: ObjectRef, reason: str, note: str, *, is_warning: bool = False
) -> RecordEvent:
    """Return an event about `owner`, reported by the controller for this kind of object."""
    return RecordEvent(
        regarding=owner,
        type="Warning" if is_warning else "Normal",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller=CONTROLLER_NAMES.get(owner.kind, "workload-controller"),
    )


def pod_created(owner: ObjectRef, name: str) -> RecordEvent:
    """Return the event about a pod created for `owner`."""
    # upstream: pkg/controller/controller_utils.go:createPods; for StatefulSets,
    # pkg/controller/statefulset/stateful_pod_control.go:recordPodEvent
    if owner.kind == STATEFUL_SET:
        note = f"Create Pod {name} in StatefulSet {owner.name} successful"
        return owner_event(owner, "SuccessfulCreate", note)
    return owner_event(owner, "SuccessfulCreate", f"Created pod: {name}")


def pod_deleted(owner: ObjectRef, pod: Pod) -> list[RecordEvent]:
    """Return the events about `owner` that report the deletion of `pod`."""
    deleted = _pod_deleted(owner, pod.metadata.name)
    cause = DAEMON_POD_ENDED.get(pod.status.phase) if owner.kind == DAEMON_SET else None
    if cause is None:
        return [deleted]
    # upstream: pkg/controller/daemon/daemon_controller.go:podsShouldBeOnNode
    reason, adjective, verb = cause
    path = f"{pod.metadata.namespace}/{pod.metadata.name}"
    note = (
        f"Found {adjective} daemon pod {path} on node {pod.spec.node_name}, will try to {verb} it"
    )
    return [owner_event(owner, reason, note, is_warning=adjective == "failed"), deleted]


def _pod_deleted(owner: ObjectRef, name: str) -> RecordEvent:
    if owner.kind == STATEFUL_SET:
        note = f"Delete Pod {name} in StatefulSet {owner.name} successful"
        return owner_event(owner, "SuccessfulDelete", note)
    return owner_event(owner, "SuccessfulDelete", f"Deleted pod: {name}")


# upstream: apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go:Admit
_NAMESPACE_TERMINATING: Final = "because it is being terminated"


def is_namespace_terminating(message: str) -> bool:
    """Return whether `message` says that a creation failed because its namespace terminates."""
    # upstream: pkg/controller/controller_utils.go:createPods, HasStatusCause
    return message.endswith(_NAMESPACE_TERMINATING)


def claim_created(owner: ObjectRef, claim: str, pod: str, error: str = "") -> RecordEvent:
    """Return the event of the StatefulSet `owner` about the creation of the claim of `pod`.

    `error` is the API server's error message, "" if the creation succeeded.
    """
    # upstream: stateful_pod_control.go:recordClaimEvent
    if error:
        note = (
            f"Create Claim {claim} for Pod {pod} in StatefulSet {owner.name} failed error: {error}"
        )
        return owner_event(owner, "FailedCreate", note, is_warning=True)
    note = f"Create Claim {claim} Pod {pod} in StatefulSet {owner.name} success"
    return owner_event(owner, "SuccessfulCreate", note)


def pod_refused(owner: ObjectRef, name: str, message: str) -> RecordEvent:
    """Return the event about the pod `name`, which could not be created for `owner`.

    `message` is the API server's error message.
    """
    # upstream: stateful_pod_control.go:recordPodEvent
    if owner.kind == STATEFUL_SET:
        note = f"Create Pod {name} in StatefulSet {owner.name} failed error: {message}"
        return owner_event(owner, "FailedCreate", note, is_warning=True)
    return failed_create(owner, message)


def failed_create(owner: ObjectRef, message: str) -> RecordEvent:
    """Return the event about a pod that could not be created for `owner`; `message` says why."""
    # upstream: pkg/controller/controller_utils.go:createPods
    return RecordEvent(
        regarding=owner,
        type="Warning",
        reason="FailedCreate",
        action="Create",
        note=f"Error creating: {message}",
        reporting_controller=CONTROLLER_NAMES.get(owner.kind, "workload-controller"),
    )


def object_ref(one: ApiObject) -> ObjectRef:
    """Return the object reference of `one`.

    If `one` is Unstructured, the group is appended to the kind, as in `Widget.example.com`.
    """
    meta = one.metadata
    kind = one.kind if isinstance(one, Unstructured) else type(one).__name__
    if isinstance(one, Unstructured) and "/" in one.api_version:
        kind = f"{kind}.{one.api_version.rpartition('/')[0]}"
    return ObjectRef(kind, meta.namespace, meta.name, meta.uid)


def ordinal_of(owner_name: str, pod_name: str) -> int | None:
    """Return the ordinal in `pod_name`.

    Returns None if the StatefulSet `owner_name` cannot have a pod of this name.
    """
    # upstream: pkg/controller/statefulset/stateful_set_utils.go:getParentNameAndOrdinal
    parent, _, digits = pod_name.rpartition("-")
    return int(digits) if parent == owner_name and digits.isdecimal() else None


def generated_name(base: str, seed: str, serial: int) -> str:
    """Return `base` with a generated suffix that depends only on `seed` and `serial`."""
    prefix = f"{base}-"[: GENERATED_LENGTH_MAX - SUFFIX_LENGTH]
    return prefix + _letters(f"{seed}/{serial}".encode(), SUFFIX_LENGTH)


def template_hash(template: Any, collisions: int) -> str:
    """Return the pod-template-hash of a template.

    `collisions` is the number of name collisions so far; each number gives a different hash. The
    hash differs from upstream's (pkg/controller/controller_utils.go:ComputeHash hashes Go's memory
    layout), but has the same form and purpose.
    """
    content = msgspec.json.encode(template, order="sorted")
    return _letters(content + b"/%d" % collisions, TEMPLATE_HASH_LENGTH)


def _letters(content: bytes, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(content).digest(), "big")
    letters = []
    for _ in range(length):
        number, index = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[index])
    return "".join(letters)
