"""Where the data of a volume are: what each kind of source asks for.

Pods and PersistentVolumes know mostly the same sources; `check_inline` is for pods,
`check_persistent` for PersistentVolumes, whose secrets also have a namespace.

upstream: pkg/apis/core/validation/validation.go:validateVolumeSource, ValidatePersistentVolumeSpec
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import parse_quantity
from fairlead.apiserver.validation.core.volume.network_source import (
    check_azure_disk,
    check_fibre,
    check_flex,
    check_flocker,
    check_iscsi,
    check_nfs,
    check_persistent_azure_file,
    check_persistent_gluster,
    check_quobyte,
    cinder,
    disk,
    storage_os,
)
from fairlead.apiserver.validation.core.volume.projected import (
    check_downward,
    check_keyed_files,
    check_projected,
)
from fairlead.apiserver.validation.meta.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.format import (
    check_backsteps,
    check_dns_label,
    check_local_path,
    check_subdomain,
    dns_subdomain_problems,
    too_long,
)

Check = Callable[[str, Json], Causes]

DRIVER_LENGTH_MAX: Final = 63
HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
TOO_MANY: Final = "may not specify more than 1 volume type"
# In upstream's order: the first source counts, those after it are too many.
INLINE: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
    "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte",
    "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
PERSISTENT: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd",
    "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
# Under which names upstream refuses those that are too many.
_MISSPELT: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
# What a source cannot do without, and nothing else is asked of it.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "persistentVolumeClaim": ("claimName",),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cephfs": ("monitors",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
}


def check_inline(field: str, volume: Json) -> Causes:
    """The one source of a pod's volume."""
    yield from _check_sources(field, volume, INLINE, _INLINE_RULES)


def check_persistent(field: str, spec: Json) -> Causes:
    """The one source of a PersistentVolume."""
    yield from _check_sources(field, spec, PERSISTENT, _PERSISTENT_RULES)


def _check_sources(
    field: str, holder: Json, order: tuple[str, ...], rules: Mapping[str, Check]
) -> Causes:
    stated = [key for key in order if holder.get(key) is not None]
    for place, key in enumerate(stated):
        if place:
            yield forbidden(f"{field}.{_MISSPELT.get(key, key)}", TOO_MANY)
            continue
        where = f"{field}.{key}"
        for needed in _NEEDED.get(key, ()):
            if not holder[key].get(needed):
                yield required(f"{where}.{needed}")
        if key in rules:
            yield from rules[key](where, holder[key])
    if not stated:
        yield required(field, "must specify a volume type")


def _check_empty_dir(field: str, source: Json) -> Causes:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit).nano < 0:
        yield forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _check_host_path(field: str, source: Json) -> Causes:
    path = source.get("path", "")
    if not path:
        yield required(f"{field}.path")
        return
    yield from check_backsteps(f"{field}.path", path)
    sort = source.get("type") or ""
    if sort not in HOST_PATH_TYPES:
        yield not_supported(f"{field}.type", sort, HOST_PATH_TYPES)


def _check_git(field: str, source: Json) -> Causes:
    if not source.get("repository"):
        yield required(f"{field}.repository")
    yield from check_local_path(f"{field}.directory", source.get("directory", ""))


def _check_secret(field: str, source: Json) -> Causes:
    if not source.get("secretName"):
        yield required(f"{field}.secretName")
    yield from check_keyed_files(field, source)


def _check_config_map(field: str, source: Json) -> Causes:
    if not source.get("name"):
        yield required(f"{field}.name")
    yield from check_keyed_files(field, source)


def check_driver_name(field: str, name: str) -> Causes:
    """The name of a CSI driver."""
    # upstream: ValidateCSIDriverName there
    if not name:
        yield required(field)
    if len(name) > DRIVER_LENGTH_MAX:
        yield too_long(field, DRIVER_LENGTH_MAX)
    for problem in dns_subdomain_problems(name.lower()):
        yield invalid(field, name, problem)


def _check_csi(field: str, source: Json) -> Causes:
    yield from check_driver_name(f"{field}.driver", source.get("driver", ""))
    reference = source.get("nodePublishSecretRef")
    if reference is not None:
        name = reference.get("name", "")
        if not name:
            yield required(f"{field}.nodePublishSecretRef.name")
        else:
            yield from check_subdomain(f"{field}.name", name)


def _check_persistent_csi(field: str, source: Json) -> Causes:
    yield from check_driver_name(f"{field}.driver", source.get("driver", ""))
    if not source.get("volumeHandle"):
        yield required(f"{field}.volumeHandle")
    for act in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
        reference = source.get(f"{act}SecretRef")
        if reference is None:
            continue
        for key, check in (("name", check_subdomain), ("namespace", check_dns_label)):
            where = f"{field}.{act}SecretRef.{key}"
            if not reference.get(key):
                yield required(where)
            else:
                yield from check(where, reference[key])


def _check_image(field: str, source: Json) -> Causes:
    if not source.get("reference"):
        yield required(f"{field}.reference")
    policy = source.get("pullPolicy", "")
    if not policy:
        yield required(f"{field}.pullPolicy")
    elif policy not in PULL_POLICIES:
        yield not_supported(f"{field}.pullPolicy", policy, PULL_POLICIES)


def _check_local(field: str, source: Json) -> Causes:
    if not source.get("path"):
        yield required(f"{field}.path")
    else:
        yield from check_backsteps(f"{field}.path", source["path"])


_SHARED: Final[Mapping[str, Check]] = {
    "hostPath": _check_host_path,
    "awsElasticBlockStore": disk("volumeID"),
    "nfs": check_nfs,
    "iscsi": check_iscsi,
    "flocker": check_flocker,
    "quobyte": check_quobyte,
    "fc": check_fibre,
    "flexVolume": check_flex,
    "azureDisk": check_azure_disk,
}
_INLINE_RULES: Final[Mapping[str, Check]] = {
    **_SHARED,
    "emptyDir": _check_empty_dir,
    "gitRepo": _check_git,
    "gcePersistentDisk": disk("pdName"),
    "secret": _check_secret,
    "cinder": cinder(is_persistent=False),
    "downwardAPI": check_downward,
    "configMap": _check_config_map,
    "storageos": storage_os(is_persistent=False),
    "projected": check_projected,
    "csi": _check_csi,
    "image": _check_image,
}
_PERSISTENT_RULES: Final[Mapping[str, Check]] = {
    **_SHARED,
    "gcePersistentDisk": disk("pdName", shown="persistentDisk"),
    "glusterfs": check_persistent_gluster,
    "cinder": cinder(is_persistent=True),
    "azureFile": check_persistent_azure_file,
    "storageos": storage_os(is_persistent=True),
    "local": _check_local,
    "csi": _check_persistent_csi,
}
