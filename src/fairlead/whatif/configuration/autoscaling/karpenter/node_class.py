"""The zones in which Karpenter can create nodes, from its node classes or the existing nodes.

`offered_zones` also returns notes. They say, for example, which kubelet settings of the node
classes are applied.

The status of an EC2NodeClass lists its subnets, with their zones. AKSNodeClass and GCENodeClass
contain no zones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlead.api.objects import Node
from fairlead.api.well_known_label import ZONE
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.configuration.autoscaling.karpenter.kubelet_setting import (
    kubelet_settings,
    setting_notes,
)
from fairlead.whatif.snapshot.manifest import Manifest

_OWN_GROUP: Final = "fairlead.dev"  # the NodeClass of this group has no settings


class _SubnetForm(msgspec.Struct):
    zone: str = ""


class _StatusForm(msgspec.Struct):
    subnets: list[_SubnetForm] = []


class _NodeClassForm(msgspec.Struct):
    """The parts of an EC2NodeClass that contain its zones."""

    status: _StatusForm = msgspec.field(default_factory=_StatusForm)


def offered_zones(
    pools: Sequence[NodePool],
    types: Iterable[StatedType],
    manifests: Sequence[Manifest],
    nodes: Iterable[Node],
) -> tuple[list[str], list[str]]:
    """Return (sorted zones, notes about node classes).

    `manifests` contains the node classes.
    A type in `types` without stated zones is offered in the zones of the result. If all types have
    stated zones, the result contains no zones. If the zones of the subnets are known and the same
    for all node classes of `pools`, the result contains these zones. Otherwise, the result contains
    the zones of `nodes`.

    source: karpenter-provider-aws pkg/providers/instancetype/offering: offerings are limited to the
    zones of the subnets in the status of the EC2NodeClass.
    """
    stated = {pool.spec.template.spec.node_class_ref for pool in pools}
    used = sorted(
        (ref for ref in stated if ref.kind and ref.group != _OWN_GROUP),
        key=lambda ref: (ref.kind, ref.name),
    )
    names = ", ".join(f"{ref.kind} {ref.name}" for ref in used)
    settings = kubelet_settings(pools, manifests)
    about_settings = list(setting_notes(settings))
    nothing = "Only kubelet settings are read" if settings else "Nothing is read"
    if all(one.zones for one in types):
        return [], [f"{nothing} from {names}.", *about_settings] if used else []
    of_nodes = sorted({zone for node in nodes if (zone := node.metadata.labels.get(ZONE))})
    if not used:
        return of_nodes, []
    by_class = _subnet_zones(manifests)
    found = [by_class.get((ref.group, ref.kind, ref.name), ()) for ref in used]
    if len(used) == len(stated) and found[0] and all(zones == found[0] for zones in found):
        note = (
            f"Instance types without zones are offered in the zones of the subnets of {names}: "
            f"{', '.join(found[0])}. Nothing else is read from node classes"
            f"{', except kubelet settings' if settings else ''}."
        )
        return list(found[0]), [note, *about_settings]
    where = f": {', '.join(of_nodes)}" if of_nodes else ""
    note = f"{nothing} from {names}; instance types without zones are offered in the zones"
    return of_nodes, [f"{note} of the nodes{where}.", *about_settings]


def _subnet_zones(manifests: Iterable[Manifest]) -> Mapping[tuple[str, str, str], Sequence[str]]:
    """Return the sorted zones of each EC2NodeClass, keyed by (API group, kind, name)."""
    found: dict[tuple[str, str, str], Sequence[str]] = {}
    for one in manifests:
        if one.kind.kind == "EC2NodeClass":
            zones = sorted({zone for zone in _stated(one.value) if zone})
            found[one.kind.group, one.kind.kind, one.ref.name] = zones
    return found


def _stated(value: Any) -> list[str]:
    try:
        form = msgspec.convert(value, _NodeClassForm)
    except msgspec.ValidationError:  # another version of the kind
        return []
    return [subnet.zone for subnet in form.status.subnets]
