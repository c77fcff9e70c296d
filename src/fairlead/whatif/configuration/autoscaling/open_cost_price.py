"""Prices from the CSV file of OpenCost: the price of a node per hour.

    EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly,Version
    ,,eu-1,node,metadata.labels.node.kubernetes.io/instance-type,m6i.xlarge,0.192,
    ,node-7,,node,metadata.name,,0.31,

A row with an InstanceType contains the price of that type. In a row without an InstanceType, the
column InstanceIDField names a field of nodes. The column InstanceID contains a value of that field.
Such a row contains the price of the instance type, zone and capacity type of each node whose field
has that value. Rows of other asset classes (gpu, pv) are skipped. If nodes have region labels, rows
for regions without nodes are skipped, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.objects import Node
from fairlead.api.well_known_label import INSTANCE_TYPE, REGION, ZONE
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.table import read_table

PRICE_MAX: Final = 1_000_000_000  # per hour; a larger price is a mistake
_PRICE: Final = "MarketPriceHourly"
_NODE: Final = "node"
# (label with which a provider marks nodes of spot capacity, value of the label)
_SPOT_LABELS: Final = (
    (CAPACITY_TYPE, SPOT),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-preemptible", "true"),  # the predecessor, with the same prices
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)

Prices = dict[tuple[str, str], float]  # per hour, by (capacity type, zone)


def is_price_table(text: str) -> bool:
    """Return whether `text` is a CSV file of OpenCost."""
    return _PRICE in text.partition("\n")[0]


def read_prices(path: str, text: str, nodes: Sequence[Node]) -> Mapping[str, Prices]:
    """Return the prices in `text`, the file at `path`, by instance type.

    The prices of a type are keyed by (capacity type, zone). The zone is "" for a row with an
    InstanceType. The first row for a key is used. Raises InputError.
    """
    header, rows = read_table(path, text)
    for column in ("AssetClass", "InstanceType", "InstanceID", "InstanceIDField"):
        if column not in header:
            raise InputError(path, f"has no column {column!r}")
    regions = {node.metadata.labels.get(REGION) for node in nodes} - {None}
    found: dict[str, Prices] = {}
    for line, row in rows:
        cells = {key: (value or "").strip() for key, value in row.items() if key is not None}
        region = cells.get("Region", "")
        if cells["AssetClass"] != _NODE or (region and regions and region not in regions):
            continue
        price = _price(path, line, cells[_PRICE])
        if cells["InstanceType"]:
            found.setdefault(cells["InstanceType"], {}).setdefault((ON_DEMAND, ""), price)
            continue
        for node in _named(cells["InstanceIDField"], cells["InstanceID"], nodes):
            labels = node.metadata.labels
            place = capacity_type_of(labels), labels.get(ZONE, "")
            found.setdefault(labels.get(INSTANCE_TYPE, ""), {}).setdefault(place, price)
    return found


def capacity_type_of(labels: Mapping[str, str]) -> str:
    """Return `spot` if one of the `labels` marks spot capacity, else `on-demand`."""
    return SPOT if spot_label(labels) else ON_DEMAND


def spot_label(labels: Mapping[str, str]) -> str:
    """Return the label that marks spot capacity, as `key=value`; "" if there is no such label."""
    found = (f"{key}={value}" for key, value in _SPOT_LABELS if labels.get(key) == value)
    return next(found, "")


def _price(path: str, line: int, text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        raise InputError(path, f"line {line}: {_PRICE}: {text!r} is not a number") from None
    if not 0 <= price <= PRICE_MAX:  # also refuses NaN
        raise InputError(path, f"line {line}: {_PRICE}: {text} is not from 0 to {PRICE_MAX:,}")
    return price


def _named(field: str, name: str, nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield the nodes whose `field`, such as metadata.labels.KEY, has the value `name`."""
    for node in nodes:
        meta = node.metadata
        if field == "metadata.name":
            value: str | None = meta.name
        elif field == "spec.providerID":
            value = node.spec.provider_id
        elif field.startswith("metadata.labels."):
            value = meta.labels.get(field.removeprefix("metadata.labels."))
        else:
            value = meta.annotations.get(field.removeprefix("metadata.annotations."))
        if value is not None and value == name:
            yield node
