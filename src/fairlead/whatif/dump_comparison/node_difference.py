"""Differences between the nodes of two dumps: by pool and instance type, and of each node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct

from fairlead.api.json import text
from fairlead.api.nodes.readiness import is_ready_node
from fairlead.api.nodes.taint import taint_text
from fairlead.api.objects import Node
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import BETA_INSTANCE_TYPE, INSTANCE_TYPE
from fairlead.apiserver.kind import NODE
from fairlead.whatif.dump_comparison.field_difference import (
    ADDED,
    CHANGED,
    REMOVED,
    arrow,
    field_differences,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.comparison.node_pool import NO_POOL
from fairlead.whatif.result.tabular_answer import Row
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.node_pool import PoolNames, pool_labels


class DumpedNode(Struct, frozen=True):
    """A node and the version of its kubelet."""

    node: Node
    kubelet: str


DumpedNodes = Mapping[str, DumpedNode]


def nodes_of(inventory: Inventory) -> dict[str, DumpedNode]:
    """Return the nodes of a dump by name."""
    return {
        one.ref.name: DumpedNode(one.node, text(one.value, "status", "nodeInfo", "kubeletVersion"))
        for one in inventory.of_kind(NODE)
    }


def node_changes(old: DumpedNodes, new: DumpedNodes) -> dict[str, int]:
    """Return the numbers of nodes that are added, removed and changed."""
    both = old.keys() & new.keys()
    return {
        ADDED: len(new.keys() - both),
        REMOVED: len(old.keys() - both),
        CHANGED: sum(any(_node_differences(old[one], new[one])) for one in both),
    }


def pool_rows(old: DumpedNodes, new: DumpedNodes, label: str) -> list[Row]:
    """Return a row for each pool and instance type whose nodes differ.

    `label` names the pool of a node; "" means the known labels of pools. Raises InputError if no
    node has the label.
    """
    labels = [one.node.metadata.labels for one in (*old.values(), *new.values())]
    if label and not any(label in one for one in labels):
        raise InputError("--group-by", f"no node has the label {label}")
    names = PoolNames.of((label,) if label else pool_labels(labels), labels)

    def by_pool(nodes: DumpedNodes) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = defaultdict(set)
        for name, one in nodes.items():
            own = one.node.metadata.labels
            kind = own.get(INSTANCE_TYPE) or own.get(BETA_INSTANCE_TYPE, "")
            found[names.name(own) or NO_POOL, kind].add(name)
        return found

    before, after = by_pool(old), by_pool(new)
    return [
        {
            "pool": pool,
            "instance_type": kind,
            "nodes_before": len(before[pool, kind]),
            "nodes": len(after[pool, kind]),
            "added": len(after[pool, kind] - before[pool, kind]),
            "removed": len(before[pool, kind] - after[pool, kind]),
        }
        for pool, kind in sorted({*before, *after})
        if before[pool, kind] != after[pool, kind]
    ]


def node_rows(old: DumpedNodes, new: DumpedNodes) -> list[Row]:
    """Return a row for each kind of difference between the nodes that are in both dumps."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in sorted(old.keys() & new.keys()):
        for what in _node_differences(old[name], new[name]):
            found[what].append(name)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {"what": what, "nodes": len(names), "which": listed(names), "names": names}
        for what, names in ordered
    ]


def _node_differences(before: DumpedNode, after: DumpedNode) -> Iterator[str]:
    old, new = before.node, after.node
    if old.spec.unschedulable != new.spec.unschedulable:
        yield "cordoned" if new.spec.unschedulable else "uncordoned"
    if is_ready_node(old) != is_ready_node(new):
        yield "Ready" if is_ready_node(new) else "not Ready"
    if before.kubelet != after.kubelet:
        yield f"kubelet {arrow(before.kubelet, after.kubelet)}"
    labels, new_labels = old.metadata.labels, new.metadata.labels
    for key in sorted({*labels, *new_labels}):
        if labels.get(key) != new_labels.get(key):
            yield f"label {key} {arrow(labels.get(key), new_labels.get(key))}"
    was, has = (list(map(taint_text, one.spec.taints)) for one in (old, new))
    yield from (f"taint {one} {ADDED}" for one in has if one not in was)
    yield from (f"taint {one} {REMOVED}" for one in was if one not in has)
    amounts = old.status.allocatable.items(), new.status.allocatable.items()
    yield from field_differences("allocatable", *({k: str(v) for k, v in one} for one in amounts))
