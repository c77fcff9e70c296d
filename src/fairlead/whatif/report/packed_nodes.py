"""Packs nodes, their pods and their history into the columns of the page.

    a side     one of the runs: `after` has the change, `before` does not
    nodes      the nodes at the end of `after`, then all other nodes that exist in either run
    pods       the pods at the end of `after`, in node order, then all other pods of both runs

`static/node_state.js` computes the state of a run at an instant. The script starts with the state
at the end of the run, and reverts the changes after the instant. The pods at the end of `before`
are stored only as differences from the pods at the end of `after`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.whatif.report.columns import column, figures, finite
from fairlead.whatif.report.data import HistoryRows, NodeRow, PodRow

GROUPS_MAX: Final = 40  # maximum number of values of a label by which nodes can be grouped
EXISTS: Final = 1
SERVING: Final = 2
UNSCHEDULABLE: Final = 4

_Amounts = tuple[tuple[str, int], ...]
_PodKey = tuple[str, Any, _Amounts]


class NodeSide(Struct, frozen=True):
    """The `nodes` at the end of one run, and the `history` of the run; None if it is unknown."""

    nodes: Sequence[NodeRow]
    history: HistoryRows | None = None


def packed_nodes(after: NodeSide, before: NodeSide | None = None) -> Json:
    """Return the nodes of both runs and their pods as columns, with the pod count of each node.

    `after` is the run with the change, and `before` is the run without the change. If there is only
    one run, `before` is None.
    """
    nodes = _all_nodes(after, before)
    pods = _PodColumns(nodes[: len(after.nodes)])
    index = {node["name"]: at for at, node in enumerate(nodes)}
    packed = {
        "length": len(nodes),
        "name": column(node["name"] for node in nodes),
        "zone": column(node.get("zone", "") for node in nodes),
        "labels": _groups(nodes),
        **_state(nodes, after),
        "history": _packed_history(after, index, pods),
        "before": None,
    }
    if before is not None:
        packed["before"] = {
            **_state(nodes, before),
            "pods": _pod_differences(after, before, index, pods),
            "history": _packed_history(before, index, pods),
        }
    counts = [len(node.get("pods", ())) for node in after.nodes]
    counts += [0] * (len(nodes) - len(counts))
    return {**packed, "pods": {"count": column(counts), **pods.packed()}}


def _all_nodes(after: NodeSide, before: NodeSide | None) -> list[NodeRow]:
    """Return the nodes of both runs, including deleted nodes; each name occurs once.

    The nodes are in this order: nodes at the end of `after`, nodes at the end of `before`, nodes
    deleted in `after`, nodes deleted in `before`. Of several nodes with the same name, only the
    first is returned.
    """
    sides = [after] if before is None else [after, before]
    listed = [node for side in sides for node in side.nodes]
    gone = [node for side in sides for node in (side.history or {}).get("deleted", ())]
    by_name: dict[str, NodeRow] = {}
    for node in (*listed, *gone):
        by_name.setdefault(node["name"], node)
    return list(by_name.values())


def _state(nodes: Sequence[NodeRow], side: NodeSide) -> Json:
    """Return the state of `nodes` at the end of the run of `side`."""
    existing = {node["name"]: node for node in side.nodes}
    gone = {node["name"]: node for node in (side.history or {}).get("deleted", ())}
    rows = [existing.get(node["name"], gone.get(node["name"], node)) for node in nodes]
    quiet = set((side.history or {}).get("out_of_service", ()))
    cordoned = {node["name"] for node in side.nodes if node.get("unschedulable")}
    absent = [at for at, node in enumerate(nodes) if node["name"] not in existing]
    without_pods: Mapping[str, int] = {}
    return {
        "absent": absent,
        "unschedulable": [at for at, node in enumerate(nodes) if node["name"] in cordoned],
        "out_of_service": [at for at, node in enumerate(nodes) if node["name"] in quiet],
        "allocatable": by_resource([node.get("allocatable", {}) for node in rows]),
        "requested": by_resource(
            [
                node.get("requested", {}) if node["name"] in existing else without_pods
                for node in rows
            ]
        ),
    }


def _groups(nodes: Sequence[NodeRow]) -> Json:
    """Return one column of values for each label by which the nodes can be grouped."""
    keys = dict.fromkeys(key for node in nodes for key in node.get("labels", {}))
    columns = {key: [node.get("labels", {}).get(key, "") for node in nodes] for key in sorted(keys)}
    return {
        key: column(values)
        for key, values in columns.items()
        if 1 < len(set(values)) <= min(GROUPS_MAX, len(nodes) - 1)
    }


def by_resource(amounts: Sequence[Mapping[str, int]]) -> Json:
    """Return one column for each resource that occurs in `amounts`."""
    names = dict.fromkeys(name for amount in amounts for name in amount)
    return {name: column(amount.get(name) for amount in amounts) for name in names}


# --- pods and their history ----------------------------------------------------------------------


class _PodColumns:
    """The pods of the page as columns; equal requests are stored once, in the list `shapes`."""

    def __init__(self, nodes: Iterable[NodeRow]) -> None:
        """Start with the pods of `nodes`, in node order."""
        # Most pods share their requests. The rows keep the objects alive, so ids are unique.
        self._amounts: dict[int, _Amounts] = {}
        self._keys_on: dict[int, Sequence[_PodKey]] = {}  # by id of the node's row
        self._pods = [key for node in nodes for key in self.keys_on(node)]
        self._index: dict[_PodKey, int] | None = None

    def key_of(self, pod: PodRow) -> _PodKey:
        """Return a key that is equal for pods with equal names, priorities and requests."""
        name, priority, requests = pod
        known = self._amounts.get(id(requests))
        if known is None:
            known = self._amounts[id(requests)] = tuple(sorted(figures(requests).items()))
        return name, priority, known

    def keys_on(self, node: NodeRow) -> Sequence[_PodKey]:
        """Return the keys of the pods on `node`."""
        known = self._keys_on.get(id(node))
        if known is None:
            known = self._keys_on[id(node)] = [*map(self.key_of, node.get("pods", ()))]
        return known

    def index_of(self, key: _PodKey) -> int:
        """Return the position of the pod with `key`; the pod is added if it is missing."""
        index = self._index
        if index is None:
            index = self._index = {pod: at for at, pod in enumerate(self._pods)}
        found = index.get(key)
        if found is None:
            found = index[key] = len(self._pods)
            self._pods.append(key)
        return found

    def packed(self) -> Json:
        names, priorities, amounts = zip(*self._pods, strict=True) if self._pods else ((), (), ())
        shapes = {shape: at for at, shape in enumerate(dict.fromkeys(amounts))}
        return {
            "name": column(names),
            "priority": column(priorities),
            "shape": [shapes[shape] for shape in amounts],
            "shapes": [dict(shape) for shape in shapes],
        }


def _packed_history(side: NodeSide, index: Mapping[str, int], pods: _PodColumns) -> Json | None:
    if side.history is None:
        return None
    placements = side.history.get("placements", ())
    statuses = side.history.get("statuses", ())
    return {
        "placements": {
            "t_s": [finite(one["t_s"]) for one in placements],
            "node": [index[one["node"]] for one in placements],
            "pod": [pods.index_of(pods.key_of(one["pod"])) for one in placements],
            "arrives": [int(one["arrives"]) for one in placements],
        },
        "statuses": {
            "t_s": [finite(one["t_s"]) for one in statuses],
            "node": [index[one["node"]] for one in statuses],
            "state": [
                EXISTS * one["exists"]
                + SERVING * one["serving"]
                + UNSCHEDULABLE * one["unschedulable"]
                for one in statuses
            ],
        },
    }


def _pod_differences(
    after: NodeSide, before: NodeSide, index: Mapping[str, int], pods: _PodColumns
) -> Json:
    """Return how the pods at the end of the run `before` differ from the pods in `after`."""
    rows = list(_differing_pods(after.nodes, before.nodes, pods))
    return {
        "node": [index[node] for node, _, _ in rows],
        "pod": [pods.index_of(key) for _, key, _ in rows],
        "arrives": [int(arrives) for _, _, arrives in rows],
    }


def _differing_pods(
    after: Sequence[NodeRow], before: Sequence[NodeRow], pods: _PodColumns
) -> Iterator[tuple[str, _PodKey, bool]]:
    """Yield (node, key of a pod, flag) for each pod that is on the node in only one of the runs.

    The flag is True if the pod is on the node in the run `before`.
    """
    shared = {id(node) for node in after} & {id(node) for node in before}
    sides = [
        {
            node["name"]: pods.keys_on(node)
            for node in nodes
            if id(node) not in shared  # a row object that both sides use has no difference
        }
        for nodes in (after, before)
    ]
    for node in dict.fromkeys([*sides[0], *sides[1]]):
        keys, others = (side.get(node, ()) for side in sides)
        if keys == others:
            continue
        here, there = Counter(keys), Counter(others)
        yield from ((node, key, True) for key in (there - here).elements())
        yield from ((node, key, False) for key in (here - there).elements())
