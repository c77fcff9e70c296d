"""Prices of a cluster's nodes, from a file of instance types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import BETA_INSTANCE_TYPE, INSTANCE_TYPE, ZONE
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.state.node_info import NodeInfo
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    assumed_spot_prices,
)
from fairlead.whatif.configuration.autoscaling.open_cost_price import capacity_type_of

TYPE_LABELS: Final = (INSTANCE_TYPE, BETA_INSTANCE_TYPE)


def node_prices(nodes: Iterable[NodeInfo], stated: list[StatedType]) -> dict[str, float]:
    """Return hourly prices by node name, for the nodes whose instance type has a price.

    `stated` are the instance types of a file.
    """
    known = {one.name: one for one in stated}
    prices = ((info.name, price_of_labels(known, info.labels)) for info in nodes)
    return {name: price for name, price in prices if price is not None}


def price_notes(nodes: Sequence[NodeInfo], stated: Sequence[StatedType]) -> Iterator[str]:
    """Yield notes about nodes without a price, and about assumed prices.

    `stated` are the instance types with their prices. If there are none, yield nothing.
    """
    if not stated:
        return
    priced = {one.name for one in stated if one.has_price}
    without = sorted({type_of_node(info) for info in nodes} - {*priced, ""})
    if without:
        yield (
            f"--instance-types states no price of {listed(without)}. The cost of such nodes counts "
            "as 0."
        )
    unknown = sorted(info.name for info in nodes if not type_of_node(info))
    if unknown:
        yield (
            f"The cost of nodes without an instance type counts as 0: {listed(unknown)}. fairlead "
            "size estimates it from cores and memory."
        )
    yield from assumed_spot_prices(price_uses((info.labels for info in nodes), stated))


def price_uses(
    nodes: Iterable[Mapping[str, str]], stated: Iterable[StatedType]
) -> Iterator[tuple[StatedType, str, str]]:
    """Yield (type in `stated`, capacity type, zone) for each node.

    `nodes` contains the labels of each node. Nodes whose type is not among `stated` are left out.
    """
    known = {one.name: one for one in stated}
    for labels in nodes:
        found = known.get(type_of_labels(labels))
        if found is not None:
            yield found, capacity_type_of(labels), labels.get(ZONE, "")


def price_of_labels(known: Mapping[str, StatedType], labels: Mapping[str, str]) -> float | None:
    """Return the hourly price of a node with `labels`; None if the price is unknown.

    `known` contains instance types, keyed by name.
    """
    found = known.get(type_of_labels(labels))
    if found is None or not found.has_price:
        return None
    return found.price(capacity_type_of(labels), labels.get(ZONE, ""))


def price_key(labels: Mapping[str, str]) -> tuple[str, str, str]:
    """Return (instance type, capacity type, zone) in `labels`, which determine a node's price."""
    return type_of_labels(labels), capacity_type_of(labels), labels.get(ZONE, "")


def price_in_group(spec: NodeGroupSpec, labels: Mapping[str, str]) -> float | None:
    """Return the hourly price of a node with `labels` in the group `spec`; None if unknown."""
    return spec.type_prices.get(price_key(labels), spec.price)


def type_of_node(info: NodeInfo) -> str:
    """Return the instance type in the labels of a node; "" if no label states it."""
    return type_of_labels(info.labels)


def type_of_labels(labels: Mapping[str, str]) -> str:
    """Return the instance type in `labels`; "" if no label states it."""
    return next((labels[one] for one in TYPE_LABELS if one in labels), "")
