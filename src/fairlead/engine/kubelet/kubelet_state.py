"""KubeletState: the heartbeat state of one simulated kubelet.

The node's annotation `fairlead.dev/kubelet` is parsed here; an invalid annotation causes a warning
event.
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
class KubeletState:
    """The heartbeat state of one node.

    `annotation` is the annotation's last value, `base` the conditions without any pressure,
    `measured` the pressures that node-pressure eviction has found. The node flaps at `flaps_at`,
    compares its conditions at `posts_at`, retries a refused lease write at `retries_at` and, if
    each renewal is written, writes the next one at `renews_at` (None: not scheduled).
    """

    node: Node
    annotation: str | None
    base: Conditions
    behaviour: KubeletBehaviour = RUNNING
    measured: tuple[Report, ...] = ()
    is_reporting: bool = False
    is_assumed_stopped: bool = False
    renewals: Renewals | None = None
    flaps_at: Instant | None = None
    posts_at: Instant | None = None
    retries_at: Instant | None = None
    renews_at: Instant | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    def is_due_to_write(self, now: Instant) -> bool:
        """Return whether its lease must be written now."""
        return any(due is not None and due <= now for due in (self.retries_at, self.renews_at))

    @property
    def conditions(self) -> Conditions:
        """The conditions that the kubelet posts."""
        return with_reports(self.base, (*self.behaviour.reports, *self.measured))


def read_behaviour(
    node: Node, otherwise: KubeletBehaviour
) -> tuple[KubeletBehaviour, list[Command]]:
    """Return the behaviour that the annotation of `node` specifies.

    If the annotation is invalid, return `otherwise` and a warning.
    """
    try:
        return parse_kubelet_behaviour(node.metadata.annotations.get(KUBELET, "")), []
    except ValueError as problem:
        warning = RecordEvent(
            regarding=node_ref(node),
            type="Warning",
            reason="InvalidAnnotation",
            action="Starting",
            note=f"metadata.annotations[{KUBELET}]: {problem}",
            reporting_controller=REPORTING_CONTROLLER,
        )
        return otherwise, [warning]
