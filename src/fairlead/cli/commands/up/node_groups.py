"""The node groups of `fairlead up --autoscale`: from a file, from a snapshot, or one per zone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.api.well_known_label import ZONE
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.core.instant import Instant
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    CLUSTER_AUTOSCALER,
    AutoscaleOptions,
    Autoscaling,
    read_autoscaling,
)
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.node_pool import node_template
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.worlds.local.bootstrap.nodes import node_manifests

LARGEST: Final = 100
_NO_SNAPSHOT: Final = (
    "--autoscale auto: without --snapshot, the cluster has no autoscaler, so none is simulated. "
    "--autoscale cluster-autoscaler or karpenter simulates one."
)


def read_local_autoscaling(
    options: AutoscaleOptions, nodes: int, zones: int, snapshot: Snapshot | None, now: Instant
) -> Autoscaling:
    """Return the configuration of Cluster Autoscaler, and notes for the user.

    If `--autoscale cluster-autoscaler` is given, but neither a snapshot nor a file of node groups,
    each zone gets a node group of 1 to 100 nodes. Raises InputError.
    """
    if snapshot is not None:
        return read_autoscaling(options, snapshot.manifests)
    created = list(node_manifests(nodes, zones, now))
    if options.autoscale == CLUSTER_AUTOSCALER and not options.node_groups:
        return Autoscaling(ClusterAutoscalerConfig(tuple(_groups_by_zone(created))))
    found = read_autoscaling(options, manifests([Document("--nodes", created)]))
    return Autoscaling(notes=(_NO_SNAPSHOT,)) if found.config is None else found


def _groups_by_zone(nodes: Iterable[Json]) -> Iterable[NodeGroupSpec]:
    groups: dict[str, NodeGroupSpec] = {}
    for node in nodes:
        zone = str(node["metadata"]["labels"][ZONE])
        if zone not in groups:
            groups[zone] = NodeGroupSpec(
                id=zone,
                minimum=1,
                maximum=LARGEST,
                labels={ZONE: zone},
                template=node_template(node),
            )
    return groups.values()
