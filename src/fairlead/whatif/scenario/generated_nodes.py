"""Synthetic nodes: the field `generated` of a scenario.

Each node looks as if a kubelet had registered it: Ready, with a hostname label and, if zones are
configured, a zone label. Zones are assigned in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.objects import QuantityText
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.core.instant import Instant
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import StrictForm

NODES_MAX: Final = 200_000
PODS_PER_NODE: Final = 110  # the default of the kubelet's --max-pods
_ALLOCATABLE: Final[dict[str, QuantityText]] = {"cpu": "4", "memory": "32Gi"}

Allocatable = dict[str, QuantityText]


class GeneratedNodeGroup(StrictForm, frozen=True, kw_only=True):
    """Identical nodes; `name` is the prefix of the numbered node names."""

    name: str = "node"
    nodes: int
    allocatable: Allocatable = {}
    labels: dict[str, str] = {}
    taints: list[dict[str, Any]] = []


class GeneratedNodes(StrictForm, frozen=True, kw_only=True):
    """Generated nodes; `nodes` is their number without the nodes of `groups`.

    `zones` is the number of zones, or their names. Groups inherit `allocatable`, `labels` and
    `taints` from this object, and can add their own.
    """

    nodes: int = 0
    zones: int | list[str] = 0
    allocatable: Allocatable = {}
    labels: dict[str, str] = {}
    taints: list[dict[str, Any]] = []
    groups: list[GeneratedNodeGroup] = []


def generated_nodes(generated: GeneratedNodes, source: str, start: Instant) -> list[Json]:
    """Return the node objects, created at `start`, ordered by group and number.

    Raises InputError, which names the file `source`.
    """
    _refuse_counts(generated, source)
    zones = zone_names(generated.zones)
    nodes: list[Json] = []
    for group in _groups(generated):
        width = len(str(max(group.nodes - 1, 0)))
        for number in range(group.nodes):
            zone = zones[len(nodes) % len(zones)] if zones else ""
            name = f"{group.name}-{number:0{width}}"
            nodes.append(_node_of_group(name, zone, generated, group, start))
    return nodes


def zone_names(zones: int | list[str]) -> list[str]:
    """Return the names of `zones`; a number of zones becomes `zone-a`, `zone-b`, and so on.

    If there are more than 26 zones, they are called `zone-0`, `zone-1`, and so on.
    """
    if isinstance(zones, list):
        return zones
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [f"zone-{letters[n]}" if zones <= len(letters) else f"zone-{n}" for n in range(zones)]


def node_object(
    name: str,
    *,
    labels: dict[str, str],
    allocatable: Allocatable,
    start: Instant,
    taints: list[dict[str, Any]] | None = None,
) -> Json:
    """Return a node that was created at `start` and is Ready; its capacity equals `allocatable`."""
    spec = {"taints": taints} if taints else {}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastTransitionTime": format_timestamp(start),
    }
    metadata = {
        "name": name,
        "labels": {HOSTNAME: name, **labels},
        "creationTimestamp": format_timestamp(start),
    }
    status = {"allocatable": allocatable, "capacity": allocatable, "conditions": [ready]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _groups(generated: GeneratedNodes) -> Iterator[GeneratedNodeGroup]:
    if generated.nodes:
        yield GeneratedNodeGroup(nodes=generated.nodes)
    yield from generated.groups


def _node_of_group(
    name: str, zone: str, generated: GeneratedNodes, group: GeneratedNodeGroup, start: Instant
) -> Json:
    labels = {**({ZONE: zone} if zone else {}), **generated.labels, **group.labels}
    allocatable = {
        **_ALLOCATABLE,
        "pods": str(PODS_PER_NODE),
        **generated.allocatable,
        **group.allocatable,
    }
    taints = [*generated.taints, *group.taints]
    return node_object(name, labels=labels, allocatable=allocatable, taints=taints, start=start)


def _refuse_counts(generated: GeneratedNodes, source: str) -> None:
    counts = {"nodes": generated.nodes}
    counts.update({f"groups[{i}].nodes": g.nodes for i, g in enumerate(generated.groups)})
    if isinstance(generated.zones, int):
        counts["zones"] = generated.zones
    for field, count in counts.items():
        if count < 0:
            raise InputError(source, f"{count} is negative", field=f"cluster.generated.{field}")
    if counts.get("zones", 0) > NODES_MAX:
        problem = f"{generated.zones} zones are more than {NODES_MAX}"
        raise InputError(source, problem, field="cluster.generated.zones")
    total = generated.nodes + sum(group.nodes for group in generated.groups)
    if total > NODES_MAX:
        raise InputError(
            source, f"{total} nodes are more than {NODES_MAX}", field="cluster.generated.nodes"
        )
