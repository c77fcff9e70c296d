"""Validates PersistentVolumeClaims, PersistentVolumes and StorageClasses.

upstream: pkg/apis/core/validation/validation.go:ValidatePersistentVolume{,Claim}Spec,
pkg/apis/storage/validation/validation.go
"""

from __future__ import annotations

from posixpath import normpath
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import NANOS_PER_UNIT, canonical, parse_quantity
from fairlead.apiserver.error import Cause
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.validation.core.volume.claim import (
    check_claim_spec,
    check_modes,
)
from fairlead.apiserver.validation.core.volume.source import check_persistent
from fairlead.apiserver.validation.meta.change_text import change_text, internal_of
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_qualified_name,
    check_subdomain,
    check_unchanged,
    node_selector,
    too_long,
)
from fairlead.apiserver.validation.meta.selector import check_node_selector

_SPEC: Final = "core.v1.PersistentVolumeSpec"
PARAMETERS_MAX: Final = 512
PARAMETERS_BYTES_MAX: Final = 256 * 1024
CLAIM_IS_FIXED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
BELOW_CAPACITY: Final = "field can not be less than status.capacity"
_CONTROLLER_EXPAND_REF: Final = "controllerExpandSecretRef"
VOLUME_IS_FIXED: Final = "spec.persistentvolumesource is immutable after creation"
_NOT_SOURCE: Final = (
    "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName",
    "mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName",
)  # fmt: skip


def check_claim(obj: Json) -> Causes:
    """Yield the errors of a PersistentVolumeClaim."""
    yield from check_claim_spec("spec", obj["spec"])


def check_claim_update(old: Json, new: Json) -> Causes:
    """Yield errors if an update changes immutable fields of a claim's spec.

    The requested storage of a bound claim can grow, and can shrink to an amount above
    status.capacity. The claim's volumeName and storageClassName can be set if they are absent. The
    volumeAttributesClassName can change but not be removed.
    """
    # upstream: validation.go:ValidatePersistentVolumeClaimUpdate
    before, after = dict(old["spec"]), dict(new["spec"])
    wanted_class = after.get("volumeAttributesClassName")
    if not before.get("volumeName"):
        before["volumeName"] = after.get("volumeName")
    if before.get("storageClassName") is None and after.get("storageClassName") is not None:
        after["storageClassName"] = None
    had, wants = (_requested_storage(spec) for spec in (before, after))
    if (old.get("status") or {}).get("phase") == "Bound":
        after["resources"] = _with_storage(after, had)
    after["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    shown = [internal_of("core.v1.PersistentVolumeClaimSpec", spec) for spec in (before, after)]
    if shown[0] != shown[1]:
        yield forbidden("spec", f"{CLAIM_IS_FIXED}\n{change_text(*shown)}")
    is_there = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    size = parse_quantity(wants)
    if size < parse_quantity(had) and size <= parse_quantity(is_there):
        yield forbidden("spec.resources.requests.storage", BELOW_CAPACITY)
    yield from check_unchanged("volumeMode", before.get("volumeMode"), after.get("volumeMode"))
    yield from _check_attributes_class(before.get("volumeAttributesClassName"), wanted_class)


def _check_attributes_class(had: str | None, wants: str | None) -> Causes:
    if had is not None and not wants:
        what = "nil" if wants is None else "an empty string"
        why = f"update from non-nil value to {what} is forbidden"
        yield forbidden("spec.volumeAttributesClassName", why)


def _requested_storage(spec: Json) -> str:
    text: str = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
    return text


def _with_storage(spec: Json, text: str) -> Json:
    resources: Json = spec.get("resources") or {}
    requests = resources.get("requests")
    if requests is None:
        return resources
    return {**resources, "requests": {**requests, "storage": text}}


def check_volume(obj: Json) -> Causes:
    """Yield the errors of a PersistentVolume."""
    spec = obj["spec"]
    yield from check_fields("spec", _SPEC, spec, "accessModes")
    yield from check_modes("spec", spec.get("accessModes") or [])
    yield from _check_capacity("spec.capacity", spec.get("capacity") or {})
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    yield from check_fields("spec", _SPEC, spec, "persistentVolumeReclaimPolicy")
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        yield from _check_affinity("spec.nodeAffinity", affinity)
    yield from check_persistent("spec", spec)
    if affinity is None and (spec.get("local") or {}).get("path") is not None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    if policy == "Recycle" and normpath((spec.get("hostPath") or {}).get("path", "")) == "/":
        why = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden("spec.persistentVolumeReclaimPolicy", why)
    yield from check_fields("spec", _SPEC, spec, "storageClassName", "volumeMode")
    yield from _check_attributes("spec", spec)


def check_inline_volume(field: str, spec: Json) -> Causes:
    """Yield the errors of the inline volume of a VolumeAttachment; `field` is its path."""
    why = "may not be specified in the context of inline volumes"
    for key in ("claimRef", "capacity"):
        if spec.get(key):
            yield forbidden(f"{field}.{key}", why)
    if spec.get("csi") is None:
        yield required(f"{field}.csi", "has to be specified in the context of inline volumes")
    yield from check_fields(field, _SPEC, spec, "accessModes")
    yield from check_modes(field, spec.get("accessModes") or [])
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"):
        only = "may only be Retain in the context of inline volumes"
        yield forbidden(f"{field}.persistentVolumeReclaimPolicy", only)
    if spec.get("nodeAffinity") is not None:
        yield forbidden(f"{field}.nodeAffinity", why)
    yield from check_persistent(field, spec)
    if spec.get("storageClassName"):
        yield forbidden(f"{field}.storageClassName", why)
    if spec.get("volumeMode") not in (None, "Filesystem"):
        only = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        yield forbidden(f"{field}.volumeMode", only)


def _check_capacity(field: str, capacity: Json) -> Causes:
    if not capacity:
        yield required(field)
    if list(capacity) != ["storage"]:
        yield not_supported(field, dict(sorted(capacity.items())), ("storage",))
    for name, text in capacity.items():
        amount = parse_quantity(text)
        where = f"{field}[{name}]"
        if amount.nano < 0:
            shown = -(-amount.nano // NANOS_PER_UNIT)
            yield invalid(where, shown, "must be a valid resource quantity")
        if amount.nano <= 0:
            yield invalid(where, canonical(amount), "must be greater than zero")


def _check_affinity(field: str, affinity: Json) -> Causes:
    selector = affinity.get("required")
    if selector is None:
        yield required(f"{field}.required", "must specify required node constraints")
    else:
        yield from check_node_selector(f"{field}.required", node_selector(selector))


def _check_attributes(field: str, spec: Json) -> Causes:
    """Yield the errors of volumeAttributesClassName, which only CSI volumes may set."""
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    if not name:
        yield required(f"{field}.volumeAttributesClassName", "an empty string is disallowed")
    else:
        yield from check_subdomain(f"{field}.volumeAttributesClassName", name)
    if spec.get("csi") is None:
        why = "has to be specified when using volumeAttributesClassName"
        yield required(f"{field}.csi", why)


def _source(spec: Json) -> Json:
    """Return the volume source of a PersistentVolume's spec."""
    return {key: value for key, value in spec.items() if key not in _NOT_SOURCE}


def _shown_source(spec: Json) -> Json:
    shown = internal_of("core.v1.PersistentVolumeSpec", spec)
    known = {key.lower() for key in _NOT_SOURCE}
    return {name: value for name, value in shown.items() if name.lower() not in known}


def _unexpanded(old: Json, new: Json) -> Json:
    """Return `new`, but without controllerExpandSecretRef if the CSI volume in `old` lacks it.

    The caller compares the result with `old`. So an update that adds this field is allowed.
    """
    had, wants = old["spec"].get("csi"), new["spec"].get("csi")
    if had is None or wants is None or had.get(_CONTROLLER_EXPAND_REF) is not None:
        return new
    csi = {key: value for key, value in wants.items() if key != _CONTROLLER_EXPAND_REF}
    return {**new, "spec": {**new["spec"], "csi": csi}}


def check_volume_update(old: Json, new: Json) -> Causes:
    """Yield errors if an update changes immutable fields of a PersistentVolume's spec."""
    before, after = (_shown_source(obj["spec"]) for obj in (old, _unexpanded(old, new)))
    if before != after:
        why = f"{VOLUME_IS_FIXED}\n{change_text(before, after)}"
        yield forbidden("spec.persistentvolumesource", why)
    mode = "volumeMode"
    yield from check_unchanged(mode, old["spec"].get(mode), new["spec"].get(mode))
    had, wants = (obj["spec"].get("nodeAffinity") for obj in (old, new))
    if had is not None:
        yield from check_unchanged("nodeAffinity", had, wants, "core.v1.VolumeNodeAffinity")
    had, wants = (obj["spec"].get("volumeAttributesClassName") for obj in (old, new))
    if wants is None:
        yield from _check_attributes_class(had, wants)


def check_storage_class(obj: Json) -> Causes:
    """Yield the errors of a StorageClass."""
    yield from _check_provisioner(obj)
    yield from check_parameters("parameters", obj.get("parameters") or {})
    yield from check_fields(
        "", "storage.v1.StorageClass", obj, "reclaimPolicy", "volumeBindingMode"
    )
    yield from _check_topologies("allowedTopologies", obj.get("allowedTopologies") or [])


def check_provisioning(obj: Json) -> Causes:
    """Yield the errors of the fields that decide whether and where volumes are provisioned."""
    yield from _check_provisioner(obj)
    yield from _check_topologies("allowedTopologies", obj.get("allowedTopologies") or [])


def _check_provisioner(obj: Json) -> Causes:
    provisioner = obj.get("provisioner", "")
    if not provisioner:
        yield required("provisioner")
    else:
        yield from check_qualified_name("provisioner", provisioner.lower())


def check_parameters(field: str, parameters: Json) -> Causes:
    """Yield the errors of the parameters of a StorageClass or VolumeAttributesClass."""
    # upstream: pkg/apis/storage/validation/validation.go:validateParameters
    if len(parameters) > PARAMETERS_MAX:
        text = f"Too long: may not be more than {PARAMETERS_MAX} bytes"
        yield Cause("FieldValueTooLong", text, "Provisioner Parameters exceeded max allowed")
        return
    for key in parameters:
        if not key:
            yield invalid(field, key, "field can not be empty.")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > PARAMETERS_BYTES_MAX:
        yield too_long(field, PARAMETERS_BYTES_MAX)


def _check_topologies(field: str, terms: list[Json]) -> Causes:
    """Yield the errors of allowedTopologies. Its terms must be unique."""
    # upstream: validateAllowedTopologies, ValidateTopologySelectorTerm
    seen: set[str | bytes] = set()
    for place, term in enumerate(terms):
        where = f"{field}[{place}]"
        keys: dict[str, list[str]] = {}
        for number, one in enumerate(term.get("matchLabelExpressions") or ()):
            at = f"{where}.matchLabelExpressions[{number}]"
            values, key = one.get("values") or [], one.get("key", "")
            if not values:
                yield required(f"{at}.values")
            for index in sorted(repeated_indexes(values)):
                yield duplicate(f"{at}.values[{index}]", values[index])
            yield from check_qualified_name(f"{at}.key", key)
            if key in keys:
                yield duplicate(f"{at}.key", key)
            keys[key] = sorted(set(values))
        what = canonical_key(keys)
        if what in seen:
            yield duplicate(f"{where}.matchLabelExpressions", "")
        seen.add(what)
