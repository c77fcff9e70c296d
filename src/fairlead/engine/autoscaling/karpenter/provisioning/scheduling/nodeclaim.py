"""InFlightNodeClaim: a NodeClaim that a provisioning pass will create.

An InFlightNodeClaim starts from its NodePool's template. Each added pod narrows the requirements of
the NodeClaim, and therefore the instance types that are still possible.

upstream: pkg/controllers/provisioning/scheduling/nodeclaim.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.host_port import HostPort
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
    merged,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import Mask
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    RESERVATION_ID_SUFFIX,
    RESERVED,
)
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import NodeClaimTemplate
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.instance_type_filter import (
    FilterFailure,
    filter_instance_types,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import PendingPod
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.reservations import (
    Reservations,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topology import Topology
from fairlead.engine.autoscaling.karpenter.resource_text import resources_text
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import LabelRequirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements
from fairlead.engine.autoscaling.karpenter.scheduling.taints import untolerated
from fairlead.engine.autoscaling.karpenter.state.usage import conflicting_port

_TYPO: Final = " (CPU request >= 1 Million, m vs M typo?)"


class DaemonOverhead(Struct, frozen=True):
    """The DaemonSet pods that every node of a NodePool will run, with requests and host ports."""

    pods: tuple[Pod, ...] = ()
    requests: Mapping[str, int] = field(default_factory=dict)
    ports: tuple[HostPort, ...] = ()


class AddRefusal(Struct, frozen=True):
    """The reason why a pod cannot be added. `reserved` is set if reservations are used up.

    As in upstream, `text` is called at the end of the provisioning pass. Its result therefore
    contains the final counts of the topology domains.
    """

    text: Callable[[], str]
    reserved: bool = False


def refusal(text: str, *, reserved: bool = False) -> AddRefusal:
    """Return an AddRefusal with the fixed text `text`; `AddRefusal` explains `reserved`."""
    return AddRefusal(lambda: text, reserved=reserved)


class ClaimPlacement(Struct, frozen=True):
    """The state of a NodeClaim with one more pod, as computed by `can_add`."""

    requirements: Requirements
    options: Mask
    reservations: tuple[Offering, ...]
    relaxed_min_values: bool


class PassContext(Struct, frozen=True):
    """The context that all NodeClaims of a pass share."""

    topology: Topology
    reservations: Reservations
    options: KarpenterOptions
    strict_reservations: bool
    joined: dict[tuple[object, ...], Requirements | str] = field(default_factory=dict)


class InFlightNodeClaim:
    """A NodeClaim that a scheduling pass plans to create, and to which it adds pods.

    `host` is a placeholder for the hostname of the node. `number` is the position of this NodeClaim
    among the NodeClaims of the pass.
    """

    def __init__(
        self,
        template: NodeClaimTemplate,
        context: PassContext,
        overhead: DaemonOverhead,
        options: Mask,
        host: str,
    ) -> None:
        """Start without pods; `options` are the instance types within the NodePool's limits."""
        self.template = template
        self.overhead = overhead
        self.host = host
        self.host_requirement = LabelRequirement(HOSTNAME, values=frozenset((host,)))
        self.requirements = template.requirements
        self.options = options
        self.requests: Mapping[str, int] = overhead.requests
        self.pods: list[PendingPod] = []
        self.reserved: tuple[Offering, ...] = ()
        self.min_values_relaxed = False
        self.number = 0
        self._ports = list(overhead.ports)
        self._context = context

    @property
    def instance_types(self) -> list[InstanceType]:
        """The instance types that are still possible, in the provider's order."""
        return self.template.table.chosen(self.options)

    def can_add(self, pod: PendingPod, *, relaxes_min_values: bool) -> ClaimPlacement | AddRefusal:
        """Return the state that the NodeClaim would have with `pod`, or why `pod` does not fit.

        If `relaxes_min_values` is set, the instance types may offer fewer values of a label than
        the minValues of the NodePool's requirement on this label.
        """
        facts = pod.facts
        taints = self.template.taints
        if taints:
            if taints not in facts.untolerated:
                facts.untolerated[taints] = untolerated(taints, facts.tolerations)
            problem = facts.untolerated[taints]
            if problem is not None:
                return refusal(problem)
        if facts.ports:
            conflict = conflicting_port(facts.ports, self._ports)
            if conflict is not None:
                return refusal(port_conflict_text(*conflict))
        joined = self._joined(facts.requirements)
        if isinstance(joined, str):
            return refusal(f"incompatible requirements, {joined}")
        alternatives = pod.volumes or (None,)
        for volumes in alternatives[:-1]:
            found = self._with_volumes(pod, joined, volumes, relaxes_min_values)
            if isinstance(found, ClaimPlacement):
                return found
        return self._with_volumes(pod, joined, alternatives[-1], relaxes_min_values)

    def _joined(self, added: Requirements) -> Requirements | str:
        """Return the NodeClaim's requirements plus `added`, or an error text if they conflict."""
        key = (self.requirements, added)
        known = self._context.joined
        found = known.get(key)
        if found is None:
            own = self.requirements
            if HOSTNAME in added:
                own = own.with_added((self.host_requirement,))
            problem = own.incompatibility(added, self._well_known)
            joined = own.with_added(added).without(HOSTNAME)
            found = problem if problem is not None else joined
            if HOSTNAME in added:
                return found
            known[key] = found
        return found

    def _with_volumes(
        self,
        pod: PendingPod,
        joined: Requirements,
        volumes: Requirements | None,
        relaxes_min_values: bool,  # noqa: FBT001
    ) -> ClaimPlacement | AddRefusal:
        if volumes is not None:
            full = joined.with_added((self.host_requirement,))
            problem = full.incompatibility(volumes, self._well_known)
            if problem is not None:
                return refusal(f"incompatible volume requirements, {problem}")
            joined = full.with_added(volumes).without(HOSTNAME)
        topology = self._context.topology
        demanded = topology.added_requirements(pod, joined, self.host_requirement)
        if not isinstance(demanded, list):
            return AddRefusal(demanded.text)
        if demanded:
            narrowed = self._narrowed(joined, demanded)
            if isinstance(narrowed, str):
                return refusal(narrowed)
            joined = narrowed
        return self._with_types(pod, joined, relaxes_min_values)

    def _narrowed(
        self, joined: Requirements, demanded: list[LabelRequirement]
    ) -> Requirements | str:
        others = [one for one in demanded if one.key != HOSTNAME]
        key = (joined, *others)
        known = self._context.joined
        hosts = [one for one in demanded if one.key == HOSTNAME]
        if any(self.host not in one.values for one in hosts):
            full = joined.with_added((self.host_requirement,))
            problem = full.incompatibility(full.with_added(demanded), self._well_known)
            return problem or ""
        found = known.get(key)
        if found is None:
            wanted = joined.with_added(others)
            problem = joined.incompatibility(wanted, self._well_known)
            found = known[key] = problem if problem is not None else joined.with_added(wanted)
        return found

    def _with_types(
        self,
        pod: PendingPod,
        requirements: Requirements,
        relaxes_min_values: bool,  # noqa: FBT001
    ) -> ClaimPlacement | AddRefusal:
        found = filter_instance_types(
            self.template.table,
            self.options,
            requirements,
            merged(self.requests, pod.facts.requests),
            relaxes_min_values=relaxes_min_values,
        )
        if isinstance(found, FilterFailure):
            return AddRefusal(
                _FilterText(found.reason, requirements, self.overhead, pod.pod, found.is_huge).text
            )
        remaining, unmet = found
        relaxed = False
        for key, reached in unmet.items():
            relaxed = True
            lowered = requirements.get(key).with_min_values(reached)
            requirements = requirements.replaced(lowered)
        reservations = self._reservations(remaining, requirements)
        if isinstance(reservations, AddRefusal):
            return reservations
        return ClaimPlacement(requirements, remaining, reservations, relaxed)

    def _reservations(
        self, options: Mask, requirements: Requirements
    ) -> tuple[Offering, ...] | AddRefusal:
        """Return the reserved offerings that the NodeClaim can hold.

        If `strict_reservations` is set for the provisioning pass, the result is a refusal in two
        cases. In the first case, all reservations that are compatible with `requirements` are used
        up. In the second case, the NodeClaim holds reservations, and no reservation is compatible
        with `requirements`.
        """
        # upstream: nodeclaim.go:offeringsToReserve
        table = self.template.table
        if not table.has_reserved or not self._context.options.reserved_capacity:
            return ()
        compatible = table.reserved(options, requirements)
        manager = self._context.reservations
        held = tuple(one for one in compatible if manager.can_reserve(self.host, one))
        if self._context.strict_reservations and not held:
            if compatible:
                return refusal(
                    "one or more instance types with compatible reserved offerings are available, "
                    "but could not be reserved",
                    reserved=True,
                )
            if self.reserved:
                return refusal(
                    "satisfying updated nodeclaim constraints would remove all compatible "
                    "reserved offering options",
                    reserved=True,
                )
        return held

    @property
    def _well_known(self) -> frozenset[str]:
        return self._context.options.well_known_labels

    def add(self, pod: PendingPod, placement: ClaimPlacement) -> None:
        """Place the pod; `placement` is the result of `can_add`."""
        context = self._context
        self.pods.append(pod)
        self.options = placement.options
        self.requests = merged(self.requests, pod.facts.requests)
        self.requirements = placement.requirements
        if len(self.pods) == 1:
            context.topology.register_host(self.host)
        context.topology.record(
            pod, self.template.taints, placement.requirements, self.host_requirement
        )
        self._ports += pod.facts.ports
        if self.template.table.has_reserved:
            context.reservations.reserve(self.host, placement.reservations)
            kept = {one.reservation_id for one in placement.reservations}
            gone = [one for one in self.reserved if one.reservation_id not in kept]
            context.reservations.release(self.host, gone)
            self.reserved = placement.reservations

    def finalize(self, *, min_values_relaxed: bool) -> None:
        """Complete the NodeClaim at the end of the provisioning pass.

        If the claim holds reservations, its requirements are limited to these reservations.
        Stores `min_values_relaxed`, which tells whether minValues was relaxed.
        """
        # upstream: nodeclaim.go:FinalizeScheduling
        self.min_values_relaxed = min_values_relaxed
        if not self.reserved:
            return
        only = LabelRequirement(CAPACITY_TYPE, values=frozenset((RESERVED,)))
        labels = self.reserved[0].requirements.labels
        key = next(one for one in labels if one.endswith(RESERVATION_ID_SUFFIX))
        ids = frozenset(one.reservation_id for one in self.reserved)
        self.requirements = self.requirements.replaced(only).with_added(
            (LabelRequirement(key, values=ids),)
        )


class _FilterText(Struct, frozen=True):
    """Builds upstream's text for a pod that no instance type fits."""

    reason: str
    requirements: Requirements
    overhead: DaemonOverhead
    pod: Pod
    is_huge: bool

    def text(self) -> str:
        resources = resources_text((*self.overhead.pods, self.pod))
        text = f"{self.reason}, requirements={self.requirements}, resources={resources}"
        return f"{text}{_TYPO}" if self.is_huge else text


def port_conflict_text(requested: HostPort, used: HostPort) -> str:
    """Return upstream's text for a host port that is in use."""
    # upstream: pkg/scheduling/hostportusage.go:Conflicts
    values = {
        f"{whose}-hostport-{what}": value
        for whose, port in (("existing", used), ("pod", requested))
        for what, value in zip(("ip", "port", "protocol"), (port[0], port[2], port[1]), strict=True)
    }
    shown = ", ".join(f"{name}={value}" for name, value in values.items())
    return (
        "checking host port usage, pod hostport conflicts with existing hostport configuration "
        f"({shown})"
    )
