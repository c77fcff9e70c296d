"""NodeTtl: annotates each node with how long its kubelet may cache ConfigMaps and Secrets.

The TTL grows with the number of nodes. It is lowered at a smaller number of nodes than it is
raised, so that it does not alternate at a threshold.

upstream: pkg/controller/ttl/ttl_controller.go
"""

from __future__ import annotations

from typing import ClassVar, Final

from fairlead.api.objects import Node
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import Stimulus
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController, changes

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
    """Annotates all nodes."""

    issuer: ClassVar[Issuer] = controller_account("ttl-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Node,), deleted=(Node,), succeeded=(), failed=()
    )

    def __init__(self) -> None:
        """Start without nodes."""
        self._names: dict[str, None] = {}
        self._step = 0

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Annotate changed nodes that do not have the current TTL."""
        commands: list[Command] = []
        for one, is_deleted in changes(stimulus):
            if isinstance(one, Node):
                commands += self._see(one, is_deleted=is_deleted)
        return commands

    def _see(self, node: Node, *, is_deleted: bool) -> list[Command]:
        meta = node.metadata
        if is_deleted:
            self._names.pop(meta.name, None)
        else:
            self._names[meta.name] = None
        while len(self._names) > _STEPS[self._step][1]:
            self._step += 1
        while len(self._names) < _STEPS[self._step][0]:
            self._step -= 1
        ttl = str(_STEPS[self._step][2])
        if is_deleted or meta.annotations.get(ANNOTATION) == ttl:
            return []
        patch = {"metadata": {"annotations": {ANNOTATION: ttl}}}
        return [PatchObject(ObjectRef("Node", "", meta.name, meta.uid), patch)]
