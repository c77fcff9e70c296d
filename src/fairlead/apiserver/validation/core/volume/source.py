"""Validates the volume sources of pods and PersistentVolumes.

`check_inline` is for pods, and `check_persistent` is for PersistentVolumes, whose references to
Secrets have a namespace.

upstream: pkg/apis/core/validation/validation.go:validateVolumeSource, ValidatePersistentVolumeSpec
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from fairlead.api.facts import facts_of
from fairlead.api.json import Json
from fairlead.api.quantity import parse_quantity
from fairlead.apiserver.schema.model import schemas
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
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    caseless_dns_subdomain_problems,
    check_backsteps,
    check_dns_label,
    check_local_path,
    check_subdomain,
    dns_label_problems,
    too_long,
)

# --- network sources -----------------------------------------------------------------------------

# upstream: pkg/apis/core/validation/validation.go:validate*VolumeSource


_RESERVED: Final = (".kubernetes.io", ".k8s.io")
_INITIATORS: Final[Mapping[str, re.Pattern[str]]] = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
_MANAGED: Final = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
    "{disk-id}"
)
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_HOST_AND_PORT: Final = "must be a host:port pair or multiple pairs separated by commas"


def disk(name: str, shown: str = "") -> Check:
    """Return a function that checks a volume source that is a disk.

    `name` is the name of the field that identifies the disk, such as `pdName`. If `shown` is not
    "", it replaces the name of the volume type in the paths of errors. For example,
    `persistentDisk` replaces `gcePersistentDisk`.
    """

    def check(field: str, source: Json) -> Causes:
        where = f"{field.rpartition('.')[0]}.{shown}" if shown else field
        if not source.get(name):
            yield required(f"{where}.{name}")
        part = source.get("partition", 0)
        if not 0 <= part <= 255:
            yield invalid(f"{where}.partition", part, "must be between 1 and 255, inclusive")

    return check


def check_nfs(field: str, source: Json) -> Causes:
    """Yield the errors of an NFS volume."""
    path = source.get("path", "")
    if not path.startswith("/"):
        yield invalid(f"{field}.path", path, "must be an absolute path")


def check_iscsi(field: str, source: Json) -> Causes:
    """Yield the errors of an iSCSI volume."""
    if source.get("iqn"):
        yield from _check_initiator(f"{field}.iqn", source["iqn"])
    yield from check_fields(field, "core.v1.ISCSIVolumeSource", source, "lun")
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


def check_flocker(field: str, source: Json) -> Causes:
    """Yield the errors of a Flocker volume."""
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield required(field, "one of datasetName and datasetUUID is required")
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        yield invalid(field, "resource", why)
    if "/" in name:
        yield invalid(f"{field}.datasetName", name, "must not contain '/'")


def cinder(*, is_persistent: bool) -> Check:
    """Return a function that checks an OpenStack Cinder volume.

    If `is_persistent` is True, the volume is a PersistentVolume; otherwise it is in a pod.
    """

    def check(field: str, source: Json) -> Causes:
        yield from _check_secret_reference(field, source, is_persistent=is_persistent)

    return check


def _check_secret_reference(field: str, source: Json, *, is_persistent: bool) -> Causes:
    reference = source.get("secretRef")
    for key in ("name", "namespace") if is_persistent else ("name",):
        if reference is not None and not reference.get(key):
            yield required(f"{field}.secretRef.{key}")


def check_quobyte(field: str, source: Json) -> Causes:
    """Yield the errors of a Quobyte volume."""
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


def check_fibre(field: str, source: Json) -> Causes:
    """Yield the errors of a Fibre Channel volume."""
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


def check_flex(field: str, source: Json) -> Causes:
    """Yield the errors of a FlexVolume."""
    for key in source.get("options") or {}:
        domain = key.partition("/")[0]
        if f".{domain.lower()}".endswith(_RESERVED):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(f"{field}.options[{key}]", key, why)


def check_azure_disk(field: str, source: Json) -> Causes:
    """Yield the errors of an Azure disk."""
    yield from check_fields(field, "core.v1.AzureDiskVolumeSource", source, "cachingMode", "kind")
    type_, uri = source.get("kind"), source.get("diskURI", "")
    if type_ == "Managed" and not uri.startswith("/subscriptions/"):
        yield not_supported(f"{field}.diskURI", uri, (_MANAGED,))
    if type_ not in (None, "Managed") and not uri.startswith("https://"):
        yield not_supported(f"{field}.diskURI", uri, (_BLOB,))


def storage_os(*, is_persistent: bool) -> Check:
    """Return a function that checks a StorageOS volume.

    If `is_persistent` is True, the volume is a PersistentVolume; otherwise it is in a pod.
    """

    def check(field: str, source: Json) -> Causes:
        for key in ("volumeName", "volumeNamespace"):
            if source.get(key):
                yield from check_dns_label(f"{field}.{key}", source[key])
        yield from _check_secret_reference(field, source, is_persistent=is_persistent)

    return check


def check_persistent_gluster(field: str, source: Json) -> Causes:
    """Yield the errors of a Glusterfs PersistentVolume.

    Unlike a pod's volume, a PersistentVolume may refer to an Endpoints object in any namespace.
    """
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        yield invalid(f"{field}.endpointsNamespace", "", why)
    for problem in dns_label_problems(namespace) if namespace else ():
        yield invalid(f"{field}.endpointsNamespace", namespace, problem)


def check_persistent_azure_file(field: str, source: Json) -> Causes:
    """Yield the errors of an Azure file PersistentVolume. Its Secret may be in any namespace."""
    if source.get("secretNamespace") == "":
        yield required(f"{field}.secretNamespace")


# --- all sources ----------------------------------------------------------------------------------

Check = Callable[[str, Json], Causes]

DRIVER_LENGTH_MAX: Final = 63
TOO_MANY: Final = "may not specify more than 1 volume type"
# The volume sources of pods, in upstream's order. If a volume has several sources, the first is
# checked, and the others are refused.
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
# The names that upstream misspells in the error for a second source.
_MISSPELT: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}


def check_inline(field: str, volume: Json) -> Causes:
    """Yield the errors of a pod's volume, which must have exactly one, valid source."""
    yield from _check_sources(field, volume, "Volume", INLINE, _INLINE_RULES)


def check_persistent(field: str, spec: Json) -> Causes:
    """Yield the errors in the source of a PersistentVolume.

    `spec` must have exactly one source, which must be valid.
    """
    yield from _check_sources(field, spec, "PersistentVolumeSpec", PERSISTENT, _PERSISTENT_RULES)


def _check_sources(
    field: str, holder: Json, holder_type: str, order: tuple[str, ...], rules: Mapping[str, Check]
) -> Causes:
    stated = [key for key in order if holder.get(key) is not None]
    for index, key in enumerate(stated):
        if index:
            yield forbidden(f"{field}.{_MISSPELT.get(key, key)}", TOO_MANY)
            continue
        where = f"{field}.{key}"
        source_type, needed = _needed(holder_type, key)
        if needed:
            yield from check_fields(where, source_type, holder[key], *needed)
        if key in rules:
            yield from rules[key](where, holder[key])
    if not stated:
        yield required(field, "must specify a volume type")


@cache
def _needed(holder_type: str, key: str) -> tuple[str, tuple[str, ...]]:
    """Return (type, names of the required fields) of the volume source in the field `key`.

    `holder_type` is the type that has this field: `Volume` or `PersistentVolumeSpec`.
    """
    holder = schemas().of_definition(f"io.k8s.api.core.v1.{holder_type}")
    source_type = holder.fields[key].schema.long_name
    facts = facts_of(source_type).fields
    return source_type, tuple(name for name in facts if facts[name].required is not None)


def _check_empty_dir(field: str, source: Json) -> Causes:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit).nano < 0:
        yield forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _check_host_path(field: str, source: Json) -> Causes:
    path = source.get("path", "")
    if path:
        yield from check_backsteps(f"{field}.path", path)
        yield from check_fields(field, "core.v1.HostPathVolumeSource", source, "type")


def _check_git(field: str, source: Json) -> Causes:
    yield from check_local_path(f"{field}.directory", source.get("directory", ""))


def check_driver_name(field: str, name: str) -> Causes:
    """Yield the errors of a CSI driver's name."""
    # upstream: validation.go:ValidateCSIDriverName
    if not name:
        yield required(field)
    if len(name) > DRIVER_LENGTH_MAX:
        yield too_long(field, DRIVER_LENGTH_MAX)
    for problem in caseless_dns_subdomain_problems(name):
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


def _check_local(field: str, source: Json) -> Causes:
    yield from check_backsteps(f"{field}.path", source.get("path", ""))


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
    "secret": check_keyed_files,
    "cinder": cinder(is_persistent=False),
    "downwardAPI": check_downward,
    "configMap": check_keyed_files,
    "storageos": storage_os(is_persistent=False),
    "projected": check_projected,
    "csi": _check_csi,
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
