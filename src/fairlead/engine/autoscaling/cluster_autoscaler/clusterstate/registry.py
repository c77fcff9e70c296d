"""ClusterStateRegistry: existing nodes, upcoming nodes, and the health of node groups.

For the numbers of nodes of a group, these equations hold:

    target     = Ready + Unready + Suspended + long unregistered + upcoming
    registered = Ready + Unready + Suspended + NotStarted + Deleted

The upcoming nodes include the NotStarted nodes, and instances that still wait for their Node. After
`max_node_provision_time` without a Node, an instance counts as long unregistered, not as upcoming.
A node is Deleted if its instance is gone.

A scale-up request is open until its group has no upcoming nodes, or until the request times out.

upstream: clusterstate/clusterstate.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Node
from fairlead.api.timestamp import format_duration, parse_timestamp
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CREATING,
    DELETING,
    CloudProvider,
    Instance,
    NodeGroup,
    ProviderError,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.backoff import ExponentialBackoff
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.instance_cache import InstanceCache
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.node_readiness import (
    node_readiness,
)
from fairlead.engine.autoscaling.cluster_autoscaler.event import WARNING, EventLog
from fairlead.engine.autoscaling.cluster_autoscaler.options import (
    AutoscalingOptions,
    NodeGroupOptions,
)
from fairlead.engine.core.instant import Instant

_MESSAGES_MAX: Final = 3


class ScaleUpRequest(Struct):
    """An open request for `increase` new nodes in one group.

    `time` is the time at which the request was opened or last increased. The request times out
    after `expected_by`.
    """

    increase: int
    time: Instant
    expected_by: Instant


class Readiness(Struct):
    """The nodes of one group, or of the whole cluster, by readiness.

    `unregistered` and `long_unregistered` contain the providerIDs of instances that have no Node.
    The other lists contain the names of nodes.
    """

    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    registered: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    long_unregistered: list[str] = field(default_factory=list)


class AcceptableRange(Struct, frozen=True):
    """The expected number of nodes of a group.

    The group must have at least `minimum` nodes now, and `target` nodes when all requested nodes
    exist.
    """

    minimum: int
    target: int


class IncorrectSize(Struct, frozen=True):
    """A mismatch between the `current` number of nodes of a group and the `expected` target size.

    `since` is the time at which either number last changed.
    """

    current: int
    expected: int
    since: Instant


class ClusterStateRegistry:
    """Tracks the nodes, scale-up requests and health of node groups.

    Call `update_nodes` once per loop.
    """

    def __init__(
        self, provider: CloudProvider, options: AutoscalingOptions, events: EventLog
    ) -> None:
        """Start without nodes. Events are recorded in `events`."""
        self._provider = provider
        self._options = options
        self._events = events
        self.backoff = ExponentialBackoff(options)
        self.cache = InstanceCache(provider)
        self.requests: dict[str, ScaleUpRequest] = {}
        self.readiness: dict[str, Readiness] = {}
        self.total = Readiness()
        self.ranges: dict[str, AcceptableRange] = {}
        self._incorrect: dict[str, IncorrectSize] = {}
        self._first_seen: dict[str, Instant] = {}
        self._instances: Mapping[str, Sequence[Instance]] = {}
        self._known_groups: frozenset[str] = frozenset()
        self._now: Instant = 0

    def group_options(self, group: NodeGroup) -> NodeGroupOptions:
        """Return the options of `group`."""
        return self._options.defaults.overridden(group.overrides)

    # --- requests --------------------------------------------------------------------------

    def register_scale_up(self, group: NodeGroup, delta: int, now: Instant) -> None:
        """Add `delta`, which may be negative, to the size of the open request of `group`.

        If no request is open, a positive `delta` opens one. A positive `delta` also restarts the
        timeout of an open request. If the size falls to zero, the request is deleted.
        """
        request = self.requests.get(group.id)
        by = now + self.group_options(group).max_node_provision_time
        if request is None:
            if delta > 0:
                self.requests[group.id] = ScaleUpRequest(delta, now, by)
            return
        request.increase += delta
        if request.increase <= 0:
            del self.requests[group.id]
        elif delta > 0:
            request.time, request.expected_by = now, by

    @property
    def updated_at(self) -> Instant:
        """The time of the last call of `update_nodes`."""
        return self._now

    def register_failed_scale_up(
        self, group: str, now: Instant, code: str = "", message: str = ""
    ) -> None:
        """Record a failed scale-up of `group` and put the group into backoff.

        `code` and `message` describe the failure in the status ConfigMap. A group without a known
        template is ignored.
        """
        if group in self._known_groups:
            self.backoff.back_off(group, now, code, message)

    # --- the loop's update -----------------------------------------------------------------

    def update_nodes(
        self, nodes: Sequence[Node], groups_with_template: frozenset[str], now: Instant
    ) -> None:
        """Update the state from `nodes` and from the provider's instances.

        `groups_with_template` contains the ids of the groups with a known template. Closes scale-up
        requests that are complete or have timed out. Handles instances that the provider could not
        create.
        """
        self._now = now
        for group in self._provider.node_groups():
            if self.is_scaling_up(group.id):
                self.cache.invalidate(group.id)
        self.cache.refresh_if_due(now)
        targets = self._targets()
        before, self._instances = self._instances, self.cache.by_group()
        self._known_groups = groups_with_template
        self._note_unregistered(nodes, now)
        self._classify(nodes, now)
        self._update_ranges(targets)
        self._update_requests(now)
        for group in self._provider.node_groups():
            self._handle_create_errors(group, before.get(group.id, ()), now)
        self._update_ranges(targets)
        self._update_incorrect_sizes(now)

    def recalculate(self) -> None:
        """Recompute the numbers that depend on the groups' target sizes and open requests."""
        self._update_ranges(self._targets())

    def _targets(self) -> dict[str, int]:
        return {group.id: group.target_size() for group in self._provider.node_groups()}

    def _note_unregistered(self, nodes: Sequence[Node], now: Instant) -> None:
        registered = {node.spec.provider_id for node in nodes}
        missing = (
            instance.id
            for instances in self._instances.values()
            for instance in instances
            if instance.id not in registered
            and instance.state != DELETING
            and instance.error is None
        )
        self._first_seen = {one: self._first_seen.get(one, now) for one in sorted(missing)}

    def _classify(self, nodes: Sequence[Node], now: Instant) -> None:
        self.readiness, self.total = {}, Readiness()
        total, group_for = self.total, self._provider.node_group_for
        for node in nodes:
            group = group_for(node.spec.provider_id)
            kind, name = self._class_of(node, group, now), node.metadata.name
            own = None if group is None else self.readiness.get(group.id)
            if group is not None and own is None:
                own = self.readiness[group.id] = Readiness()
            for one in (total,) if own is None else (total, own):
                one.registered.append(name)
                if kind == "ready":
                    one.ready.append(name)
                else:
                    getattr(one, kind).append(name)
        for provider_id, since in self._first_seen.items():
            group = self._provider.node_group_for(provider_id)
            if group is None:
                continue
            allowed = self.group_options(group).max_node_provision_time
            kind = "long_unregistered" if since + allowed < now else "unregistered"
            for one in (self.total, self.readiness.setdefault(group.id, Readiness())):
                getattr(one, kind).append(provider_id)

    def _class_of(self, node: Node, group: NodeGroup | None, now: Instant) -> str:
        if not self._provider.has_instance(node.spec.provider_id):
            return "deleted"
        found = node_readiness(node)
        if found.is_suspended:
            return "suspended"
        if found.is_ready:
            return "ready"
        options = self._options.defaults if group is None else self.group_options(group)
        created = node.metadata.creation_timestamp
        if (parse_timestamp(created) if created else 0) + options.max_node_startup_time > now:
            return "not_started"
        return "unready"

    def _update_ranges(self, targets: Mapping[str, int]) -> None:
        self.ranges = {}
        for group, target in targets.items():
            readiness = self.readiness.get(group, _NONE)
            request = self.requests.get(group)
            minimum = target - len(readiness.long_unregistered)
            if request is not None:
                minimum -= request.increase
            self.ranges[group] = AcceptableRange(minimum, target)

    def _update_requests(self, now: Instant) -> None:
        self.backoff.remove_stale(now)
        groups = {group.id: group for group in self._provider.node_groups()}
        for name, request in sorted(self.requests.items()):
            if not self._has_upcoming(name):
                del self.requests[name]
            elif request.expected_by < now:
                self._time_out(groups[name], request, now)

    def _time_out(self, group: NodeGroup, request: ScaleUpRequest, now: Instant) -> None:
        """Handle the timeout of `request`: put the group into backoff and drop the request.

        Also lowers the target size of the group by `request.increase`.
        """
        waited = format_duration(now - request.time)
        message = f"Nodes added to group {group.id} failed to register within {waited}"
        self._events.on_status(WARNING, "ScaleUpTimedOut", message)
        late = f"Scale-up timed out for node group {group.id} after {waited}"
        self.register_failed_scale_up(group.id, now, "timeout", late)
        del self.requests[group.id]
        try:
            group.decrease_target_size(-request.increase, now)
        except ProviderError as failure:
            text = (
                f"Failed to decrease target size for group {group.id} after scale-up timeout: "
                f"{failure}"
            )
            self._events.on_status(WARNING, "FailedToRevertScaleUp", text)

    def _handle_create_errors(
        self, group: NodeGroup, before: Sequence[Instance], now: Instant
    ) -> None:
        """Subtract the number of newly failed instances from the group's open scale-up request.

        If an instance has newly failed, the group is also put into backoff. `before` are the
        group's instances at the previous update. Nothing happens if the group is not scaling up.
        """
        known = {instance.id for instance in before if _has_failed(instance)}
        failed: dict[tuple[str, str], list[Instance]] = {}
        for instance in self._instances.get(group.id, ()):
            if _has_failed(instance) and instance.error is not None:
                error = instance.error
                failed.setdefault((error.error_class, error.code), []).append(instance)
        for (error_class, code), instances in sorted(failed.items()):
            unseen = sum(instance.id not in known for instance in instances)
            if not unseen or not self.is_scaling_up(group.id):
                continue
            texts = sorted({one.error.message for one in instances if one.error is not None})
            shown = ", ".join(texts) + (", ..." if len(texts) > _MESSAGES_MAX else "")
            message = (
                f"Failed adding {unseen} nodes to group {group.id} due to {error_class}.{code}; "
                f"source errors: {shown}"
            )
            self._events.on_status(WARNING, "ScaleUpFailed", message)
            self.register_scale_up(group, -unseen, now)
            self.register_failed_scale_up(group.id, now, code, shown)

    def _update_incorrect_sizes(self, now: Instant) -> None:
        found: dict[str, IncorrectSize] = {}
        for group, acceptable in self.ranges.items():
            readiness = self.readiness.get(group)
            if readiness is None:
                continue
            current, target = len(readiness.registered), acceptable.target
            missing = len(readiness.unregistered) + len(readiness.long_unregistered)
            if target - missing <= current <= target:
                continue
            known = self._incorrect.get(group)
            is_same = known is not None and (known.current, known.expected) == (current, target)
            since = known.since if known is not None and is_same else now
            found[group] = IncorrectSize(current, target, since)
        self._incorrect = found

    # --- reading ---------------------------------------------------------------------------

    def is_cluster_healthy(self) -> bool:
        """Return False if too many nodes of the cluster are unready, else True."""
        return self._is_tolerable(len(self.total.unready), len(self.total.registered))

    def _is_tolerable(self, unready: int, count: int) -> bool:
        options = self._options
        share = options.max_total_unready_percentage / 100.0 * count
        return unready <= options.ok_total_unready_count or unready <= share

    def is_group_healthy(self, group: str) -> bool:
        """Return whether enough of the group's expected nodes are ready.

        Suspended nodes count as ready. Returns False if the group is unknown.
        """
        acceptable = self.ranges.get(group)
        if acceptable is None:
            return False
        readiness = self.readiness.get(group)
        if readiness is None:
            return acceptable.target == 0 or (acceptable.minimum == 0 and acceptable.target > 0)
        working = len(readiness.ready) + len(readiness.suspended)
        count = working + len(readiness.unready) + len(readiness.not_started)
        return self._is_tolerable(max(0, acceptable.minimum - working), count)

    def is_backed_off(self, group: str, now: Instant) -> bool:
        """Return whether the group must not grow because of an earlier failure."""
        return self.backoff.is_backed_off(group, now)

    def is_scaling_up(self, group: str) -> bool:
        """Return whether the group has an open request and upcoming nodes."""
        return group in self.requests and self._has_upcoming(group)

    def _has_upcoming(self, group: str) -> bool:
        return self._missing(group) > 0

    def _missing(self, group: str) -> int:
        """Return the number of upcoming nodes of the group; see the module's docstring.

        The number is negative if the group has more nodes than its target size.
        """
        acceptable = self.ranges.get(group)
        if acceptable is None:
            return 0
        readiness = self.readiness.get(group, _NONE)
        present = len(readiness.ready) + len(readiness.unready) + len(readiness.suspended)
        return acceptable.target - present - len(readiness.long_unregistered)

    def upcoming_nodes(self, now: Instant) -> dict[str, int]:
        """Return the number of upcoming nodes by group.

        The result contains only groups that are scaling up (`is_scaling_up`) and are not backed
        off.
        """
        return {
            group.id: self._missing(group.id)
            for group in self._provider.node_groups()
            if self.is_scaling_up(group.id) and not self.is_backed_off(group.id, now)
        }

    def not_started(self, group: str) -> list[str]:
        """Return the names of the group's nodes that are still starting."""
        return self.readiness.get(group, _NONE).not_started

    def incorrect_size(self, group: str) -> IncorrectSize | None:
        """Return the mismatch between the group's target size and its nodes; None if they match."""
        return self._incorrect.get(group)

    def unregistered(self) -> dict[str, Instant]:
        """Return the time at which each instance without a Node was first seen, by instance id."""
        return self._first_seen

    def instances_with_errors(self) -> dict[str, list[str]]:
        """Return the ids of the instances that could not be created, by group."""
        found: dict[str, list[str]] = {}
        for group, instances in sorted(self._instances.items()):
            failed = sorted(one.id for one in instances if _has_failed(one))
            if failed:
                found[group] = failed
        return found


def _has_failed(instance: Instance) -> bool:
    return instance.state == CREATING and instance.error is not None


_NONE: Final = Readiness()
