"""StorageObjects: the claims, volumes, storage classes and CSINodes that Karpenter reads.

upstream: pkg/utils/volume/volume.go, pkg/scheduling/volumeusage.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
)

# upstream: staging/src/k8s.io/csi-translation-lib/plugins has these names
_CSI_NAMES: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}


class StorageObjects(Struct):
    """The storage objects of a cluster by name; PersistentVolumeClaims by `namespace/name`."""

    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: dict[str, CSINode] = field(default_factory=dict)

    def driver(self, claim: PersistentVolumeClaim) -> str:
        """Return the name of the CSI driver that serves `claim`; "" if the driver is not known."""
        # upstream: volumeusage.go:ResolveDriver
        volume = self.volumes.get(claim.spec.volume_name)
        if volume is not None:
            return _volume_driver(volume)
        storage_class = self.classes.get(claim.spec.storage_class_name or "")
        if storage_class is None:
            return ""
        return _CSI_NAMES.get(storage_class.provisioner, storage_class.provisioner)

    def mounts(self, pods: Iterable[Pod]) -> dict[str, set[str]]:
        """Return the keys of the claims that `pods` mount, by driver."""
        found: dict[str, set[str]] = {}
        for pod in pods:
            for key in claim_keys(pod):
                claim = self.claims.get(key)
                driver = self.driver(claim) if claim is not None else ""
                if driver:
                    found.setdefault(driver, set()).add(key)
        return found

    def limits(self, node_name: str) -> dict[str, int]:
        """Return {driver: volume limit of the node}; drivers without a limit are left out."""
        csi_node = self.csi_nodes.get(node_name)
        if csi_node is None:
            return {}
        counts = {one.name: one.allocatable.count for one in csi_node.spec.drivers}
        return {name: count for name, count in counts.items() if count is not None}


def claim_keys(pod: Pod) -> Iterator[str]:
    """Yield `namespace/name` of each claim that the pod's volumes use."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name:
            yield f"{pod.metadata.namespace}/{name}"


def claim_name(pod: Pod, volume: Volume) -> str:
    """Return the name of the volume's PersistentVolumeClaim; "" if the volume has no claim.

    The claim of an ephemeral volume is named after the pod and the volume.
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def _volume_driver(volume: PersistentVolume) -> str:
    # upstream: volumeusage.go:driverFromVolume, which ignores other in-tree volumes
    if volume.spec.csi is not None:
        return volume.spec.csi.driver
    is_ebs = volume.spec.aws_elastic_block_store is not None
    return _CSI_NAMES["kubernetes.io/aws-ebs"] if is_ebs else ""
