"""GuardPods: recreates OpenShift's guard pods on their nodes.

A guard pod has no owner, so no Kubernetes controller replaces it after an eviction. An OpenShift
operator creates the guard pod again once the pod's node is schedulable. A simulation may drain the
control plane nodes one after another. If GuardPods did not run, the drain of the second node would
never end, because the disruption budget of the guard pods allows only one missing pod.

The simulated operator reacts after SYNC_DELAY. The delay keeps virtual time advancing if, for
example, preemption removes each guard pod as soon as it is created. Unlike the operator, GuardPods
creates no guard pod on a node with a NoExecute taint. The taint would evict the pod again and
again.

upstream: openshift/library-go pkg/operator/staticpod/controller/guard/guard_controller.go: sync
"""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.nodes.taint import NO_EXECUTE
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import is_guard
from fairlead.engine.core.command import Command, create_again
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Component, Issuer
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.engine.core.timer_queue import TimerQueue

SYNC_DELAY: Final[DurationNs] = seconds(1)


class GuardPods(Struct):
    """Recreates deleted guard pods on their nodes, if these nodes accept guard pods."""

    issuer: ClassVar[Issuer] = Issuer(Component.CONTROLLER_MANAGER)
    interest: ClassVar[Interest] = Interest(
        changed=(Node,), deleted=(Node, Pod), succeeded=(), failed=(), readiness=False
    )

    _nodes: dict[str, Node] = field(default_factory=dict)
    _missing: dict[str, dict[str, Pod]] = field(default_factory=dict)
    _timers: TimerQueue[str] = field(default_factory=TimerQueue)  # of nodes with missing pods

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Observe nodes and deleted guard pods; return no commands."""
        if type(stimulus) is ObjectsLoaded:
            nodes = (one for one in stimulus.others if isinstance(one, Node))
            self._nodes = {one.metadata.name: one for one in nodes}
        elif type(stimulus) is ObjectChanged:
            node = stimulus.object
            if type(node) is Node:
                self._nodes[node.metadata.name] = node
                self._plan(node.metadata.name, now)
        elif type(stimulus) is ObjectDeleted:
            gone = stimulus.object
            if type(gone) is Node:
                self._nodes.pop(gone.metadata.name, None)
                self._missing.pop(gone.metadata.name, None)
            elif type(gone) is Pod and is_guard(gone):
                self._missing.setdefault(gone.spec.node_name, {})[gone.key] = gone
                self._plan(gone.spec.node_name, now)
        return []

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next guard pods are created; None if no guard pod is due."""
        return self._timers.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the commands that create the missing guard pods of nodes that accept them."""
        due = dict.fromkeys(self._timers.pop_due(now))
        pods = (self._missing.pop(node, {}) for node in due if self._accepts_guards(node))
        return [create_again(pod) for some in pods for pod in some.values()]

    def _plan(self, node: str, now: Instant) -> None:
        if node in self._missing and self._accepts_guards(node):
            self._timers.add(now + SYNC_DELAY, node)

    def _accepts_guards(self, name: str) -> bool:
        node = self._nodes.get(name)
        if node is None or node.spec.unschedulable:
            return False
        return all(taint.effect != NO_EXECUTE for taint in node.spec.taints)
