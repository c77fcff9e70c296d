"""What the server decides about an object whatever the client sent: status and server's metadata.

Where status has a subresource of its own, a new object has none yet (a node may bring one), and
an update of the object leaves status alone. uid, timestamps and generation are the server's.

upstream: pkg/registry/<group>/<resource>/strategy.go,
apiserver/pkg/registry/rest/{create,update}.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from fairlead.api.json import Json
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.kind import DEPLOYMENT, ENDPOINT_SLICE, NODE, POD, PRIORITY_CLASS, Kind
from fairlead.apiserver.storage.storage import Storage

_SERVERS_METADATA: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
# Which metadata a write of status carries along, where it is not all that clients own.
# upstream: PrepareForUpdate of the status strategies
_METADATA: Final = ("annotations", "finalizers", "labels", "managedFields", "ownerReferences")
_NOTHING_ELSE: Final = ("managedFields",)
_WITH_STATUS: Final[Mapping[str, tuple[str, ...]]] = {
    "pods": ("annotations", "finalizers", "labels", "managedFields"),
    "services": _NOTHING_ELSE,
    "apiservices.apiregistration.k8s.io": _NOTHING_ELSE,
    "flowschemas.flowcontrol.apiserver.k8s.io": _NOTHING_ELSE,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _NOTHING_ELSE,
    "resourceclaims.resource.k8s.io": _NOTHING_ELSE,
    "servicecidrs.networking.k8s.io": _NOTHING_ELSE,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _NOTHING_ELSE,
    "volumeattachments.storage.k8s.io": _NOTHING_ELSE,
    DEPLOYMENT.resource: ("annotations", "finalizers", "managedFields", "ownerReferences"),
}
# Kinds whose status a write of the whole object changes too, and those that are created with one.
# upstream: networking/servicecidr/strategy.go, core/node/strategy.go
_KEPT_STATUS: Final = ("servicecidrs.networking.k8s.io",)
_BROUGHT_STATUS: Final = (NODE.resource, *_KEPT_STATUS)
# Kinds that have a generation once their spec has changed.
# upstream: storage/csidriver/strategy.go:PrepareForUpdate
_COUNTED_ONCE_CHANGED: Final = ("csidrivers.storage.k8s.io",)
_NOT_OF_NEW: Final = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "selfLink",
)
_NOT_SPEC: Final = ("apiVersion", "kind", "metadata", "status")
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class Strategies(Protocol):
    """What happens to objects besides where they are served to anybody."""

    def completed(self, kind: Kind, obj: Json, *, is_read: bool = False) -> Json:
        """`obj` in the form in which upstream keeps it, with all its defaults.

        `is_read`: it has that form already, but for the defaults.
        Raises ApiError 400 for a value of a wrong type.
        """
        ...

    def warnings(self, kind: Kind, old: Json | None, new: Json) -> Iterable[str]:
        """What a client should know about `new`, which is valid."""
        ...

    def begun(self, kind: Kind, obj: Json, storage: Storage, *, is_tried: bool = False) -> None:
        """Take what a new object needs before it is looked at; nothing where that `is_tried` only.

        Raises ApiError.
        """
        ...

    def created(self, kind: Kind, obj: Json, storage: Storage, *, is_tried: bool = False) -> Json:
        """`obj` as a new object; nothing is stored where that `is_tried` only. Raises ApiError."""
        ...

    def updated(
        self, kind: Kind, old: Json, new: Json, storage: Storage, *, is_tried: bool = False
    ) -> Json:
        """`new` in place of `old`, likewise. Raises ApiError."""
        ...

    def shaped(self, kind: Kind, old: Json | None, new: Json) -> Json:
        """`new`, which the server has made of `old`, in the form in which it is kept."""
        ...


def prepared_for_create(kind: Kind, obj: Json, uid: str, timestamp: str) -> Json:
    """`obj` as a new object."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _NOT_OF_NEW}
    meta |= {"uid": uid, "creationTimestamp": timestamp}
    if kind.has_generation:
        meta["generation"] = 1
    prepared = {**obj, "metadata": meta}
    if kind is POD:
        prepared["status"] = _new_pod_status(obj, timestamp)
    elif kind.has_status and kind.resource not in _BROUGHT_STATUS:
        prepared.pop("status", None)
    return prepared


def prepared_for_update(kind: Kind, old: Json, new: Json) -> Json:
    """`new` with what an update cannot change taken from `old`, and the generation it leads to."""
    before = old["metadata"]
    ignored = (*_SERVERS_METADATA, "selfLink")
    meta = {key: value for key, value in new["metadata"].items() if key not in ignored}
    meta |= {key: before[key] for key in _SERVERS_METADATA if key in before}
    meta["resourceVersion"] = before["resourceVersion"]
    prepared = {**new, "metadata": meta}
    if kind.has_status and kind.resource not in _KEPT_STATUS:
        prepared.pop("status", None)
        if "status" in old:
            prepared["status"] = old["status"]
    counts = kind.has_generation or kind.resource in _COUNTED_ONCE_CHANGED
    if counts and _is_respecified(kind, old, prepared):
        meta["generation"] = before.get("generation", 0) + 1
    return prepared


def prepared_for_status(kind: Kind, old: Json, new: Json) -> Json:
    """`old` with the status of `new`, and of its metadata what a kind lets pass along with it."""
    before, after = old["metadata"], new["metadata"]
    own = _NOTHING_ELSE if kind.is_custom else _METADATA
    written = _WITH_STATUS.get(kind.resource, own)
    meta = {key: value for key, value in before.items() if key not in written}
    meta |= {key: after[key] for key in written if key in after}
    prepared = {key: value for key, value in old.items() if key != "status"}
    if "status" in new:
        prepared["status"] = new["status"]
    quality = old.get("status", {}).get("qosClass") if kind is POD else None
    if quality:  # the server's own
        prepared["status"] = {**prepared.get("status", {}), "qosClass": quality}
    return {**prepared, "metadata": meta}


def respecified(old: Json, spec: Json) -> Json:
    """`old` with another spec, and the generation it leads to."""
    if spec == old.get("spec"):
        return old
    meta = {**old["metadata"], "generation": old["metadata"].get("generation", 0) + 1}
    return {**old, "metadata": meta, "spec": spec}


def _new_pod_status(pod: Json, timestamp: str) -> Json:
    status: Json = {"phase": "Pending"}
    if pod.get("spec", {}).get("schedulingGates"):
        status["conditions"] = with_conditions((), (_GATED,), timestamp)
    return status


def _is_respecified(kind: Kind, old: Json, new: Json) -> bool:
    """Whether anything but metadata and status differs.

    A Deployment counts annotations too, an EndpointSlice labels, a PriorityClass nothing.
    """
    # upstream, in pkg/registry: PrepareForUpdate of apps/deployment, discovery/endpointslice and
    # scheduling/priorityclass
    if kind is PRIORITY_CLASS:
        return False
    if kind is DEPLOYMENT and _annotations(old) != _annotations(new):
        return True
    if kind is ENDPOINT_SLICE and old["metadata"].get("labels") != new["metadata"].get("labels"):
        return True
    return not json_equal(_spec(old), _spec(new))


def _annotations(obj: Json) -> Json:
    annotations: Json = obj["metadata"].get("annotations", {})
    return annotations


def _spec(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in _NOT_SPEC}
