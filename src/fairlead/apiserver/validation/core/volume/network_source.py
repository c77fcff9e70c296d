"""Volume sources outside of the node: cloud disks, network file systems, block devices.

upstream: pkg/apis/core/validation/validation.go:validate*VolumeSource
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, invalid, not_supported, required
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import check_dns_label, dns_label_problems

Check = Callable[[str, Json], Causes]

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
    """A disk identified by field `name`; PersistentVolumes call the source `shown`."""

    def check(field: str, source: Json) -> Causes:
        where = f"{field.rpartition('.')[0]}.{shown}" if shown else field
        if not source.get(name):
            yield required(f"{where}.{name}")
        part = source.get("partition", 0)
        if not 0 <= part <= 255:
            yield invalid(f"{where}.partition", part, "must be between 1 and 255, inclusive")

    return check


def check_nfs(field: str, source: Json) -> Causes:
    """An NFS volume."""
    path = source.get("path", "")
    if not path.startswith("/"):
        yield invalid(f"{field}.path", path, "must be an absolute path")


def check_iscsi(field: str, source: Json) -> Causes:
    """An iSCSI volume."""
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
    """A Flocker volume."""
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield required(field, "one of datasetName and datasetUUID is required")
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        yield invalid(field, "resource", why)
    if "/" in name:
        yield invalid(f"{field}.datasetName", name, "must not contain '/'")


def cinder(*, is_persistent: bool) -> Check:
    """An OpenStack Cinder volume."""

    def check(field: str, source: Json) -> Causes:
        yield from _check_secret_reference(field, source, is_persistent=is_persistent)

    return check


def _check_secret_reference(field: str, source: Json, *, is_persistent: bool) -> Causes:
    reference = source.get("secretRef")
    for key in ("name", "namespace") if is_persistent else ("name",):
        if reference is not None and not reference.get(key):
            yield required(f"{field}.secretRef.{key}")


def check_quobyte(field: str, source: Json) -> Causes:
    """A Quobyte volume."""
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
    """A Fibre Channel volume."""
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
    """A FlexVolume."""
    for key in source.get("options") or {}:
        domain = key.partition("/")[0]
        if f".{domain.lower()}".endswith(_RESERVED):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(f"{field}.options[{key}]", key, why)


def check_azure_disk(field: str, source: Json) -> Causes:
    """An Azure disk."""
    yield from check_fields(field, "core.v1.AzureDiskVolumeSource", source, "cachingMode", "kind")
    type_, uri = source.get("kind"), source.get("diskURI", "")
    if type_ == "Managed" and not uri.startswith("/subscriptions/"):
        yield not_supported(f"{field}.diskURI", uri, (_MANAGED,))
    if type_ not in (None, "Managed") and not uri.startswith("https://"):
        yield not_supported(f"{field}.diskURI", uri, (_BLOB,))


def storage_os(*, is_persistent: bool) -> Check:
    """A StorageOS volume."""

    def check(field: str, source: Json) -> Causes:
        for key in ("volumeName", "volumeNamespace"):
            if source.get(key):
                yield from check_dns_label(f"{field}.{key}", source[key])
        yield from _check_secret_reference(field, source, is_persistent=is_persistent)

    return check


def check_persistent_gluster(field: str, source: Json) -> Causes:
    """A Glusterfs PersistentVolume, whose endpoints may be in another namespace."""
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        yield invalid(f"{field}.endpointsNamespace", "", why)
    for problem in dns_label_problems(namespace) if namespace else ():
        yield invalid(f"{field}.endpointsNamespace", namespace, problem)


def check_persistent_azure_file(field: str, source: Json) -> Causes:
    """An Azure file PersistentVolume, whose secret may be in another namespace."""
    if source.get("secretNamespace") == "":
        yield required(f"{field}.secretNamespace")
