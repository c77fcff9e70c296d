"""Converts objects to upstream's internal (unversioned) types, as errors of updates print them.

Internal types have no JSON tags, so Go prints every field under its Go name. Go also prints fields
that the object does not have: pointers, lists and maps as null, strings as "", and numbers as 0.
Most internal types have the same fields as the versioned types, in the same order. `_DECLARED`
lists the fields of the other types. Each field is written as `Name`, or as `Name=jsonName` if the
two names differ in more than their case.

upstream: pkg/apis/*/types.go, encoding/json
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.schema.declaration_order import as_declared
from fairlead.apiserver.schema.model import Field, Schema, Type, Zero

_DECLARED: Final = """
core.v1.Volume Name HostPath EmptyDir GCEPersistentDisk AWSElasticBlockStore GitRepo Secret NFS \
ISCSI Glusterfs PersistentVolumeClaim RBD Quobyte FlexVolume Cinder CephFS Flocker DownwardAPI FC \
AzureFile ConfigMap VsphereVolume AzureDisk PhotonPersistentDisk Projected PortworxVolume ScaleIO \
StorageOS CSI Ephemeral Image
core.v1.PersistentVolumeSpec Capacity GCEPersistentDisk AWSElasticBlockStore HostPath Glusterfs \
NFS RBD Quobyte ISCSI FlexVolume Cinder CephFS FC Flocker AzureFile VsphereVolume AzureDisk \
PhotonPersistentDisk PortworxVolume ScaleIO Local StorageOS CSI AccessModes ClaimRef \
PersistentVolumeReclaimPolicy StorageClassName MountOptions VolumeMode NodeAffinity \
VolumeAttributesClassName
core.v1.PodSpec Volumes InitContainers Containers EphemeralContainers RestartPolicy \
TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy NodeSelector ServiceAccountName \
AutomountServiceAccountToken NodeName SecurityContext ImagePullSecrets Hostname Subdomain \
SetHostnameAsFQDN Affinity SchedulerName Tolerations HostAliases PriorityClassName Priority \
PreemptionPolicy DNSConfig ReadinessGates RuntimeClassName Overhead EnableServiceLinks \
TopologySpreadConstraints OS SchedulingGates ResourceClaims Resources HostnameOverride \
SchedulingGroup
core.v1.PodSecurityContext SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot \
SupplementalGroups SupplementalGroupsPolicy FSGroup FSGroupChangePolicy Sysctls SeccompProfile \
AppArmorProfile SELinuxChangePolicy
core.v1.RBDVolumeSource CephMonitors=monitors RBDImage=image FSType RBDPool=pool RadosUser=user \
Keyring SecretRef ReadOnly
core.v1.RBDPersistentVolumeSource CephMonitors=monitors RBDImage=image FSType RBDPool=pool \
RadosUser=user Keyring SecretRef ReadOnly
core.v1.ISCSIVolumeSource TargetPortal IQN Lun ISCSIInterface FSType ReadOnly Portals \
DiscoveryCHAPAuth=chapAuthDiscovery SessionCHAPAuth=chapAuthSession SecretRef InitiatorName
core.v1.ISCSIPersistentVolumeSource TargetPortal IQN Lun ISCSIInterface FSType ReadOnly Portals \
DiscoveryCHAPAuth=chapAuthDiscovery SessionCHAPAuth=chapAuthSession SecretRef InitiatorName
core.v1.GlusterfsVolumeSource EndpointsName=endpoints Path ReadOnly
core.v1.GlusterfsPersistentVolumeSource EndpointsName=endpoints Path ReadOnly EndpointsNamespace
core.v1.AzureDiskVolumeSource DiskName DataDiskURI=diskURI CachingMode FSType ReadOnly Kind
core.v1.PhotonPersistentDiskVolumeSource PdID FSType
core.v1.FCVolumeSource TargetWWNs Lun FSType ReadOnly WWIDs
"""
# Fields of a pod's spec that the internal type has in its security context.
_OF_SECURITY_CONTEXT: Final = (
    ("HostNetwork", False),
    ("HostPID", False),
    ("HostIPC", False),
    ("ShareProcessNamespace", None),
    ("HostUsers", None),
)
# The first words of JSON names that Go writes in capitals.
_CAPITALS: Final = re.compile(
    "api|aws|ca|cel|cidr|cpu|csi|dns|fc|fs|gce|gid|gmsa|grpc|http|id|ip|iqn|iscsi|json|nfs|os|pd|"
    "qos|rbd|se|ssl|tcp|tls|ttl|tty|uid|uri|url"
)
_FIRST_WORD: Final = re.compile("[a-z]+")
_METAV1: Final = ".apimachinery.pkg.apis.meta.v1."
_EMPTY: Final[dict[Type, Any]] = {
    Type.STRING: "",
    Type.INT32: 0,
    Type.INT64: 0,
    Type.NUMBER: 0,
    Type.BOOLEAN: False,
    Type.QUANTITY: "0",
    Type.INT_OR_STRING: 0,
}


def as_internal(schema: Schema, value: Any) -> Any:
    """Return `value` with the fields that Go prints for its internal type.

    `value` must already have its defaults. Internal types use the types of metav1 directly, so the
    fields of metav1 types keep their JSON names.
    """
    match value:
        case None:
            return None
        case list():
            return [_member(schema, item) for item in value]
        case dict() if schema.type is Type.OBJECT and _METAV1 in schema.definition:
            return as_declared(schema, value)
        case dict() if schema.type is Type.OBJECT:
            return _struct(schema, value)
        case dict():
            return {key: _member(schema, value[key]) for key in sorted(value)}
        case _:
            return value


def _member(schema: Schema, item: Any) -> Any:
    return item if schema.items is None else as_internal(schema.items, item)


def _struct(schema: Schema, value: Json) -> Json:
    made: Json = {}
    for name, key in _names(schema):
        known = schema.fields[key]
        item = value.get(key)
        if key == "metadata":  # an embedded struct
            made |= as_declared(known.schema, item or {})
        elif item is None:
            made[name] = _zero(known)
        else:
            made[name] = as_internal(known.schema, item)
    if schema.definition.endswith("core.v1.PodSpec"):
        made["SecurityContext"] = _security_context(value, made["SecurityContext"] or {})
    return made


def _security_context(spec: Json, context: Json) -> Json:
    # upstream: pkg/apis/core/v1/conversion.go:Convert_v1_PodSpec_To_core_PodSpec
    by_name = {key.lower(): item for key, item in spec.items()}
    own = {name: by_name.get(name.lower(), empty) for name, empty in _OF_SECURITY_CONTEXT}
    return own | context


def _zero(field: Field) -> Any:
    """Return the value to print for an absent field."""
    if field.zero in (Zero.KEEP, Zero.NULL):
        return None
    if field.schema.type is Type.OBJECT and field.zero is Zero.EMIT:
        return as_internal(field.schema, {})
    return _EMPTY.get(field.schema.type)


@cache
def _declared() -> dict[str, tuple[tuple[str, str], ...]]:
    rows = {}
    for line in _DECLARED.strip().splitlines():
        definition, *fields = line.split()
        rows[definition] = tuple(
            (name, key) for name, _, key in (field.partition("=") for field in fields)
        )
    return rows


@cache
def _names(schema: Schema) -> tuple[tuple[str, str], ...]:
    """Return (Go name, JSON name) of each field of a type."""
    declared = _declared().get(schema.long_name)
    if declared is None:
        return tuple((_name(key), key) for key in schema.fields)
    by_name = {key.lower(): key for key in schema.fields}
    return tuple((name, key or by_name[name.lower()]) for name, key in declared)


def _name(key: str) -> str:
    found = _FIRST_WORD.match(key)
    word = found[0] if found else ""
    first = word.upper() if _CAPITALS.fullmatch(word) else word[:1].upper() + word[1:]
    return first + key[len(word) :]
