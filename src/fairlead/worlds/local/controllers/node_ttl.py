"""NodeTtl: annotates nodes with the time for which kubelets may cache ConfigMaps and Secrets.

The TTL rises when the number of nodes exceeds a limit. The TTL falls only when the number drops
below a second, lower limit. So the TTL does not alternate when a few nodes come and go.

upstream: pkg/controller/ttl/ttl_controller.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from fairlead.api.objects import ApiObject, Node
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"
# minimum of nodes, maximum of nodes, TTL in seconds
_STEPS: Final = (
    (0, 100, 0),
    (90, 500, 15),
    (450, 1_000, 30),
    (900, 2_000, 60),
    (1_800, 1 << 62, 300),
)


class NodeTtl(ReactiveController):
    """Sets the TTL annotation of all nodes."""

    issuer: ClassVar[Issuer] = controller_account("ttl-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Node,), deleted=(Node,), succeeded=(), failed=(PatchObject,)
    )

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[str, Node] = {}
        self._step = 0

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Annotate changed nodes that do not have the current TTL."""
        commands: list[Command] = []
        for one, is_deleted in changed:
            if isinstance(one, Node):
                commands += self._observe(one, is_deleted=is_deleted)
        return commands

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is a node whose TTL annotation is missing or outdated."""
        return target.kind == "Node" and bool(self.reconcile(target, 0))

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Annotate the node `target` if it does not have the current TTL."""
        node = self._nodes.get(target.name)
        return [] if node is None else self._annotate(node)

    def _observe(self, node: Node, *, is_deleted: bool) -> list[Command]:
        meta = node.metadata
        if is_deleted:
            self._nodes.pop(meta.name, None)
        else:
            self._nodes[meta.name] = node
        while len(self._nodes) > _STEPS[self._step][1]:
            self._step += 1
        while len(self._nodes) < _STEPS[self._step][0]:
            self._step -= 1
        return [] if is_deleted else self._annotate(node)

    def _annotate(self, node: Node) -> list[Command]:
        meta, ttl = node.metadata, str(_STEPS[self._step][2])
        if meta.annotations.get(ANNOTATION) == ttl:
            return []
        patch = {"metadata": {"annotations": {ANNOTATION: ttl}}}
        return [PatchObject(ObjectRef("Node", "", meta.name, meta.uid), patch)]
