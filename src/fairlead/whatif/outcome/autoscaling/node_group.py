"""The effects of a node autoscaler in a run: each group's limits, and nodes added and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.core.instant import DurationNs, Instant, to_seconds

HOURS_PER_MONTH: Final = 730
_SECONDS_PER_HOUR: Final = 3600.0
_EXPIRED: Final = "Expired"  # upstream: pkg/controllers/nodeclaim/expiration/controller.go


class NodeTransition(Struct, frozen=True):
    """An event of a group: a node appeared (`came` is True) or was removed."""

    at: Instant
    node: str
    group: str
    came: bool
    reason: str = ""

    @property
    def has_expired(self) -> bool:
        """Whether the node was removed because its NodeClaim expired."""
        return not self.came and self.reason == _EXPIRED


class GroupOutcome(Struct, frozen=True):
    """A node group: its limits, its nodes before and after the run, and its node hours.

    For Karpenter a group is an instance type and capacity type of a NodePool. `maximum` is None if
    nothing limits the number of nodes. `price` is the hourly price of one node, None if it is
    unknown.
    """

    group: str
    minimum: int
    maximum: int | None
    before: int
    after: int
    added: int
    removed: int
    node_hours: float
    price: float | None
    instance_type: str = ""

    @property
    def cost_per_hour(self) -> float | None:
        """The hourly cost of the group's nodes at the end; None if their price is unknown."""
        return _cost(self.after, self.price)

    @property
    def cost(self) -> float | None:
        """The cost of the node hours; None if their price is unknown."""
        return _cost(self.node_hours, self.price)


class AutoscalingOutcome(Struct, frozen=True):
    """The effects of a node autoscaler in a run.

    `transitions` are the additions and removals of nodes. `waiting` maps pods to the reasons why
    they trigger no scale-up. `staying` maps nodes to the reasons why they are not removed.
    `undelivered` counts, by group or NodePool, machines that the provider lacked. `earlier` are the
    transitions before the change; the other fields do not include them.
    """

    autoscaler: str
    groups: tuple[GroupOutcome, ...]
    transitions: tuple[NodeTransition, ...]
    waiting: Mapping[str, str]
    staying: Mapping[str, str]
    undelivered: Mapping[str, int] = field(default_factory=dict)
    earlier: tuple[NodeTransition, ...] = ()

    def prolonged(self, duration: DurationNs) -> AutoscalingOutcome:
        """Return the outcome as if the nodes at the end had been kept for `duration` longer."""
        hours = to_seconds(duration) / _SECONDS_PER_HOUR
        groups = (
            replace(one, node_hours=one.node_hours + one.after * hours) for one in self.groups
        )
        return replace(self, groups=tuple(groups))

    @property
    def added(self) -> int:
        """The number of nodes that the autoscaler added."""
        return sum(group.added for group in self.groups)

    @property
    def removed(self) -> int:
        """The number of nodes that the autoscaler removed."""
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
        """The groups whose nodes have no price, if any other group has a price; else []."""
        without = [one.group for one in self.groups if one.price is None and one.node_hours]
        return without if any(one.price is not None for one in self.groups) else []

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
        if self.groups and all(group.price is None for group in self.groups):
            return None  # also if the run took no time
        return _sum([group.cost for group in self.groups])


def _cost(amount: float, price: float | None) -> float | None:
    if price is None:
        return None if amount else 0.0
    return amount * price


def _sum(amounts: Iterable[float | None]) -> float | None:
    found = 0.0
    for one in amounts:
        if one is None:
            return None
        found += one
    return found
