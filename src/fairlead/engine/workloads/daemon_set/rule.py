"""DaemonSetRule: one pod on every eligible node.

A required node affinity pins each pod to its node by the node's name. The scheduler binds the pod.
An update first replaces outdated pods that are not available. The update then replaces available
pods as long as at most maxUnavailable nodes lack an available pod. If maxSurge is set, the new pod
is created before the old pod is deleted. Upstream chooses the pods to replace in the random order
of a Go map.

upstream: pkg/controller/daemon/daemon_controller.go, update.go, util/daemonset_util.go
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json, mapping
from fairlead.api.nodes.node_selector import required_node_affinity, required_node_affinity_matches
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import DaemonSet, Node, Pod, UpdateStrategy
from fairlead.api.pods.facts import is_terminating
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.tie_break import shuffled
from fairlead.engine.workloads.int_or_percent import IntOrPercentError, scaled
from fairlead.engine.workloads.pod_control.controller_history import REVISION_LABEL, History
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState, pod_state
from fairlead.engine.workloads.pod_control.pod_template import read_template, with_labels
from fairlead.engine.workloads.pod_control.rule import NOTHING, DesiredPod, OwnerRule, Plan

NAME_FIELD: Final = "metadata.name"
WHY_NOT_WANTED: Final = "its DaemonSet does not select its node"
WHY_UPDATED: Final = "another revision of the DaemonSet"
ROLLING_UPDATE: Final = "RollingUpdate"
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
GENERATION_LABEL: Final = "pod-template-generation"
# upstream: daemon_controller.go: failedPodsBackoff
BACKOFF_INITIAL: Final = seconds(1)
BACKOFF_MAX: Final = seconds(15 * 60)
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
    """Return `template` with the tolerations that the controller adds to daemon pods."""
    spec = template.get("spec", {})
    added = [*TOLERATIONS, *((HOST_NETWORK_TOLERATION,) if spec.get("hostNetwork") else ())]
    own = spec.get("tolerations", [])
    kept = [one for one in own if (one.get("key"), one.get("effect")) not in added]
    extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    return template | {"spec": spec | {"tolerations": [*kept, *extra]}}


def pinned(template: Json, node: str) -> Json:
    """Return `template` with a required node affinity for `node`; keep preferred affinity terms."""
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
    """Return the name of the node that the pod is bound or pinned to, or "" if there is none."""
    # upstream: daemonset_util.go:GetTargetNodeName
    if pod.spec.node_name:
        return pod.spec.node_name
    required = required_node_affinity(pod.spec)
    for term in required.node_selector_terms if required is not None else ():
        for one in term.match_fields:
            if one.key == NAME_FIELD and one.operator == "In" and len(one.values) == 1:
                return one.values[0]
    return ""


class NodeEligibility(Struct, frozen=True):
    """Whether a node should get a daemon pod, and whether an existing daemon pod may stay."""

    should_run: bool
    should_continue: bool


def node_eligibility(daemon: Pod, node: Node) -> NodeEligibility:
    """Return the eligibility of `node` for `daemon`, the pod that the template describes."""
    # upstream: daemon_controller.go:NodeShouldRunDaemonPod
    spec, name = daemon.spec, node.metadata.name
    if spec.node_name not in ("", name):
        return NodeEligibility(should_run=False, should_continue=False)
    if not required_node_affinity_matches(spec, node.metadata.labels, name):
        return NodeEligibility(should_run=False, should_continue=False)
    taints, tolerations = node.spec.taints, spec.tolerations
    if find_untolerated(taints, tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None:
        return NodeEligibility(should_run=True, should_continue=True)
    must_go = find_untolerated(taints, tolerations, (NO_EXECUTE,)) is not None
    return NodeEligibility(should_run=False, should_continue=not must_go)


def nodes_without_pod(
    owner: Json, nodes: Iterable[Node], occupied: Container[str]
) -> Iterator[str]:
    """Yield the sorted names of those `nodes` on which the DaemonSet `owner` must create a pod.

    `occupied` are the names of the nodes that already have a pod of the DaemonSet. Yields nothing
    if the DaemonSet is being deleted, or if its template is not valid.
    """
    # upstream: daemon_controller.go: syncDaemonSet, podsShouldBeOnNode
    daemon = read_template(daemon_template(mapping(owner, "spec", "template")))
    if daemon is None or owner["metadata"].get("deletionTimestamp"):
        return
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        if node.metadata.name not in occupied and node_eligibility(daemon, node).should_run:
            yield node.metadata.name


def _stale(history: History, pods: PodSet, seed: int) -> dict[str, None]:
    """Return the names of the outdated `pods` in the order in which an update replaces them.

    Upstream has no fixed order, because Go iterates over a map in random order. Here, the order
    depends on `seed` and on the name of the DaemonSet. So DaemonSets that are updated at the same
    time get different orders.
    """
    # upstream: pkg/controller/daemon/update.go:rollingUpdate
    stale = (
        name
        for name, pod in zip(pods.pods, pods.pods.samples(), strict=True)
        if history.revision_of(pod) != history.update
    )
    return dict.fromkeys(shuffled(stale, seed ^ crc32(pods.ref.key.encode())))


@dataclass(frozen=True, slots=True)
class DaemonSetRule:
    """Keeps one pod of the revision `update` on each eligible node.

    `nodes` maps names to all nodes. `wanted` stores whether each examined node should run a daemon
    pod. `stale` contains the names of pods of other revisions. `failures` maps a node name to a
    pair: the time of the last deletion of a failed pod, and the backoff (ns) before the next such
    deletion.
    """

    reads_readiness: ClassVar[bool] = True

    template: Json  # with the tolerations of daemon pods
    daemon: Pod  # the pod that `template` describes
    strategy: UpdateStrategy
    min_ready: DurationNs
    update: str
    history: History = field(compare=False)
    nodes: Mapping[str, Node] = field(compare=False)
    wanted: dict[str, bool] = field(compare=False)
    stale: dict[str, None] = field(compare=False)
    failures: dict[str, tuple[Instant, DurationNs]] = field(compare=False)

    @classmethod
    def of(
        cls,
        owner: DaemonSet,
        nodes: Mapping[str, Node],
        history: History,
        before: OwnerRule,
        pods: PodSet,
        seed: int,
    ) -> DaemonSetRule | None:
        """Return the rule for `owner`, or None if its template does not describe a pod.

        `before` is the owner's previous rule. The new rule keeps the results of `before` that are
        still valid. `seed` determines the order of an update.
        """
        if read_template(owner.spec.template) is None:
            return None
        complete = daemon_template(owner.spec.template)
        daemon = read_template(complete)
        assert daemon is not None
        known = before if isinstance(before, DaemonSetRule) else None
        is_same = known is not None and known.update == history.update
        return cls(
            with_labels(complete, _pod_labels(owner, history)),
            daemon,
            owner.spec.update_strategy,
            seconds(owner.spec.min_ready_seconds),
            history.update,
            history,
            nodes,
            known.wanted if known is not None and known.daemon.spec == daemon.spec else {},
            known.stale if known is not None and is_same else _stale(history, pods, seed),
            known.failures if known is not None else {},
        )

    def slot_of(self, pod: Pod) -> str:
        """Return the name of the node that the pod is bound or pinned to; it is the pod's slot."""
        return target_node(pod)

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return, for each of `replicas`, the name of the node to which it is bound or pinned."""
        is_bound = replicas[0].spec.node_name != ""  # replicas are all bound or all unbound
        return replicas.nodes if is_bound else [target_node(pod) for pod in replicas]

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return True; `plan` checks whether the node is still eligible for a new pod."""
        return True

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Return the pods to create and delete on the node `slot`, or on all nodes if it is None.

        If `slot` is None and no node needs a change, return the next step of a rolling update.
        """
        if slot is not None:
            # `stale` contains the outdated pods that existed when the update began. Later, outdated
            # pods may be adopted, or appear because their creation was in flight.
            for name in pods.by_slot.get(slot, ()):
                if name not in self.stale and self._is_outdated(pods.pods[name]):
                    self.stale[name] = None
            return self._plan_node(pods, slot, now)
        slots = dict.fromkeys((*self.nodes, *pods.by_slot))
        plans = [self._plan_node(pods, one, now) for one in slots]
        plan = Plan(
            create=tuple(desired for plan in plans for desired in plan.create),
            delete=tuple(pod for plan in plans for pod in plan.delete),
            why=next((plan.why for plan in plans if plan.why), ""),
            again_at=min((one.again_at for one in plans if one.again_at is not None), default=None),
        )
        is_busy = plan.create or plan.delete or plan.again_at is not None
        return plan if is_busy else self.follow(pods, now)

    def _is_outdated(self, pod: Pod) -> bool:
        return self.history.revision_of(pod) != self.update

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return the deletions and creations that the next step of a rolling update needs."""
        # upstream: pkg/controller/daemon/update.go:rollingUpdate
        for name in [one for one in self.stale if one not in pods.pods]:
            del self.stale[name]
        if not self.stale or self.strategy.type != ROLLING_UPDATE:
            return NOTHING
        surge, unavailable = self._bounds()
        again_at = pods.next_available(self.min_ready, now)
        if surge:
            return replace(self._surge(pods, surge, now), again_at=again_at)
        there = self._available(pods, now)
        old = [name for name in self.stale if name in pods.active]
        broken = [name for name in old if name not in there]
        # Nodes whose outdated pod is not available count as unavailable nodes, too. This pod is
        # replaced in any case.
        occupied, wanted = pods.by_slot, self.wanted
        empty = sum([wanted[name] for name in wanted if name not in occupied])
        spare = max(0, unavailable - max(0, len(occupied) + empty - len(there)))
        replaced = broken + [name for name in old if name in there][:spare]
        delete = tuple(pods.pods[name] for name in replaced)
        return Plan(delete=delete, why=WHY_UPDATED, again_at=again_at)

    def _bounds(self) -> tuple[int, int]:
        """Return (maxSurge, maxUnavailable) of the update strategy as numbers of nodes.

        During an update, at most maxSurge nodes have two pods, and at most maxUnavailable nodes
        have no available pod.
        """
        # upstream: pkg/controller/daemon/util/daemonset_util.go:SurgeCount, UnavailableCount
        rolling, desired = self.strategy.rolling_update, sum(self.wanted.values())
        try:
            surge = scaled(rolling.max_surge or 0, desired)
            bound = rolling.max_unavailable
            unavailable = scaled(1 if bound is None else bound, desired)
        except IntOrPercentError:
            surge, unavailable = 0, 1
        return surge, (unavailable or (0 if surge else 1))

    def _available(self, pods: PodSet, now: Instant) -> Collection[str]:
        if not self.min_ready:
            return pods.ready
        return {name for name, since in pods.ready.items() if since + self.min_ready <= now}

    @property
    def _allows_surge(self) -> bool:
        # upstream: pkg/controller/daemon/util/daemonset_util.go:AllowsSurge
        try:
            surge = scaled(self.strategy.rolling_update.max_surge or 0, 1)
        except IntOrPercentError:
            return False
        return self.strategy.type == ROLLING_UPDATE and surge > 0

    def _surge(self, pods: PodSet, surge: int, now: Instant) -> Plan:
        """Return a plan that creates new pods beside outdated pods.

        If an outdated pod is not available, a new pod is created on its node immediately. If the
        outdated pod is available, its node gets a new pod only while there are fewer than `surge`
        surge nodes. A surge node has a ready outdated pod and a new pod that is not available yet.
        If a node has both pods, the outdated pod is deleted once it is not ready or the new pod is
        available.

        On a node that should run no daemon pod, an outdated pod is deleted immediately if it is not
        available. Available outdated pods on such nodes are deleted up to the number that
        `_available_surplus` returns.
        """
        delete: list[Pod] = []
        superfluous: list[Pod] = []
        urgent: list[str] = []
        candidates: list[str] = []
        for name in self.stale:
            pod = pods.pods[name]
            if _is_going(pods, pod):
                continue
            node = target_node(pod)
            is_available = pods.is_available(name, self.min_ready, now)
            if node in pods.expected:
                surge -= 1
            elif fresh := self._fresh(pods, node):
                if self._is_replaced(pods, pod, fresh, now):
                    delete.append(pod)
                else:
                    surge -= 1
            elif node not in self.nodes:
                return NOTHING  # upstream returns an error until the pod is deleted
            elif not self.wanted.get(node):
                (superfluous if is_available else delete).append(pod)
            else:
                (candidates if is_available else urgent).append(node)
        delete += superfluous[: self._available_surplus(pods, now) if superfluous else 0]
        nodes = (*urgent, *candidates[: max(0, surge)])
        return Plan(tuple(map(self._desired_pod, nodes)), tuple(delete), WHY_UPDATED)

    def _fresh(self, pods: PodSet, node: str) -> Pod | None:
        """Return the oldest pod of the update revision on `node`; None if there is none."""
        there = (pod for pod in pods.in_slot(node) if pod.metadata.name not in self.stale)
        return min((pod for pod in there if not _is_going(pods, pod)), key=_age_order, default=None)

    def _available_surplus(self, pods: PodSet, now: Instant) -> int:
        """Return (nodes with an available pod) - (nodes that should run a pod), but at least 0.

        On a node with outdated pods, only the outdated pods count.
        """
        found = 0
        for names in pods.by_slot.values():
            there = [name for name in names if name in pods.active]
            counted = [name for name in there if name in self.stale] or there
            found += any(pods.is_available(name, self.min_ready, now) for name in counted)
        return max(0, found - sum(self.wanted.values()))

    def _plan_node(self, pods: PodSet, name: str, now: Instant) -> Plan:
        """Return the plan for the pods of the node `name` (upstream: podsShouldBeOnNode)."""
        node = self.nodes.get(name)
        wanted = None if node is None else node_eligibility(self.daemon, node)
        if wanted is not None and wanted.should_continue and self._has_one_active(pods, name):
            self.wanted[name] = wanted.should_run
            return NOTHING  # the usual case, checked without creating Pod objects of replicas
        existing = [pod for pod in pods.in_slot(name) if not _is_released(pod)]
        there = [pod for pod in existing if not _is_going(pods, pod)]
        if wanted is None:
            self.wanted.pop(name, None)
            # upstream: getUnscheduledPodsWithoutNode (pod GC deletes the others)
            return _delete([pod for pod in there if not pod.spec.node_name], WHY_NOT_WANTED)
        self.wanted[name] = wanted.should_run
        is_free = wanted.should_run and name not in pods.expected
        if is_free and not existing:
            return Plan(create=(self._desired_pod(name),))
        if not wanted.should_continue:
            return _delete(there, WHY_NOT_WANTED)
        running = [pod for pod in there if pod.metadata.name in pods.active]
        plan = NOTHING
        if len(running) < len(there):
            finished = [pod for pod in there if pod.metadata.name not in pods.active]
            plan = self._clear(name, finished, now)
        if is_free and not running and self._allows_surge:
            return replace(plan, create=(self._desired_pod(name),))
        extra = self._extra(pods, running, now) if len(running) > 1 else []
        return replace(plan, delete=(*plan.delete, *extra), why=WHY_EXTRA) if extra else plan

    def _has_one_active(self, pods: PodSet, node: str) -> bool:
        """Return whether `node` has exactly one pod, and this pod is active."""
        names = pods.by_slot.get(node, {})
        return len(names) == 1 and names.keys() <= pods.active.keys()

    def _extra(self, pods: PodSet, running: list[Pod], now: Instant) -> list[Pod]:
        """Return the surplus pods among `running`, which contains the pods of one node.

        If no surge is allowed, only the oldest pod is kept. If surge is allowed, the oldest pod of
        the update revision is kept. The oldest outdated pod is also kept until the pod of the
        update revision replaces it.
        """
        by_age = sorted(running, key=_age_order)
        if not self._allows_surge:
            return by_age[1:]
        old = [pod for pod in by_age if pod.metadata.name in self.stale]
        fresh = [pod for pod in by_age if pod.metadata.name not in self.stale]
        extra = [*fresh[1:], *old[1:]]
        if fresh and old and self._is_replaced(pods, old[0], fresh[0], now):
            extra.append(old[0])
        return extra

    def _is_replaced(self, pods: PodSet, old: Pod, fresh: Pod, now: Instant) -> bool:
        is_up = pods.is_available(fresh.metadata.name, self.min_ready, now)
        return is_up or old.metadata.name not in pods.ready

    def _desired_pod(self, node: str) -> DesiredPod:
        return DesiredPod(pinned(self.template, node), slot=node)

    def _clear(self, node: str, finished: list[Pod], now: Instant) -> Plan:
        """Return a plan that deletes the finished pods of `node`.

        If one of the pods has failed, the deletions on that node are delayed by an exponential
        backoff.
        """
        if not any(pod.status.phase == "Failed" for pod in finished):
            return _delete(finished, WHY_FINISHED)
        last, wait = self.failures.get(node, (0, 0))
        if now < last + wait:
            return Plan(again_at=last + wait)
        # upstream: client-go/util/flowcontrol/backoff.go:Next
        is_fresh = not wait or now - last > 2 * BACKOFF_MAX
        self.failures[node] = (now, BACKOFF_INITIAL if is_fresh else min(2 * wait, BACKOFF_MAX))
        return _delete(finished, WHY_FINISHED)


def _pod_labels(owner: DaemonSet, history: History) -> dict[str, str]:
    # upstream: pkg/controller/daemon/util/daemonset_util.go:CreatePodTemplate
    labels = {REVISION_LABEL: history.label_of(history.update)}
    generation = owner.metadata.annotations.get(TEMPLATE_GENERATION)
    return labels | ({GENERATION_LABEL: generation} if generation else {})


def _is_going(pods: PodSet, pod: Pod) -> bool:
    return is_terminating(pod) or pod.metadata.name in pods.deletions_expected


def _is_released(pod: Pod) -> bool:
    """Return whether `pod` has finished and is being deleted; its node may get a new pod."""
    # upstream: daemon_controller.go:getNodesToDaemonPods
    return is_terminating(pod) and pod_state(pod) is not PodState.TERMINATING


def _delete(pods: list[Pod], why: str) -> Plan:
    return Plan(delete=tuple(pods), why=why) if pods else NOTHING


def _age_order(pod: Pod) -> tuple[bool, str, str]:
    """Return a sort key: bound pods come before unbound pods, then older pods before newer pods."""
    # upstream: daemon_controller.go:podByCreationTimestampAndPhase
    return (pod.spec.node_name == "", pod.metadata.creation_timestamp, pod.metadata.name)
