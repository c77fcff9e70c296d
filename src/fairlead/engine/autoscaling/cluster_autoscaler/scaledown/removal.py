"""RemovalSimulator: checks whether the pods of a node would fit other nodes.

upstream: simulator/cluster.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Node, Pod
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.disruption_budget import (
    RemainingBudgets,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.drainability import DrainRules
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import (
    Unremovable,
    UnremovableReason,
)
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.hinting_simulator import (
    HintingSimulator,
)
from fairlead.engine.autoscaling.cluster_autoscaler.taint import to_be_deleted_taint, with_taint
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.pod_info import PodInfo


class NodeToBeRemoved(Struct, frozen=True):
    """A removable node, with the pods that have to move.

    `is_risky` is set if a disruption budget does not allow disrupting all these pods now.
    """

    node: Node
    pods: tuple[Pod, ...]
    has_on_completion_pods: bool
    is_risky: bool

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def is_empty(self) -> bool:
        """Whether no pod of the node has to move."""
        return not self.pods


class RemovalSimulator:
    """Simulates the removal of nodes, one after another.

    After a successful simulation, the moved pods stay on their new nodes in the snapshot, so later
    simulations count their requests there.
    """

    def __init__(self, context: AutoscalingContext, rules: DrainRules) -> None:
        """`rules` determine which pods can move."""
        self._context = context
        self._rules = rules
        self._simulator = HintingSimulator(context.snapshot)
        self._emptiness: dict[str, tuple[int, tuple[bool, bool]]] = {}

    def drop_old_hints(self) -> None:
        """Drop the placement hints that were neither made nor used since the previous call."""
        self._simulator.drop_old_hints()

    def emptiness(self, name: str, now: Instant) -> tuple[bool, bool]:
        """Return (is empty, must wait) for the node `name`; see `DrainRules.emptiness`."""
        revision = self._context.snapshot.revision(name)
        known = self._emptiness.get(name)
        if known is not None and known[0] == revision:
            return known[1]
        found, is_lasting = self._rules.emptiness(self._pods(name), now)
        if is_lasting:
            self._emptiness[name] = revision, found
        return found

    def simulate(
        self, name: str, destinations: Collection[str], budgets: RemainingBudgets, now: Instant
    ) -> NodeToBeRemoved | Unremovable:
        """Move the pods of the node `name` to `destinations` in the snapshot, and remove the node.

        Returns the removed node. If the node has to stay, returns the reason, and the snapshot is
        unchanged.
        """
        info = self._context.snapshot.node(name)
        assert info is not None
        found = self._rules.pods_to_move(self._pods(name), now, self._context.listers, budgets)
        if found.blocking is not None:
            return Unremovable(UnremovableReason.BLOCKED_BY_POD, found.blocking)
        node = info.node
        moving = [info.pods[pod.metadata.uid or pod.key] for pod in found.pods]
        with self._context.snapshot.fork() as fork:
            if not self._move(node, moving, destinations, now):
                return Unremovable(UnremovableReason.NO_PLACE_TO_MOVE_PODS)
            fork.commit()
        is_risky = budgets.is_risky(found.pods)
        return NodeToBeRemoved(node, tuple(found.pods), bool(found.on_completion), is_risky)

    def _pods(self, name: str) -> list[Pod]:
        snapshot = self._context.snapshot
        info = snapshot.node(name)
        return [] if info is None else [pod.pod for pod in snapshot.pods_on(info)]

    def _move(
        self, node: Node, moving: list[PodInfo], destinations: Collection[str], now: Instant
    ) -> bool:
        """Move the pods to other nodes and remove the node. Return False if some pod fits no node.

        While the pods are placed, the empty node stays in the snapshot with the deletion taint. So
        topology spread constraints still count the domains of this node.
        """
        snapshot, name = self._context.snapshot, node.metadata.name
        info = snapshot.node(name)
        assert info is not None
        moving_ids = {pod.id for pod in moving}
        for pod in [*moving, *(one for one in info.pods.values() if one.id not in moving_ids)]:
            snapshot.remove_pod(pod, name)
        snapshot.replace_node(with_taint(node, to_be_deleted_taint(now)))
        loose = [snapshot.pod_info(_unbound(pod.pod)) for pod in moving]
        others = _NamesExcept(destinations, name)
        placed = self._simulator.try_schedule(loose, others, break_on_failure=True)
        if len(placed) < len(loose):
            return False
        snapshot.remove_node(name)
        return True


def _unbound(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=""))


class _NamesExcept(Collection[str]):
    """The node names in `names`, without the name `excluded`."""

    def __init__(self, names: Collection[str], excluded: str) -> None:
        self._names = names
        self._excluded = excluded

    def __contains__(self, name: object) -> bool:
        return name != self._excluded and name in self._names

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if name != self._excluded)

    def __len__(self) -> int:
        return sum(1 for _ in self)
