"""GuardPods: creates the guard pods of OpenShift again on their nodes.

A guard pod has no controller of Kubernetes, so a drain evicts it like a pod that nothing replaces.
But an operator of OpenShift creates it again when its node is schedulable. Without this rule, a
drain of one control plane node after another would wait forever at the second node, because the
budget of the guard pods allows one missing pod.

upstream: openshift/library-go pkg/operator/staticpod/controller/guard/guard_controller.go: sync
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct, field

from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import is_guard
from fairlead.engine.core.command import Command, create_again
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Component, Issuer
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus


class GuardPods(Struct):
    """The deleted guard pods that wait until their node is schedulable again, by node."""

    issuer: ClassVar[Issuer] = Issuer(Component.CONTROLLER_MANAGER)
    interest: ClassVar[Interest] = Interest(
        changed=(Node,), deleted=(Node, Pod), succeeded=(), failed=(), readiness=False
    )

    _nodes: dict[str, Node] = field(default_factory=dict)
    _missing: dict[str, dict[str, Pod]] = field(default_factory=dict)

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands that create the missing guard pods of schedulable nodes."""
        match stimulus:
            case ObjectsLoaded():
                nodes = (one for one in stimulus.others if isinstance(one, Node))
                self._nodes = {one.metadata.name: one for one in nodes}
            case ObjectChanged(Node() as node):
                self._nodes[node.metadata.name] = node
                return self._create(node.metadata.name)
            case ObjectDeleted(Node() as node):
                self._nodes.pop(node.metadata.name, None)
                self._missing.pop(node.metadata.name, None)
            case ObjectDeleted(Pod() as pod) if is_guard(pod):
                self._missing.setdefault(pod.spec.node_name, {})[pod.key] = pod
                return self._create(pod.spec.node_name)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """Return None, because the controller has no deadlines."""
        return None

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return no commands."""
        return []

    def _create(self, name: str) -> list[Command]:
        node = self._nodes.get(name)
        if name not in self._missing or node is None or node.spec.unschedulable:
            return []
        return [create_again(pod) for pod in self._missing.pop(name).values()]
