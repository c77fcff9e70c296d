"""Claims, volumes and their classes.

upstream: pkg/apis/core/validation/validation.go:ValidatePersistentVolume{,Claim}Spec,
pkg/apis/storage/validation/validation.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.quantity import canonical, parse_quantity
from fairlead.apiserver.validation.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import dns_subdomain_problems
from fairlead.apiserver.validation.served.form import check_one_of, check_unchanged
from fairlead.apiserver.validation.served.volume import check_sources

Json = dict[str, Any]

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
CLAIM_IS_FIXED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
VOLUME_IS_FIXED: Final = "spec.persistentvolumesource is immutable after creation"
_NOT_SOURCE: Final = (
    "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName",
    "mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName",
)  # fmt: skip


def check_claim(obj: Json) -> Causes:
    """A PersistentVolumeClaim."""
    yield from check_claim_spec("spec", obj["spec"])


def check_claim_spec(field: str, spec: Json) -> Causes:
    """The spec of a claim; `field` is where it stands."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{field}.accessModes", "at least 1 access mode is required")
    yield from _check_modes(field, modes)
    text = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if text is None:
        yield required(f"{field}.resources[storage]")
    elif parse_quantity(text).nano <= 0:
        shown = canonical(parse_quantity(text))
        yield invalid(f"{field}.resources[storage]", shown, "must be greater than zero")
    for problem in (
        dns_subdomain_problems(spec["storageClassName"]) if spec.get("storageClassName") else ()
    ):
        yield invalid(f"{field}.storageClassName", spec["storageClassName"], problem)
    mode = spec.get("volumeMode")
    if mode is not None:
        yield from check_one_of(f"{field}.volumeMode", mode, VOLUME_MODES)


def _check_modes(field: str, modes: list[str]) -> Causes:
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported(f"{field}.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        yield forbidden(f"{field}.accessModes", why)


def check_claim_update(old: Json, new: Json) -> Causes:
    """A claim may only grow, and only once it is bound; its volume may be named once."""
    before, after = dict(old["spec"]), dict(new["spec"])
    if not before.get("volumeName"):
        before["volumeName"] = after.get("volumeName")
    if (old.get("status") or {}).get("phase") == "Bound":
        for spec in (before, after):
            spec.pop("volumeAttributesClassName", None)
            spec["resources"] = {**spec["resources"], "requests": None}
        yield from _check_growth(old, new)
    if not before.get("storageClassName") and "storageClassName" not in before:
        before["storageClassName"] = after.get("storageClassName")
    if _present(before) != _present(after):
        yield forbidden("spec", CLAIM_IS_FIXED)


def _present(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if value is not None}


def _check_growth(old: Json, new: Json) -> Causes:
    had, wants = (
        parse_quantity(
            ((obj["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0")
        )
        for obj in (old, new)
    )
    if wants < had:
        why = "field can not be less than status.capacity"
        yield forbidden("spec.resources.requests.storage", why)


def check_volume(obj: Json) -> Causes:
    """A PersistentVolume."""
    spec = obj["spec"]
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _check_modes("spec", spec.get("accessModes") or [])
    capacity = spec.get("capacity") or {}
    if not capacity:
        yield required("spec.capacity")
    if list(capacity) != ["storage"]:
        yield not_supported("spec.capacity", capacity, ("storage",))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    yield from check_one_of("spec.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES)
    affinity = spec.get("nodeAffinity")
    if affinity is not None and affinity.get("required") is None:
        why = "must specify required node constraints"
        yield required("spec.nodeAffinity.required", why)
    yield from check_sources("spec", _source(spec))


def _source(spec: Json) -> Json:
    """Where the data are; what only PersistentVolumes know counts as one source, too."""
    source = {key: value for key, value in spec.items() if key not in _NOT_SOURCE}
    if source.pop("local", None) is not None or source.pop("photonPersistentDisk", None):
        source.setdefault("emptyDir", {})
    return source


def check_volume_update(old: Json, new: Json) -> Causes:
    """Data do not move."""
    if _source(old["spec"]) != _source(new["spec"]):
        yield forbidden("spec.persistentvolumesource", VOLUME_IS_FIXED)
    yield from check_unchanged(
        "spec.volumeMode", old["spec"].get("volumeMode"), new["spec"].get("volumeMode")
    )


def check_storage_class(obj: Json) -> Causes:
    """A StorageClass."""
    if not obj.get("provisioner"):
        yield required("provisioner")
    policy, binding = obj.get("reclaimPolicy", ""), obj.get("volumeBindingMode", "")
    yield from check_one_of("reclaimPolicy", policy, ("Delete", "Retain"))
    yield from check_one_of("volumeBindingMode", binding, ("Immediate", "WaitForFirstConsumer"))


def check_storage_class_update(old: Json, new: Json) -> Causes:
    """What volumes were made of a class, they were made of."""
    for key in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from check_unchanged(key, old.get(key), new.get(key))
