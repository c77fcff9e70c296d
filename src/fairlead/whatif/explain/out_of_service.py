"""Nodes that take no new pods for now: since when, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import at, text
from fairlead.api.nodes.readiness import is_ready_node, ready_condition
from fairlead.api.nodes.taint import PREFER_NO_SCHEDULE
from fairlead.api.objects import Node
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.kind import NODE
from fairlead.engine.nodelifecycle.well_known import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from fairlead.engine.state.node_info import NodeInfo
from fairlead.whatif.explain.grouped_table import grouped_if_long
from fairlead.whatif.explain.pod_cause import seconds_since
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.drain_exemption import deletion_words
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    Row,
)
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.node_pool import is_lasting_taint

_NODES: Final = ResultColumn("nodes", "nodes", NUMBER)
_NODE: Final = ResultColumn("node", "node", NAME)
_ZONE: Final = ResultColumn("zone", "zone", NAME, rank=2)
ROOM_FOR: Final = ResultColumn("room_for", "room for", NUMBER, rank=1)
"""The column with a number of pending pods. `explain_nodes` adds the field to the rows."""
_COLUMNS: Final = (
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("since_s", "for", SECONDS, rank=1),
    ROOM_FOR,
    ResultColumn("why", "why"),
)


def out_of_service_rows(model: ClusterModel, inventory: Inventory) -> list[Row]:
    """Return a row for each node of `model` that takes no new pods for now; most pods first.

    These nodes are not Ready, are cordoned, or have a temporary taint, for example because of a
    full disk. A taint that a row's other reasons imply is left out. A row also says whether its
    node is being deleted. The deletion alone does not keep pods away from a node: the scheduler
    ignores it. `since_s` is the time for which the oldest reason has existed. `inventory` has the
    objects of the snapshot.
    """
    rows = [
        _row(model, info, [*_deletion(info.node), *reasons])
        for info in model.table.nodes()
        if (reasons := list(_reasons(info.node, inventory)))
    ]
    return sorted(rows, key=lambda row: (-row["pods"], row["node"]))


def out_of_service_reasons(rows: Iterable[Row]) -> list[Row]:
    """Return a row for each reason in `rows`, a result of `out_of_service_rows`.

    The reason with the most nodes comes first. `since_s` is the time of the node that has been out
    of service the longest.
    """
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["why"]].append(row)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {
            "nodes": len(found),
            "node": listed([row["node"] for row in found], 1),
            "zone": zones_of(found),
            "pods": sum(row["pods"] for row in found),
            "since_s": max((one for row in found if (one := row["since_s"]) is not None),
                           default=None),
            "why": why,
        }
        for why, found in ordered
    ]  # fmt: skip


def zones_of(rows: Iterable[Row]) -> str:
    """Return the zones of the nodes in `rows` as text, the zone with the most nodes first."""
    zones = Counter(row["zone"] for row in rows if row["zone"])
    return listed(sorted(zones, key=lambda zone: (-zones[zone], zone)), 1)


def out_of_service_tables(
    name: str, rows: Sequence[Row], reasons: Sequence[Row]
) -> tuple[ResultTable, ...]:
    """Return the table `name` of `rows`; if it is long, a table of the `reasons` comes first."""
    return grouped_if_long(
        ResultTable("node_reasons", "why nodes take no new pods", (_NODES, _NODE, _ZONE, *_COLUMNS),
                    reasons),
        ResultTable(name, "nodes that take no new pods", (_NODE, _ZONE, *_COLUMNS), rows),
    )  # fmt: skip


class _Reason(Struct, frozen=True):
    """Why a node takes no new pods; the reason has existed since `since`, "" if unknown."""

    why: str
    since: str = ""


def _row(model: ClusterModel, info: NodeInfo, reasons: Sequence[_Reason]) -> Row:
    """Return the row of a node that takes no new pods because of `reasons`."""
    times = [seconds_since(model, one.since) for one in reasons]
    return {
        "node": info.name,
        "zone": info.labels.get(ZONE, ""),
        "pods": len(info.pods),
        "since_s": max((one for one in times if one is not None), default=None),
        "why": "; ".join(one.why for one in reasons),
    }


def _deletion(node: Node) -> Iterator[_Reason]:
    """Yield the reason that `node` is being deleted; nothing if it is not."""
    if words := deletion_words(node):
        yield _Reason(words.removeprefix("it is "), node.metadata.deletion_timestamp)


def _reasons(node: Node, inventory: Inventory) -> Iterator[_Reason]:
    """Yield each reason why `node` takes no new pods for now."""
    implied = set[str]()
    if node.spec.unschedulable:
        implied.add(UNSCHEDULABLE)
        yield _cordon(node, inventory)
    ready = ready_condition(node)
    if ready is not None and not is_ready_node(node):
        implied |= {NOT_READY, UNREACHABLE}
        message = f": {ready.message.rstrip('.')}" if ready.message else ""
        why = f"not Ready ({ready.reason or ready.status}){message}"
        yield _Reason(why, ready.last_transition_time)
    yield from _temporary_taints(node, implied)


def _cordon(node: Node, inventory: Inventory) -> _Reason:
    """Return the reason of a cordoned `node`: who cordoned it, if known, and when.

    The managedFields may name the client that cordoned the node. The time is the time of the taint,
    which the node lifecycle controller adds when it sees that the node is cordoned. If there is no
    such time, the time of the client's last change of the node is used (managedFields).
    """
    since = next((one.time_added for one in node.spec.taints if one.key == UNSCHEDULABLE), "")
    found = inventory.get(NODE, "", node.metadata.name)
    for entry in () if found is None else found.managed_fields:
        if at(entry, "fieldsV1", "f:spec", "f:unschedulable") is not None:
            by = f" by {manager}" if (manager := text(entry, "manager")) else ""
            return _Reason(f"cordoned{by}", since or text(entry, "time"))
    return _Reason("cordoned", since)


def _temporary_taints(node: Node, implied: Container[str]) -> Iterator[_Reason]:
    """Yield the temporary taints of `node` that repel pods, except taints with the `implied` keys.

    A lasting taint reserves the node for some kinds of pods, so the node is still in use. The value
    of a temporary taint is left out: it is the time or the id of an event of this node.
    """
    for one in node.spec.taints:
        is_temporary = one.key not in implied and not is_lasting_taint(one.key)
        if is_temporary and one.effect != PREFER_NO_SCHEDULE:
            yield _Reason(f"taint {one.key}:{one.effect}", one.time_added)
