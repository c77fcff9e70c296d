"""Table rows of volumes, claims, storage classes, CSI drivers and devices.

upstream: pkg/printers/internalversion/printers.go:printPersistentVolume, printStorageClass, ...
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json, at, items, mapping, name_of, text
from fairlead.apiserver.printers.age import age_of
from fairlead.apiserver.printers.column import Cell, printer
from fairlead.apiserver.printers.field import UNSET

_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_ATTRIBUTES_CLASS: Final = ("volumeattributesclass.kubernetes.io/is-default-class",)
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _class_of(obj: Json) -> str:
    return text(obj, "metadata", "annotations", _CLASS) or text(obj, "spec", "storageClassName")


def _phase(obj: Json) -> str:
    if at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return text(obj, "status", "phase")


def _marked_default(obj: Json, annotations: tuple[str, ...]) -> str:
    marks = mapping(obj, "metadata", "annotations")
    is_default = any(marks.get(annotation) == "true" for annotation in annotations)
    return f"{name_of(obj)} (default)" if is_default else name_of(obj)


def _volume(obj: Json, now: int) -> list[Cell]:
    spec, claim = mapping(obj, "spec"), at(obj, "spec", "claimRef")
    return [
        name_of(obj),
        text(spec, "capacity", "storage") or "0",
        _modes(items(spec, "accessModes")),
        text(spec, "persistentVolumeReclaimPolicy"),
        _phase(obj),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        _class_of(obj),
        text(spec, "volumeAttributesClassName") or UNSET,
        text(obj, "status", "reason"),
        age_of(obj, now),
        text(spec, "volumeMode") or UNSET,
    ]


def _claim(obj: Json, now: int) -> list[Cell]:
    spec, volume = mapping(obj, "spec"), text(obj, "spec", "volumeName")
    return [
        name_of(obj),
        _phase(obj),
        volume,
        (text(obj, "status", "capacity", "storage") or "0") if volume else "",
        _modes(items(obj, "status", "accessModes")) if volume else "",
        _class_of(obj),
        text(spec, "volumeAttributesClassName") or UNSET,
        age_of(obj, now),
        text(spec, "volumeMode") or UNSET,
    ]


def _storage_class(obj: Json, now: int) -> list[Cell]:
    return [
        _marked_default(obj, _DEFAULT_CLASS),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy") or "Delete",
        text(obj, "volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age_of(obj, now),
    ]


def _attributes_class(obj: Json, now: int) -> list[Cell]:
    name = _marked_default(obj, _DEFAULT_ATTRIBUTES_CLASS)
    return [name, text(obj, "driverName"), age_of(obj, now)]


def _attachment(obj: Json, now: int) -> list[Cell]:
    return [
        name_of(obj),
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        bool(at(obj, "status", "attached")),
        age_of(obj, now),
    ]


def _node(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), len(items(obj, "spec", "drivers")), age_of(obj, now)]


def _driver(obj: Json, now: int) -> list[Cell]:
    spec = mapping(obj, "spec")
    audiences = [text(request, "audience") for request in items(spec, "tokenRequests")]
    return [
        name_of(obj),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        ",".join(audiences) or UNSET,
        bool(spec.get("requiresRepublish")),
        ",".join(map(str, items(spec, "volumeLifecycleModes"))) or "<none>",
        age_of(obj, now),
    ]


def _resource_claim(obj: Json, now: int) -> list[Cell]:
    return [name_of(obj), ",".join(_claim_states(obj)), age_of(obj, now)]


def _claim_states(obj: Json) -> list[str]:
    deleted = ["deleted"] if at(obj, "metadata", "deletionTimestamp") else []
    if at(obj, "status", "allocation") is None:
        return deleted or ["pending"]
    reserved = ["reserved"] if items(obj, "status", "reservedFor") else []
    return [*deleted, "allocated", *reserved]


def _resource_slice(obj: Json, now: int) -> list[Cell]:
    spec = mapping(obj, "spec")
    names = [text(spec, "nodeName"), text(spec, "driver"), text(spec, "pool", "name")]
    return [name_of(obj), *names, age_of(obj, now)]


PERSISTENT_VOLUME: Final = printer(
    "Name/name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
    "VolumeAttributesClass, Reason, Age, VolumeMode*",
    _volume,
)
PERSISTENT_VOLUME_CLAIM: Final = printer(
    "Name/name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, "
    "Age, VolumeMode*",
    _claim,
)
STORAGE_CLASS: Final = printer(
    "Name/name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
    _storage_class,
)
VOLUME_ATTRIBUTES_CLASS: Final = printer("Name/name, DriverName, Age", _attributes_class)
VOLUME_ATTACHMENT: Final = printer(
    "Name/name, Attacher/name, PV, Node, Attached:boolean, Age", _attachment
)
CSI_NODE: Final = printer("Name/name, Drivers:integer, Age", _node)
CSI_DRIVER: Final = printer(
    "Name/name, AttachRequired:boolean, PodInfoOnMount:boolean, StorageCapacity:boolean, "
    "TokenRequests, RequiresRepublish:boolean, Modes, Age",
    _driver,
)
RESOURCE_CLAIM: Final = printer("Name/name, State, Age", _resource_claim)
RESOURCE_SLICE: Final = printer("Name/name, Node, Driver, Pool, Age", _resource_slice)
