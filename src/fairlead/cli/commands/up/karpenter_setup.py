"""The instance types that Karpenter can create in `fairlead up --autoscale karpenter`.

The types are those of a file, or else those of the snapshot's nodes, or else Fairlead's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.objects import Node
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.labels import CORE_WELL_KNOWN_LABELS, ON_DEMAND, SPOT
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.whatif.configuration.autoscaling.allocatable import (
    SystemReservations,
    with_allocatable,
)
from fairlead.whatif.configuration.autoscaling.autoscaler import Autoscaling
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    instance_types,
    read_instance_types,
    types_of_nodes,
)
from fairlead.whatif.configuration.autoscaling.karpenter.config import refuse_invalid
from fairlead.whatif.configuration.autoscaling.karpenter.provider_label import labels_of_all
from fairlead.whatif.configuration.autoscaling.place_label import (
    labels_of_offerings,
    topology_keys,
)
from fairlead.whatif.configuration.autoscaling.provider_settings import (
    ProviderSettings,
    with_provider,
)
from fairlead.whatif.snapshot.node_pool import name_of_node
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.worlds.local.bootstrap.nodes import node_info

_ZONE: Final = "zone-a"
_SIZES: Final = (2, 4, 8, 16, 32)
_FAMILIES: Final = (("compute", 2), ("general", 4), ("memory", 8))


def karpenter_setup(
    file: str | None, zones: Iterable[str], snapshot: Snapshot | None, provider: ProviderSettings
) -> KarpenterConfig:
    """Return Karpenter's configuration for a cluster that starts with `snapshot`, or without one.

    `zones` are the zones of a cluster without a snapshot. `file` is the path of a file with
    instance types. If `file` is None, the instance types of the snapshot's nodes are used. If no
    node has an instance type, Fairlead's own instance types are used. Raises InputError.
    """
    objects = () if snapshot is None else snapshot.manifests
    # The API server does not validate custom resources of a snapshot that it loads.
    refuse_invalid(objects)
    nodes = sorted((one.node for one in objects if one.kind is NODE), key=name_of_node)
    zones = sorted(_zones(nodes) if snapshot is not None else zones) or [_ZONE]
    if file is not None:
        types = read_instance_types(file, nodes)
    else:
        types = types_of_nodes(nodes) or list(_own_types())
    types = with_allocatable(types, SystemReservations(nodes, types))
    offered = instance_types(types, zones, nodes)
    config = KarpenterConfig(
        pools=(),
        types=offered,
        options=KarpenterOptions(
            node_overlay=True,
            static_capacity=True,
            well_known_labels=CORE_WELL_KNOWN_LABELS | labels_of_all(types),
        ),
        serves_resources=True,
        node_info=node_info(0),
        place_labels=labels_of_offerings(offered, nodes, topology_keys(objects)),
    )
    found = with_provider(Autoscaling(karpenter=config), provider).karpenter
    assert found is not None
    return found


def _zones(nodes: Iterable[Node]) -> set[str]:
    return {zone for node in nodes if (zone := node.metadata.labels.get(ZONE))}


def _own_types() -> Iterator[StatedType]:
    """Yield Fairlead's own instance types, such as `general-4` with 4 cores.

    Each type is available as on-demand and as spot capacity.
    """
    for family, ratio in _FAMILIES:
        for cores in _SIZES:
            capacity: dict[str, str | int | float] = {
                "cpu": str(cores),
                "memory": f"{cores * ratio}Gi",
                "ephemeral-storage": "100Gi",
                "pods": "110",
            }
            yield StatedType(f"{family}-{cores}", capacity, capacity_types=(ON_DEMAND, SPOT))
