"""In-tree volumes, and the CSI drivers to which they are migrated.

Stored objects still name the in-tree type, but volume limits are counted per CSI driver. If an
in-tree volume is migrated to CSI, its zone is compared with the driver's zone label on the node.
upstream: csi-translation-lib/plugins/*.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.objects import (
    CSISource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeSpec,
    Volume,
)
from fairlead.api.well_known_label import BETA_REGION, BETA_ZONE, REGION, ZONE

ZONE_DELIMITER: Final = "__"

_AWS_ID: Final = re.compile(r"aws://[^/]*/+(vol-[^/]*)/*")
_GCE_ZONAL: Final = "projects/UNSPECIFIED/zones/{}/disks/{}"
_GCE_REGIONAL: Final = "projects/UNSPECIFIED/regions/{}/disks/{}"
_ZONE_PARTS: Final = 3  # continent-region-zone


class TranslationError(ValueError):
    """Raised if an in-tree volume cannot be translated to a CSI volume."""


class InTreeKind(Struct, frozen=True):
    """An in-tree plugin, its CSI driver, and the zone label that the driver uses."""

    name: str
    driver: str
    zone_key: str = ""


AWS_EBS: Final = InTreeKind(
    "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
)
GCE_PD: Final = InTreeKind("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
AZURE_DISK: Final = InTreeKind("kubernetes.io/azure-disk", "disk.csi.azure.com")
CINDER: Final = InTreeKind(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
PORTWORX: Final = InTreeKind("kubernetes.io/portworx-volume", "pxd.portworx.com")
IN_TREE_KINDS: Final = {kind.name: kind for kind in (AWS_EBS, GCE_PD, AZURE_DISK, CINDER, PORTWORX)}


def kind_of(source: Volume | PersistentVolumeSpec) -> InTreeKind | None:
    """Return the in-tree plugin of the volume `source`; None if it is not an in-tree volume."""
    if source.aws_elastic_block_store is not None:
        return AWS_EBS
    if source.gce_persistent_disk is not None:
        return GCE_PD
    if source.azure_disk is not None:
        return AZURE_DISK
    if source.cinder is not None:
        return CINDER
    return None if source.portworx_volume is None else PORTWORX


def csi_of_inline(volume: Volume) -> CSISource | None:
    """Return the CSI driver and handle of an inline volume; None if it is not an in-tree volume.

    Raises TranslationError if the volume's ID is malformed.
    """
    return _csi_of(volume, {})


def csi_of_volume(volume: PersistentVolume) -> CSISource | None:
    """Return the CSI driver and handle of `volume`; an in-tree volume is translated.

    Returns None if `volume` is neither a CSI volume nor an in-tree volume. Raises TranslationError
    if the volume's ID is malformed.
    """
    return volume.spec.csi or _csi_of(volume.spec, volume.metadata.labels)


def _csi_of(source: Volume | PersistentVolumeSpec, labels: dict[str, str]) -> CSISource | None:
    kind = kind_of(source)
    if kind is None:
        return None
    handle = ""
    if source.aws_elastic_block_store is not None:
        handle = _aws_handle(source.aws_elastic_block_store.volume_id)
    elif source.gce_persistent_disk is not None:
        zones = labels.get(BETA_ZONE) or labels.get(ZONE) or ""
        handle = _gce_handle(source.gce_persistent_disk.pd_name, zones)
    elif source.azure_disk is not None:
        handle = source.azure_disk.disk_uri
    elif source.cinder is not None:
        handle = source.cinder.volume_id
    elif source.portworx_volume is not None:
        handle = source.portworx_volume.volume_id
    return CSISource(driver=kind.driver, volume_handle=handle)


def _aws_handle(volume_id: str) -> str:
    """Return the handle `vol-1` for the IDs `vol-1`, `aws:///vol-1` and `aws://zone/vol-1`.

    Raises TranslationError for an ID of another form.
    """
    if not volume_id.startswith("aws://"):
        return volume_id
    match = _AWS_ID.fullmatch(volume_id)
    if match is None:
        reason = f"Invalid format for AWS volume ({volume_id})"
        raise TranslationError(f"failed to translate Kubernetes ID to EBS Volume ID {reason}")
    return match[1]


def _gce_handle(disk: str, zones_label: str) -> str:
    zones = zones_label.split(ZONE_DELIMITER)
    if len(zones) == 1:
        return _GCE_ZONAL.format(zones[0] or "UNSPECIFIED", disk)
    regions = {"-".join(zone.split("-")[:2]) for zone in zones}
    if len(regions) != 1 or any(len(zone.split("-")) != _ZONE_PARTS for zone in zones):
        raise TranslationError("failed to get region from zones")
    return _GCE_REGIONAL.format(regions.pop(), disk)


# --- node affinity ---------------------------------------------------------------------------


def driver_selector(volume: PersistentVolume) -> NodeSelector | None:
    """Return the volume's node affinity with the labels of its CSI driver; None means any node.

    upstream: plugins/in_tree_volume.go: translateTopologyFromInTreeToCSI
    """
    affinity = volume.spec.node_affinity
    selector = affinity.required if affinity is not None else None
    kind = kind_of(volume.spec)
    if kind is None or not kind.zone_key:
        return selector
    terms = () if selector is None else selector.node_selector_terms
    labels = volume.metadata.labels
    zone_key, region_key = _topology_keys(terms, labels)
    if _has_values(terms, zone_key):
        terms = _renamed(terms, zone_key, kind.zone_key)
    elif zone_key in labels:
        zones = sorted({zone.strip() for zone in labels[zone_key].split(ZONE_DELIMITER)} - {""})
        terms = _restricted(terms, kind.zone_key, zones) if zones else terms
    if region_key == BETA_REGION and _has_values(terms, region_key):
        terms = _renamed(terms, region_key, REGION)
    if selector is None and not terms:
        return None
    return NodeSelector(node_selector_terms=terms)


def _topology_keys(terms: Iterable[NodeSelectorTerm], labels: dict[str, str]) -> tuple[str, str]:
    """Return the label keys (zone, region) of a volume: the current or the deprecated keys.

    The keys are the deprecated ones if the volume's node selector `terms` use only the deprecated
    zone key. If `terms` use no zone key, the volume's `labels` decide in the same way.
    """
    keys = {one.key for term in terms for one in term.match_expressions}
    is_beta = ZONE not in keys and (
        BETA_ZONE in keys or (ZONE not in labels and BETA_ZONE in labels)
    )
    return (BETA_ZONE, BETA_REGION) if is_beta else (ZONE, REGION)


def _has_values(terms: Iterable[NodeSelectorTerm], key: str) -> bool:
    return any(one.values for term in terms for one in term.match_expressions if one.key == key)


def _renamed(
    terms: tuple[NodeSelectorTerm, ...], old: str, new: str
) -> tuple[NodeSelectorTerm, ...]:
    replace = msgspec.structs.replace
    return tuple(
        replace(
            term,
            match_expressions=tuple(
                replace(one, key=new) if one.key == old else one for one in term.match_expressions
            ),
        )
        for term in terms
    )


def _restricted(
    terms: tuple[NodeSelectorTerm, ...], key: str, values: list[str]
) -> tuple[NodeSelectorTerm, ...]:
    """Add the requirement `key In values` to every term.

    If there are no terms, return one new term with this requirement.
    """
    added = NodeSelectorRequirement(key=key, operator="In", values=tuple(values))
    replace = msgspec.structs.replace
    return tuple(
        replace(term, match_expressions=(*term.match_expressions, added))
        for term in terms or (NodeSelectorTerm(),)
    )
