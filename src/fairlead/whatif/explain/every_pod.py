"""Explains which pods of a cluster are pending or not ready, and which nodes take no pods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.readiness import UNKNOWN, ready_status
from fairlead.api.pods.facts import has_negative_priority, is_terminating
from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import joined, listed
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.configuration.autoscaling.autoscaler import ADDS_NODES, unsimulated_in_plan
from fairlead.whatif.explain.grouped_table import grouped_if_long
from fairlead.whatif.explain.out_of_service import (
    out_of_service_reasons,
    out_of_service_rows,
    out_of_service_tables,
)
from fairlead.whatif.explain.pod_cause import (
    NO_CAUSES,
    PodCause,
    cause_row,
    explain_steps,
    pending_causes,
    seconds_since,
    unready_causes,
)
from fairlead.whatif.explain.unbound_claim import unbound_claims_of
from fairlead.whatif.explain.uncreated_pod import AwaitedEnd, held_pods, uncreated_rows
from fairlead.whatif.outcome.assessment.next_step import NextStep, out_of_service_step
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, in_queue_order
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.snapshot.snapshot import Snapshot

_WORKLOADS_MAX: Final = 3  # workloads that are named because they lack pods
_NODES_MAX: Final = 3  # nodes in a command
_CLAIMS_MAX: Final = 3  # claims that are named because they are not bound
_Group = tuple[Row, list[PodCause]]  # a row, and the causes that it counts
_PODS: Final = ResultColumn("pods", "pods", NUMBER)
_WORKLOAD: Final = ResultColumn("workload", "workload", NAME)
_WORKLOADS: Final = ResultColumn("workload", "workloads", NAME)
_LONGEST: Final = ResultColumn("longest_s", "longest", SECONDS, rank=1)
_WHY: Final = ResultColumn("why", "why")
_PENDING_POD: Final = ResultColumn("pod", "pending", NAME, rank=2)
_UNREADY_POD: Final = ResultColumn("pod", "not ready", NAME, rank=2)
_PENDING_COLUMNS: Final = (_PODS, _WORKLOAD, _PENDING_POD, _LONGEST, _WHY)
_PENDING_REASON_COLUMNS: Final = (_PODS, _WORKLOADS, _LONGEST, _WHY)
_UNCREATED_COLUMNS: Final = (
    _PODS,
    _WORKLOAD,
    ResultColumn("since_s", "for", SECONDS, rank=1),
    _WHY,
)
_UNREADY_COLUMNS: Final = (_PODS, _WORKLOAD, _UNREADY_POD, _WHY)
_UNREADY_REASON_COLUMNS: Final = (_PODS, _WORKLOADS, _WHY)


def explain_pods(
    model: ClusterModel,
    snapshot: Snapshot,
    group_causes: Mapping[str, str] = NO_CAUSES,
    namespace: str = "",
) -> TabularAnswer:
    """Return the explanation of all pods of `snapshot`; `model` is the ClusterModel of `snapshot`.

    If `namespace` is set, the explanation is about the pods of this namespace.
    `group_causes` maps the keys (`namespace/name`) of waiting pods of the batch scheduler to the
    reasons why their groups wait.

    The explanation lists the pending pods, the workloads that lack pods, the pods that have a node
    but are not ready, and the nodes that take no new pods. Terminating pods are in none of the
    lists.
    """
    inventory = snapshot.inventory()
    present = [pod for pod in model.pods() if namespace in ("", pod.pod.metadata.namespace)]
    every = [pod for pod in present if not is_terminating(pod.pod)]
    pending = in_queue_order(pod for pod in every if not model.cluster.node_of(pod))
    placed = sorted((pod for pod in every if model.cluster.node_of(pod)), key=lambda pod: pod.key)
    unready = unready_causes(model, inventory, placed)
    causes = pending_causes(model, pending, group_causes)
    held = held_pods(model, inventory, namespace)
    uncreated = uncreated_rows(model, inventory, held, namespace)
    uncreated_pods = sum(row["pods"] for row in uncreated)
    nodes = out_of_service_rows(model, inventory)
    node_reasons = out_of_service_reasons(nodes)
    pending_reasons = _with_ages(model, _by_reason(causes))
    unready_reasons = [row for row, _ in _by_reason(unready)]
    return TabularAnswer(
        kind="PodsExplanation",
        source=snapshot.source,
        verdict=_verdict(
            _Counts(
                pods=len(every),
                pending=len(pending),
                negative=sum(has_negative_priority(one.pod.pod) for one in causes),
                unready=len(unready),
                uncreated=uncreated_pods,
                has_terminating=len(every) < len(present),
            ),
            namespace,
        ),
        findings=(
            *_lacking(uncreated),
            *unbound_claims_of((pod.pod for pod in pending), inventory, model.now, _CLAIMS_MAX),
            *_findings(model, nodes, present),
        ),
        tables=(
            *grouped_if_long(
                ResultTable("pending_reasons", "why pods are pending", _PENDING_REASON_COLUMNS,
                            pending_reasons),
                ResultTable("pending", "pending pods", _PENDING_COLUMNS,
                            _with_ages(model, _by_workload(causes))),
            ),
            ResultTable("uncreated", "workloads that lack pods", _UNCREATED_COLUMNS, uncreated),
            *grouped_if_long(
                ResultTable("unready_reasons", "why pods on a node are not ready",
                            _UNREADY_REASON_COLUMNS, unready_reasons),
                ResultTable("unready", "pods on a node that are not ready", _UNREADY_COLUMNS,
                            [row for row, _ in _by_workload(unready)]),
            ),
            *out_of_service_tables("nodes", nodes, node_reasons),
        ),
        facts={
            "pods": len(every),
            "pending_pods": len(pending),
            "unready_pods": len(unready),
            "uncreated_pods": uncreated_pods,
            "pending_reasons": pending_reasons,
            "unready_reasons": unready_reasons,
            "node_reasons": node_reasons,
        },
        notes=unsimulated_in_plan(snapshot.manifests, ADDS_NODES) if pending else (),
        steps=(
            *_replace_elsewhere(held),
            *explain_steps(causes, snapshot.question_arguments),
        ),
    )  # fmt: skip


def _replace_elsewhere(held: Sequence[AwaitedEnd]) -> Iterator[NextStep]:
    """Yield the command that marks unreachable nodes as out of service.

    After that, StatefulSets replace the pods on these nodes. Without the command, these pods stay
    terminating, because the kubelets of their nodes are silent. `held` contains these pods, and
    pods that do not end for other reasons.
    """
    silent = sorted({one.silent_node for one in held if one.silent_node})
    if silent:
        named = silent[:_NODES_MAX]
        yield out_of_service_step(named, more=len(silent) - len(named))


class _Counts(Struct, frozen=True, kw_only=True):
    """Numbers of pods, without terminating pods."""

    pods: int
    pending: int
    negative: int  # pending pods with a negative priority
    unready: int
    uncreated: int
    has_terminating: bool


def _verdict(found: _Counts, namespace: str) -> str:
    """Return the verdict about the pods of `namespace`, or about all pods if it is ""."""
    pods, pending, unready, uncreated = found.pods, found.pending, found.unready, found.uncreated
    negative, has_terminating = found.negative, found.has_terminating
    where = f" of namespace {namespace}" if namespace else ""
    if not pods and has_terminating:
        return f"Every unfinished pod{where} is terminating."
    if not pods:
        return f"{f'Namespace {namespace}' if namespace else 'The cluster'} has no unfinished pods."
    if not pending and not unready:
        which = " that is not terminating" if pods == 1 else " that are not terminating"
        which = which if has_terminating else ""
        ready = f"The pod{where}{which} has a node and is ready"
        if pods > 1:
            ready = f"All {pods:,} pods{where}{which} have a node and are ready"
        if not uncreated:
            return f"{ready}."
        return f"{ready}, but {counted(uncreated, 'more pod')} {_be(uncreated)} not created."
    more = ""
    if unready:
        rest = "pod on a node is" if unready == 1 else "pods on nodes are"
        more = f"{unready:,} {'more ' if pending else ''}{rest} not ready"
    if not pending:
        return f"No pod{where} is pending. {more}."
    among = ""
    if negative:
        which = "all" if negative == pending else f"{negative:,}"
        whose = "" if pending == 1 else f" {which} of them"
        among = f",{whose} with a negative priority"
    words = counted_of(pending, pods, f"pod{where}", plural=f"pods{where}")
    return f"{words} pending{among}{f'; {more}' if more else ''}."


def _lacking(uncreated: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence about the pods that the workloads of `uncreated` want and do not have."""
    if uncreated:
        pods = sum(row["pods"] for row in uncreated)
        names = list(dict.fromkeys(row["workload"] for row in uncreated))
        of = joined(names) if len(names) <= _WORKLOADS_MAX else listed(names, _WORKLOADS_MAX)
        yield f"{counted(pods, 'pod')} of {of} {_be(pods)} not created."


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _findings(
    model: ClusterModel, nodes: Sequence[Row], present: Sequence[PodInfo]
) -> Iterator[str]:
    """Yield sentences about nodes that take no new pods, and about pods that stay terminating.

    `present` are the explained pods.
    """
    if nodes:
        take = ("takes", "take")
        yield f"{counted_of(len(nodes), model.table.count, 'node', take)} no new pods."
    leaving = [pod for pod in present if is_terminating(pod.pod)]
    hosts = [model.find_node(model.cluster.node_of(pod)) for pod in leaving]
    stuck = [host.name for host in hosts if host and ready_status(host.node) == UNKNOWN]
    if stuck:
        is_, stay = ("is", "stays") if len(stuck) == 1 else ("are", "stay")
        silent = listed(sorted(set(stuck)), 3)
        why = f"the kubelet of {silent} does not answer"
        if len(set(stuck)) > 1:
            why = f"the kubelets of {silent} do not answer"
        noun = "more pod" if len(leaving) < len(present) else "pod"
        yield f"{counted(len(stuck), noun)} {is_} terminating, and {stay} so, because {why}."


def _rank(causes: Collection[PodCause]) -> tuple[bool, int]:
    """Return a sort key: most pods first, but groups with only negative priorities come last."""
    return all(has_negative_priority(one.pod.pod) for one in causes), -len(causes)


def _by_workload(causes: Iterable[PodCause]) -> list[_Group]:
    """Return a row for each workload and reason, with its causes, in the order of `_rank`."""
    groups: dict[tuple[str, str], list[PodCause]] = defaultdict(list)
    for one in causes:
        groups[str(workload_of(one.pod.pod)), one.why].append(one)
    ordered = sorted(groups.items(), key=lambda item: (*_rank(item[1]), item[0]))
    return [({"workload": name, **cause_row(found)}, found) for (name, _), found in ordered]


def _by_reason(causes: Iterable[PodCause]) -> list[_Group]:
    """Return a row for each reason, with its workloads and its causes, in the order of `_rank`."""
    groups: dict[str, list[PodCause]] = defaultdict(list)
    for one in causes:
        groups[one.why].append(one)
    ordered = sorted(groups.items(), key=lambda item: (*_rank(item[1]), item[0]))
    return [({**_workloads(found), **cause_row(found)}, found) for _, found in ordered]


def _workloads(causes: Iterable[PodCause]) -> Row:
    """Return the number of workloads in `causes`, and the workload with the most pods."""
    pods = Counter(str(workload_of(one.pod.pod)) for one in causes)
    names = sorted(pods, key=lambda name: (-pods[name], name))
    return {"workloads": len(names), "workload": listed(names, 1)}


def _with_ages(model: ClusterModel, groups: Iterable[_Group]) -> list[Row]:
    """Return the rows of `groups`, each with the age of its oldest pod."""
    rows: list[Row] = []
    for row, found in groups:
        ages = (seconds_since(model, one.pod.pod.metadata.creation_timestamp) for one in found)
        longest = max((age for age in ages if age is not None), default=None)
        rows.append({**row, "longest_s": longest})
    return rows
