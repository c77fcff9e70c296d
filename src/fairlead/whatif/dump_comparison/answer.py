"""Compares the objects of two dumps, without a simulation.

The comparison covers nodes (by pool and instance type), workloads, budgets, PriorityClasses,
ResourceQuotas, LimitRanges and HorizontalPodAutoscalers. Status and metadata of these objects are
left out, except the readiness of nodes. The comparison also covers the total allocatable and
requested amounts of resources.

A workload that a dump lacks, such as a custom resource, is compared by its pods. Objects that a
controller creates, such as the ReplicaSets of Deployments, are left out, and so are static pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.requests import CPU, MEMORY, pod_requests
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.count import counted
from fairlead.apiserver.kind import (
    HORIZONTAL_POD_AUTOSCALER,
    LIMIT_RANGE,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    Kind,
)
from fairlead.apiserver.registry.store import Store
from fairlead.whatif.dump_comparison.field_difference import (
    ADDED,
    CHANGED,
    REMOVED,
    arrow,
    field_differences,
    leaves,
)
from fairlead.whatif.dump_comparison.node_difference import (
    DumpedNodes,
    node_changes,
    node_rows,
    nodes_of,
    pool_rows,
)
from fairlead.whatif.dump_comparison.workload_difference import (
    DumpedWorkloads,
    workload_rows,
    workloads_of,
)
from fairlead.whatif.result.table import amount_cell
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.live.live_resource import unreadable_notes
from fairlead.whatif.snapshot.snapshot import Snapshot, load_objects
from fairlead.whatif.snapshot.validation.workload import WORKLOADS
from fairlead.worlds.seeded_ids import SeededIds

_OBJECTS: Final = (
    POD_DISRUPTION_BUDGET, PRIORITY_CLASS, RESOURCE_QUOTA, LIMIT_RANGE, HORIZONTAL_POD_AUTOSCALER,
)  # fmt: skip
_NOT_COMPARED: Final = ("apiVersion", "kind", "metadata", "status")
_PODS: Final = "pods"
_RESOURCE_COLUMNS: Final = (
    ResultColumn("resource", "resource"),
    ResultColumn("allocatable_words", "allocatable"),
    ResultColumn("requested_words", "requested by pods on nodes"),
)
_POOL_COLUMNS: Final = (
    ResultColumn("pool", "pool", NAME),
    ResultColumn("instance_type", "instance type", NAME),
    ResultColumn("nodes_before", "nodes before", NUMBER),
    ResultColumn("nodes", "nodes", NUMBER),
    ResultColumn("added", "added", NUMBER),
    ResultColumn("removed", "removed", NUMBER),
)
_NODE_COLUMNS: Final = (
    ResultColumn("what", "what changed"),
    ResultColumn("nodes", "nodes", NUMBER),
    ResultColumn("which", "which", NAME),
)
_WORKLOAD_COLUMNS: Final = (
    ResultColumn("workload", "workload", NAME),
    ResultColumn("change", "change"),
    ResultColumn("what", "what"),
)
_OBJECT_COLUMNS: Final = (
    ResultColumn("object", "object", NAME),
    ResultColumn("change", "change"),
    ResultColumn("what", "what"),
)

_Amounts = Mapping[str, int]


class _Contents(Struct, frozen=True):
    """The parts of a dump that are compared."""

    snapshot: Snapshot
    inventory: Inventory
    nodes: DumpedNodes
    pods: list[Pod]
    workloads: DumpedWorkloads

    @property
    def pending(self) -> int:
        """The number of pods without a node."""
        return sum(not pod.spec.node_name for pod in self.pods)


def compare_dumps(before: Snapshot, after: Snapshot, label: str = "") -> TabularAnswer:
    """Return the differences between the objects of two dumps.

    `label` is the node label that names the pool of a node; "" means the known labels of pools.
    Raises InputError if no node has the label, and for objects that an API server would refuse.
    """
    old, new = _contents(before), _contents(after)
    pools = pool_rows(old.nodes, new.nodes, label)
    workloads, objects = workload_rows(old.workloads, new.workloads), _object_rows(old, new)
    changes = [
        *_counts("node", node_changes(old.nodes, new.nodes)),
        *_counts("workload", Counter(row["change"] for row in workloads)),
        *_counts("other object", Counter(row["change"] for row in objects)),
    ]
    amounts = _resource_rows(old, new)
    differs = bool(changes) or any(row["differs"] for row in amounts)
    return TabularAnswer(
        kind="DumpComparison",
        source=f"{before.source}, {after.source}",
        verdict=_verdict(before.source, after.source, changes, differs=differs),
        findings=tuple(_findings(old, new)),
        tables=(
            ResultTable("resources", "totals before and after", _RESOURCE_COLUMNS, amounts),
            ResultTable("node_pools", "pools whose nodes differ", _POOL_COLUMNS, pools),
            ResultTable("nodes", "nodes that are in both dumps and differ", _NODE_COLUMNS,
                        node_rows(old.nodes, new.nodes)),
            ResultTable("workloads", "workloads that differ", _WORKLOAD_COLUMNS, workloads,
                        shown=20),
            ResultTable("objects", "budgets, PriorityClasses, quotas, limits and autoscalers that "
                        "differ", _OBJECT_COLUMNS, objects, shown=20),
        ),
        facts={"difference": differs},
        notes=(*_missing_kinds(old, new), *_unreadable(before), *_unreadable(after)),
    )  # fmt: skip


def _contents(snapshot: Snapshot) -> _Contents:
    inventory = snapshot.inventory()
    # Loading refuses objects that an API server would refuse, for example for a malformed amount.
    objects = load_objects(snapshot, Store(SeededIds(0)))
    pods = [one for one in objects if isinstance(one, Pod) and not is_terminal(one)]
    workloads = workloads_of(inventory, pods)
    return _Contents(snapshot, inventory, nodes_of(inventory), pods, workloads)


def _verdict(before: str, after: str, changes: Sequence[str], *, differs: bool) -> str:
    if changes:
        return f"From {before} to {after}: {'; '.join(changes)}."
    if differs:
        return f"{before} and {after} have the same objects, but different pods."
    return f"{before} and {after} have the same nodes, workloads, budgets, classes and quotas."


def _counts(noun: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a text such as `2 nodes added, 1 removed`; nothing if there are no changes."""
    found = [(counts[change], change) for change in (ADDED, REMOVED, CHANGED) if counts.get(change)]
    if found:
        (count, change), *rest = found
        parts = (f"{counted(count, noun)} {change}", *(f"{n:,} {other}" for n, other in rest))
        yield ", ".join(parts)


def _findings(old: _Contents, new: _Contents) -> Iterator[str]:
    if old.pending or new.pending:
        yield f"Pending pods: {arrow(f'{old.pending:,}', f'{new.pending:,}')}."


def _resource_rows(old: _Contents, new: _Contents) -> list[Row]:
    found = [_allocatable(old), _allocatable(new), _requested(old), _requested(new)]
    names = {name for amounts in found for name, amount in amounts.items() if amount}
    rows: list[Row] = []
    for name in (CPU, MEMORY, _PODS, *sorted(names - {CPU, MEMORY, _PODS})):
        amounts = [one.get(name, 0) for one in found]
        texts = [amount_cell(name, amount) for amount in amounts]
        rows.append(
            {
                "resource": name,
                "allocatable_before": amounts[0],
                "allocatable": amounts[1],
                "requested_before": amounts[2],
                "requested": amounts[3],
                "allocatable_words": arrow(texts[0], texts[1]),
                "requested_words": arrow(texts[2], texts[3]),
                "differs": amounts[0] != amounts[1] or amounts[2] != amounts[3],
            }
        )
    return rows


def _allocatable(contents: _Contents) -> _Amounts:
    total: Counter[str] = Counter()
    for one in contents.nodes.values():
        for name, amount in one.node.status.allocatable.items():
            total[name] += milli_value(amount) if name == CPU else whole_value(amount)
    return total


def _requested(contents: _Contents) -> _Amounts:
    total: Counter[str] = Counter()
    for pod in contents.pods:
        if pod.spec.node_name:
            total.update(pod_requests(pod, existing=True))
            total[_PODS] += 1
    return total


def _object_rows(old: _Contents, new: _Contents) -> list[Row]:
    rows: list[Row] = []
    for kind in _OBJECTS:
        before, after = _by_key(old.inventory, kind), _by_key(new.inventory, kind)
        for key in sorted({*before, *after}):
            change, what = CHANGED, list[str]()
            if key not in before or key not in after:
                change = ADDED if key in after else REMOVED
            else:
                what = list(field_differences("", before[key], after[key]))
            if change != CHANGED or what:
                rows.append({"object": f"{kind.kind} {key}", "change": change, "what": what})
    return rows


def _by_key(inventory: Inventory, kind: Kind) -> dict[str, dict[str, Any]]:
    return {
        one.ref.key: leaves({k: v for k, v in one.value.items() if k not in _NOT_COMPARED})
        for one in inventory.of_kind(kind)
    }


def _missing_kinds(old: _Contents, new: _Contents) -> Iterator[str]:
    """Yield a note for each kind of which only one of the dumps has objects."""
    for kind in (*WORKLOADS, *_OBJECTS):
        for one, other in ((old, new), (new, old)):
            if other.inventory.of_kind(kind) and not one.inventory.of_kind(kind):
                source = one.snapshot.source
                yield f"{source} has no {kind.kind}: maybe it was taken without {kind.plural}."


def _unreadable(snapshot: Snapshot) -> Iterator[str]:
    yield from (f"{snapshot.source}: {one}" for one in unreadable_notes(snapshot.unreadable))
