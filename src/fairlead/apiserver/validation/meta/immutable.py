"""What never changes of an object that exists, kind by kind.

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
class Fixed:
    """A field: where it stands, as what its value is shown, and how a change is refused.

    `shape` names the internal type of an object; `field` is what upstream calls the field where
    that is something else. With `forbids` the words are all, without the value.
    """

    path: str
    shape: str = ""
    field: str = ""
    words: str = IMMUTABLE
    forbids: bool = False


def _forbidden(name: str) -> Fixed:
    return Fixed(name, words=f"updates to {name} are forbidden.", forbids=True)


_ROLE: Final = (Fixed("roleRef", "rbac.v1.RoleRef", words="cannot change roleRef"),)
_EVENT: Final = (
    Fixed("involvedObject", "core.v1.ObjectReference"),
    Fixed("reason"),
    Fixed("message"),
    Fixed("source", "core.v1.EventSource"),
    Fixed("firstTimestamp"),
    Fixed("lastTimestamp"),
    Fixed("count"),
    Fixed("reason"),  # upstream looks twice
    Fixed("type"),
    Fixed("eventTime"),
    Fixed("action"),
    Fixed("related", "core.v1.ObjectReference"),
    Fixed("reportingComponent", field="reportingController"),
    Fixed("reportingInstance"),
)
_FIXED: Final[Mapping[str, tuple[Fixed, ...]]] = {
    "secrets": (Fixed("type"),),
    "events": _EVENT,
    "deployments.apps": (Fixed("spec.selector"),),
    "replicasets.apps": (Fixed("spec.selector"),),
    "daemonsets.apps": (Fixed("spec.selector"),),
    "storageclasses.storage.k8s.io": (
        Fixed("parameters"),
        Fixed("provisioner"),
        Fixed("reclaimPolicy"),
        Fixed("volumeBindingMode"),
    ),
    "volumeattributesclasses.storage.k8s.io": (_forbidden("driverName"), _forbidden("parameters")),
    "volumeattachments.storage.k8s.io": (Fixed("spec", "storage.v1.VolumeAttachmentSpec"),),
    "csidrivers.storage.k8s.io": (
        Fixed("spec.attachRequired", field="spec.attachedRequired"),
        Fixed("spec.volumeLifecycleModes"),
    ),
    "csistoragecapacities.storage.k8s.io": (Fixed("nodeTopology"), Fixed("storageClassName")),
    "endpointslices.discovery.k8s.io": (Fixed("addressType"),),
    "ingressclasses.networking.k8s.io": (Fixed("spec.controller"),),
    "ipaddresses.networking.k8s.io": (Fixed("spec.parentRef", "networking.v1.ParentReference"),),
    "runtimeclasses.node.k8s.io": (Fixed("handler"),),
    "rolebindings.rbac.authorization.k8s.io": _ROLE,
    "clusterrolebindings.rbac.authorization.k8s.io": _ROLE,
    "resourceclaims.resource.k8s.io": (Fixed("spec", "resource.v1.ResourceClaimSpec"),),
    "resourceclaimtemplates.resource.k8s.io": (
        Fixed("spec", "resource.v1.ResourceClaimTemplateSpec"),
    ),
    "resourceslices.resource.k8s.io": (
        Fixed("spec.pool.name"),
        Fixed("spec.driver"),
        Fixed("spec.nodeName"),
    ),
}


def check_fixed(resource: str, old: Json, new: Json) -> Causes:
    """What `new`, an object of `resource`, has otherwise than `old` and may not."""
    for one in _FIXED.get(resource, ()):
        yield from _check(one, _value(old, one.path), _value(new, one.path))


def _check(one: Fixed, before: Any, after: Any) -> Causes:
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
