"""Prices of a cluster's nodes, from a file of instance types."""

from __future__ import annotations

from typing import Final

from fairlead.api.well_known_label import BETA_INSTANCE_TYPE, INSTANCE_TYPE, ZONE
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from fairlead.engine.state.node_info import NodeInfo
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.planner.cluster_model import ClusterModel

TYPE_LABELS: Final = (INSTANCE_TYPE, BETA_INSTANCE_TYPE)
# Labels with which providers mark nodes of spot capacity, and the labels' values.
_SPOT_LABELS: Final = (
    (CAPACITY_TYPE, SPOT),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)


def node_prices(model: ClusterModel, stated: list[StatedType]) -> dict[str, float]:
    """Return the hourly price of each node whose type has a price in `stated`, by name."""
    known = {one.name: one for one in stated if one.has_price}
    found = {}
    for info in model.table.nodes():
        one = known.get(type_of_node(info))
        if one is not None:
            found[info.name] = one.price(capacity_type_of(info), info.labels.get(ZONE, ""))
    return found


def type_of_node(info: NodeInfo) -> str:
    """Return the instance type of a node by its label, "" if it has none."""
    return next((info.labels[one] for one in TYPE_LABELS if one in info.labels), "")


def capacity_type_of(info: NodeInfo) -> str:
    """Return `spot` if a label says so, else `on-demand`."""
    is_spot = any(info.labels.get(label) == value for label, value in _SPOT_LABELS)
    return SPOT if is_spot else ON_DEMAND
