"""Simulates a provisioning pass without some nodes, to find new nodes for their pods.

upstream: pkg/controllers/disruption/helpers.go:SimulateScheduling
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.disruption.candidate import DisruptionCandidate
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import (
    Provisioner,
    currently_reschedulable,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.existingnode import ExistingNode
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.core.instant import Instant

_SHOWN_ERRORS: Final = 5


class NoNodePoolsError(Exception):
    """No NodePool can create nodes for pods, so no pass can be simulated."""


class SchedulingErrors(Struct, frozen=True):
    """The reason not to disrupt `candidates`: some of their pods would not be scheduled.

    `first` is upstream's text at the time of the simulation. If the simulation stopped early, the
    text has only the error at which it stopped. `Simulator.text_of` simulates again to find the
    errors that exist now.
    """

    candidates: tuple[DisruptionCandidate, ...]
    first: str


KeepReason = str | SchedulingErrors
"""KeepReason: why a node is kept; upstream's text, or the errors from which it is made."""


class SimulationResult(Struct, frozen=True):
    """The result of a provisioning pass that was simulated without some nodes.

    `requests` are new NodeClaims. `placed` are existing nodes on which pods were placed. `errors`
    maps the key of a running pod to the reason why it found no usable node. A node that is not
    initialized is not usable. If `stopped` is True, the pass ended when a running pod was placed on
    such a node. The result then contains only the error of this pod.
    """

    requests: tuple[NodeClaimRequest, ...]
    placed: tuple[ExistingNode, ...]
    errors: dict[str, str]
    stopped: bool = False

    def problem(self) -> str | None:
        """Return upstream's sentence about running pods that fit no node; None if all pods fit."""
        # upstream: scheduler.go:NonPendingPodSchedulingErrors
        if not self.errors:
            return None
        text = "Not all pods would schedule, "
        for number, key in enumerate(sorted(self.errors), 1):
            text += f"{key} => {self.errors[key]} "
            if number == _SHOWN_ERRORS:
                return f"{text} and {len(self.errors) - _SHOWN_ERRORS} other(s)"
        return text

    def reason(self, candidates: Sequence[DisruptionCandidate]) -> KeepReason | None:
        """Return the reason to keep the simulated `candidates`; None if all running pods fit."""
        problem = self.problem()
        return SchedulingErrors(tuple(candidates), problem) if problem else None


class _Inputs(Struct, frozen=True):
    """The inputs that all simulations of a search have in common."""

    read_at: tuple[int, Instant]  # (`cluster.version`, time) when the inputs were read
    version: int  # `cluster.pass_version` when the inputs were read
    staying: Sequence[StateNode]  # the nodes that are not being removed
    deleting: frozenset[str]  # the keys of the nodes that are being removed
    pending: Mapping[str, Pod]  # the pods without a node, by key
    must_leave: Mapping[str, Pod]  # the pods that must leave the nodes that are being removed
    tables: Sequence[InstanceTypeTable]  # the instance types of the usable NodePools
    daemons: Sequence[Pod]  # the DaemonSets' pods

    def equals(self, other: _Inputs) -> bool:
        """Return whether simulations with these inputs and with `other` have the same results.

        `staying`, `deleting` and `pending` need no comparison: if they change, so does `version`.
        """
        return (
            self.version == other.version
            and self.daemons is other.daemons
            and _are_same(self.tables, other.tables)
            and _are_same(list(self.must_leave.values()), list(other.must_leave.values()))
        )


class _Known(Struct, frozen=True):
    """A cached result of `Simulator.simulate`; `own` are the candidates' pods in the simulation."""

    own: Sequence[Pod]
    result: SimulationResult


class Simulator:
    """Simulates provisioning passes in which some nodes are gone.

    Results are kept until the cluster changes. Several methods simulate the same candidates, and
    successive loops often see the same cluster.
    """

    def __init__(self, cluster: KarpenterCluster, provisioner: Provisioner) -> None:
        self._cluster = cluster
        self._provisioner = provisioner
        self._inputs = _Inputs((-1, 0), -1, (), frozenset(), {}, {}, (), ())
        self._known: dict[tuple[str, ...], _Known] = {}

    def simulate(
        self,
        candidates: Sequence[DisruptionCandidate],
        now: Instant,
        *,
        stops_early: bool = False,
    ) -> SimulationResult | None:
        """Simulate a provisioning pass in which the nodes `candidates` are gone.

        Return None if a candidate is already being removed.

        The pass places the pods of the candidates, pending pods, and pods of other nodes that are
        being removed. If all reservations that a pod could use are used up, the pod uses other
        capacity.

        If a running pod is placed on a node that is not initialized, the candidates cannot be
        removed. If `stops_early` is set, the pass may end when it places a running pod of the
        candidates on such a node. The result then contains only the error of this pod.

        Raises NoNodePoolsError if no NodePool can create nodes for pods.
        """
        inputs = self._current(now)
        if any(one.node.key in inputs.deleting for one in candidates):
            return None
        if not inputs.tables:
            raise NoNodePoolsError("no nodepools found")
        own = [pod for one in candidates for pod in self._reschedulable(one.node, now)]
        key = tuple(one.node.key for one in candidates)
        known = self._known.get(key)
        is_usable = known is not None and (stops_early or not known.result.stopped)
        if known is None or not is_usable or not _are_same(known.own, own):
            result = self._simulated(inputs, own, frozenset(key), stops_early=stops_early)
            known = self._known[key] = _Known(own, result)
        return known.result

    def text_of(self, reason: KeepReason, now: Instant) -> str | None:
        """Return upstream's whole text for `reason`; None if `reason` no longer holds.

        If `reason` is a text, it is returned unchanged. If `reason` is a SchedulingErrors, its
        candidates are simulated at `now`. The result is the text of the errors that this simulation
        finds. The result is None if there are no errors, or if a candidate is already being
        removed. If no NodePool is usable, no simulation is possible. The result is then
        `reason.first`.
        """
        if isinstance(reason, str):
            return reason
        try:
            simulated = self.simulate(reason.candidates, now)
        except NoNodePoolsError:
            return reason.first
        return None if simulated is None else simulated.problem()

    def _reschedulable(self, node: StateNode, now: Instant) -> list[Pod]:
        return currently_reschedulable(self._cluster, node, now)

    def _current(self, now: Instant) -> _Inputs:
        """Return the inputs of simulations at `now`; forget the results if the inputs changed."""
        last, read_at = self._inputs, (self._cluster.version, now)
        tables = [self._provisioner.types_of(one) for one in self._provisioner.usable_pools()]
        if last.read_at == read_at and _are_same(last.tables, tables):
            return last
        nodes = self._cluster.nodes(now)
        deleting = sorted((n for n in nodes if n.marked_for_deletion), key=lambda one: one.name)
        found = _Inputs(
            read_at,
            self._cluster.pass_version,
            [one for one in nodes if not one.marked_for_deletion],
            frozenset(one.key for one in deleting),
            {pod.key: pod for pod in self._provisioner.pending_pods()[0]},
            {pod.key: pod for node in deleting for pod in self._reschedulable(node, now)},
            tables,
            self._provisioner.daemons(),
        )
        if not found.equals(last):
            self._known.clear()
        self._inputs = found
        return found

    def _simulated(
        self,
        inputs: _Inputs,
        own: Sequence[Pod],
        leaving: frozenset[str],
        *,
        stops_early: bool,
    ) -> SimulationResult:
        result = self._provisioner.schedule(
            [*inputs.pending.values(), *own, *inputs.must_leave.values()],
            inputs.staying,
            strict_reservations=False,
            leaving=leaving,
            running={pod.key for pod in own} if stops_early else frozenset(),
        )
        if result.misplaced is not None:
            state, key = result.misplaced
            return SimulationResult((), (), {key: uninitialized_error(state)}, stopped=True)
        errors = dict(result.errors)
        for node in result.existing:
            if not node.state.initialized:
                text = uninitialized_error(node.state)
                errors |= {one.key: text for one in node.pods if one.key not in inputs.must_leave}
        running = {key: text for key, text in errors.items() if key not in inputs.pending}
        return SimulationResult(tuple(result.requests), tuple(result.existing), running)


def uninitialized_error(state: StateNode) -> str:
    """Return upstream's text about a running pod that was placed on an uninitialized node."""
    parts = [f"nodeclaim/{state.claim.name}"] if state.claim is not None else []
    if state.node is not None:
        parts.append(f"node/{state.node_name}")
    return f"would schedule against uninitialized {', '.join(parts)}"


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))
