"""The effects of a node autoscaler in a run: each group's limits, and nodes added and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.text.count import counted
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.core.instant import DurationNs, Instant, to_seconds
from fairlead.whatif.outcome.autoscaling.pause import Pause, pause_notes
from fairlead.whatif.outcome.autoscaling.refused_pod import RefusedPods, refused_notes

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.cluster_autoscaler.resource_quota import TotalLimit
    from fairlead.engine.autoscaling.reached_limit import ReachedLimit

HOURS_PER_MONTH: Final = 730
_SECONDS_PER_HOUR: Final = 3600.0
_EXPIRED: Final = "Expired"  # upstream: pkg/controllers/nodeclaim/expiration/controller.go


class NodeTransition(Struct, frozen=True):
    """An event of a group: a node appeared (`came` is True) or was removed.

    `price` is the hourly price of the node, None if it is unknown.
    """

    at: Instant
    node: str
    group: str
    came: bool
    reason: str = ""
    price: float | None = None

    @property
    def has_expired(self) -> bool:
        """Whether the node was removed because its NodeClaim expired."""
        return not self.came and self.reason == _EXPIRED


def transition_words(transitions: Sequence[NodeTransition]) -> str:
    """Return words such as `adds 1 node and removes 2 nodes`; "" if there are none."""
    added = sum(one.came for one in transitions)
    removed = len(transitions) - added
    parts = [f"adds {counted(added, 'node')}"] if added else []
    parts += [f"removes {counted(removed, 'node')}"] if removed else []
    return " and ".join(parts)


class GroupOutcome(Struct, frozen=True):
    """A node group: its limits, its nodes before and after the run, its node hours and their cost.

    For Karpenter a group is an instance type and capacity type of a NodePool. The prices of the
    nodes of such a group can differ between zones. If `has_price` is False, a price is unknown,
    and the cost of one or more nodes is None.
    """

    group: str
    minimum: int
    maximum: int | None  # None if nothing limits the number of nodes
    before: int
    after: int
    added: int
    removed: int
    node_hours: float
    has_price: bool  # False if the price of a node is unknown
    cost_per_hour: float | None  # the cost of the nodes at the end
    cost: float | None  # the cost of the node hours
    instance_type: str = ""

    def prolonged(self, hours: float) -> GroupOutcome:
        """Return the outcome as if the nodes at the end had been kept for `hours` longer."""
        rate = self.cost_per_hour
        cost = None if self.cost is None or rate is None else self.cost + rate * hours
        return replace(self, node_hours=self.node_hours + self.after * hours, cost=cost)


class AutoscalingOutcome(Struct, frozen=True):
    """The effects of a node autoscaler in a run.

    Only `earlier` includes effects before the change.
    """

    autoscaler: str
    groups: tuple[GroupOutcome, ...]
    transitions: tuple[NodeTransition, ...]  # the additions and removals of nodes
    waiting: Mapping[str, str]  # {pod: the reason why it triggers no scale-up}
    staying: Mapping[str, str]  # {node: the reason why it is not removed}
    # The number of machines that the provider lacked, by group or NodePool.
    undelivered: Mapping[str, int] = field(default_factory=dict)
    earlier: tuple[NodeTransition, ...] = ()  # the transitions before the change
    # The times in which Cluster Autoscaler stops because of unready nodes.
    pauses: tuple[Pause, ...] = ()
    # Pods that got a node late, because the autoscaler had a reason to add no node for them.
    refused: tuple[RefusedPods, ...] = ()
    estimated_prices: frozenset[str] = frozenset()  # the instance types with an estimated price
    # Maps the drifted nodes that Karpenter has not replaced at the end to the reasons, "" for a
    # node that could be replaced then.
    drifted: Mapping[str, str] = field(default_factory=dict)
    # Maps pods in `waiting` to the limits without which they would get a new node.
    limits: Mapping[str, tuple[ReachedLimit, ...]] = field(default_factory=dict)
    # Maps pods in `waiting` that the autoscaler ignores without an event to the reasons.
    ignored: Mapping[str, str] = field(default_factory=dict)
    # The greatest capacity that the nodes of each NodePool had, by resource that the NodePool
    # limits.
    limited_use: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # The names of the nodes of each group of Cluster Autoscaler.
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)
    nodes_max: int = 0  # Cluster Autoscaler's --max-nodes-total, 0 without a limit
    # Cluster Autoscaler's limits on the cores, memory and GPUs of all nodes, such as --cores-total.
    totals: tuple[TotalLimit, ...] = ()
    # A note about the nodes that Karpenter may remove only later because of its budgets.
    awaited_budget_notes: tuple[str, ...] = ()
    # The NodePools that no instance type matches at the end, each with Karpenter's event text.
    pools_without_types: Mapping[str, str] = field(default_factory=dict)

    def prolonged(self, duration: DurationNs) -> AutoscalingOutcome:
        """Return the outcome as if the nodes at the end had been kept for `duration` longer."""
        hours = to_seconds(duration) / _SECONDS_PER_HOUR
        return replace(self, groups=tuple(one.prolonged(hours) for one in self.groups))

    def waiting_notes(self, start: Instant) -> list[str]:
        """Return notes that say why pods waited although the autoscaler could add nodes.

        Pods that still wait at the end are left out: `waiting` has their reasons. The times in the
        notes count from `start`.
        """
        return [*pause_notes(self.pauses, start), *refused_notes(self.refused, self.autoscaler)]

    @property
    def added(self) -> int:
        """The number of nodes that the autoscaler or a user added to the groups."""
        return sum(group.added for group in self.groups)

    @property
    def removed(self) -> int:
        """The number of nodes that the autoscaler or a user removed from the groups."""
        return sum(group.removed for group in self.groups)

    @property
    def nodes_after(self) -> int:
        """The number of nodes in the groups at the end."""
        return sum(group.after for group in self.groups)

    @property
    def node_hours(self) -> float:
        """The sum of the node hours of all groups during the run."""
        return float_sum(group.node_hours for group in self.groups)

    @property
    def unpriced(self) -> list[str]:
        """The groups whose nodes have no price; [] if no group has a price."""
        used = (one for one in self.groups if one.node_hours or one.after)
        without = [one.group for one in used if not one.has_price]
        return without if any(one.has_price for one in self.groups) else []

    @property
    def is_cost_estimated(self) -> bool:
        """Whether the costs include nodes whose prices are estimates."""
        used = (one for one in self.groups if one.node_hours or one.after)
        return any(one.instance_type in self.estimated_prices for one in used)

    @property
    def cost_per_hour(self) -> float | None:
        """The hourly cost of all groups at the end; None if the price of a node is unknown."""
        return _sum([group.cost_per_hour for group in self.groups])

    @property
    def cost_per_month(self) -> float | None:
        """The monthly cost of all groups at the end; None if the price of a node is unknown."""
        per_hour = self.cost_per_hour
        return None if per_hour is None else per_hour * HOURS_PER_MONTH

    @property
    def cost(self) -> float | None:
        """The cost of all node hours; None if the price of a node is unknown."""
        if self.groups and not any(group.has_price for group in self.groups):
            return None  # also if the run took no time
        return _sum([group.cost for group in self.groups])


def _sum(amounts: Iterable[float | None]) -> float | None:
    found = 0.0
    for one in amounts:
        if one is None:
            return None
        found += one
    return found
