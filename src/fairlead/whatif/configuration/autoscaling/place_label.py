"""Labels that state the place of a new node, for zones of the cluster.

A cloud provider and the drivers of volumes label each node with its place. The labels of a driver
are the topology keys of the node's CSINode, such as topology.ebs.csi.aws.com/zone. A volume can be
used only on the nodes with its labels. The driver runs on new nodes, too, and gives a new node the
labels that the other nodes of the zone have.

upstream: pkg/volume/csi/nodeinfomanager/nodeinfomanager.go: updateTopologyLabels
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead.api.codec import decode_as
from fairlead.api.objects import CSINode, Node
from fairlead.api.well_known_label import MACHINE_FACTS, REGION, ZONE, region_and_zone
from fairlead.apiserver.kind import CSI_NODE
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import own_labels, zone_labels
from fairlead.whatif.snapshot.samples import samples

Places = Mapping[str, Mapping[str, str]]


def topology_keys(manifests: Iterable[Manifest]) -> dict[str, frozenset[str]]:
    """Return the topology keys in the CSINode of each node of a dump, by the name of the node."""
    found: dict[str, frozenset[str]] = {}
    for one in samples(manifests):
        if one.kind is CSI_NODE:
            drivers = decode_as(CSINode, one.value).spec.drivers
            found[one.ref.name] = frozenset(key for each in drivers for key in each.topology_keys)
    return found


def labels_of_zones(nodes: Iterable[Node], topology: Mapping[str, frozenset[str]]) -> Places:
    """Return the labels about the place of a new node in each zone of `nodes`.

    The keys are the zones; "" stands for the nodes without a zone. `topology` contains the topology
    keys of the nodes' drivers. A topology key counts if, in each zone, its value is the same on all
    nodes. Labels in which a driver of local volumes names the node itself do not count. If the
    nodes of a zone have several regions, the region of the last node counts.
    """
    found: dict[str, dict[str, str]] = {}
    varying = set[str]()
    for node in nodes:
        labels, name = node.metadata.labels, node.metadata.name
        region, zone = region_and_zone(labels)
        place = found.setdefault(zone, {})
        if zone:
            place |= dict.fromkeys((ZONE, *zone_labels(labels)), zone)
        if zone and region:
            place[REGION] = region
        keys = topology.get(name, frozenset()) - MACHINE_FACTS
        for key in sorted(keys.intersection(labels)):
            if key in own_labels(labels, name, keys) or place.get(key, labels[key]) != labels[key]:
                varying.add(key)
            place[key] = labels[key]
    return {
        zone: {key: value for key, value in place.items() if key not in varying}
        for zone, place in found.items()
    }


def labels_of_offerings(
    types: Iterable[InstanceType], nodes: Iterable[Node], topology: Mapping[str, frozenset[str]]
) -> Places:
    """Return the labels about the place of a new node in each zone in which `types` are offered.

    `nodes` are the nodes of the cluster; `topology` is as for `labels_of_zones`. Offerings without
    a zone are left out.
    """
    places = labels_of_zones(nodes, topology)
    zones = sorted({one.zone for each in types for one in each.offerings if one.zone})
    return {zone: labels_in(zone, places) for zone in zones}


def labels_in(zone: str, places: Places) -> Mapping[str, str]:
    """Return the labels of a new node in `zone`, which need not be a zone of `places`.

    If `zone` is not in `places`, the result contains the zone label, and each label that has the
    name of the zone as its value in every zone of `places`. The value of all these labels is
    `zone`.
    """
    if zone in places or not zone:
        return places.get(zone, {})
    known = [(other, labels) for other, labels in places.items() if other]
    keys = dict.fromkeys(key for _, labels in known for key in labels)
    same = [key for key in keys if all(labels.get(key) == other for other, labels in known)]
    return dict.fromkeys((ZONE, *same), zone)
