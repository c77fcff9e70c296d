"""AutoscalerHistory: the autoscaler's actions in a run, and its reasons for not acting.

The history is reported to users; decisions do not read it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.api.objects import Node
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CloudProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import (
    UnremovableReason,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.status import (
    ScaleUpResult,
    not_triggered,
)
from fairlead.engine.autoscaling.cluster_autoscaler.static_autoscaler import (
    LoopRecord,
    StaticAutoscaler,
)
from fairlead.engine.autoscaling.refusal import RefusalLog
from fairlead.engine.core.instant import Instant


class GroupGrowth(Struct, frozen=True):
    """An increase of a group's target size from `current` to `new`, for the pods `pods`."""

    at: Instant
    group: str
    current: int
    new: int
    pods: tuple[str, ...]


class NodeArrival(Struct, frozen=True):
    """The addition of a Node to a node group. `is_own` is set if the autoscaler requested the Node.

    `labels` are those of the Node.
    """

    at: Instant
    node: str
    labels: Mapping[str, str]
    group: str
    is_own: bool


class NodeDeparture(Struct, frozen=True):
    """The deletion of a Node of a node group. `is_own` is set if the autoscaler deleted the Node.

    `labels` are those of the Node.
    """

    at: Instant
    node: str
    labels: Mapping[str, str]
    group: str
    is_own: bool


class UnhealthyPeriod(Struct):
    """A period in which the autoscaler does nothing because too many nodes are unready.

    `until` is None while the period lasts. `unready` is the highest number of unready nodes in the
    period. `nodes` is the total number of nodes at the time of this maximum.
    """

    since: Instant
    unready: int
    nodes: int
    until: Instant | None = None


class AutoscalerHistory:
    """The actions of the cluster autoscaler in a run, and its reasons for not acting.

    `without_scale_up` maps each pod to the reason why no group grew for it. The reasons are from
    the last loop that looked for unschedulable pods. `staying` maps each node to the reason why it
    was kept. The reasons are from the last loop that looked for nodes to remove. The periods in
    `unhealthy` are ordered by time; only the last period can still last. `refusals` records for how
    long each reason in `without_scale_up` applied.
    """

    def __init__(self, provider: CloudProvider) -> None:
        self._provider = provider
        self._started: set[str] = set()
        self.growths: list[GroupGrowth] = []
        self.arrivals: list[NodeArrival] = []
        self.departures: list[NodeDeparture] = []
        self.without_scale_up: Mapping[str, str] = {}
        self.staying: Mapping[str, str] = {}
        self.unhealthy: list[UnhealthyPeriod] = []
        self.refusals = RefusalLog()

    @property
    def unhealthy_now(self) -> UnhealthyPeriod | None:
        """The period of `unhealthy` that has not ended; None if the last loop could act."""
        last = self.unhealthy[-1] if self.unhealthy else None
        return None if last is None or last.until is not None else last

    def node_added(self, node: Node, now: Instant, *, is_own: bool) -> None:
        """Record the addition of `node` if it belongs to a node group; see `NodeArrival`."""
        group = self._provider.node_group_for(node.spec.provider_id)
        if group is not None:
            meta = node.metadata
            self.arrivals.append(NodeArrival(now, meta.name, meta.labels, group.id, is_own))

    def node_removed(self, node: Node, now: Instant) -> None:
        """Record the deletion of `node` if it belongs to a node group."""
        group = self._provider.node_group_for(node.spec.provider_id)
        if group is not None:
            meta = node.metadata
            is_own = meta.name in self._started
            self.departures.append(NodeDeparture(now, meta.name, meta.labels, group.id, is_own))

    def loop_done(self, record: LoopRecord, autoscaler: StaticAutoscaler) -> None:
        """Record the actions of a loop."""
        remaining: dict[str, str] = {}
        for status in record.scale_ups:
            pods = tuple(pod.key for pod in status.triggered)
            for info in status.infos:
                growth = GroupGrowth(record.at, info.group, info.current, info.new, pods)
                self.growths.append(growth)
            if status.result is not ScaleUpResult.ERROR:
                remaining |= {info.pod.key: not_triggered(status, info) for info in status.remain}
        if record.unschedulable is not None:
            self.without_scale_up = remaining
        self.refusals.update({} if record.unschedulable is None else remaining, record.at)
        self._started |= {one.name for one in record.scale_down.deleting}
        if record.scale_down.candidates is not None:
            self.staying = _staying(autoscaler, self.staying)
        self._note_health(record.at, autoscaler)

    def _note_health(self, now: Instant, autoscaler: StaticAutoscaler) -> None:
        """Begin, continue or end a period of `unhealthy`, according to the loop at `now`."""
        registry, period = autoscaler.context.registry, self.unhealthy_now
        if registry.is_cluster_healthy():
            if period is not None:
                period.until = now
            return
        unready, nodes = len(registry.total.unready), len(registry.total.registered)
        if period is None:
            self.unhealthy.append(UnhealthyPeriod(now, unready, nodes))
        elif unready > period.unready:
            period.unready, period.nodes = unready, nodes


def _staying(autoscaler: StaticAutoscaler, before: Mapping[str, str]) -> dict[str, str]:
    """Return upstream's reason for keeping each unremovable node, by node name.

    `before` is the result of the previous call. After the planner has found a node unremovable, it
    does not examine the node again for some time. During this time, the node keeps its reason from
    `before`, if there is one.
    """
    found = {}
    for name, why in autoscaler.planner.unremovable.reasons.items():
        text = str(why.reason)
        if why.reason is UnremovableReason.RECENTLY_UNREMOVABLE and name in before:
            text = before[name]
        if why.blocking is not None:
            text = f"{text}: {why.blocking.reason}, {why.blocking.pod.key}"
        found[name] = text
    return found
