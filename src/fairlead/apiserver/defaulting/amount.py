"""Defaults of resource amounts: limit ranges, node capacity, rounding of quantities.

upstream: pkg/apis/core/v1/defaults.go:SetDefaults_{ResourceList,LimitRangeItem,NodeStatus}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import NANOS_PER_MILLI, Quantity, canonical, parse_quantity
from fairlead.apiserver.defaulting.fill import Rule, filled, replaced


def rounded(amounts: Json) -> Json:
    """Return the quantities `amounts` rounded away from zero to whole milli-units."""
    made = {name: _whole_millis(text) for name, text in amounts.items()}
    return amounts if made == amounts else made


def _whole_millis(text: str) -> str:
    if not text.endswith(("n", "u")):
        return text
    quantity = parse_quantity(text)
    millis = -(-abs(quantity.nano) // NANOS_PER_MILLI) * (1 if quantity.nano >= 0 else -1)
    return canonical(Quantity(nano=millis * NANOS_PER_MILLI, format=quantity.format))


def rounding(*fields: str) -> Rule:
    """Return a rule that applies `rounded` to the amounts in `fields`."""

    def rule(obj: Json) -> Json:
        for field in fields:
            if obj.get(field):
                obj = replaced(obj, field, rounded(obj[field]))
        return obj

    return rule


_ITEM: Final = ("default", "defaultRequest", "max", "maxLimitRequestRatio", "min")


def _limit_range_item(item: Json) -> Json:
    item = rounding(*_ITEM)(item)
    if item.get("type") != "Container":
        return item
    limits = filled(item.get("default", {}), item.get("max", {}))
    requests = filled(filled(item.get("defaultRequest", {}), limits), item.get("min", {}))
    made = {"default": limits, "defaultRequest": requests}
    return {**item, **{key: value for key, value in made.items() if value}}


def _node_status(status: Json) -> Json:
    return with_allocatable(rounding("capacity", "allocatable")(status))


def with_allocatable(status: Json) -> Json:
    """Return a Node's `status`, in which a missing allocatable defaults to the capacity."""
    if status.get("capacity") and not status.get("allocatable"):
        return {**status, "allocatable": status["capacity"]}
    return status


AMOUNT_RULES: Final[Mapping[str, Rule]] = {
    "v1.LimitRangeItem": _limit_range_item,
    "v1.NodeStatus": _node_status,
    "v1.ResourceRequirements": rounding("limits", "requests"),
    "v1.VolumeResourceRequirements": rounding("limits", "requests"),
    "v1.ResourceQuotaSpec": rounding("hard"),
    "v1.ResourceQuotaStatus": rounding("hard", "used"),
}
