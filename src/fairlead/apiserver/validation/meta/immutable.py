"""Immutable fields, kind by kind.

upstream: Validate…Update of pkg/apis/*/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid
from fairlead.apiserver.validation.meta.format import IMMUTABLE, check_unchanged, shown_as


@dataclass(frozen=True, slots=True)
class ImmutableField:
    """An immutable field and how a change of it is refused.

    `shape` names the internal type of an object; `field` is what upstream calls the field where
    that is something else. With `forbids` the words are all, without the value.
    """

    path: str
    shape: str = ""
    field: str = ""
    words: str = IMMUTABLE
    forbids: bool = False


def _forbidden(name: str) -> ImmutableField:
    return ImmutableField(name, words=f"updates to {name} are forbidden.", forbids=True)


_ROLE: Final = (ImmutableField("roleRef", "rbac.v1.RoleRef", words="cannot change roleRef"),)
_EVENT: Final = (
    ImmutableField("involvedObject", "core.v1.ObjectReference"),
    ImmutableField("reason"),
    ImmutableField("message"),
    ImmutableField("source", "core.v1.EventSource"),
    ImmutableField("firstTimestamp"),
    ImmutableField("lastTimestamp"),
    ImmutableField("count"),
    ImmutableField("reason"),  # upstream looks twice
    ImmutableField("type"),
    ImmutableField("eventTime"),
    ImmutableField("action"),
    ImmutableField("related", "core.v1.ObjectReference"),
    ImmutableField("reportingComponent", field="reportingController"),
    ImmutableField("reportingInstance"),
)
_FIXED: Final[Mapping[str, tuple[ImmutableField, ...]]] = {
    "secrets": (ImmutableField("type"),),
    "events": _EVENT,
    "deployments.apps": (ImmutableField("spec.selector"),),
    "replicasets.apps": (ImmutableField("spec.selector"),),
    "daemonsets.apps": (ImmutableField("spec.selector"),),
    "storageclasses.storage.k8s.io": (
        ImmutableField("parameters"),
        ImmutableField("provisioner"),
        ImmutableField("reclaimPolicy"),
        ImmutableField("volumeBindingMode"),
    ),
    "volumeattributesclasses.storage.k8s.io": (_forbidden("driverName"), _forbidden("parameters")),
    "volumeattachments.storage.k8s.io": (
        ImmutableField("spec", "storage.v1.VolumeAttachmentSpec"),
    ),
    "csidrivers.storage.k8s.io": (
        ImmutableField("spec.attachRequired", field="spec.attachedRequired"),
        ImmutableField("spec.volumeLifecycleModes"),
    ),
    "csistoragecapacities.storage.k8s.io": (
        ImmutableField("nodeTopology"),
        ImmutableField("storageClassName"),
    ),
    "endpointslices.discovery.k8s.io": (ImmutableField("addressType"),),
    "ingressclasses.networking.k8s.io": (ImmutableField("spec.controller"),),
    "ipaddresses.networking.k8s.io": (
        ImmutableField("spec.parentRef", "networking.v1.ParentReference"),
    ),
    "runtimeclasses.node.k8s.io": (ImmutableField("handler"),),
    "rolebindings.rbac.authorization.k8s.io": _ROLE,
    "clusterrolebindings.rbac.authorization.k8s.io": _ROLE,
    "resourceclaims.resource.k8s.io": (ImmutableField("spec", "resource.v1.ResourceClaimSpec"),),
    "resourceclaimtemplates.resource.k8s.io": (
        ImmutableField("spec", "resource.v1.ResourceClaimTemplateSpec"),
    ),
    "resourceslices.resource.k8s.io": (
        ImmutableField("spec.pool.name"),
        ImmutableField("spec.driver"),
        ImmutableField("spec.nodeName"),
    ),
}


def check_immutable(resource: str, old: Json, new: Json) -> Causes:
    """Changes of immutable fields between `old` and `new`."""
    for one in _FIXED.get(resource, ()):
        yield from _check(one, _value(old, one.path), _value(new, one.path))


def _check(one: ImmutableField, before: Any, after: Any) -> Causes:
    wrong = list(check_unchanged(one.path, before, after))
    if not wrong:
        return
    field = one.field or one.path
    if one.forbids:
        yield forbidden(field, one.words)
    else:
        yield invalid(field, shown_as(one.shape, after) if one.shape else after, one.words)


def _value(obj: Json, path: str) -> Any:
    value: Any = obj
    for name in path.split("."):
        value = (value or {}).get(name)
    return value
