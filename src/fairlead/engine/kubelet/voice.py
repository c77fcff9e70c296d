"""Voice: one node as it is heard, and what it is told.

What its annotation asks for is read here, and told when nobody can read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.api.kubelet_behaviour import (
    KUBELET,
    RUNNING,
    KubeletBehaviour,
    Report,
    parse_kubelet_behaviour,
)
from fairlead.api.lease import Renewals
from fairlead.api.objects import Node
from fairlead.engine.core.command import Command, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.node_condition import Conditions, node_ref, with_reports

REPORTING_CONTROLLER: Final = "kubelet"


@dataclass(eq=False, slots=True)
class Voice:
    """A node there is.

    `told` is its annotation as last read, `base` what it says of itself when nobody interferes,
    `measured` what it found out itself. It flaps at `turns_at`, looks at its conditions at
    `posts_at`, writes a lease that was refused at `retries_at` and, where each renewal is written,
    the next one at `renews_at` (None: not to be expected).
    """

    node: Node
    told: str | None
    base: Conditions
    behaviour: KubeletBehaviour = RUNNING
    measured: tuple[Report, ...] = ()
    is_heard: bool = False
    is_found_silent: bool = False
    renewals: Renewals | None = None
    turns_at: Instant | None = None
    posts_at: Instant | None = None
    retries_at: Instant | None = None
    renews_at: Instant | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    def is_due_to_write(self, now: Instant) -> bool:
        """Whether the time has come to write its lease."""
        return any(due is not None and due <= now for due in (self.retries_at, self.renews_at))

    @property
    def says(self) -> Conditions:
        """What it posts of itself."""
        return with_reports(self.base, (*self.behaviour.reports, *self.measured))


def understood(node: Node, otherwise: KubeletBehaviour) -> tuple[KubeletBehaviour, list[Command]]:
    """What the annotation asks for; `otherwise` and a complaint where nobody understands it."""
    try:
        return parse_kubelet_behaviour(node.metadata.annotations.get(KUBELET, "")), []
    except ValueError as problem:
        complaint = RecordEvent(
            regarding=node_ref(node),
            type="Warning",
            reason="InvalidAnnotation",
            action="Starting",
            note=f"metadata.annotations[{KUBELET}]: {problem}",
            reporting_controller=REPORTING_CONTROLLER,
        )
        return otherwise, [complaint]
