"""DaemonSets: one pod on every node that wants it.

A pod is pinned to its node by a required node affinity on the node's name, and the scheduler
places it. Differs from upstream for now: a changed template only reaches pods that are replaced
anyway, and there is never a surplus pod during an update.

upstream: pkg/controller/daemon/daemon_controller.go, pkg/controller/daemon/util/daemonset_util.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from fairlead.api.node_selector import required_node_affinity_matches
from fairlead.api.objects import Node, Pod
from fairlead.api.pod import is_terminating
from fairlead.api.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.core.instant import Instant
from fairlead.workloads.pod_set import PodSet, PodState
from fairlead.workloads.pod_template import read_template
from fairlead.workloads.rule import NOTHING, Plan, Wish

Json = dict[str, Any]

NAME_FIELD: Final = "metadata.name"
WHY_NOT_WANTED: Final = "not wanted on its node"
WHY_EXTRA: Final = "more than one on its node"
WHY_FINISHED: Final = "finished pod of a DaemonSet"
# upstream: daemonset_util.go:AddOrUpdateDaemonPodTolerations
TOLERATIONS: Final[tuple[tuple[str, str], ...]] = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
HOST_NETWORK_TOLERATION: Final = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def daemon_template(template: Json) -> Json:
    """`template` with the tolerations that every daemon pod has."""
    spec = template.get("spec", {})
    added = [*TOLERATIONS, *((HOST_NETWORK_TOLERATION,) if spec.get("hostNetwork") else ())]
    own = spec.get("tolerations", [])
    kept = [one for one in own if (one.get("key"), one.get("effect")) not in added]
    extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    return template | {"spec": spec | {"tolerations": [*kept, *extra]}}


def pinned(template: Json, node: str) -> Json:
    """`template` for one node only; other required terms are replaced, preferences stay."""
    # upstream: daemonset_util.go:ReplaceDaemonSetPodNodeNameNodeAffinity
    spec = template.get("spec", {})
    affinity = spec.get("affinity", {})
    requirement = {"key": NAME_FIELD, "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [requirement]}]}
    node_affinity = affinity.get("nodeAffinity", {}) | {
        "requiredDuringSchedulingIgnoredDuringExecution": required
    }
    return template | {"spec": spec | {"affinity": affinity | {"nodeAffinity": node_affinity}}}


def target_node(pod: Pod) -> str:
    """The node the daemon pod is on or pinned to, "" when neither."""
    # upstream: daemonset_util.go:GetTargetNodeName
    affinity = pod.spec.affinity
    if pod.spec.node_name or affinity is None or affinity.node_affinity is None:
        return pod.spec.node_name
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms if required is not None else ():
        for one in term.match_fields:
            if one.key == NAME_FIELD and one.operator == "In" and len(one.values) == 1:
                return one.values[0]
    return ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a daemon pod should be made on a node, and whether one there may stay."""

    should_run: bool
    may_stay: bool


def verdict(daemon: Pod, node: Node) -> Verdict:
    """What `node` means to `daemon`, the pod that the template describes."""
    # upstream: daemon_controller.go:NodeShouldRunDaemonPod
    spec, name = daemon.spec, node.metadata.name
    if spec.node_name not in ("", name):
        return Verdict(should_run=False, may_stay=False)
    if not required_node_affinity_matches(spec, node.metadata.labels, name):
        return Verdict(should_run=False, may_stay=False)
    taints, tolerations = node.spec.taints, spec.tolerations
    if find_untolerated(taints, tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None:
        return Verdict(should_run=True, may_stay=True)
    must_go = find_untolerated(taints, tolerations, (NO_EXECUTE,)) is not None
    return Verdict(should_run=False, may_stay=not must_go)


@dataclass(frozen=True, slots=True)
class DaemonPods:
    """One pod like `template` on each of `nodes` that wants it; `nodes` is kept up to date."""

    is_watchful: ClassVar[bool] = False

    template: Json  # with the tolerations of daemons
    daemon: Pod  # what `template` describes
    nodes: Mapping[str, Node] = field(compare=False)

    @classmethod
    def of(cls, template: Json, nodes: Mapping[str, Node]) -> DaemonPods | None:
        """The rule for a DaemonSet's `template`; None when that describes no pod."""
        if read_template(template) is None:
            return None
        complete = daemon_template(template)
        daemon = read_template(complete)
        assert daemon is not None
        return cls(complete, daemon, nodes)

    def slot_of(self, pod: Pod) -> str:
        """Each node is a slot."""
        return target_node(pod)

    def is_loss(self, pod: Pod, after: PodState | None) -> bool:
        """Every daemon pod comes back while its node wants it."""
        return True

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Settle one node, or all of them, in order of first sight."""
        if slot is not None:
            return self._plan_node(pods, slot)
        slots = dict.fromkeys((*self.nodes, *pods.by_slot))
        plans = [self._plan_node(pods, one) for one in slots]
        return Plan(
            create=tuple(wish for plan in plans for wish in plan.create),
            delete=tuple(pod for plan in plans for pod in plan.delete),
            why=next((plan.why for plan in plans if plan.why), ""),
        )

    def _plan_node(self, pods: PodSet, name: str) -> Plan:
        """upstream: daemon_controller.go:podsShouldBeOnNode."""
        there = [pod for pod in pods.in_slot(name) if not _is_going(pods, pod)]
        node = self.nodes.get(name)
        if node is None:
            # upstream: daemon_controller.go:getUnscheduledPodsWithoutNode; bound ones are not ours
            return _delete([pod for pod in there if not pod.spec.node_name], WHY_NOT_WANTED)
        wanted = verdict(self.daemon, node)
        if wanted.should_run and name not in pods.by_slot and name not in pods.expected:
            return Plan(create=(Wish(pinned(self.template, name), slot=name),))
        if not wanted.may_stay:
            return _delete(there, WHY_NOT_WANTED)
        finished = [pod for pod in there if pod.metadata.name not in pods.active]
        if finished:
            return _delete(finished, WHY_FINISHED)
        return _delete(sorted(there, key=_age_order)[1:], WHY_EXTRA)


def _is_going(pods: PodSet, pod: Pod) -> bool:
    return is_terminating(pod) or pod.metadata.name in pods.deaths


def _delete(pods: list[Pod], why: str) -> Plan:
    return Plan(delete=tuple(pods), why=why) if pods else NOTHING


def _age_order(pod: Pod) -> tuple[bool, str, str]:
    """Bound ones first, then the oldest: the first one stays."""
    # upstream: daemon_controller.go:podByCreationTimestampAndPhase
    return (pod.spec.node_name == "", pod.metadata.creation_timestamp, pod.metadata.name)
