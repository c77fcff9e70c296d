"""SimulatedProvider: node groups whose machines become Nodes after a delay.

    increase ──▶ Creating ──▶ Node is created ──▶ Node is Ready, at the end of the provision time
    delete   ──▶ the machine is removed immediately; its Node is removed after `deletion_time`

The provision time of a machine is between 3/4 and 5/4 of the group's provision time. The seed, the
group and the machine's number in the group determine the exact time.

A new machine is created in a zone that has capacity. Of several such zones, the one with the fewest
machines of the group is chosen. AWS Auto Scaling groups and Azure scale sets do the same. New
machines fail while the group is out of capacity, and while CapacityOutages affect all of its zones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.nodes.readiness import starting_condition
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.requests import pod_requests
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import HOSTNAME, region_and_zone
from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CREATING,
    Instance,
    InstanceError,
    ProviderError,
)
from fairlead.engine.autoscaling.node_dependents import NO_DEPENDENTS, NodeDependents
from fairlead.engine.autoscaling.provision_time import registration_time
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue

PROVISION_TIME: Final[DurationNs] = seconds(90)
DELETION_TIME: Final[DurationNs] = seconds(60)
_ERROR_AFTER: Final[DurationNs] = seconds(10)
_RETRY_AFTER: Final[DurationNs] = seconds(10)
_WHY_DELETED: Final = "machine deleted"
_SCHEME: Final = "simulated"
_CORE_PRICE: Final = 0.03
_GIB_PRICE: Final = 0.004
_NO_CAPACITY: Final = InstanceError("OutOfResource", "STOCKOUT", "insufficient capacity")
_NOT_IN_NAME: Final = re.compile(r"[^a-z0-9.-]+")
# The label of nodes with a GPU, by --cloud-provider (upstream: each cloud provider's GPULabel).
_GPU_LABELS: Final[Mapping[str, str]] = {
    "aws": "k8s.amazonaws.com/accelerator",
    "azure": "accelerator",
    "clusterapi": "cluster-api/accelerator",
    "gce": "cloud.google.com/gke-accelerator",
}
# The label that NVIDIA's GPU feature discovery sets, for other providers.
_GPU_PRODUCT_LABEL: Final = "nvidia.com/gpu.product"


class NodeGroupSpec(Struct, frozen=True, kw_only=True):
    """The description of a node group, from a dump or a file.

    A Node belongs to the group if it has all `labels` and `annotations`. At least one label or
    annotation must be given. The nodes of a group can differ in instance type, capacity type and
    zone. A price is None if it is unknown.
    """

    id: str
    minimum: int
    maximum: int
    labels: Mapping[str, str] = field(default_factory=dict)
    # The possible values of each annotation. The annotation of a Node must have one of these
    # values. New nodes have the first value.
    annotations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # A Node of the group's first zone as JSON; None if nothing is known about the group's nodes.
    template: Json | None = None
    other_zones: tuple[Json, ...] = ()  # one Node as JSON for each further zone of the group
    # The hourly price of nodes that have no entry in `type_prices`. The expander `price` uses this
    # price for all nodes.
    price: float | None = None
    # {(instance type, capacity type, zone): hourly price}
    type_prices: Mapping[tuple[str, str, str], float | None] = field(default_factory=dict)
    provision_time: DurationNs = PROVISION_TIME
    deletion_time: DurationNs = DELETION_TIME
    # The periods in which the provider cannot create nodes of the group. Each period is (begin,
    # end) in ns since the start of the run.
    out_of_capacity: tuple[tuple[DurationNs, DurationNs], ...] = ()
    # Autoscaling options of this group by flag name.
    overrides: Mapping[str, Any] = field(default_factory=dict)
    # The CSINode and the ResourceSlices that are created with a new node.
    dependents: NodeDependents = NO_DEPENDENTS
    provider_name: str = ""  # the cloud provider's name for the group, "" if the same as `id`

    @property
    def node_labels(self) -> dict[str, str]:
        """The labels of new nodes in the first zone of the group."""
        return self.labels_of(self.template or {})

    @property
    def templates(self) -> tuple[Json, ...]:
        """A Node as JSON for each zone of the group; () if nothing is known about the nodes."""
        return () if self.template is None else (self.template, *self.other_zones)

    def labels_of(self, template: Json) -> dict[str, str]:
        """Return the labels of new nodes that are made from `template`."""
        metadata = template.get("metadata") or {}
        return {**(metadata.get("labels") or {}), **self.labels}

    def owns(self, node: Node) -> bool:
        """Return True if `node` belongs to the group."""
        labels, annotations = node.metadata.labels, node.metadata.annotations
        return (
            (self.labels or self.annotations) != {}
            and all(labels.get(key) == value for key, value in self.labels.items())
            and all(annotations.get(key) in values for key, values in self.annotations.items())
        )


class SimulatedNodeGroup:
    """One group of a `SimulatedProvider`."""

    def __init__(self, spec: NodeGroupSpec, provider: SimulatedProvider) -> None:
        self.spec = spec
        self.target = 0
        self.machines: dict[str, Instance] = {}
        self.created = 0
        self._provider = provider
        self._template = None if spec.template is None else decode_as(Node, spec.template)

    @property
    def id(self) -> str:
        """The name of the group."""
        return self.spec.id

    @property
    def min_size(self) -> int:
        """The minimum number of nodes in the group."""
        return self.spec.minimum

    @property
    def max_size(self) -> int:
        """The maximum number of nodes in the group."""
        return self.spec.maximum

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The options of the group, by flag name."""
        return self.spec.overrides

    def target_size(self) -> int:
        """Return the target size of the group."""
        return self.target

    def template_node(self) -> Node | None:
        """Return a Node like those that the group creates; None if the group has no template."""
        return self._template

    def instances(self) -> Sequence[Instance]:
        """Return all machines, oldest first."""
        return list(self.machines.values())

    def increase_size(self, delta: int, now: Instant) -> None:
        """Create `delta` machines.

        Raises ProviderError if the group would exceed its maximum size.
        """
        if self.target + delta > self.max_size:
            raise ProviderError(
                f"size increase is too large, desired:{self.target + delta} max:{self.max_size}"
            )
        self.target += delta
        self._provider.begin(self, delta, now)

    def decrease_target_size(self, delta: int, now: Instant) -> None:
        """Add `delta`, a negative number, to the target size.

        Removes the newest -`delta` machines that have no Node yet. Raises ProviderError if there
        are fewer such machines.
        """
        waiting = [one for one, machine in self.machines.items() if machine.state == CREATING]
        existing = len(self.machines) - len(waiting)
        if self.target + delta < existing:
            raise ProviderError(
                f"attempt to delete existing nodes targetSize:{self.target} delta:{delta} "
                f"existingNodes: {existing}"
            )
        self.target += delta
        for provider_id in waiting[delta:]:
            del self.machines[provider_id]

    def delete_nodes(
        self, provider_ids: Sequence[str], now: Instant, *, force: bool = False
    ) -> None:
        """Delete the machines `provider_ids` and lower the target size; ignore unknown ids.

        Raises ProviderError if the group would fall below its minimum size, unless `force` is set.
        """
        known = [one for one in provider_ids if one in self.machines]
        if not force and self.target - len(known) < self.min_size:
            raise ProviderError("min size reached, nodes will not be deleted")
        self.target -= len(known)
        for one in known:
            del self.machines[one]
            self._provider.end(self, one, now)


class SimulatedProvider:
    """A provider that simulates machines for all node groups.

    `commands` collects the commands that create and delete the machines' Nodes. `gpu_label` is the
    node label whose value is the type of the node's GPU.
    """

    def __init__(
        self,
        specs: Sequence[NodeGroupSpec],
        outages: Sequence[CapacityOutage] = (),
        *,
        seed: int,
        start: Instant,
        cloud_provider: str = "",
    ) -> None:
        """Create groups in the order of `specs`; `seed` determines provision times.

        The times in `outages` and in the field `out_of_capacity` of `specs` count from `start`, the
        start of the run. `cloud_provider` is the value of the flag --cloud-provider, such as "gce".
        The value determines the attribute `gpu_label`.
        """
        self.gpu_label = _GPU_LABELS.get(cloud_provider, _GPU_PRODUCT_LABEL)
        self._outages = list(outages)
        self.undelivered: dict[str, int] = {}  # failed machines by group
        self._groups = {spec.id: SimulatedNodeGroup(spec, self) for spec in specs}
        self._seed = seed
        self._start = start
        self._names: dict[str, str] = {}  # names of Nodes by providerID
        self._of_machine: dict[str, str] = {}
        self._zones: dict[str, str] = {}  # the zones of machines
        self._deleted_instances: set[str] = set()
        self._created_nodes: set[str] = set()  # the machines whose Nodes this provider created
        self._timers: TimerQueue[Callable[[Instant], None]] = TimerQueue()
        self.commands: list[Command] = []

    def add_outage(self, outage: CapacityOutage) -> None:
        """Add `outage` to the outages that were passed to the constructor."""
        self._outages.append(outage)

    # --- CloudProvider ---------------------------------------------------------------------

    def node_groups(self) -> Sequence[SimulatedNodeGroup]:
        """Return all groups."""
        return list(self._groups.values())

    def node_group_for(self, provider_id: str) -> SimulatedNodeGroup | None:
        """Return the group of the machine `provider_id`; None if the machine is in no group."""
        group = self._of_machine.get(provider_id)
        return None if group is None else self._groups[group]

    def has_instance(self, provider_id: str) -> bool:
        """Return False if the machine `provider_id` was deleted, else True."""
        return provider_id not in self._deleted_instances

    def node_price(self, node: Node) -> float | None:
        """Return the hourly price per node in the group of `node`; None if the price is unknown."""
        found = next((one.spec for one in self._groups.values() if one.spec.owns(node)), None)
        return None if found is None else found.price

    def pod_price(self, pod: Pod) -> float:
        """Return the hourly price of the cpu and memory that `pod` requests, without a currency."""
        wanted = pod_requests(pod)
        memory = wanted.get("memory", 0) / (1 << 30)
        return wanted.get("cpu", 0) / 1000.0 * _CORE_PRICE + memory * _GIB_PRICE

    # --- nodes -----------------------------------------------------------------------------

    def adopt(self, node: Node) -> Node:
        """Return `node` with a providerID; add its machine to the node's group.

        If `node` already has a providerID, the providerID is kept. The machine is not added if it
        is already known, or if `node` belongs to no group.
        """
        name, provider_id = node.metadata.name, node.spec.provider_id
        if not provider_id:
            provider_id = f"{_SCHEME}:///{name}"
            node = replace(node, spec=replace(node.spec, provider_id=provider_id))
        if provider_id not in self._names:
            self._names[provider_id] = name
            group = next((one for one in self._groups.values() if one.spec.owns(node)), None)
            if group is not None and not self._is_machine(provider_id):
                self._of_machine[provider_id] = group.id
                # a Node of that name may have been deleted before
                self._deleted_instances.discard(provider_id)
                group.machines[provider_id] = Instance(provider_id)
                group.target += 1
                self._zones[provider_id] = _zone_of(node.metadata.labels)
        return node

    def _is_machine(self, provider_id: str) -> bool:
        group = self.node_group_for(provider_id)
        return group is not None and provider_id in group.machines

    def has_created_node(self, provider_id: str) -> bool:
        """Return whether this provider created the Node of the machine."""
        return provider_id in self._created_nodes

    def delete_machine_of(self, node: Node) -> None:
        """Remove the machine of the deleted Node `node`, and lower the target size of its group.

        If this provider created the Node, the Node's CSINode and ResourceSlices are deleted.
        """
        provider_id = node.spec.provider_id
        self._names.pop(provider_id, None)
        group = self.node_group_for(provider_id)
        if group is not None and group.machines.pop(provider_id, None) is not None:
            group.target -= 1
        if group is not None and provider_id in self._created_nodes:
            self._created_nodes.discard(provider_id)
            self.commands += group.spec.dependents.deletions(node.metadata.name)

    # --- machines --------------------------------------------------------------------------

    def begin(self, group: SimulatedNodeGroup, count: int, now: Instant) -> None:
        """Start to create `count` machines of `group`, each in the zone with the fewest machines.

        Only zones with capacity are used. If no zone has capacity now, the creation of the machines
        fails after 10 s.
        """
        templates = self._available(group.spec, now - self._start)
        zones = [_zone_of(group.spec.labels_of(one)) for one in templates]
        machines = Counter(self._zones.get(one, "") for one in group.machines)
        for _ in range(count):
            name, provider_id = self._next_name(group)
            self._of_machine[provider_id] = group.id
            group.machines[provider_id] = Instance(provider_id, CREATING)
            if not templates:
                self._timers.add(now + _ERROR_AFTER, partial(self._fail, group, provider_id))
                continue
            # Of zones with equally many machines, the first one is chosen.
            template, zone = min(
                zip(templates, zones, strict=True), key=lambda one: machines[one[1]]
            )
            self._zones[provider_id] = zone
            machines[zone] += 1
            number = crc32(group.id.encode()) << 32 | group.created
            due = now + registration_time(group.spec.provision_time, self._seed, number)
            register = partial(self._register, group, provider_id, name, template)
            self._timers.add(due, register)

    def _next_name(self, group: SimulatedNodeGroup) -> tuple[str, str]:
        """Return (Node name, providerID) for a new machine.

        Neither the name nor the providerID was used before. If a new Node had the providerID of a
        deleted machine, Cluster Autoscaler would take the new Node for the deleted machine's Node,
        and never count the new Node as Ready.
        """
        stem = _NOT_IN_NAME.sub("-", group.id.lower()).strip("-.")
        while True:
            group.created += 1
            name = f"{stem}-new-{group.created}"
            provider_id = f"{_SCHEME}:///{name}"
            if provider_id not in self._names and provider_id not in self._of_machine:
                return name, provider_id

    def _available(self, spec: NodeGroupSpec, elapsed: DurationNs) -> list[Json]:
        """Return the templates of the zones that have capacity; [] if no zone has capacity.

        A group without templates is treated as one zone with the template {}.
        """
        if any(begin <= elapsed < end for begin, end in spec.out_of_capacity):
            return []
        active = [one for one in self._outages if one.is_active(elapsed)]
        return [
            template
            for template in spec.templates or ({},)
            if not any(one.affects(spec.id, spec.labels_of(template)) for one in active)
        ]

    def _fail(self, group: SimulatedNodeGroup, provider_id: str, _now: Instant) -> None:
        if provider_id in group.machines:
            group.machines[provider_id] = Instance(provider_id, CREATING, _NO_CAPACITY)
            self.undelivered[group.id] = self.undelivered.get(group.id, 0) + 1

    def _register(
        self,
        group: SimulatedNodeGroup,
        provider_id: str,
        name: str,
        template: Json,
        now: Instant,
    ) -> None:
        """Create the Node of the machine `provider_id`, unless the machine has been deleted.

        An outage delays the creation, or prevents it if the outage has no end.
        """
        if provider_id not in group.machines or group.spec.template is None:
            return
        labels, elapsed = group.spec.labels_of(template), now - self._start
        stopped = [one for one in self._outages if one.stops(group.id, labels, elapsed)]
        if stopped:
            # Cluster Autoscaler deletes the machine if it does not register in time.
            ends = [one.end for one in stopped]
            if None not in ends:
                due = self._start + max(end for end in ends if end is not None)
                register = partial(self._register, group, provider_id, name, template)
                self._timers.add(due, register)
            return
        group.machines[provider_id] = Instance(provider_id)
        metadata, status = template.get("metadata") or {}, template.get("status") or {}
        labels[HOSTNAME] = name
        own = {key: values[0] for key, values in group.spec.annotations.items()}
        annotations = {**(metadata.get("annotations") or {}), **own}
        starting = starting_condition(format_timestamp(now))
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {**(template.get("spec") or {}), "providerID": provider_id},
            "status": {**status, "conditions": [starting]},
        }
        self._names[provider_id] = name
        self._created_nodes.add(provider_id)
        self.commands += group.spec.dependents.creations(name)
        self.commands.append(CreateObject(manifest))

    def end(self, group: SimulatedNodeGroup, provider_id: str, now: Instant) -> None:
        """Mark the machine `provider_id` as deleted.

        The machine's Node is deleted later, when `group.spec.deletion_time` has passed.
        """
        self._deleted_instances.add(provider_id)
        name = self._names.get(provider_id)
        if name is not None:
            due = now + group.spec.deletion_time
            self._timers.add(due, partial(self._delete, provider_id, name))

    def _delete(self, provider_id: str, name: str, _now: Instant) -> None:
        if self._names.get(provider_id) == name:
            self.commands.append(DeleteObject(ObjectRef("Node", "", name), why=_WHY_DELETED))

    def refused(self, command: CreateObject | DeleteObject, now: Instant) -> None:
        """Repeat the failed `command` after 10 s if the command creates or deletes a Node.

        A command that is no longer needed is not repeated.
        """
        if self._is_wanted(command):
            self._timers.add(now + _RETRY_AFTER, partial(self._repeat, command))

    def _repeat(self, command: CreateObject | DeleteObject, _now: Instant) -> None:
        if self._is_wanted(command):
            self.commands.append(command)

    def _is_wanted(self, command: CreateObject | DeleteObject) -> bool:
        if isinstance(command, DeleteObject):
            return command.why == _WHY_DELETED and command.target.name in self._names.values()
        provider_id = command.manifest["spec"].get("providerID", "")
        return self._is_machine(provider_id)

    # --- time ------------------------------------------------------------------------------

    def next_due(self) -> Instant | None:
        """Return the time at which the next machine changes its state; None if no change is due."""
        return self._timers.next_due()

    def run_due(self, now: Instant) -> None:
        """Make all changes to machines and their Nodes that are due at `now`."""
        for event in self._timers.pop_due(now):
            event(now)


def _zone_of(labels: Mapping[str, str]) -> str:
    return region_and_zone(labels)[1]
