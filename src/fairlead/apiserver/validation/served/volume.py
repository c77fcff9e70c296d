"""Volumes of pods, and where containers mount them.

upstream: pkg/apis/core/validation/validation.go:ValidateVolumes, ValidateVolumeMounts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import dns_label_problems
from fairlead.apiserver.validation.served.form import not_found

Json = dict[str, Any]

HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip
# In upstream's order: the first source counts, those after it are too many.
_ORDER: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
    "iscsi", "glusterfs", "persistentVolumeClaim", "rbd", "flexVolume", "cinder", "cephfs",
    "flocker", "downwardAPI", "fc", "azureFile", "configMap", "vsphereVolume", "quobyte",
    "azureDisk", "storageos", "portworxVolume", "scaleIO", "projected", "csi", "ephemeral", "image",
)  # fmt: skip
TOO_MANY: Final = "may not specify more than 1 volume type"
# What a source cannot do without.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "secret": ("secretName",),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "hostPath": ("path",),
    "nfs": ("server", "path"),
    "csi": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "gitRepo": ("repository",),
}


def check_volumes(field: str, volumes: list[Json]) -> Causes:
    """The volumes of a pod."""
    names: dict[str, None] = {}
    for place, volume in enumerate(volumes):
        where = f"{field}[{place}]"
        name = volume.get("name", "")
        yield from check_sources(where, volume)
        if not name:
            yield required(f"{where}.name")
        elif dns_label_problems(name):
            for problem in dns_label_problems(name):
                yield invalid(f"{where}.name", name, problem)
        elif name in names:
            yield duplicate(f"{where}.name", name)
        names[name] = None


def check_sources(field: str, volume: Json) -> Causes:
    """Where the data of a volume are: in one place."""
    stated = [key for key in _ORDER if volume.get(key) is not None]
    for place, key in enumerate(stated):
        if place:
            yield forbidden(f"{field}.{key}", TOO_MANY)
            continue
        source = volume[key]
        for needed in _NEEDED.get(key, ()):
            if not source.get(needed):
                yield required(f"{field}.{key}.{needed}")
        if key == "hostPath":
            yield from check_host_path(f"{field}.hostPath", source)
    if not stated:
        yield required(field, "must specify a volume type")


def check_host_path(field: str, source: Json) -> Causes:
    """A path that stays where it says, of a kind that there is."""
    if ".." in source.get("path", "").split("/"):
        yield invalid(f"{field}.path", source["path"], "must not contain '..'")
    sort = source.get("type") or ""
    if sort not in HOST_PATH_TYPES:
        yield not_supported(f"{field}.type", sort, HOST_PATH_TYPES)


def check_mounts(field: str, mounts: list[Json], volumes: Mapping[str, Json]) -> Causes:
    """Where a container mounts volumes that its pod has."""
    paths: dict[str, None] = {}
    for place, mount in enumerate(mounts):
        where = f"{field}[{place}]"
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{where}.name")
        elif name not in volumes:
            yield not_found(f"{where}.name", name)
        if not path:
            yield required(f"{where}.mountPath")
        if path in paths:
            yield invalid(f"{where}.mountPath", path, "must be unique")
        paths[path] = None
        for key in ("subPath", "subPathExpr"):
            yield from _check_below(f"{field}.{key}", mount.get(key, ""))
        if mount.get("subPath") and mount.get("subPathExpr"):
            why = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{field}.subPathExpr", mount["subPathExpr"], why)


def _check_below(field: str, path: str) -> Causes:
    """A path that does not lead out of its volume."""
    if path.startswith("/"):
        yield invalid(field, path, "must be a relative path")
    if ".." in path.split("/"):
        yield invalid(field, path, "must not contain '..'")
