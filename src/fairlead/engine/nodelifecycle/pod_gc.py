"""PodGarbageCollector: deletes surplus finished pods, and pods that have no working node.

Each pass (every 20 s) collects, in this order:

    terminated      the finished pods beyond the number that the threshold allows: evicted pods
                    first, then the oldest
    out of service  terminating pods on not-ready nodes with the out-of-service taint
    orphaned        pods whose node has been missing for the quarantine period
    unscheduled     terminating pods that were never bound

Each of these pods is deleted with grace period 0. Before that, an unfinished pod is set to Failed.

upstream: pkg/controller/podgc/gc_controller.go
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from fairlead.api.nodes.readiness import TRUE, ready_status
from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import ApiObject, Node, Pod
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import (
    Command,
    Condition,
    DeleteObject,
    PatchStatus,
    observed,
    pod_ref,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.reporter import PodCollected, Reporter
from fairlead.engine.core.stimulus import (
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.nodelifecycle.config import GC_PERIOD, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.well_known import DISRUPTION_TARGET

# upstream: pkg/controller/podgc/metrics/metrics.go: the reasons of force_delete_pods_total
TERMINATED: Final = "terminated"
OUT: Final = "out-of-service"
ORPHANED: Final = "orphaned"
UNSCHEDULED: Final = "unscheduled"

# upstream: pkg/kubelet/eviction/types.go:PodIsEvicted
EVICTED: Final = ("Failed", "Evicted")

NODE_GONE: Final = Condition(
    DISRUPTION_TARGET, TRUE, "DeletionByPodGC", "PodGC: node no longer exists"
)


class PodGarbageCollector:
    """Deletes surplus finished pods, orphaned pods, and terminating pods without a working node."""

    issuer: ClassVar[Issuer] = controller_account("pod-garbage-collector")
    interest: ClassVar[Interest] = Interest(
        changed=(Node, Pod), succeeded=(), failed=(), readiness=False
    )

    def __init__(
        self,
        config: NodeLifecycleConfig,
        reporter: Reporter,
        start: Instant = 0,
        pods: NodePods | None = None,
    ) -> None:
        """The first pass runs at `start + config.gc_offset`.

        `pods` may be shared with other controllers.
        """
        self._threshold = config.terminated_pod_gc_threshold
        self._profile = config.profile
        self._reporter = reporter
        self._passes = Period(start + config.gc_offset, GC_PERIOD)
        self._last_pass = self._passes.first - GC_PERIOD
        self._next_pass: Instant | None = None
        self._pods = NodePods() if pods is None else pods
        self._terminated: dict[str, Pod] = {}
        self._terminating: dict[str, Pod] = {}
        self._nodes: dict[str, bool] = {}  # existing node -> whether the node is out of service
        self._missing: dict[str, None] = {}  # nodes that pods reference and that may not exist
        self._quarantine: dict[str, Instant] = {}  # missing node -> end of its quarantine

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Record a change of the cluster. Pods are deleted only in passes."""
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            self._observe(stimulus.object, now)
        elif type(stimulus) is ObjectDeleted:
            self._forget(stimulus.object, now)
        elif type(stimulus) is ObjectsLoaded:
            self._load(stimulus, now)
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Record the changed `pod`, as `handle` does; return no commands."""
        node = pod.spec.node_name
        self._pods.put(pod)
        if is_terminal(pod):
            self._terminated[pod.key] = pod
            if 0 < self._threshold < len(self._terminated):
                self._wake(now)
        if is_terminating(pod):
            self._terminating[pod.key] = pod
            if self._nodes.get(node, not node):
                self._wake(now)
        if node and node not in self._nodes:
            self._note_missing_node(node, now)
        return ()

    def next_deadline(self) -> Instant | None:
        """Return the time of the next pass that may find something; None if there is none."""
        return self._next_pass

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Run one pass; return its status patches and deletions."""
        self._last_pass, self._next_pass = now, None
        deleted_nodes = self._deleted_nodes(now)
        commands: list[Command] = []
        done: set[str] = set()  # never iterated
        for pod, why in self._found(deleted_nodes):
            if pod.key not in done:
                done.add(pod.key)
                commands += self._collect(pod, why, now)
        for due in self._quarantine.values():
            self._wake(due)
        return commands

    # --- observations --------------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> None:
        """Load nodes before pods; otherwise the nodes of the pods would seem to be missing."""
        for one in loaded.others:
            if isinstance(one, Node):
                self._observe(one, now)
        self._pods.load(loaded)
        for pod in loaded.ending_pods:
            self.handle_pod(pod, now)
        for node in loaded.bound_pods:
            if node not in self._nodes:
                self._note_missing_node(node, now)

    def _observe(self, one: ApiObject, now: Instant) -> None:
        if isinstance(one, Node):
            self._observe_node(one, now)
        elif isinstance(one, Pod):
            self.handle_pod(one, now)

    def _observe_node(self, node: Node, now: Instant) -> None:
        is_out = ready_status(node) != TRUE and any(
            taint.key == OUT_OF_SERVICE for taint in node.spec.taints
        )
        self._nodes[node.metadata.name] = is_out
        if is_out:
            self._wake(now)

    def _forget(self, one: ApiObject, now: Instant) -> None:
        match one:
            case Node():
                self._nodes.pop(one.metadata.name, None)
                self._note_missing_node(one.metadata.name, now)
            case Pod():
                self._pods.remove(one)
                self._terminated.pop(one.key, None)
                self._terminating.pop(one.key, None)
            case _:
                pass

    def _note_missing_node(self, node: str, now: Instant) -> None:
        self._missing[node] = None
        self._wake(now)

    def _wake(self, now: Instant) -> None:
        due = max(self._passes.at_or_after(now), self._passes.after(self._last_pass))
        if self._next_pass is None or due < self._next_pass:
            self._next_pass = due

    # --- a pass --------------------------------------------------------------------------------

    def _deleted_nodes(self, now: Instant) -> list[str]:
        """Return the names of nodes that have pods and were missing for the quarantine period."""
        missing = sorted(
            name for name in self._missing if name not in self._nodes and self._pods.on(name)
        )
        self._missing = dict.fromkeys(missing)
        believed = {name for name, due in self._quarantine.items() if due <= now}
        for name in [*self._quarantine]:
            if name in believed:
                del self._quarantine[name]
        quarantine = self._profile.orphan_quarantine
        for name in missing:
            self._quarantine.setdefault(name, now + quarantine)
        return [name for name in missing if not quarantine or name in believed]

    def _found(self, deleted_nodes: list[str]) -> Iterator[tuple[Pod, str]]:
        """Yield (pod, reason) for each pod to delete. A pod may occur more than once.

        The pods are sorted by reason, in the order of the list in the module's docstring.
        """
        yield from ((pod, TERMINATED) for pod in self._excess())
        terminating = sorted(self._terminating.values(), key=_age)
        if self._profile.collects_out_of_service:
            yield from ((p, OUT) for p in terminating if self._nodes.get(p.spec.node_name))
        for node in deleted_nodes:
            yield from ((pod, ORPHANED) for pod in self._pods.on(node))
        yield from ((pod, UNSCHEDULED) for pod in terminating if not pod.spec.node_name)

    def _excess(self) -> list[Pod]:
        """Return the finished pods beyond the number that the threshold allows.

        Evicted pods are chosen before other pods, and older pods before newer pods. If the
        threshold is 0 or negative, it does not apply, and the result is [].
        """
        count = len(self._terminated) - self._threshold
        if self._threshold <= 0 or count <= 0:
            return []
        return sorted(self._terminated.values(), key=_age)[:count]

    def _collect(self, pod: Pod, why: str, now: Instant) -> Iterator[Command]:
        ref = pod_ref(pod)
        if self._profile.fails_pods and not is_terminal(pod):
            gone = observed(NODE_GONE, pod.metadata.generation)
            conditions = (gone,) if why == ORPHANED else ()
            yield PatchStatus(ref, {"phase": "Failed"}, conditions)
        yield DeleteObject(ref, grace_period_s=0, why=why)
        self._reporter.report(PodCollected(ref, pod.spec.node_name, why, now))


def _age(pod: Pod) -> tuple[bool, Instant, str, str]:
    """Return a sort key: evicted pods come before all other pods.

    In each of these two groups, older pods come first. Pods of the same age are ordered by name,
    then by namespace.
    """
    meta = pod.metadata
    created = parse_timestamp(meta.creation_timestamp) if meta.creation_timestamp else 0
    is_evicted = (pod.status.phase, pod.status.reason) == EVICTED
    return not is_evicted, created, meta.name, meta.namespace
