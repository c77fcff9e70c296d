"""Drains nodes as `kubectl drain` does.

    requested ──▶ cordon, evict every pod ──▶ wait until all pods are gone ──▶ done
                     ▲            │ refused
                     └── 5 s ─────┘

The Node annotation `fairlead.dev/drain: requested` starts a drain. Removing the annotation or
uncordoning the node cancels the drain. All pods are evicted except static pods and unfinished pods
of DaemonSets, as with `--force --ignore-daemonsets --delete-emptydir-data`. kubectl lists the pods
of a node once. Fairlead also evicts a pod that a scheduler binds to the node later, except if the
pod tolerates the cordon's taint. A pod that is created later with the node in spec.nodeName is not
evicted, because its controller would replace it endlessly.

If a terminating node has Karpenter's finalizer, its pods with the annotation
`karpenter.sh/do-not-disrupt` are not evicted. The drain waits until these pods are gone, as a drain
of Karpenter does.

An eviction that a PodDisruptionBudget refuses is retried every five seconds. Any other refusal of
an eviction is final. For a node in a rolling drain, and for a terminating node, the annotation
becomes `done` once the node is empty. `rolling_drain` or `node_finalizers` then continues.

upstream: staging/src/k8s.io/kubectl/pkg/drain/drain.go:evictPods, filters.go, cordon.go,
sigs.k8s.io/karpenter pkg/controllers/node/termination/terminator/terminator.go:Drain
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.nodes.taint import NO_SCHEDULE, is_tolerated
from fairlead.api.objects import ApiObject, Node, Pod, Taint
from fairlead.api.pods.facts import (
    condition,
    is_daemon_pod,
    is_static,
    is_terminal,
    is_terminating,
)
from fairlead.engine.core.command import (
    Command,
    EvictPod,
    ObjectRef,
    PatchObject,
    node_ref,
    pod_ref,
)
from fairlead.engine.core.instant import DurationNs, Instant, earliest, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.reporter import PodEvicted, Reporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.drain.protected_pod import (
    is_drained_by_karpenter,
    protects_from_karpenter,
)
from fairlead.engine.workloads.node_annotation import DONE, DRAIN, is_drain_requested, is_in_turn

RETRY_AFTER: Final[DurationNs] = seconds(5)
WHY: Final = "drain"
CORDONED: Final = {"spec": {"unschedulable": True}}
FINISHED: Final = {"metadata": {"annotations": {DRAIN: DONE}}}
GONE: Final = (FailureReason.NOT_FOUND, FailureReason.CONFLICT)
CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class DrainBlocker(Struct, frozen=True):
    """A pod that blocks the drain of `node`.

    `message` is from the last refused eviction, and `since` is the time of the first refused
    eviction.
    """

    node: str
    pod: ObjectRef
    message: str
    since: Instant


class _Drain(Struct):
    """A drain in progress: the remaining pods by key, and the pods with a refused eviction.

    If `marks_end` is set, the node's drain annotation becomes `done` when the drain ends. Another
    controller waits for this value. If `spares_protected` is set, pods for which
    `protects_from_karpenter` returns True are not evicted.
    """

    node: str
    is_cordoned: bool
    marks_end: bool
    spares_protected: bool
    waiting: dict[str, ObjectRef] = field(default_factory=dict)
    refused: dict[str, DrainBlocker] = field(default_factory=dict)


class Drain:
    """The drain controller; it reports granted evictions to `reporter`."""

    issuer: ClassVar[Issuer] = controller_account("node-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Node, Pod),
        deleted=(Node, Pod),
        succeeded=(EvictPod,),
        failed=(EvictPod, PatchObject),
        readiness=False,
    )

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._pods: dict[str, dict[str, Pod]] = {}  # by node, then by key
        self._drains: dict[str, _Drain] = {}  # by node
        self._finished: dict[str, None] = {}  # nodes with an ended drain that is still requested
        self._evicting: dict[ObjectRef, str] = {}  # evictions in flight -> node
        self._to_cordon: set[str] = set()  # names of nodes; never iterated
        self._retries: TimerQueue[tuple[_Drain, ObjectRef]] = TimerQueue()
        self._patches: TimerQueue[PatchObject] = TimerQueue()  # refused patches of nodes

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Start, continue or cancel the drains that `stimulus` affects."""
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            return self._observe(stimulus.object)
        if type(stimulus) is ObjectDeleted:
            return self._forget(stimulus.object)
        match stimulus:
            case ObjectsLoaded():
                return self._load(stimulus)
            case CommandSucceeded(EvictPod(ref)):
                self._observe_eviction(ref, now)
            case CommandFailed(EvictPod(ref), reason, message):
                self._observe_refusal(ref, reason, message, now)
            case CommandFailed(PatchObject() as patch, reason) if self._is_needed(patch):
                if reason is not FailureReason.NOT_FOUND:
                    self._patches.add(now + RETRY_AFTER, patch)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        return self._observe_pod(pod) if pod.spec.node_name else ()

    def next_deadline(self) -> Instant | None:
        """Return the time at which a refused eviction or node change is retried next, or None."""
        return earliest(self._retries.next_due(), self._patches.next_due())

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Retry refused evictions and refused changes of nodes."""
        evictions: list[Command] = [
            self._eviction(drain, ref)
            for drain, ref in self._retries.pop_due(now)
            if self._drains.get(drain.node) is drain and drain.waiting.get(ref.key) == ref
            if not is_terminating(self._pods_on(drain.node)[ref.key])
        ]
        patches = self._patches.pop_due(now)
        return [*evictions, *(patch for patch in patches if self._is_needed(patch))]

    def _is_needed(self, patch: PatchObject) -> bool:
        """Return True if this controller sent `patch` and has not observed the effect yet."""
        name = patch.target.name
        if patch.patch == CORDONED:
            return name in self._to_cordon
        return patch.patch == FINISHED and name in self._finished

    @property
    def draining(self) -> tuple[str, ...]:
        """Names of the nodes with a drain in progress, in the order of the requests."""
        return tuple(self._drains)

    @property
    def blocked(self) -> tuple[DrainBlocker, ...]:
        """The pods that block drains in progress."""
        return tuple(one for drain in self._drains.values() for one in drain.refused.values())

    # --- observations --------------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded) -> list[Command]:
        """Load the bound pods, then the nodes, because a node may request a drain of these pods."""
        if self._pods:
            for pod in loaded.bound.values():
                self._index(pod)
        else:
            self._pods = loaded.bound_pods.copy()
        nodes = (one for one in loaded.others if isinstance(one, Node))
        return [command for one in nodes for command in self._observe_node(one)]

    def _observe(self, one: ApiObject) -> list[Command]:
        match one:
            case Node():
                return self._observe_node(one)
            case Pod() if one.spec.node_name:
                return self._observe_pod(one)
            case _:
                return []

    def _observe_node(self, node: Node) -> list[Command]:
        name = node.metadata.name
        if not is_drain_requested(node):
            self._end(name)
            return []
        if node.spec.unschedulable:
            self._to_cordon.discard(name)
        drain = self._drains.get(name)
        if drain is None and name in self._finished:
            return [PatchObject(node_ref(node), FINISHED)] if _marks_end(node) else []
        if drain is None:
            return self._begin(node)
        if drain.is_cordoned and not node.spec.unschedulable:
            del self._drains[name]  # a user uncordoned the node, which cancels the drain
            self._finished[name] = None
        drain.is_cordoned = node.spec.unschedulable
        drain.marks_end = _marks_end(node)
        return []

    def _observe_pod(self, pod: Pod) -> list[Command]:
        key, node = pod.key, pod.spec.node_name
        there = self._pods_on(node)
        is_new = key not in there
        if node:
            there[key] = pod
        drain = self._drains.get(node)
        if drain is None:
            return []
        if is_new and _is_bound(pod) and not is_tolerated(CORDON, pod.spec.tolerations):
            return self._evict(drain, pod)
        return []

    def _index(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._pods_on(pod.spec.node_name)[pod.key] = pod

    def _pods_on(self, node: str) -> dict[str, Pod]:
        """Return the pods on `node` by key; the caller may change the result."""
        return self._pods.setdefault(node, {})

    def _forget(self, one: ApiObject) -> list[Command]:
        if isinstance(one, Node):
            self._end(one.metadata.name)
        elif isinstance(one, Pod):
            there = self._pods_on(one.spec.node_name)
            if one.key in there and there[one.key].metadata.uid == one.metadata.uid:
                del there[one.key]
            drain = self._drains.get(one.spec.node_name)
            if drain is not None:
                return self._remove_pod(drain, one)
        return []

    # --- drains --------------------------------------------------------------------------------

    def _begin(self, node: Node) -> list[Command]:
        name = node.metadata.name
        drain = self._drains[name] = _Drain(
            name,
            is_cordoned=node.spec.unschedulable,
            marks_end=_marks_end(node),
            spares_protected=is_drained_by_karpenter(node),
        )
        commands: list[Command] = []
        if not node.spec.unschedulable:
            self._to_cordon.add(name)
            commands.append(PatchObject(node_ref(node), CORDONED))
        for pod in self._pods_on(name).values():
            commands += self._evict(drain, pod)
        return commands + self._finish_if_empty(drain)

    def _evict(self, drain: _Drain, pod: Pod) -> list[Command]:
        """Add `pod` to the drain; return the command that evicts it, or [].

        A terminating pod is not evicted. If `drain.spares_protected` is set, a pod for which
        `protects_from_karpenter` returns True is not evicted either. Static pods and unfinished
        pods of DaemonSets are not added.
        """
        if is_static(pod) or (is_daemon_pod(pod) and not is_terminal(pod)):
            return []
        ref = pod_ref(pod)
        drain.waiting[ref.key] = ref
        if is_terminating(pod) or (drain.spares_protected and protects_from_karpenter(pod)):
            return []
        return [self._eviction(drain, ref)]

    def _eviction(self, drain: _Drain, ref: ObjectRef) -> Command:
        self._evicting[ref] = drain.node
        return EvictPod(ref, WHY)

    def _remove_pod(self, drain: _Drain, pod: Pod) -> list[Command]:
        """Remove `pod` from the pods that `drain` waits for; finish the drain if none remains."""
        if drain.waiting.get(pod.key) != pod_ref(pod):
            return []
        del drain.waiting[pod.key]
        drain.refused.pop(pod.key, None)
        return self._finish_if_empty(drain)

    def _finish_if_empty(self, drain: _Drain) -> list[Command]:
        if drain.waiting:
            return []
        del self._drains[drain.node]
        self._finished[drain.node] = None
        if not drain.marks_end:
            return []
        return [PatchObject(ObjectRef("Node", "", drain.node), FINISHED)]

    def _end(self, node: str) -> None:
        """Forget the drain of a node that was deleted or whose annotation requests no drain."""
        self._drains.pop(node, None)
        self._finished.pop(node, None)
        self._to_cordon.discard(node)

    # --- outcomes ------------------------------------------------------------------------------

    def _observe_eviction(self, ref: ObjectRef, now: Instant) -> None:
        """Report a granted eviction, even if the drain is already complete."""
        node = self._evicting.pop(ref, None)
        if node is None:
            return
        self._reporter.report(PodEvicted(ref, node, WHY, now))
        if node in self._drains:
            self._drains[node].refused.pop(ref.key, None)

    def _observe_refusal(
        self, ref: ObjectRef, reason: FailureReason, message: str, now: Instant
    ) -> None:
        drain = self._drains.get(self._evicting.pop(ref, ""))
        if drain is None or drain.waiting.get(ref.key) != ref or reason in GONE:
            return
        before = drain.refused.get(ref.key)
        since = now if before is None else before.since
        drain.refused[ref.key] = DrainBlocker(drain.node, ref, message, since)
        if reason is FailureReason.TOO_MANY_REQUESTS:
            self._retries.add(now + RETRY_AFTER, (drain, ref))


def _is_bound(pod: Pod) -> bool:
    """Return True if a scheduler bound `pod`, and False if it was created with spec.nodeName."""
    scheduled = condition(pod, "PodScheduled")
    return scheduled is not None and scheduled.status == "True"


def _marks_end(node: Node) -> bool:
    """Return whether the drain annotation of `node` must become `done` when its drain ends.

    If the result is True, the module `rolling_drain` or `node_finalizers` waits for this value.
    """
    return is_in_turn(node) or bool(node.metadata.deletion_timestamp)
