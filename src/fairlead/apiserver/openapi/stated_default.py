"""Defaults that upstream's types state: what an API server fills in for a field left out.

Zero values are no matter of this table: see `schema_document`.

upstream: the markers `+default` of staging/src/k8s.io/api/*/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

# A type, then each field with its default in JSON; without a group, it is core/v1's.
_TABLE: Final = """
AzureDiskVolumeSource cachingMode="ReadWrite" fsType="ext4" kind="Shared" readOnly=false
ConfigMapEnvSource name=""
ConfigMapKeySelector name=""
ConfigMapProjection name=""
ConfigMapVolumeSource name=""
ContainerPort protocol="TCP"
FileKeySelector optional=false
GRPCAction service=""
ISCSIPersistentVolumeSource iscsiInterface="default"
ISCSIVolumeSource iscsiInterface="default"
LocalObjectReference name=""
RBDPersistentVolumeSource keyring="/etc/ceph/keyring" pool="rbd" user="admin"
RBDVolumeSource keyring="/etc/ceph/keyring" pool="rbd" user="admin"
ReplicationControllerSpec minReadySeconds=0 replicas=1
ScaleIOPersistentVolumeSource fsType="xfs" storageMode="ThinProvisioned"
ScaleIOVolumeSource fsType="xfs" storageMode="ThinProvisioned"
SecretEnvSource name=""
SecretKeySelector name=""
SecretProjection name=""
ServicePort protocol="TCP"
resource.v1.DeviceToleration operator="Equal"
"""


def stated_default(definition: str, name: str) -> Any:
    """The default of a field, None for one that has none."""
    return _defaults().get(definition, {}).get(name)


@cache
def _defaults() -> Mapping[str, Mapping[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    for line in _TABLE.strip().splitlines():
        owner, *fields = line.split()
        definition = f"io.k8s.api.{owner if '.' in owner else f'core.v1.{owner}'}"
        pairs = (field.split("=", 1) for field in fields)
        made[definition] = {name: msgspec.json.decode(text) for name, text in pairs}
    return made
