"""Fleet: the simulated cloud provider of the recordings, with a case's groups and timed faults.

The autoscaler's calls are recorded as actions. A fault lasts for a period of time. In this period,
calls of one kind fail, or new machines are faulty. A machine is an instance of the provider, with
or without a Node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.requests import pod_requests
from fairlead.conformance.autoscaler.instant import to_ms
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CREATING,
    Instance,
    InstanceError,
    ProviderError,
)
from fairlead.engine.core.instant import Instant

_CORE_PRICE: Final = 0.03
_GIB_PRICE: Final = 0.004
_PRICE_LABEL: Final = "fleet/group"
# Upstream prints this error class without its last letter.
_ERROR_CLASSES: Final = {"OutOfResources": "OutOfResource"}
Act = Callable[..., None]


class FleetGroup(Struct):
    """One node group."""

    case: Json  # describes the group in a conformance case
    act: Act  # records an action
    # Called with the name of each machine that `increase_size` creates.
    created: Callable[[FleetGroup, str, Instant], None]
    # Called with the name of each machine that `delete_nodes` deletes.
    deleted: Callable[[FleetGroup, str, Instant], None]
    registered: Callable[[str], bool]  # returns whether the machine with a given name has a Node
    target: int = 0  # the desired number of nodes
    machines: dict[str, Instance] = field(default_factory=dict)  # {name: state}
    counter: int = 0  # the number of machines that `increase_size` created
    min_size: int = 0
    max_size: int = 0
    template: Node | None = None

    def __post_init__(self) -> None:
        """Read limits and template from the case."""
        self.min_size, self.max_size = self.case["min"], self.case["max"]
        template = self.case.get("template")
        if template is not None:
            self.template = decode_as(Node, without_nulls(template))

    @property
    def id(self) -> str:
        """The group's name."""
        name: str = self.case["id"]
        return name

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The autoscaling options that the case sets for this group."""
        options: Json = self.case.get("options") or {}
        return options

    def target_size(self) -> int:
        """Return the desired number of nodes in the group."""
        return self.target

    def template_node(self) -> Node | None:
        """Return the group's template Node from the case; None if the case has none."""
        return self.template

    def instances(self) -> Sequence[Instance]:
        """Return all machines, in order of creation."""
        return list(self.machines.values())

    def fault(self, kind: str, now: Instant) -> Json | None:
        """Return the first fault of the type `kind` that applies at `now`, or None."""
        for one in self.case.get("faults") or ():
            if one["kind"] == kind and one["from_ms"] <= to_ms(now) < one["to_ms"]:
                found: Json = one
                return found
        return None

    def increase_size(self, delta: int, now: Instant) -> None:
        """Create `delta` machines and raise the target size by `delta`.

        Raises ProviderError if a fault prevents the increase, or if the target size would exceed
        `max_size`.
        """
        fault = self.fault("increase-error", now)
        if fault is not None or self.target + delta > self.max_size:
            self.act(now, "increase_failed", group=self.id, delta=delta)
            raise ProviderError(fault["message"] if fault is not None else "size too large")
        self.target += delta
        self.act(now, "increase", group=self.id, delta=delta, target=self.target)
        for _ in range(delta):
            self.counter += 1
            name = f"{self.id}-new-{self.counter}"
            self.machines[name] = Instance(self.provider_id(name), CREATING)
            self.created(self, name, now)

    def provider_id(self, name: str) -> str:
        """Return the provider id of the machine `name`."""
        return f"fleet://{self.id}/{name}"

    def decrease_target_size(self, delta: int, now: Instant) -> None:
        """Add `delta`, which is negative, to the target size.

        Removes up to -`delta` machines that have no Node, newest machine first. Raises
        ProviderError if the target size would be less than the number of machines with a Node.
        """
        existing = sum(self.registered(name) for name in self.machines)
        if self.target + delta < existing:
            self.act(now, "decrease_failed", group=self.id, delta=delta)
            raise ProviderError(
                f"attempt to delete existing nodes targetSize:{self.target} delta:{delta} "
                f"existingNodes: {existing}"
            )
        self.target += delta
        self.act(now, "decrease", group=self.id, delta=delta, target=self.target)
        unregistered = [name for name in self.machines if not self.registered(name)]
        for name in list(reversed(unregistered))[:-delta]:
            del self.machines[name]

    def delete_nodes(
        self, provider_ids: Sequence[str], now: Instant, *, force: bool = False
    ) -> None:
        """Delete machines, and lower the target size by the number of deleted machines.

        Machines that do not exist are ignored. Raises ProviderError if a fault prevents the
        deletion, or if `force` is False and the target size would be less than `min_size`.
        """
        names = [one.rpartition("/")[2] for one in provider_ids]
        shown = [
            name if self.registered(name) else one
            for name, one in zip(names, provider_ids, strict=True)
        ]
        known = [name for name in names if name in self.machines]
        fault = self.fault("delete-error", now)
        below = not force and self.target - len(known) < self.min_size
        if fault is not None or below:
            self.act(now, "delete_failed", group=self.id, nodes=shown)
            raise ProviderError(fault["message"] if fault is not None else "min size reached")
        deleted = [one for one, name in zip(shown, names, strict=True) if name in self.machines]
        unknown = [one for one, name in zip(shown, names, strict=True) if name not in known]
        extra: Json = {"unknown": unknown} if unknown else {}
        self.act(now, "delete_nodes", group=self.id, nodes=deleted, **extra)
        self.target -= len(known)
        for name in known:
            del self.machines[name]
            self.deleted(self, name, now)

    def fail_instance(self, name: str, fault: Json) -> None:
        """Record that the machine `name` cannot be created; `fault` describes the error."""
        error_class = _ERROR_CLASSES.get(fault["class"]) or str(fault["class"])
        error = InstanceError(error_class, fault["code"], fault["message"])
        self.machines[name] = Instance(self.provider_id(name), CREATING, error)


class Fleet:
    """A cloud provider with all groups, in the order of the case.

    `deleted_ids` are the provider ids of the machines that the autoscaler or the script deleted.
    """

    gpu_label = "fleet/accelerator"

    def __init__(self, groups: Sequence[FleetGroup]) -> None:
        """`groups` are in the order in which the provider lists them."""
        self.groups = {group.id: group for group in groups}
        self._prices = {group.id: group.case.get("price") for group in groups}
        self.deleted_ids: set[str] = set()

    def node_groups(self) -> Sequence[FleetGroup]:
        """Return all groups, in the provider's order."""
        return list(self.groups.values())

    def node_group_for(self, provider_id: str) -> FleetGroup | None:
        """Return the group that the provider id `fleet://<group>/<node>` names.

        Returns None if the id has another form, or if the group does not exist.
        """
        prefix, _, rest = provider_id.partition("://")
        return self.groups.get(rest.partition("/")[0]) if prefix == "fleet" else None

    def has_instance(self, provider_id: str) -> bool:
        """Return False if the machine `provider_id` was deleted, else True."""
        return provider_id not in self.deleted_ids

    def node_price(self, node: Node) -> float | None:
        """Return the hourly price of the group that is in the label `fleet/group` of `node`.

        Returns None if the label is missing, or if the group does not exist or has no price.
        """
        return self._prices.get(node.metadata.labels.get(_PRICE_LABEL, ""))

    def pod_price(self, pod: Pod) -> float:
        """Return the hourly price of `pod`: 0.03 for each requested core and 0.004 for each GiB."""
        wanted = pod_requests(pod)
        cores = wanted.get("cpu", 0) / 1000.0
        return cores * _CORE_PRICE + wanted.get("memory", 0) / (1 << 30) * _GIB_PRICE
