"""Explains which pods of a cluster are pending or not ready, and which nodes take no pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.nodes.readiness import UNKNOWN, is_ready_node, ready_condition, ready_status
from fairlead.api.nodes.taint import PREFER_NO_SCHEDULE, taint_text
from fairlead.api.objects import Node
from fairlead.api.pods.facts import is_terminating
from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import to_seconds
from fairlead.engine.nodelifecycle.well_known import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from fairlead.whatif.configuration.autoscaling.autoscaler import ADDS_NODES, unsimulated_in_plan
from fairlead.whatif.explain.pod_cause import (
    PodCause,
    cause_row,
    pending_causes,
    unready_causes,
)
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, in_queue_order
from fairlead.whatif.planner.node.drain_exemption import deletion_words
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.snapshot.node_pool import is_lasting_taint
from fairlead.whatif.snapshot.snapshot import Snapshot

_PENDING_COLUMNS: Final = (
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("workload", "workload", NAME),
    ResultColumn("pod", "pending", NAME, rank=2),
    ResultColumn("longest_s", "longest", SECONDS, rank=1),
    ResultColumn("why", "why"),
)
_UNREADY_COLUMNS: Final = (
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("workload", "workload", NAME),
    ResultColumn("pod", "not ready", NAME, rank=2),
    ResultColumn("why", "why"),
)
_NODE_COLUMNS: Final = (
    ResultColumn("node", "node", NAME),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("since_s", "for", SECONDS, rank=1),
    ResultColumn("why", "why"),
)


def explain_pods(model: ClusterModel, snapshot: Snapshot) -> TabularAnswer:
    """Return the explanation of all pods of `snapshot`; `model` is the model of `snapshot`.

    It lists the pending pods, the pods that have a node but are not ready, and the nodes that take
    no new pods. Terminating pods are in none of the lists.
    """
    every = [pod for pod in model.pods() if not is_terminating(pod.pod)]
    pending = in_queue_order(pod for pod in every if not model.cluster.node_of(pod))
    placed = sorted((pod for pod in every if model.cluster.node_of(pod)), key=lambda pod: pod.key)
    unready = unready_causes(model, snapshot.inventory(), placed)
    nodes = _node_rows(model)
    return TabularAnswer(
        kind="PodsExplanation",
        source=snapshot.source,
        verdict=_verdict(
            len(every), len(pending), len(unready),
            has_terminating=len(every) < len(model.pods()),
        ),
        findings=tuple(_findings(model, nodes)),
        tables=(
            ResultTable("pending", "pending pods", _PENDING_COLUMNS,
                        _pending_rows(model, pending_causes(model, pending))),
            ResultTable("unready", "pods on a node that are not ready", _UNREADY_COLUMNS,
                        [row for row, _ in _rows(unready)]),
            ResultTable("nodes", "nodes that take no new pods", _NODE_COLUMNS, nodes),
        ),
        facts={
            "pods": len(every),
            "pending_pods": len(pending),
            "unready_pods": len(unready),
        },
        notes=unsimulated_in_plan(snapshot.manifests, ADDS_NODES) if pending else (),
    )  # fmt: skip


def _verdict(pods: int, pending: int, unready: int, *, has_terminating: bool) -> str:
    """Return the verdict; the numbers leave out terminating pods."""
    if not pods and has_terminating:
        return "Every unfinished pod is terminating."
    if not pods:
        return "The cluster has no unfinished pods."
    if not pending and not unready:
        one = "The pod has a node and is ready."
        return f"All {pods:,} pods have a node and are ready." if pods > 1 else one
    more = ""
    if unready:
        rest = "pod on a node is" if unready == 1 else "pods on nodes are"
        more = f"{unready:,} {'more ' if pending else ''}{rest} not ready"
    if not pending:
        return f"No pod is pending. {more}."
    return f"{counted_of(pending, pods, 'pod')} pending{f'; {more}' if more else ''}."


def _findings(model: ClusterModel, nodes: Sequence[Row]) -> Iterator[str]:
    """Yield sentences about nodes that take no new pods, and about pods that do not stop."""
    if nodes:
        take = ("takes", "take")
        yield f"{counted_of(len(nodes), model.table.count, 'node', take)} no new pods."
    leaving = [pod for pod in model.pods() if is_terminating(pod.pod)]
    hosts = [model.find_node(model.cluster.node_of(pod)) for pod in leaving]
    stuck = [host.name for host in hosts if host and ready_status(host.node) == UNKNOWN]
    if stuck:
        is_, stay = ("is", "stays") if len(stuck) == 1 else ("are", "stay")
        what = "a node whose kubelet does not answer"
        if len(set(stuck)) > 1:
            what = "nodes whose kubelets do not answer"
        noun = "more pod" if len(leaving) < len(model.pods()) else "pod"
        yield (
            f"{counted(len(stuck), noun)} {is_} terminating, and {stay} so: on {what} "
            f"({listed(sorted(set(stuck)), 3)})."
        )


def _pending_rows(model: ClusterModel, causes: Iterable[PodCause]) -> list[Row]:
    """Return the rows of the pending pods, with the longest time since a pod was created."""
    rows: list[Row] = []
    for row, found in _rows(causes):
        ages = (_seconds_since(model, one.pod.pod.metadata.creation_timestamp) for one in found)
        longest = max((age for age in ages if age is not None), default=None)
        rows.append({**row, "longest_s": longest})
    return rows


def _rows(causes: Iterable[PodCause]) -> list[tuple[Row, list[PodCause]]]:
    """Return (row, its causes) for each workload and reason; most pods first."""
    groups: dict[tuple[str, str], list[PodCause]] = defaultdict(list)
    for one in causes:
        groups[str(workload_of(one.pod.pod)), one.why].append(one)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [({"workload": name, **cause_row(found)}, found) for (name, _), found in ordered]


def _node_rows(model: ClusterModel) -> list[Row]:
    """Return a row for each node that takes no new pods for now.

    These nodes are not Ready, are cordoned, are being deleted, or have a temporary taint, for
    example because of a full disk. A taint that a row's other reasons imply is left out.
    """
    rows: list[Row] = []
    for info in sorted(model.table.nodes(), key=lambda info: info.name):
        ready = ready_condition(info.node)
        reasons = [deletion_words(info.node).removeprefix("it is ")]
        reasons += ["cordoned"] if info.node.spec.unschedulable else []
        implied = {UNSCHEDULABLE} if info.node.spec.unschedulable else set[str]()
        since = None
        if ready is not None and not is_ready_node(info.node):
            implied |= {NOT_READY, UNREACHABLE}
            message = f": {ready.message.rstrip('.')}" if ready.message else ""
            reasons.append(f"not Ready ({ready.reason or ready.status}){message}")
            since = _seconds_since(model, ready.last_transition_time)
        reasons += _temporary_taints(info.node, implied)
        if why := "; ".join(filter(None, reasons)):
            row = {"node": info.name, "pods": len(info.pods), "since_s": since, "why": why}
            rows.append(row)
    return rows


def _temporary_taints(node: Node, implied: Container[str]) -> Iterator[str]:
    """Yield words about the temporary taints of `node` that repel pods, except the `implied` keys.

    A lasting taint is for some kinds of pods only, and other pods use the node.
    """
    for one in node.spec.taints:
        is_temporary = one.key not in implied and not is_lasting_taint(one.key)
        if is_temporary and one.effect != PREFER_NO_SCHEDULE:
            yield f"taint {taint_text(one)}"


def _seconds_since(model: ClusterModel, timestamp: str) -> float | None:
    """Return the seconds from `timestamp` until the time of the dump; None if it is ""."""
    return to_seconds(model.now - parse_timestamp(timestamp)) if timestamp else None
