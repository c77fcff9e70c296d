"""Instance types and their prices from a file: CSV, or the output of a provider's tool.

    CSV                  name,cpu,memory[,pods,gpu,arch,os,zones,capacityType,price,spotPrice,
                         allocatableCpu,allocatableMemory], and columns whose names are labels
                         (with a "/") of the nodes
    Karpenter's kwok     [{"name": …, "resources": {…}, "offerings": [{"Price": …}]}]
    AWS                  aws ec2 describe-instance-types
    Google Cloud         gcloud compute machine-types list --format json
    Azure                az vm list-skus
    OpenCost             the CSV file of prices that module open_cost_price describes

OpenCost's file contains prices only. If the paths are `TYPES,PRICES`, the prices in the file PRICES
apply to the types in the file TYPES. If the path is `PRICES` alone, the prices apply to the
instance types of the cluster's nodes, and of Karpenter's NodeClaims whose nodes do not exist yet.

A type without zones is offered in the zones of the cluster's nodes. If the file states no
price for a type, the price is estimated from the cores and the memory of the type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import Node, QuantityText, ResourceList
from fairlead.api.resource_name import is_native_resource
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import (
    ARCH,
    HOSTNAME,
    INSTANCE_TYPE,
    OS,
    REGION,
    ZONE,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType, Offering
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    CAPACITY_TYPES,
    NODE_POOL,
    ON_DEMAND,
    SPOT,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements, combined
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts
from fairlead.whatif.configuration.autoscaling.aws_type_label import labels_of_listed
from fairlead.whatif.configuration.autoscaling.new_node_validation import amount_problems
from fairlead.whatif.configuration.autoscaling.open_cost_price import (
    PRICE_MAX,
    Prices,
    is_price_table,
    read_prices,
)
from fairlead.whatif.configuration.autoscaling.place_label import Places, labels_in
from fairlead.whatif.input.document import decode_text, read_bytes
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.input.table import read_table
from fairlead.whatif.snapshot.node_pool import copy_order

OPTION: Final = "--instance-types"
_CORE_PRICE: Final = 0.03
_GIB_PRICE: Final = 0.004
_SPOT_SHARE: Final = 0.4
_GIB: Final = 1 << 30
_PODS: Final = 110
_SYSTEMS: Final = ("linux",)
_COLUMNS: Final = (
    "name", "cpu", "memory", "pods", "gpu", "arch", "os", "zones", "capacityType", "price",
    "spotPrice", "allocatableCpu", "allocatableMemory",
)  # fmt: skip
ALLOCATABLE_COLUMNS: Final = {"allocatableCpu": "cpu", "allocatableMemory": "memory"}
"""The columns that state what pods can use of a resource."""

# Labels that follow from another column, or from the node instead of the type.
_COLUMN_OF_LABEL: Final = {
    INSTANCE_TYPE: "name", ARCH: "arch", OS: "os", ZONE: "zones", CAPACITY_TYPE: "capacityType",
}  # fmt: skip
_OF_NODE: Final = (REGION, HOSTNAME, NODE_POOL)
_ARCHITECTURES: Final = {"x86_64": "amd64", "X86_64": "amd64", "x64": "amd64", "Arm64": "arm64"}


class StatedType(Struct, frozen=True):
    """One instance type from a file."""

    name: str
    capacity: ResourceList  # the size of the machine
    architectures: tuple[str, ...] = ("amd64",)
    # The operating systems that the file states. A file from a provider's tool states none, because
    # the image of a machine determines its operating system.
    systems: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = (ON_DEMAND,)
    # Per hour, keyed by (capacity type, zone).
    prices: Mapping[tuple[str, str], float] | None = None
    # Further labels of the nodes of the type; the value "" means that the nodes do not have the
    # label.
    labels: Mapping[str, str] = {}
    # The allocatable amounts that the file states; `with_allocatable` adds the amounts that follow
    # from an existing node. Without an entry for a resource, the whole capacity is allocatable.
    allocatable: ResourceList = {}
    # The maximum number of pods that the machine's network interfaces allow on a node in AWS; 0 if
    # unknown.
    interface_pods: int = 0
    # Whether `capacity` is the size of an existing node, because no file states the size.
    is_of_nodes: bool = False
    is_on_demand_assumed: bool = False  # whether the file does not state the capacity types

    @property
    def has_price(self) -> bool:
        """Whether the file states a price."""
        return bool(self.prices)

    def stated_price(self, capacity_type: str, zone: str) -> float | None:
        """Return the hourly price that the file states for `capacity_type` in `zone`, or None."""
        prices = self.prices or {}
        return prices.get((capacity_type, zone), prices.get((capacity_type, "")))

    def price(self, capacity_type: str, zone: str) -> float:
        """Return the stated hourly price for `capacity_type` in `zone`, or else an estimate."""
        stated = self.stated_price(capacity_type, zone)
        if stated is not None:
            return stated
        prices = self.prices or {}
        size = amounts(self.capacity)
        memory = size.get("memory", 0) / _GIB
        base = size.get("cpu", 0) / 1000 * _CORE_PRICE + memory * _GIB_PRICE
        base = prices.get((ON_DEMAND, zone), prices.get((ON_DEMAND, ""), base))
        return base * _SPOT_SHARE if capacity_type == SPOT else base


def read_instance_types(files: str, nodes: Sequence[Node]) -> list[StatedType]:
    """Return the types in `files`, which is one path or several paths separated by commas.

    Prices from OpenCost replace the prices of the types. If `files` contain only such prices, the
    result contains the types of `nodes`, the sorted nodes of the cluster (see `types_of_nodes`). If
    a type has zones in the regions of `nodes`, its zones in other regions are removed. If the files
    state no extended resources of a type, such as GPUs, the type has the extended resources of a
    node of this type.
    Raises InputError.
    """
    paths = [files] if Path(files).exists() else files.split(",")
    if not all(path.strip() for path in paths):
        raise InputError(OPTION, f"{files!r} has no file before or after a comma")
    texts = {path: decode_text(path, read_bytes(Path(path))) for path in paths}
    tables = {path: text for path, text in texts.items() if is_price_table(text)}
    found = _types_in({path: text for path, text in texts.items() if path not in tables})
    if tables:
        found = _with_prices(tables, found or types_of_nodes(nodes), nodes)
    regions = {region for node in nodes if (region := node.metadata.labels.get(REGION))}
    sized = (node for node in nodes if node.status.capacity or node.status.allocatable)
    newest = {
        node.metadata.labels.get(INSTANCE_TYPE, ""): node for node in sorted(sized, key=copy_order)
    }
    return [
        replace(
            one,
            zones=_zones_of(one.zones, regions),
            capacity=_extended_of(newest.get(one.name)) | one.capacity,
        )
        for one in found
    ]


def _with_prices(
    tables: Mapping[str, str], types: Sequence[StatedType], nodes: Sequence[Node]
) -> list[StatedType]:
    """Return `types` with the prices in `tables`.

    `tables` maps the path of each file from OpenCost to its text. `nodes` are the nodes of the
    cluster. Raises InputError if `types` is empty, or if none of `types` has a price in `tables`.
    """
    first = next(iter(tables))
    if not types:
        problem = "has prices only; name a file of instance types before it: TYPES,PRICES"
        raise InputError(first, problem)
    prices: dict[str, Prices] = {}
    for path, text in tables.items():
        prices.update(read_prices(path, text, nodes))
    names = sorted(one.name for one in types)
    if prices.keys().isdisjoint(names):
        problem = f"has no price of {listed(names)}; rows for regions without nodes are skipped"
        raise InputError(first, problem)
    return [replace(one, prices=prices.get(one.name, one.prices)) for one in types]


def _extended_of(node: Node | None) -> dict[str, QuantityText]:
    """Return the extended resources of `node`, such as GPUs, with their amounts."""
    if node is None:
        return {}
    capacity = node.status.capacity or node.status.allocatable
    return {name: amount for name, amount in capacity.items() if not is_native_resource(name)}


def _zones_of(zones: Sequence[str], regions: Iterable[str]) -> tuple[str, ...]:
    """Return the zones that are in one of `regions`; all of `zones` if no zone is in a region.

    gcloud and az list the zones of all regions. The name of a zone begins with its region, such as
    europe-west1-b, westeurope-1 or eu-west-1a. But europe-west10-a is not in europe-west1.
    """
    return tuple(
        zone
        for zone in zones
        if any(zone.startswith(one) and not zone[len(one) :][:1].isdigit() for one in regions)
    ) or tuple(zones)


def _types_in(texts: Mapping[str, str]) -> list[StatedType]:
    """Return the instance types in `texts` ({path: content of the file}). Raises InputError."""
    every: dict[str, StatedType] = {}
    for path, text in texts.items():
        found = _of_json(path, text) if text.lstrip()[:1] in ("[", "{") else _of_csv(path, text)
        if not found:
            raise InputError(path, "contains no instance type")
        for one in found:
            if one.name in every:
                raise InputError(path, "appears twice", object_name=f"instance type {one.name}")
            every[one.name] = one
            for problem in _problems(one):
                raise InputError(path, problem, object_name=f"instance type {one.name}")
    return list(every.values())


def types_of_nodes(nodes: Iterable[Node]) -> list[StatedType]:
    """Return the instance types of `nodes`; the first node of a type determines its size.

    `nodes` must be sorted, so that the sizes do not depend on the order of the nodes in a file.
    """
    seen: dict[str, list[Node]] = {}
    for node in nodes:
        name = node.metadata.labels.get(INSTANCE_TYPE, "")
        if name:
            seen.setdefault(name, []).append(node)
    return [_type_of(name, seen[name]) for name in sorted(seen)]


def _type_of(name: str, nodes: list[Node]) -> StatedType:
    first = nodes[0]
    # A node in a file of manifests may state its capacity only in part, or not at all.
    capacity: ResourceList = {**first.status.allocatable, **first.status.capacity}
    labels = [node.metadata.labels for node in nodes]
    kinds = sorted({one.get(CAPACITY_TYPE, ON_DEMAND) for one in labels})
    return StatedType(
        name,
        capacity,
        (first.metadata.labels.get(ARCH, "amd64"),),
        capacity_types=tuple(kinds),
        is_of_nodes=True,
    )


def assumed_spot_prices(uses: Iterable[tuple[StatedType, str, str]]) -> Iterator[str]:
    """Yield a note about the types whose spot price is assumed, because the file does not state it.

    `uses` contains (instance type, capacity type, zone) of nodes.
    """
    assumed = {
        one.name
        for one, kind, zone in uses
        if kind == SPOT and one.has_price and one.stated_price(kind, zone) is None
    }
    if assumed:
        yield (
            f"{OPTION} states no spot price of {listed(sorted(assumed))}. It is "
            f"assumed to be {_SPOT_SHARE:.0%} of the on-demand price."
        )


def stated_type(path: str, name: str, types: Iterable[StatedType]) -> StatedType:
    """Return the instance type `name` of `types`, which are in the file `path`.

    Raises InputError.
    """
    stated = {one.name: one for one in types}
    if name not in stated:
        problem = f"there is no instance type {name} in {path}; {known_names(name, stated)}"
        raise InputError("--instance-type", problem)
    return stated[name]


def new_node_templates(one: StatedType, places: Places, like: Mapping[str, str]) -> list[Json]:
    """Return node templates of an instance type, one for each of its zones.

    `places` contains the labels about the place of a node for each zone of the cluster
    (`labels_of_zones`). A type without zones gets one template for each zone of the cluster. If the
    cluster has no zones, such a type gets one template without a zone. `like` are the labels of the
    node on which the new nodes are modelled; {} means that there is no such node. The new nodes
    have the architecture and the operating system in `like` if the type can have them. Of the
    labels about the place, the new nodes have only the zone, the region, and the labels that `like`
    has. In a template, the label value "" means that the node does not have the label.
    """
    systems = one.systems or (like.get(OS, _SYSTEMS[0]),)
    labels = {
        **one.labels,
        INSTANCE_TYPE: one.name,
        ARCH: min(one.architectures, key=lambda arch: arch != like.get(ARCH)),
        OS: min(systems, key=lambda system: system != like.get(OS)),
    }
    capacity, allocatable = _sizes(one)
    zones = one.zones or sorted(filter(None, places)) or [""]
    return [
        {
            "metadata": {"labels": {**labels, **_place(labels_in(zone, places), like)}},
            "spec": {},
            "status": {"capacity": capacity, "allocatable": allocatable},
        }
        for zone in zones
    ]


def _place(labels: Mapping[str, str], like: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a place that the copy of a node gets.

    `labels` are all labels of the place, and `like` are the labels of the copied node.
    """
    kept = {ZONE, REGION, *like} if like else labels
    return {key: value for key, value in labels.items() if key in kept}


def _problems(one: StatedType) -> Iterator[str]:
    places: tuple[object, ...] = (*one.zones, *one.labels.values())
    for text in (one.name, *one.architectures, *one.systems, *places):
        if not isinstance(text, str):  # in JSON, values can have any type
            yield f"{text!r} is not a string"
            return
        for rule in label_value_problems(text):
            yield f"{text!r} cannot be the value of a node's label: {rule}"
    yield from (
        f"{key!r} is no label: {rule}" for key in one.labels for rule in label_key_problems(key)
    )
    for kind in one.capacity_types:
        if kind not in CAPACITY_TYPES:
            yield f"there is no capacity type {kind!r}; {known_names(kind, CAPACITY_TYPES)}"
    yield from _size_problems(one)
    for price in (one.prices or {}).values():
        if not 0 <= price <= PRICE_MAX:  # also refuses NaN
            yield f"the price {price} is not a number from 0 to {PRICE_MAX:,}"


def _size_problems(one: StatedType) -> Iterator[str]:
    stated = [(resource, resource, amount) for resource, amount in one.capacity.items()]
    stated += [
        (column, resource, one.allocatable[resource])
        for column, resource in ALLOCATABLE_COLUMNS.items()
        if resource in one.allocatable
    ]
    for field, resource, amount in stated:
        yield from (f"{field}: {problem}" for problem in amount_problems(resource, amount))
    size, left = amounts(one.capacity), amounts(one.allocatable)
    if size.get("cpu", 0) <= 0 or size.get("memory", 0) <= 0:
        yield "cpu and memory must be more than 0"
    for column, resource in ALLOCATABLE_COLUMNS.items():
        if resource in left and not 0 < left[resource] <= size[resource]:
            yield f"{column} must be more than 0, and not more than {resource}"


def instance_types(
    stated: Sequence[StatedType], zones: Sequence[str], nodes: Iterable[Node] = ()
) -> tuple[InstanceType, ...]:
    """Return `stated` as instance types of Karpenter; types without zones get `zones`.

    If the labels of `nodes` contain exactly one region, the types get this region. Otherwise, they
    get no region.

    source: karpenter-provider-aws pkg/providers/instancetype/types.go: computeRequirements
    """
    regions = {region for node in nodes if (region := node.metadata.labels.get(REGION))}
    region = regions.pop() if len(regions) == 1 else ""
    return tuple(_instance_type(one, one.zones or tuple(zones), region) for one in stated)


def type_requirements(stated: StatedType) -> Requirements:
    """Return the labels of nodes of the instance type `stated` as Requirements.

    The type's name is one of the labels. For a label with the value "", the Requirement is that the
    label does not exist.
    """
    labels = (
        requirement(key, "In", (value,)) if value else requirement(key, "DoesNotExist")
        for key, value in stated.labels.items()
    )
    return combined((requirement(INSTANCE_TYPE, "In", (stated.name,)), *labels))


def _instance_type(stated: StatedType, zones: Sequence[str], region: str) -> InstanceType:
    capacity, allocatable = map(amounts, _sizes(stated))
    overhead = {name: amount - allocatable.get(name, amount) for name, amount in capacity.items()}
    # Karpenter subtracts huge pages from memory, and so does the kubelet before it reports memory.
    pages = sum(amount for name, amount in capacity.items() if name.startswith("hugepages-"))
    overhead["memory"] = max(0, overhead.get("memory", 0) - pages)
    requirements = [
        requirement(INSTANCE_TYPE, "In", (stated.name,)),
        requirement(ARCH, "In", stated.architectures),
        requirement(OS, "In", stated.systems or _SYSTEMS),
        requirement(CAPACITY_TYPE, "In", stated.capacity_types),
    ]
    if zones:
        requirements.append(requirement(ZONE, "In", tuple(zones)))
    if region:
        requirements.append(requirement(REGION, "In", (region,)))
    requirements += type_requirements(stated)
    offerings = tuple(
        _offering(stated, capacity_type, zone)
        for zone in zones or ("",)
        for capacity_type in stated.capacity_types
    )
    return InstanceType(stated.name, combined(requirements), capacity, overhead, offerings)


def _sizes(stated: StatedType) -> tuple[ResourceList, ResourceList]:
    """Return (capacity, allocatable amounts) of a new node of the type."""
    allocatable = {"pods": str(_PODS), **stated.capacity, **stated.allocatable}
    return {**allocatable, **stated.capacity}, allocatable


def _offering(stated: StatedType, capacity_type: str, zone: str) -> Offering:
    requirements = [requirement(CAPACITY_TYPE, "In", (capacity_type,))]
    if zone:
        requirements.append(requirement(ZONE, "In", (zone,)))
    return Offering(combined(requirements), stated.price(capacity_type, zone))


# --- CSV ----------------------------------------------------------------------------------------


def _of_csv(path: str, text: str) -> list[StatedType]:
    header, rows = read_table(path, text)
    unknown = [name for name in header if name not in _COLUMNS and "/" not in name]
    if unknown:
        known = ", ".join(_COLUMNS) + ", and the names of labels"
        raise InputError(path, f"has an unknown column {unknown[0]!r}; known: {known}")
    for name in header:
        if name in _COLUMN_OF_LABEL:
            problem = f"has a column {name!r}; write these values in the column"
            raise InputError(path, f"{problem} {_COLUMN_OF_LABEL[name]!r}")
        if name in _OF_NODE:
            problem = "its values do not follow from the instance type"
            raise InputError(path, f"has a column {name!r}, but {problem}")
    missing = [name for name in _COLUMNS[:3] if name not in header]
    if missing:
        raise InputError(path, f"has no column {missing[0]!r}")
    return [_of_row(path, line, row) for line, row in rows]


def _of_row(path: str, number: int, row: Mapping[str, str | None]) -> StatedType:
    for column, value in row.items():
        if column is None:
            raise InputError(path, f"line {number}: has more cells than the header")
        if value is None:
            raise InputError(path, f"line {number}: has no cell for the column {column!r}")
    cells = {key: (value or "").strip() for key, value in row.items()}
    for column in _COLUMNS[:3]:
        if not cells[column]:
            raise InputError(path, f"line {number}: has no {column}")
    resources = (("cpu", "cpu"), ("memory", "memory"), ("pods", "pods"), ("gpu", "nvidia.com/gpu"))
    capacity: ResourceList = {to: cells[of] for of, to in resources if cells.get(of)}
    prices = {
        (kind, ""): _number(path, number, column, cells[column])
        for column, kind in (("price", ON_DEMAND), ("spotPrice", SPOT))
        if cells.get(column)
    }
    stated = _list(cells.get("capacityType", ""))
    kinds = stated or ((ON_DEMAND, SPOT) if cells.get("spotPrice") else (ON_DEMAND,))
    return StatedType(
        cells["name"],
        capacity,
        _list(cells.get("arch", "")) or ("amd64",),
        _list(cells.get("os", "")),
        _list(cells.get("zones", "")),
        kinds,
        prices,
        {key: value for key, value in cells.items() if "/" in key},
        {to: cells[of] for of, to in ALLOCATABLE_COLUMNS.items() if cells.get(of)},
        is_on_demand_assumed=not stated and not cells.get("spotPrice"),
    )


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.replace(";", " ").split() if part.strip())


def _number(path: str, line: int, column: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(path, f"line {line}: {column}: {text!r} is not a number") from None


# --- JSON ---------------------------------------------------------------------------------------


def _of_json(path: str, text: str) -> list[StatedType]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as cause:  # a ValueError for 4301 digits
        raise InputError(path, f"is not JSON: {cause}") from None
    rows = value.get("InstanceTypes") if isinstance(value, dict) else value
    if not isinstance(rows, list) or not all(isinstance(one, dict) for one in rows):
        raise InputError(path, "is not a list of instance types")
    by_name: dict[str, StatedType] = {}
    for number, row in enumerate(rows, 1):
        try:
            for one in _of_object(row):
                # gcloud and az list a type once for each zone or region.
                base = by_name.get(one.name, one)
                zones = dict.fromkeys((*base.zones, *one.zones))
                by_name[one.name] = replace(base, zones=tuple(zones))
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as cause:
            why = f"{type(cause).__name__} {cause}"
            if isinstance(cause, KeyError):
                why = f"it lacks {cause}"
            problem = f"has an unknown format: {why}"
            raise InputError(path, problem, object_name=f"entry {number}") from None
    return list(by_name.values())


def _of_object(row: Json) -> Iterator[StatedType]:
    """Yield the instance type that `row`, an entry of a provider's listing, describes.

    Nothing is yielded if `row` does not describe virtual machines.
    """
    if "InstanceType" in row:
        yield _of_aws(row)
    elif "guestCpus" in row:
        yield _of_gcloud(row)
    elif "capabilities" in row:
        if row.get("resourceType", "virtualMachines") == "virtualMachines":
            yield _of_azure(row)
    else:
        yield _of_kwok(row)


def _of_kwok(row: Json) -> StatedType:
    """Return the instance type that `row` of a file for Karpenter's kwok provider describes."""
    offerings: list[tuple[str, str, float]] = []
    for one in row["offerings"]:
        stated = one.get("Requirements") or one.get("requirements") or ()
        labels = dict(map(_label_of_kwok, stated))
        price = float(one.get("Price", one.get("price")))
        offerings += [
            (kind, zone, price)
            for kind in labels.get(CAPACITY_TYPE, (ON_DEMAND,))
            for zone in labels.get(ZONE, ("",))
        ]
    return StatedType(
        row["name"],
        {name: str(amount) for name, amount in row["resources"].items()},
        (row.get("architecture", "amd64"),),
        _texts(row.get("operatingSystems")),
        tuple(dict.fromkeys(zone for _, zone, _ in offerings if zone)),
        tuple(dict.fromkeys(kind for kind, _, _ in offerings)),
        {(kind, zone): price for kind, zone, price in offerings},
    )


def _label_of_kwok(entry: Json) -> tuple[str, tuple[str, ...]]:
    """Return (key, values) of a requirement of an offering.

    Raises LookupError, ValueError, TypeError.

    source: karpenter kwok/cloudprovider/helpers.go, whose files have only the operator In
    """
    key, values = entry["key"], _texts(entry["values"])
    if entry.get("operator", "In") != "In" or not isinstance(key, str) or not values:
        raise ValueError(
            f"the requirement {entry} is not {{key: KEY, operator: In, values: [...]}}"
        )
    return key, values


def _texts(value: object) -> tuple[str, ...]:
    """Return a list of strings as a tuple; () for None. Raises TypeError for other values."""
    if not isinstance(value, list | None) or not all(isinstance(one, str) for one in value or ()):
        raise TypeError(f"{value!r} is not a list of strings")
    return tuple(value or ())


def _of_aws(row: Json) -> StatedType:
    gpus = sum(one.get("Count", 0) for one in row.get("GpuInfo", {}).get("Gpus", ()))
    capacity: ResourceList = {
        "cpu": str(row["VCpuInfo"]["DefaultVCpus"]),
        "memory": f"{row['MemoryInfo']['SizeInMiB']}Mi",
    }
    if gpus:
        capacity["nvidia.com/gpu"] = str(gpus)
    listed = _texts(row.get("ProcessorInfo", {}).get("SupportedArchitectures")) or ("x86_64",)
    offered = _texts(row.get("SupportedUsageClasses"))
    kinds = [kind for kind in offered if kind in (ON_DEMAND, SPOT)]
    return StatedType(
        row["InstanceType"],
        capacity,
        tuple(_ARCHITECTURES.get(one, one) for one in listed if one != "i386"),
        capacity_types=tuple(kinds) or (ON_DEMAND,),
        labels=labels_of_listed(row),
        interface_pods=_interface_pods(row.get("NetworkInfo", {})),
    )


def _interface_pods(network: Json) -> int:
    """Return the maximum number of pods that AWS sets for a node with the interfaces `network`.

    The number counts the pods that can have an address of a network interface, and two pods that
    use the network of the host. The first address of each interface is not for pods, and only the
    default network card counts. Returns 0 if the number is unknown.

    source: amazon-vpc-cni-k8s scripts/gen_vpc_ip_limits.go: printPodLimit
    """
    addresses = network.get("Ipv4AddressesPerInterface", 0)
    cards, default = network.get("NetworkCards"), network.get("DefaultNetworkCardIndex") or 0
    interfaces = (cards[default] if cards else network).get("MaximumNetworkInterfaces", 0)
    return interfaces * (addresses - 1) + 2 if addresses and interfaces else 0


def _of_gcloud(row: Json) -> StatedType:
    zone = str(row.get("zone", "")).rpartition("/")[2]
    arch = _ARCHITECTURES.get(str(row.get("architecture", "X86_64")), "arm64").lower()
    capacity: ResourceList = {"cpu": str(row["guestCpus"]), "memory": f"{row['memoryMb']}Mi"}
    return StatedType(
        row["name"], capacity, (arch,), (), (zone,) if zone else (), (ON_DEMAND, SPOT)
    )


def _of_azure(row: Json) -> StatedType:
    has: dict[str, Any] = {one["name"]: one["value"] for one in row["capabilities"]}
    zones = [
        f"{place['location']}-{zone}"
        for place in row.get("locationInfo") or ()
        for zone in place.get("zones") or ()
    ]
    capacity: ResourceList = {"cpu": str(has["vCPUs"]), "memory": f"{has['MemoryGB']}Gi"}
    if int(has.get("GPUs", 0)):
        capacity["nvidia.com/gpu"] = str(has["GPUs"])
    arch = _ARCHITECTURES.get(str(has.get("CpuArchitectureType", "x64")), "amd64")
    spot = has.get("LowPriorityCapable") == "True"
    kinds = (ON_DEMAND, SPOT) if spot else (ON_DEMAND,)
    return StatedType(row["name"], capacity, (arch,), (), tuple(zones), kinds)
