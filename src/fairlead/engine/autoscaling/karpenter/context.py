"""KarpenterContext: the state that all parts of Karpenter share."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.unavailable_offerings import (
    UnavailableOfferings,
)
from fairlead.engine.autoscaling.karpenter.history import KarpenterHistory
from fairlead.engine.autoscaling.karpenter.served_resources import ServedResources
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.core.command import Command, ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant


class KarpenterContext(Struct, frozen=True):
    """The state that all parts of Karpenter share.

    `types_of` returns the instance types of a NodePool. `served` writes NodePools and NodeClaims to
    the API server. `served` is None if the API server does not store them. `changed` notifies all
    parts that the cluster has changed.
    """

    cluster: KarpenterCluster
    offerings: UnavailableOfferings
    types_of: Callable[[NodePool], InstanceTypeTable]
    served: ServedResources | None
    changed: Callable[[Instant], None]
    history: KarpenterHistory = field(default_factory=KarpenterHistory)
    commands: list[Command] = field(default_factory=list)

    def record_event(self, about: ObjectRef, kind: str, reason: str, note: str) -> None:
        """Record an event about the object `about`; `kind` is Normal or Warning."""
        self.commands.append(
            RecordEvent(
                regarding=about,
                type=kind,
                reason=reason,
                action=reason,
                note=note,
                reporting_controller="karpenter",
            )
        )

    def take_commands(self) -> list[Command]:
        """Return the commands that were decided since the last call.

        The result also contains the writes that update NodePools and NodeClaims in the API server.
        """
        found = [*self.commands]
        self.commands.clear()
        if self.served is not None:
            found += self.served.commands()
        return found


def pod_ref(key: str) -> ObjectRef:
    """Return a reference to the Pod with the key `namespace/name`."""
    namespace, _, name = key.rpartition("/")
    return ObjectRef("Pod", namespace, name)


def node_ref(name: str) -> ObjectRef:
    """Return a reference to the Node `name`."""
    return ObjectRef("Node", "", name)
