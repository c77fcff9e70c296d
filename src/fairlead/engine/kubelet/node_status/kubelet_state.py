"""KubeletState: the heartbeat state of one simulated kubelet."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.lease import Renewals
from fairlead.api.nodes.kubelet_behaviour import (
    KUBELET,
    RUNNING,
    KubeletBehaviour,
    Report,
    parse_kubelet_behaviour,
)
from fairlead.api.objects import Node
from fairlead.engine.core.command import Command, RecordEvent, node_ref
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.node_status.node_condition import Conditions, with_reports

REPORTING_CONTROLLER: Final = "kubelet"


class KubeletState(Struct, eq=False):
    """The heartbeat state of one node.

    The annotation `fairlead.dev/kubelet` and `measured` can replace conditions in `base`. The last
    four fields are times, or None if nothing is scheduled.
    """

    node: Node
    # The last value of the node annotation KUBELET, which states the behaviour of the kubelet.
    annotation: str | None
    # The conditions that the Node had when its kubelet was added (`found_conditions`). After a
    # restart of the node's machine, healthy conditions.
    base: Conditions
    behaviour: KubeletBehaviour = RUNNING
    measured: tuple[Report, ...] = ()  # the pressures that node-pressure eviction has found
    is_reporting: bool = False
    is_assumed_stopped: bool = False
    renewals: Renewals | None = None
    # The number of consecutive refusals to create the lease, or to write the end of its renewals.
    lease_refusals: int = 0
    flaps_at: Instant | None = None  # the node starts or stops reporting
    # The kubelet posts its conditions if the Node has different ones.
    posts_at: Instant | None = None
    # The kubelet writes its lease again, because a write was refused or another client changed the
    # lease.
    retries_at: Instant | None = None
    # The kubelet renews its lease, or posts its conditions if nodes have no leases. None if
    # renewals need no writes because the lease states how often it is renewed.
    renews_at: Instant | None = None

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.metadata.name

    def is_due_to_write(self, now: Instant) -> bool:
        """Return whether the lease of the node must be written at `now`."""
        return any(due is not None and due <= now for due in (self.retries_at, self.renews_at))

    @property
    def conditions(self) -> Conditions:
        """The conditions that the kubelet posts."""
        return with_reports(self.base, (*self.behaviour.reports, *self.measured))


def read_behaviour(
    node: Node, otherwise: KubeletBehaviour
) -> tuple[KubeletBehaviour, list[Command]]:
    """Return the behaviour that the annotation of `node` specifies, and warning events.

    If the annotation is invalid, return the argument `otherwise` and one warning.
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
