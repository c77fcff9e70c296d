"""Where the data of a volume are: what each kind of source asks for.

Pods and PersistentVolumes know mostly the same sources; `check_inline` is for pods,
`check_persistent` for PersistentVolumes, whose secrets also have a namespace.

upstream: pkg/apis/core/validation/validation.go:validateVolumeSource, ValidatePersistentVolumeSpec
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api.quantity import parse_quantity
from fairlead.apiserver.validation.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import dns_label_problems, dns_subdomain_problems
from fairlead.apiserver.validation.served.form import check_dns_label, check_subdomain, too_long
from fairlead.apiserver.validation.served.local_path import check_backsteps, check_local_path
from fairlead.apiserver.validation.served.volume_file import (
    check_downward,
    check_keyed_files,
    check_projected,
)

Json = dict[str, Any]
Check = Callable[[str, Json], Causes]

DRIVER_LENGTH_MAX: Final = 63
ISCSI_NAME_MAX: Final = 64
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
_RESERVED: Final = (".kubernetes.io", ".k8s.io")
_INITIATORS: Final[Mapping[str, re.Pattern[str]]] = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
_CACHING: Final = ("None", "ReadOnly", "ReadWrite")
_DISKS: Final = ("Dedicated", "Managed", "Shared")
_MANAGED: Final = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
    "{disk-id}"
)
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_HOST_AND_PORT: Final = "must be a host:port pair or multiple pairs separated by commas"


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


def _disk(name: str, shown: str = "") -> Check:
    """A disk that is named by `name`; `shown` is what PersistentVolumes call the source."""

    def check(field: str, source: Json) -> Causes:
        where = f"{field.rpartition('.')[0]}.{shown}" if shown else field
        if not source.get(name):
            yield required(f"{where}.{name}")
        part = source.get("partition", 0)
        if not 0 <= part <= 255:
            yield invalid(f"{where}.partition", part, "must be between 1 and 255, inclusive")

    return check


def _check_secret(field: str, source: Json) -> Causes:
    if not source.get("secretName"):
        yield required(f"{field}.secretName")
    yield from check_keyed_files(field, source)


def _check_config_map(field: str, source: Json) -> Causes:
    if not source.get("name"):
        yield required(f"{field}.name")
    yield from check_keyed_files(field, source)


def _check_nfs(field: str, source: Json) -> Causes:
    for key in ("server", "path"):
        if not source.get(key):
            yield required(f"{field}.{key}")
    path = source.get("path", "")
    if not path.startswith("/"):
        yield invalid(f"{field}.path", path, "must be an absolute path")


def _check_iscsi(field: str, source: Json) -> Causes:
    if not source.get("targetPortal"):
        yield required(f"{field}.targetPortal")
    name = source.get("iqn", "")
    if not name:
        yield required(f"{field}.iqn")
    else:
        yield from _check_initiator(f"{field}.iqn", name)
    unit = source.get("lun", 0)
    if not 0 <= unit <= 255:
        yield invalid(f"{field}.lun", unit, "must be between 0 and 255, inclusive")
    if any(source.get(f"chapAuth{key}") for key in ("Discovery", "Session")) and (
        source.get("secretRef") is None
    ):
        yield required(f"{field}.secretRef")
    if source.get("initiatorName") is not None:
        yield from _check_initiator(f"{field}.initiatorname", source["initiatorName"])


def _check_initiator(field: str, name: str) -> Causes:
    form = _INITIATORS.get(name[:3])
    if form is None:
        yield invalid(field, name, "must be valid format starting with iqn, eui, or naa")
    elif not form.search(name):
        yield invalid(field, name, "must be valid format")


def _check_flocker(field: str, source: Json) -> Causes:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield required(field, "one of datasetName and datasetUUID is required")
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        yield invalid(field, "resource", why)
    if "/" in name:
        yield invalid(f"{field}.datasetName", name, "must not contain '/'")


def _cinder(*, is_persistent: bool) -> Check:
    def check(field: str, source: Json) -> Causes:
        if not source.get("volumeID"):
            yield required(f"{field}.volumeID")
        yield from _check_secret_reference(field, source, is_persistent=is_persistent)

    return check


def _check_secret_reference(field: str, source: Json, *, is_persistent: bool) -> Causes:
    reference = source.get("secretRef")
    for key in ("name", "namespace") if is_persistent else ("name",):
        if reference is not None and not reference.get(key):
            yield required(f"{field}.secretRef.{key}")


def _check_quobyte(field: str, source: Json) -> Causes:
    registry = source.get("registry", "")
    if not registry:
        yield required(f"{field}.registry", _HOST_AND_PORT)
    elif len(source.get("tenant", "")) > 64:
        why = "must be a UUID and may not exceed a length of 64 characters"
        yield required(f"{field}.tenant", why)
    else:
        for pair in registry.split(","):
            if ":" not in pair:
                yield invalid(f"{field}.registry", registry, _HOST_AND_PORT)
    if not source.get("volume"):
        yield required(f"{field}.volume")


def _check_fibre(field: str, source: Json) -> Causes:
    names, ids = source.get("targetWWNs") or [], source.get("wwids") or []
    where = f"{field}.targetWWNs"
    if not names and not ids:
        yield required(where, "must specify either targetWWNs or wwids, but not both")
    if names and ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid(where, names, why)
    unit = source.get("lun")
    if names and unit is None:
        yield required(f"{field}.lun", "lun is required if targetWWNs is specified")
    elif names and unit is not None and not 0 <= unit <= 255:
        yield invalid(f"{field}.lun", unit, "must be between 0 and 255, inclusive")


def _check_flex(field: str, source: Json) -> Causes:
    if not source.get("driver"):
        yield required(f"{field}.driver")
    for key in source.get("options") or {}:
        domain = key.partition("/")[0]
        if f".{domain.lower()}".endswith(_RESERVED):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(f"{field}.options[{key}]", key, why)


def _check_azure_disk(field: str, source: Json) -> Causes:
    for key in ("diskName", "diskURI"):
        if not source.get(key):
            yield required(f"{field}.{key}")
    for key, known in (("cachingMode", _CACHING), ("kind", _DISKS)):
        if source.get(key) is not None and source[key] not in known:
            yield not_supported(f"{field}.{key}", source[key], known)
    sort, place = source.get("kind"), source.get("diskURI", "")
    if sort == "Managed" and not place.startswith("/subscriptions/"):
        yield not_supported(f"{field}.diskURI", place, (_MANAGED,))
    if sort not in (None, "Managed") and not place.startswith("https://"):
        yield not_supported(f"{field}.diskURI", place, (_BLOB,))


def _storage_os(*, is_persistent: bool) -> Check:
    def check(field: str, source: Json) -> Causes:
        if not source.get("volumeName"):
            yield required(f"{field}.volumeName")
        for key in ("volumeName", "volumeNamespace"):
            if source.get(key):
                yield from check_dns_label(f"{field}.{key}", source[key])
        yield from _check_secret_reference(field, source, is_persistent=is_persistent)

    return check


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


def _check_persistent_gluster(field: str, source: Json) -> Causes:
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        yield invalid(f"{field}.endpointsNamespace", "", why)
    for problem in dns_label_problems(namespace) if namespace else ():
        yield invalid(f"{field}.endpointsNamespace", namespace, problem)


def _check_persistent_azure_file(field: str, source: Json) -> Causes:
    if source.get("secretNamespace") == "":
        yield required(f"{field}.secretNamespace")


_SHARED: Final[Mapping[str, Check]] = {
    "hostPath": _check_host_path,
    "awsElasticBlockStore": _disk("volumeID"),
    "nfs": _check_nfs,
    "iscsi": _check_iscsi,
    "flocker": _check_flocker,
    "quobyte": _check_quobyte,
    "fc": _check_fibre,
    "flexVolume": _check_flex,
    "azureDisk": _check_azure_disk,
}
_INLINE_RULES: Final[Mapping[str, Check]] = {
    **_SHARED,
    "emptyDir": _check_empty_dir,
    "gitRepo": _check_git,
    "gcePersistentDisk": _disk("pdName"),
    "secret": _check_secret,
    "cinder": _cinder(is_persistent=False),
    "downwardAPI": check_downward,
    "configMap": _check_config_map,
    "storageos": _storage_os(is_persistent=False),
    "projected": check_projected,
    "csi": _check_csi,
    "image": _check_image,
}
_PERSISTENT_RULES: Final[Mapping[str, Check]] = {
    **_SHARED,
    "gcePersistentDisk": _disk("pdName", shown="persistentDisk"),
    "glusterfs": _check_persistent_gluster,
    "cinder": _cinder(is_persistent=True),
    "azureFile": _check_persistent_azure_file,
    "storageos": _storage_os(is_persistent=True),
    "local": _check_local,
    "csi": _check_persistent_csi,
}
