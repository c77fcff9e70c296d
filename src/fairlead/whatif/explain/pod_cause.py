"""Finds out why pods are pending, and why pods on nodes are not ready."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition, is_terminal, is_terminating
from fairlead.api.pods.volumes import all_claims
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.admission.quota.resource_quota import QuotaExcess
from fairlead.engine.batch.info.group import group_name, labelled_group
from fairlead.engine.core.command import pod_ref
from fairlead.engine.core.instant import to_seconds
from fairlead.engine.kubelet.volume_attachment import SingleNodeVolumes
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.state.pod_groups import group_key
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.pod_control.scale_down import is_ready
from fairlead.engine.workloads.volumes.binding_step import lacks_provisioner
from fairlead.whatif.explain.pod_group import try_pod_group
from fairlead.whatif.explain.preemption import awaited_victims
from fairlead.whatif.explain.readiness import why_unready
from fairlead.whatif.explain.unbound_claim import users_of_claim
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.refusal import size_problem
from fairlead.whatif.snapshot.inventory import Inventory

_LACKS: Final = "Insufficient "  # begins the reason for each resource that a node lacks
_GROUP_HELD: Final = "its PodGroup cannot start now"
NO_CAUSES: Final[Mapping[str, str]] = {}
# (namespace, id of the shape, priority, preemptionPolicy, reason why it fits no node) of a pod. The
# shape is the part of its spec that affects scheduling.
_Equal = tuple[str, int, int, str, str]


class PodCause(Struct, frozen=True):
    """The reason `why` a pod is pending or not ready.

    `node` is the node on which a pending pod fits now; "" if there is none. `detail` is the part of
    the reason that concerns only this pod or its PodGroup; "" if there is no such part. `detail` is
    separate so that pods with the same `why` can be counted together. `is_unschedulable` is set if
    a scheduler tries the pod, but no node takes the pod. It is not set while the pod waits for the
    end of pods that it has preempted.
    """

    pod: PodInfo
    why: str
    node: str = ""
    detail: str = ""
    is_unschedulable: bool = False


def is_up(model: ClusterModel, pod: PodInfo) -> bool:
    """Return whether `pod` is ready. If its node no longer exists, the result is False.

    If a node was deleted, its pods have the status Ready until pod garbage collection deletes them.
    """
    node = model.cluster.node_of(pod)
    return is_ready(pod.pod) and (not node or model.find_node(node) is not None)


def pending_causes(
    model: ClusterModel, pending: Sequence[PodInfo], group_causes: Mapping[str, str] = NO_CAUSES
) -> list[PodCause]:
    """Return why each of the `pending` pods is pending, in their order.

    A pod of the batch scheduler waits with its group. `group_causes` maps the keys
    (`namespace/name`) of such pods to the known reasons. The pods are tried in the order of
    `pending`. A pod that fits a node takes room from later pods. The model is unchanged afterwards.
    """
    groups = _held_groups(model, pending)
    leaving = [pod for pod in model.pods() if is_terminating(pod.pod)]
    known: dict[_Equal, str] = {}
    found: list[PodCause] = []
    with model.hypothesis():
        for pod in pending:
            held = groups.get(group_key(pod), "")
            found.append(
                PodCause(pod, _GROUP_HELD, detail=held, is_unschedulable=True)
                if held
                else _pending_cause(model, pod, leaving, known, group_causes)
            )
    return found


def explain_steps(causes: Iterable[PodCause], arguments: Sequence[str]) -> Iterator[NextStep]:
    """Yield the command that explains what would help the first unschedulable pod of `causes`.

    Nothing is yielded if there is no such pod. `causes` is the result of `pending_causes` for pods
    in the order of the queue. `arguments` are the command-line words with which another command
    reads the same cluster.
    """
    pod = next((one.pod for one in causes if one.is_unschedulable), None)
    if pod is not None:
        words = ("fairlead", "explain", *arguments, f"pod/{pod.key}")
        yield NextStep("ask what would help a pending pod", command=shlex.join(words))


def quota_steps(message: str, namespace: str, arguments: Sequence[str]) -> Iterator[NextStep]:
    """Yield the command that explains the quota of `namespace` that refused pods with `message`.

    Nothing is yielded if `message` is not about an exceeded quota. `explain_steps` explains
    `arguments`.
    """
    excess = QuotaExcess.read(message)
    if excess is not None:
        words = ("fairlead", "explain", *arguments, f"quota/{namespace}/{excess.quota}")
        yield NextStep("ask which limits would admit its pods", command=shlex.join(words))


def unready_causes(
    model: ClusterModel, inventory: Inventory, placed: Iterable[PodInfo]
) -> list[PodCause]:
    """Return the reason of each pod in `placed` that is not ready.

    All pods in `placed` have a node. Terminal pods are left out.
    """
    found: list[PodCause] = []
    volumes = SingleNodeVolumes(model.cluster)
    for pod in placed:
        if is_terminal(pod.pod) or is_up(model, pod):
            continue
        info = model.find_node(model.cluster.node_of(pod))
        node = None if info is None else info.node
        holder = volumes.holder_of(pod.pod) if pod.pod.status.phase == "Pending" else None
        if holder is not None:
            error = volumes.attach_error(pod.pod, model.cluster.now).note
            why = f"{error} on {holder.pod.spec.node_name}"
        else:
            why = why_unready(inventory, pod_ref(pod.pod), node)
        found.append(PodCause(pod, why))
    return found


def seconds_since(model: ClusterModel, timestamp: str) -> float | None:
    """Return the seconds from `timestamp` to the time of the dump; None if `timestamp` is invalid.

    The time of the dump is the newest time in a status. A `timestamp` from another field, such as
    the managedFields, can be later. In this case, the result is 0.
    """
    try:
        since = parse_timestamp(timestamp)
    except ValueError:
        return None
    return to_seconds(max(0, model.now - since))


def cause_rows(causes: Iterable[PodCause]) -> list[dict[str, object]]:
    """Return a row for each reason, with the number of its pods: the largest number first."""
    groups: dict[str, list[PodCause]] = defaultdict(list)
    for one in causes:
        groups[one.why].append(one)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [cause_row(found) for _, found in ordered]


def cause_row(causes: Sequence[PodCause]) -> dict[str, object]:
    """Return the row of `causes`, which have the same reason."""
    nodes = [one.node for one in causes if one.node]
    details = dict.fromkeys(one.detail for one in causes if one.detail)
    return {
        "pods": len(causes),
        "pod": listed([one.pod.key for one in causes], 1),
        "why": _with_details(_with_nodes(causes[0].why, nodes), list(details)),
    }


def _with_details(why: str, details: Sequence[str]) -> str:
    """Return `why` with the first of its `details`, if there is one."""
    if not details:
        return why
    return f"{why}{', for example' if len(details) > 1 else ''}: {details[0]}"


def _with_nodes(why: str, nodes: Sequence[str]) -> str:
    """Return `why` with the `nodes` to which the pods would go, if there are such nodes."""
    if not nodes:
        return why
    who = "it" if len(nodes) == 1 else "they"
    return f"{why}; {who} would go to {listed(sorted(set(nodes)), 3)}"


def _held_groups(model: ClusterModel, pending: Iterable[PodInfo]) -> dict[str, str]:
    """Return {PodGroup: why it cannot start} for the PodGroups of `pending` that cannot start."""
    held: dict[str, str] = {}
    first = {group_key(pod): pod for pod in pending} if model.has_pod_groups else {}
    for key, pod in first.items():
        if model.kept_out(pod) is not None:
            continue
        trial = try_pod_group(model.profile_of(pod), pod)
        if trial is not None and not trial.can_start:
            fit = "fits" if trial.fitting == 1 else "fit"
            pods = counted(trial.waiting, "waiting pod")
            held[key] = f"{trial.fitting:,} of the {pods} of {key} {fit}"
            if trial.victims:
                held[key] += f"; it would preempt {counted(len(trial.victims), 'pod')}"
    return held


def _preemption_words(model: ClusterModel, pod: PodInfo, reason: str) -> str:
    """Return a text about preemption by `pod`, which fits no node.

    The caller appends the text to `reason`, the reason why the pod fits no node. The text begins
    with "; ". The text says that the pod would preempt other pods, or why preemption does not help.
    The text is "" if the scheduler's message about preemption has nothing to add to `reason`.
    """
    with model.preempting():
        decision = model.schedule(pod)
    if isinstance(decision, Placement):
        return ""
    if decision.post_filter_result is not None:
        return "; would preempt pods of lower priority"
    return short_reason(decision.message).removeprefix(reason)  # why preemption does not help


def _group_cause(pod: PodInfo, why: str) -> PodCause:
    """Return the cause of a pod of the batch scheduler; `why` is "" if the reason is unknown."""
    group = group_name(pod.pod)
    target = f"podgroup/{pod.namespace}/{group}" if group else f"pod/{pod.key}"
    why = why or f"{pod.pod.spec.scheduler_name} starts it only with its group"
    return PodCause(pod, why, detail=f"explain {target}", is_unschedulable=True)


def _awaited_claim(model: ClusterModel, pod: PodInfo) -> str:
    """Return text about a claim of `pod` whose provisioner does not create a volume, or ""."""
    volumes = VolumeLookup(model.cluster.related)
    for name in all_claims(pod.pod):
        claim = volumes.claim(pod.namespace, name)
        storage_class = None if claim is None else volumes.class_of(claim)
        if claim is None or storage_class is None:
            continue
        # The pods as in the dump: the model may have placed them since.
        pods = (one for one in model.objects if isinstance(one, Pod))
        users = users_of_claim(pods, pod.namespace, name)
        if lacks_provisioner(claim, storage_class, users, model.now):
            provisioner = storage_class.provisioner
            return f"PersistentVolumeClaim {name} waits for the provisioner {provisioner}"
    return ""


def _pending_cause(
    model: ClusterModel,
    pod: PodInfo,
    leaving: Sequence[PodInfo],
    known: dict[_Equal, str],
    group_causes: Mapping[str, str],
) -> PodCause:
    """Return why `pod` is pending, with the node that it fits now.

    If `pod` fits a node, this function places `pod` there in `model`. `leaving` are the terminating
    pods. `known` caches the reasons why pods fit no node; equal pods share a reason.
    """
    if (why := model.kept_out(pod)) is not None:
        return PodCause(pod, why)
    if model.is_batch(pod):
        return _group_cause(pod, group_causes.get(pod.key, ""))
    decision = model.schedule(pod)
    if not isinstance(decision, Placement):
        reason = short_reason(decision.message)
        if awaited_victims(pod, leaving):
            return PodCause(pod, f"{reason}; waits for the end of pods that it has preempted")
        equal = (pod.namespace, pod.shape.id, pod.priority, pod.pod.spec.preemption_policy, reason)
        if equal not in known:
            too_small = size_problem(model, pod) if _LACKS in reason else ""
            known[equal] = too_small or f"{reason}{_preemption_words(model, pod, reason)}"
        return PodCause(pod, known[equal], is_unschedulable=True)
    is_tried = condition(pod.pod, "PodScheduled") is not None
    why = "there is room now" if is_tried else "the scheduler has not tried it yet"
    why = _awaited_claim(model, pod) or why
    if group := labelled_group(pod.pod):
        target = f"podgroup/{pod.namespace}/{group}"
        return PodCause(pod, f"{why}, but its group may wait", detail=f"explain {target}")
    return PodCause(pod, why, decision.node.name)
