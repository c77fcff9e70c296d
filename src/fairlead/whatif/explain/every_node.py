"""Explains all nodes of a cluster: which take new pods, what is free, and which pods would fit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.readiness import ready_condition
from fairlead.api.nodes.taint import PREFER_NO_SCHEDULE, taint_text
from fairlead.api.resource_name import is_extended_resource
from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ZONE, is_virtual
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.configuration.autoscaling.autoscaler import ADDS_NODES, unsimulated_in_plan
from fairlead.whatif.explain.grouped_table import grouped_if_long
from fairlead.whatif.explain.out_of_service import (
    ROOM_FOR,
    out_of_service_reasons,
    out_of_service_rows,
    out_of_service_tables,
    zones_of,
)
from fairlead.whatif.explain.pod_cause import seconds_since
from fairlead.whatif.explain.room_for_pending import (
    failure_messages,
    place_each,
    room_if_returned,
    single_pods,
)
from fairlead.whatif.outcome.scheduling_message import reasons_in_words
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.drain_exemption import deletion_words
from fairlead.whatif.planner.node_drain.upgrade_check import pools_of
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.snapshot.node_pool import PoolNames, pool_labels
from fairlead.whatif.snapshot.snapshot import Snapshot

_RETURNS_MAX: Final = 20  # rows for which the return of their nodes to service is tried
_SHOWN: Final = 20  # if more nodes are in service, they are grouped by pool
_MILLI: Final = 1000
_GIB: Final = 1 << 30
_LARGE: Final = 100
_ALWAYS: Final = ("cpu", "memory")  # resources of every row
_NODE: Final = ResultColumn("node", "node", NAME)
_ZONE: Final = ResultColumn("zone", "zone", NAME, rank=3)
_POOL: Final = ResultColumn("pool", "pool", NAME, rank=2)
_READY: Final = ResultColumn("ready_s", "ready for", SECONDS, rank=4)
_PODS: Final = ResultColumn("pods_words", "pods", NUMBER, rank=1)
_CPU: Final = ResultColumn("cpu_words", "cpu requested", NUMBER)
_MEMORY: Final = ResultColumn("memory_words", "memory requested", NUMBER)
_LAST: Final = (
    ResultColumn("devices_free", "free devices"),
    ROOM_FOR,
    ResultColumn("taints", "taints", rank=1),
)
_COLUMNS: Final = (
    _NODE,
    _ZONE,
    _POOL,
    _READY,
    _PODS,
    _CPU,
    ResultColumn("cpu_free", "free cpu", NUMBER),
    _MEMORY,
    ResultColumn("memory_free", "free memory", NUMBER),
    *_LAST,
)
_POOL_COLUMNS: Final = (
    ResultColumn("nodes", "nodes", NUMBER),
    _NODE,
    _ZONE,
    _POOL,
    _PODS,
    _CPU,
    ResultColumn("cpu_most", "most free cpu", NUMBER),
    _MEMORY,
    ResultColumn("memory_most", "most free memory", NUMBER),
    *_LAST,
)

_Amounts = Mapping[str, int]


def explain_nodes(model: ClusterModel, snapshot: Snapshot) -> TabularAnswer:
    """Return the explanation of all nodes of `snapshot`; `model` is the ClusterModel of `snapshot`.

    The explanation lists the nodes that take no new pods for now, with the reasons, and the
    requests and free resources of all other nodes. Rows of both kinds have the number of pending
    pods for which there is room. Virtual nodes in service have no rows, and do not count in sums,
    because the amounts that they state are not those of machines. If there are many nodes, their
    rows are grouped: by reason, or by pool and taints. The model is unchanged afterwards.
    """
    out = out_of_service_rows(model, snapshot.inventory())
    gone = {row["node"] for row in out}
    present = [info for info in model.table.nodes() if info.name not in gone]
    virtual = sorted(info.name for info in present if is_virtual(info.labels))
    serving = [info for info in present if not is_virtual(info.labels)]
    pending = sum(not model.cluster.node_of(pod) and not pod.terminating for pod in model.pods())
    tried = single_pods(model)
    with model.hypothesis():
        placed, left = place_each(model, tried)
        refusals = list(failure_messages(model, left))
        returns = _Returns(model, left)
        reasons = returns.with_room(out_of_service_reasons(out), out)
        rows = returns.with_room(out, out)
        returned = returns.room(out)
    each = _node_rows(model, serving, placed if tried else None)
    pools = _pool_rows(model, each)
    # In a hand-written dump, the newest time is often that of the nodes, so no time has passed.
    is_timed = any(row[_READY.key] for row in each)
    columns = [one for one in _COLUMNS if is_timed or one is not _READY]
    return TabularAnswer(
        kind="NodesExplanation",
        source=snapshot.source,
        verdict=(
            "Only virtual nodes are in service."
            if virtual and not serving
            else _verdict(
                len(serving), len(serving) + len(out), [*filter(None, map(_lacks, each))]
            )
        ),
        findings=(
            *_free(each),
            *_virtual(model, virtual),
            *_pending(len(tried), placed.total(), refusals, returned),
            *_not_tried(pending - len(tried)),
        ),
        tables=(
            *out_of_service_tables("out_of_service", rows, reasons),
            *grouped_if_long(
                ResultTable("pools", "nodes in service", _POOL_COLUMNS, pools),
                ResultTable("in_service", "nodes in service", tuple(columns), each,
                            shown=_SHOWN),
            ),
        ),
        facts={
            "nodes": model.table.count,
            "virtual_nodes": virtual,
            "pending_pods": pending,
            "node_reasons": reasons,
            "pools": pools,
        },
        notes=unsimulated_in_plan(snapshot.manifests, ADDS_NODES) if pending else (),
    )  # fmt: skip


class _Returns(Struct, frozen=True):
    """Counts how many of the pending `pods` would run if nodes of `model` returned to service."""

    model: ClusterModel
    pods: Sequence[PodInfo]

    def with_room(self, rows: Sequence[Row], nodes: Sequence[Row]) -> list[Row]:
        """Return `rows`, each with the number of pods for which its nodes could make room.

        This is the number of pending pods that would run if the nodes of the row were in service.
        `nodes` are the rows of single nodes. A row of `rows` is about one of these nodes, or about
        all nodes that have the reason of the row. The number is None if there are no pending pods,
        and for rows after the first _RETURNS_MAX.
        """
        found: list[Row] = []
        for at, row in enumerate(rows):
            key = "why" if "nodes" in row else "node"
            same = [one for one in nodes if one[key] == row[key]] if at < _RETURNS_MAX else []
            found.append({**row, ROOM_FOR.key: self.room(same)})
        return found

    def room(self, nodes: Iterable[Row]) -> int | None:
        """Return how many pods would run if `nodes` were in service; None if none can return."""
        names = [row["node"] for row in nodes]
        can = [name for name in names if not deletion_words(self.model.node(name).node)]
        return room_if_returned(self.model, can, self.pods) if can and self.pods else None


def _node_rows(
    model: ClusterModel, nodes: Iterable[NodeInfo], room: Counter[str] | None
) -> list[Row]:
    """Return the rows of `nodes`, which are in service.

    `room` counts, by node, the pods that fit on it; None if there are no pods to count. The node
    with the most free cpu comes first.
    """
    resources = model.table.resources.names
    every = [info.labels for info in model.table.nodes()]
    pools = PoolNames.of(pool_labels(every), every)
    rows: list[Row] = []
    for info in nodes:
        taints = (one for one in info.node.spec.taints if one.effect != PREFER_NO_SCHEDULE)
        requested = {name: info.requested_of(at) for at, name in enumerate(resources)}
        offered = {name: info.allocatable_of(at) for at, name in enumerate(resources)}
        # A stopped device plugin leaves the resource with the amount 0.
        known = {*_ALWAYS, *filter(is_extended_resource, info.node.status.allocatable)}
        known |= {name for name in resources if offered[name] or requested[name]}
        requested = {name: requested.get(name, 0) for name in resources if name in known}
        offered = {name: offered[name] for name in requested}
        ready = ready_condition(info.node)
        rows.append({
            "node": info.name,
            "zone": info.labels.get(ZONE, ""),
            "pool": pools.name(info.labels),
            "ready_s": ready and seconds_since(model, ready.last_transition_time),
            **_figures(requested, offered, len(info.pods), info.allowed_pods),
            ROOM_FOR.key: None if room is None else room[info.name],
            "taints": ", ".join(sorted(map(taint_text, taints))),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["free"]["cpu"], row["node"]))


def _pool_rows(model: ClusterModel, rows: Iterable[Row]) -> list[Row]:
    """Return a row for each pool and set of taints among the nodes of `rows`; most nodes first."""
    pools = pools_of(model, "").items()
    pool_of = {info.name: pool for pool, members in pools for info in members}
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[pool_of[row["node"]], row["taints"]].append(row)
    ordered = sorted(groups.values(), key=lambda found: (-len(found), found[0]["node"]))
    return [
        {
            "nodes": len(found),
            "node": listed([row["node"] for row in found], 1),
            "zone": zones_of(found),
            "pool": found[0]["pool"],
            **_figures(
                _total(row["requested"] for row in found),
                _total(row["allocatable"] for row in found),
                sum(row["pods"] for row in found),
                sum(row["allowed_pods"] for row in found),
            ),
            "cpu_most": _amount("cpu", max(row["free"]["cpu"] for row in found)),
            "memory_most": _amount("memory", max(row["free"]["memory"] for row in found)),
            ROOM_FOR.key: _sum(row[ROOM_FOR.key] for row in found),
            "taints": found[0]["taints"],
        }
        for found in ordered
    ]


def _figures(requested: _Amounts, offered: _Amounts, pods: int, allowed_pods: int) -> Row:
    """Return the fields of a row about amounts, as numbers and as words.

    `requested` and `offered` (allocatable) have the same resources: cpu in millicores, all others
    in units.
    """
    free = {name: offered[name] - requested[name] for name in offered}
    devices = [
        f"{free[name]:,} of {offered[name]:,} {name}"
        for name in offered
        if is_extended_resource(name)
    ]
    return {
        "pods": pods,
        "allowed_pods": allowed_pods,
        "requested": {name: requested[name] for name in offered},
        "allocatable": dict(offered),
        "free": free,
        "pods_words": f"{pods:,} of {allowed_pods:,}",
        "cpu_words": _part("cpu", requested, offered),
        "cpu_free": _amount("cpu", free["cpu"]),
        "memory_words": _part("memory", requested, offered),
        "memory_free": _amount("memory", free["memory"]),
        "devices_free": ", ".join(devices),
    }


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the known `numbers`; None if no number is known."""
    known = [one for one in numbers if one is not None]
    return sum(known) if known else None


def _total(amounts: Iterable[_Amounts]) -> Counter[str]:
    total = Counter[str]()
    for one in amounts:
        total.update(one)
    return total


def _part(resource: str, part: _Amounts, whole: _Amounts) -> str:
    return f"{_amount(resource, part[resource])} of {_amount(resource, whole[resource])}"


def _amount(resource: str, amount: int) -> str:
    """Return `amount` in cores or Gi, rounded to whole numbers from 100 on."""
    value = amount / (_MILLI if resource == "cpu" else _GIB)
    # The sum with 0 turns -0.0 into 0.0.
    text = f"{value:,.0f}" if abs(value) >= _LARGE else f"{round(value, 2) + 0:,g}"
    return f"{text}Gi" if resource == "memory" and amount else text


def _lacks(row: Row) -> list[str]:
    """Return what the node of `row` lacks to take one more pod with requests; [] if nothing."""
    found = [f"no free {name}" for name in _ALWAYS if row["free"][name] <= 0]
    return found if row["pods"] < row["allowed_pods"] else [*found, "no room for another pod"]


def _verdict(serving: int, nodes: int, full: Sequence[Sequence[str]]) -> str:
    """Return the first sentence about the `nodes`, of which `serving` are in service.

    For each node in service without room, `full` contains what the node lacks.
    """
    if not serving:
        return "No node takes new pods."
    if full:
        lacks = " or ".join(sorted({one for node in full for one in node}))
        if nodes == 1:
            return f"The node is in service, but it has {lacks}."
        where = f"{serving:,} of {nodes:,} nodes" if serving < nodes else f"All {nodes:,} nodes"
        which = f"{len(full):,} of them" if len(full) < serving else "they"
        are, have = ("is" if serving == 1 else "are"), ("has" if len(full) == 1 else "have")
        which = "it" if serving == 1 else which
        return f"{where} {are} in service, but {which} {have} {lacks}."
    if serving == nodes:
        return f"All {nodes:,} nodes take new pods." if nodes > 1 else "The node takes new pods."
    return f"{counted_of(serving, nodes, 'node', ('takes', 'take'))} new pods."


def _free(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence about the free resources of the nodes in service, which `rows` describe."""
    if not rows:
        return
    requested = _total(row["requested"] for row in rows)
    offered = _total(row["allocatable"] for row in rows)
    most = [f"{_amount(name, max(row['free'][name] for row in rows))} {name}" for name in _ALWAYS]
    parts = [f"{_part(name, requested, offered)} {name}" for name in _ALWAYS]
    where = "these nodes" if len(rows) > 1 else "this node"
    one = f"; the most free on one node is {' and '.join(most)}" if len(rows) > 1 else ""
    yield f"Pods on {where} request {' and '.join(parts)}{one}."


def _virtual(model: ClusterModel, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about the virtual nodes `names`, which are in service."""
    if names:
        pods = sum(len(model.node(name).pods) for name in names)
        one = len(names) == 1
        yield (
            f"{counted(len(names), 'virtual node')} {'is' if one else 'are'} not counted: "
            f"{listed(names)}, with {counted(pods, 'pod')}."
        )


def _pending(
    pending: int, placed: int, refusals: Sequence[str], returned: int | None
) -> Iterator[str]:
    """Yield sentences about the `pending` pods that the scheduler tries one by one.

    `placed` of these pods fit on nodes now. `refusals` are the FailedScheduling messages of the
    other pods. `returned` is the number of other pods that would fit if all nodes were in service;
    None if no node can return to service.
    """
    if not pending:
        return
    is_, them = ("pod is", "it") if pending == 1 else ("pods are", "them")
    why, left = reasons_in_words(refusals) if refusals else "", pending - placed
    if not placed:
        now = f", and no node takes {them} now{why}."
    elif left:
        others = "the other pod" if left == 1 else f"the other {left:,} pods"
        now = f": there is room for {placed:,} of {them} now. No node takes {others}{why}."
    else:
        now = f": there is room for {them} now."
    back = ""
    if returned:
        more = " more" if placed else ""
        back = f" If all nodes were in service, there would be room for {returned:,}{more}."
    elif returned is not None and left:
        others = "it" if left == 1 else "them"
        back = f" Even if all nodes were in service, no node would take {others}."
    yield f"{pending:,} {is_} pending{now}{back}"


def _not_tried(pods: int) -> Iterator[str]:
    """Yield a sentence about the pending `pods` that are not counted."""
    if pods:
        is_, it, start, do = "pods are", "they", "start", "do"
        if pods == 1:
            is_, it, start, do = "pod is", "it", "starts", "does"
        yield (
            f"{pods:,} pending {is_} not counted, because {it} {start} only with a group or "
            f"{do} not enter the scheduler's queue; the explanation of all pods says why."
        )
