"""CloudProvider: the interface through which node groups are read and resized.

upstream: cloudprovider/cloud_provider.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from fairlead.api.objects import Node, Pod
from fairlead.engine.core.instant import Instant

# The resources that count as GPUs, in the order of upstream's utils/gpu/gpu.go (1.36).
GPU_RESOURCES: Final = (
    "nvidia.com/gpu",
    "habana.ai/gaudi",
    "gpu.intel.com/xe",
    "amd.com/gpu",
    "microsoft.com/directx",
)
CREATING: Final = "Creating"
DELETING: Final = "Deleting"


class ProviderError(Exception):
    """A call to the provider failed. The text is the provider's error message."""


class InstanceError(Struct, frozen=True):
    """The reason why an instance could not be created.

    `error_class` is `OutOfResource` or `Other`.
    """

    error_class: str
    code: str
    message: str


class Instance(Struct, frozen=True):
    """A machine of a node group. `id` is the providerID of the machine's Node."""

    id: str
    state: str = "Running"
    error: InstanceError | None = None


class NodeGroup(Protocol):
    """A set of nodes of one type, which the provider can grow and shrink."""

    @property
    def id(self) -> str:
        """The name of the group, unique in the provider."""
        ...

    @property
    def min_size(self) -> int:
        """The minimum size: scale-down leaves at least this many nodes."""
        ...

    @property
    def max_size(self) -> int:
        """The maximum size: scale-up grows the group to at most this many nodes."""
        ...

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The options that are set for this group only, by flag name."""
        ...

    def target_size(self) -> int:
        """Return the target size: the number of nodes requested from the provider."""
        ...

    def template_node(self) -> Node | None:
        """Return a Node like those that the group creates; None if there is no template."""
        ...

    def instances(self) -> Sequence[Instance]:
        """Return the machines of the group, oldest first."""
        ...

    def increase_size(self, delta: int, now: Instant) -> None:
        """Request `delta` more nodes. Raises ProviderError if the provider refuses."""
        ...

    def decrease_target_size(self, delta: int, now: Instant) -> None:
        """Add `delta`, a negative number, to the target size. No existing node is deleted.

        Raises ProviderError if the provider refuses.
        """
        ...

    def delete_nodes(
        self, provider_ids: Sequence[str], now: Instant, *, force: bool = False
    ) -> None:
        """Delete the machines `provider_ids`, and lower the target size by their number.

        If `force` is set, the group may fall below its minimum size. Raises ProviderError if the
        provider refuses.
        """
        ...


class CloudProvider(Protocol):
    """The provider's interface: its node groups, and the prices of nodes and pods."""

    @property
    def gpu_label(self) -> str:
        """The node label whose value is the type of the node's GPU."""
        ...

    def node_groups(self) -> Sequence[NodeGroup]:
        """Return the groups, in the provider's order."""
        ...

    def node_group_for(self, provider_id: str) -> NodeGroup | None:
        """Return the group of the machine `provider_id`; None if the machine is in no group."""
        ...

    def has_instance(self, provider_id: str) -> bool:
        """Return False if the machine `provider_id` was deleted, else True."""
        ...

    def node_price(self, node: Node) -> float | None:
        """Return the hourly price of `node`; None if the price is unknown."""
        ...

    def pod_price(self, pod: Pod) -> float:
        """Return the hourly price of the resources that `pod` requests."""
        ...
