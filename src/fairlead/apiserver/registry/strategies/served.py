"""ServedStrategies: which kind gets what, when it is new and when it changes.

upstream: PrepareForCreate and PrepareForUpdate of pkg/registry/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.pods.qos import qos_class
from fairlead.apiserver.apiextensions.definition.strategy import changed_definition, new_definition
from fairlead.apiserver.defaulting.defaulter import completed
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, NODE, POD, SERVICE, Kind
from fairlead.apiserver.registry.strategies.apps import counted_template, first_template
from fairlead.apiserver.registry.strategies.batch import with_own_labels
from fairlead.apiserver.registry.strategies.core.persistent_volume_claim import (
    changed_claim,
    new_claim,
)
from fairlead.apiserver.registry.strategies.core.service_allocation import (
    check_addresses,
    require_name,
    with_addresses,
)
from fairlead.apiserver.registry.strategies.core.service_update import with_kept_addresses
from fairlead.apiserver.registry.warning.rules import warnings_of
from fairlead.apiserver.schema.changed import changed
from fairlead.apiserver.schema.decoding import decoded, empty
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.schema.single import TypeMismatchError
from fairlead.apiserver.storage.storage import Storage

Create = Callable[[Json, Storage], Json]
Update = Callable[[Json, Json, Storage], Json]

# The condition of an APIService that this server serves itself.
LOCAL: Final[Mapping[str, str]] = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}
_FINALIZER: Final = "kubernetes"
_UNSERVED: Final = ("strategy", "preferredHolder")


def _new_namespace(namespace: Json, _: Storage) -> Json:
    # PrepareForCreate in pkg/registry/core/namespace/strategy.go
    spec = {"finalizers": [_FINALIZER]}
    return {**namespace, "spec": spec, "status": {"phase": "Active"}}


def _new_pod(pod: Json, _: Storage) -> Json:
    # PrepareForCreate in pkg/registry/core/pod/strategy.go
    return {**pod, "status": {**pod["status"], "qosClass": qos_class(pod["spec"])}}


def _new_volume(volume: Json, _: Storage) -> Json:
    # PrepareForCreate in pkg/registry/core/persistentvolume/strategy.go
    since = volume["metadata"]["creationTimestamp"]
    return {**volume, "status": {"phase": "Pending", "lastPhaseTransitionTime": since}}


def _new_api_service(service: Json, _: Storage) -> Json:
    # PrepareForCreate in kube-aggregator/pkg/registry/apiservice/strategy.go
    if service["spec"].get("service") is not None:
        return service
    since = service["metadata"]["creationTimestamp"]
    return {**service, "status": {"conditions": [{**LOCAL, "lastTransitionTime": since}]}}


def _new_lease(lease: Json, _: Storage) -> Json:
    # PrepareForCreate in pkg/registry/coordination/lease/strategy.go: nobody elects that way here
    spec = lease.get("spec") or {}
    return {**lease, "spec": {key: spec[key] for key in spec if key not in _UNSERVED}}


def _changed_lease(old: Json, new: Json, _: Storage) -> Json:
    # PrepareForUpdate, likewise
    had, spec = old.get("spec") or {}, new.get("spec") or {}
    kept = {key: spec[key] for key in spec if key not in _UNSERVED or key in had}
    return {**new, "spec": kept}


def _changed_namespace(old: Json, new: Json, _: Storage) -> Json:
    # PrepareForUpdate in pkg/registry/core/namespace/strategy.go
    return {**new, "spec": old["spec"]} if "spec" in old else new


def _with_named_secrets(account: Json) -> Json:
    # cleanSecretReferences in pkg/registry/core/serviceaccount/strategy.go
    secrets = account.get("secrets")
    if not secrets:
        return account
    return {**account, "secrets": [{"name": one.get("name", "")} for one in secrets]}


def _new_account(account: Json, _: Storage) -> Json:
    return _with_named_secrets(account)


def _changed_account(_: Json, new: Json, __: Storage) -> Json:
    return _with_named_secrets(new)


_CREATE: Final[Mapping[str, Create]] = {
    "apiservices.apiregistration.k8s.io": _new_api_service,
    "leases.coordination.k8s.io": _new_lease,
    "persistentvolumeclaims": new_claim,
    "serviceaccounts": _new_account,
    "namespaces": _new_namespace,
    "persistentvolumes": _new_volume,
    "pods": _new_pod,
    "jobs.batch": with_own_labels,
    "daemonsets.apps": first_template,
    CUSTOM_RESOURCE_DEFINITION.resource: new_definition,
}
_UPDATE: Final[Mapping[str, Update]] = {
    "leases.coordination.k8s.io": _changed_lease,
    "namespaces": _changed_namespace,
    "persistentvolumeclaims": changed_claim,
    "serviceaccounts": _changed_account,
    "daemonsets.apps": counted_template,
    CUSTOM_RESOURCE_DEFINITION.resource: changed_definition,
}
_STATUS_IS_SENT: Final = frozenset(
    {"nodes", "namespaces", "pods", "servicecidrs.networking.k8s.io"}
)


class ServedStrategies:
    """The strategies of all kinds."""

    def completed(self, kind: Kind, obj: Json, *, is_read: bool = False) -> Json:
        """`obj` as upstream keeps it, with all its defaults. Raises ApiError 400."""
        schema = None if kind.is_custom else schema_of(kind.stored_as, kind.kind)
        if schema is None:
            return obj
        try:
            made = completed(schema, obj if is_read else decoded(schema, obj)[0])
        except TypeMismatchError as cause:
            raise bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                f"{cause}"
            ) from None
        return _paired(kind, made)

    def warnings(self, kind: Kind, old: Json | None, new: Json) -> Iterable[str]:
        """What a client should know about `new`, which is valid."""
        return warnings_of(kind, old, new)

    def begun(self, kind: Kind, obj: Json, storage: Storage, *, is_tried: bool = False) -> None:
        """Refuse what cannot even be tried. Raises ApiError 422."""
        if kind is not SERVICE:
            return
        if obj["metadata"].get("name"):
            check_addresses(obj, storage, is_tried=is_tried)
        else:
            require_name(obj, storage)

    def created(self, kind: Kind, obj: Json, storage: Storage, *, is_tried: bool = False) -> Json:
        """`obj`, which is about to be stored for the first time. Raises ApiError 422."""
        if kind.has_status and kind.resource not in _STATUS_IS_SENT:
            zero = None if kind.is_custom else _zero_status(kind)
            if zero is not None:
                obj = {**obj, "status": zero}
        if kind is POD and obj["status"].get("conditions"):
            obj = self.shaped(kind, None, obj)
        if kind is SERVICE:
            return with_addresses(obj, storage, is_tried=is_tried)
        rule = _CREATE.get(kind.resource)
        return _without_empty_lists(kind, rule(obj, storage) if rule else obj)

    def updated(
        self, kind: Kind, old: Json, new: Json, storage: Storage, *, is_tried: bool = False
    ) -> Json:
        """`new`, which is about to replace `old`. Raises ApiError 422."""
        if kind is SERVICE:
            return with_kept_addresses(old, new, storage, is_tried=is_tried)
        rule = _UPDATE.get(kind.resource)
        return _without_empty_lists(kind, rule(old, new, storage) if rule else new)

    def shaped(self, kind: Kind, old: Json | None, new: Json) -> Json:
        """`new` with the empty fields that upstream's types write. It must be of its type."""
        schema = None if kind.is_custom else schema_of(kind.stored_as, kind.kind)
        if schema is None:
            return new
        try:
            return _paired(kind, changed(schema, old, new))
        except TypeMismatchError:
            return new


# What is said by itself and as the first of a list: where, and what names it in an item.
# upstream: pkg/apis/core/v1/conversion.go:Convert_v1_{PodStatus,NodeSpec}_To_core_*
_PAIRS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    POD.resource: ("status", "podIP", "podIPs", "ip"),
    NODE.resource: ("spec", "podCIDR", "podCIDRs", ""),
}


def _paired(kind: Kind, obj: Json) -> Json:
    """`obj` with both of a pair; what is said by itself counts for more."""
    if kind.resource not in _PAIRS:
        return obj
    part, one, many, key = _PAIRS[kind.resource]
    had = obj.get(part, {})
    listed = had.get(many) or []
    head = (listed[0].get(key) if key else listed[0]) if listed else None
    first = had.get(one) or head
    if not first or had.get(one) == head:
        return obj
    if first != head:
        listed = [{key: first} if key else first]
    return {**obj, part: {**had, one: first, many: listed}}


# Lists that upstream's storage gives back as null when they are empty, and where they stand.
_NULL_WHEN_EMPTY: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "clusterroles.rbac.authorization.k8s.io": (("rules",),),
    "roles.rbac.authorization.k8s.io": (("rules",),),
    "endpointslices.discovery.k8s.io": (("endpoints",), ("ports",)),
    "csinodes.storage.k8s.io": (("spec", "drivers"),),
    "limitranges": (("spec", "limits"),),
    "jobs.batch": (("spec", "podFailurePolicy", "rules"),),
    "cronjobs.batch": (("spec", "jobTemplate", "spec", "podFailurePolicy", "rules"),),
    "resourceclaims.resource.k8s.io": (("spec", "devices", "requests"),),
    "resourceclaimtemplates.resource.k8s.io": (("spec", "spec", "devices", "requests"),),
}


def _without_empty_lists(kind: Kind, obj: Json) -> Json:
    for path in _NULL_WHEN_EMPTY.get(kind.resource, ()):
        obj = _without_empty(obj, path)
    return obj


def _without_empty(obj: Json, path: tuple[str, ...]) -> Json:
    """`obj` with null for an empty list at the end of `path`."""
    key, rest = path[0], path[1:]
    value = obj.get(key)
    if not rest:
        return {**obj, key: None} if value == [] else obj
    if not value:
        return obj
    made = _without_empty(value, rest)
    return obj if made is value else {**obj, key: made}


@lru_cache(maxsize=256)
def _zero_status(kind: Kind) -> Any:
    """What status is before anybody has written it; None where it is not there at all."""
    schema = schema_of(kind.stored_as, kind.kind)
    return None if schema is None else completed(schema, empty(schema)).get("status")
