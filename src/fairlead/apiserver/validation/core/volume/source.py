"""Volume sources of pods and PersistentVolumes.

Pods and PersistentVolumes know mostly the same sources; `check_inline` is for pods,
`check_persistent` for PersistentVolumes, whose secrets also have a namespace.

upstream: pkg/apis/core/validation/validation.go:validateVolumeSource, ValidatePersistentVolumeSpec
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import parse_quantity
from fairlead.apiserver.schema.facts import facts_of
from fairlead.apiserver.schema.model import schemas
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
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
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
TOO_MANY: Final = "may not specify more than 1 volume type"
# In upstream's order: the first source is checked, further ones are refused.
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
# The names that upstream misspells when it refuses a further source.
_MISSPELT: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}


def check_inline(field: str, volume: Json) -> Causes:
    """A pod's volume has exactly one valid source."""
    yield from _check_sources(field, volume, "Volume", INLINE, _INLINE_RULES)


def check_persistent(field: str, spec: Json) -> Causes:
    """A PersistentVolume has exactly one valid source."""
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
    """The type of a source, and the fields that it requires."""
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
