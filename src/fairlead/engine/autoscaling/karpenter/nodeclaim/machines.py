"""Machines: simulates the provider and the kubelets of NodeClaims.

    launch        a NodeClaim gets the cheapest offering that it allows and that no outage affects;
                  offerings that were tried without success are unavailable for a while
    registration  the Node appears; its kubelet makes it Ready at the end of the provision time
                  (`api.nodes.readiness`)

The Node has no startup taints. From the start, the Node has the label of an initialized Node. Its
NodeClaim is initialized only when the Node is Ready.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.finalizer import TERMINATION
from fairlead.api.json import Json
from fairlead.api.nodes.readiness import starting_condition
from fairlead.api.objects import Node, ObjectMeta
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.api.well_known_label import ARCH, HOSTNAME
from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
from fairlead.engine.autoscaling.karpenter.apis import (
    INITIALIZED_CONDITION,
    LAUNCHED,
    REGISTERED_CONDITION,
    FlexibleRequirement,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodePool,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType, Offering
from fairlead.engine.autoscaling.karpenter.cloudprovider.unavailable_offerings import (
    UnavailableOfferings,
)
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.labels import (
    INITIALIZED,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    REGISTERED,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.conditions import with_condition
from fairlead.engine.autoscaling.karpenter.nodeclaim.standalone_claim import (
    standalone_launches,
    with_custom_labels,
)
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.provision_time import registration_time
from fairlead.engine.core.command import CreateObject
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.tie_break import splitmix64

REGISTRATION_RETRY_NS: Final[DurationNs] = seconds(5)
REGISTRATION_TIMEOUT_NS: Final[DurationNs] = seconds(15 * 60)
_SCHEME: Final = "fairlead"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # the alphabet of generateName
_SUFFIX_LENGTH: Final = 5


class Machines:
    """Launches NodeClaims, and determines when their Nodes register."""

    def __init__(
        self,
        config: KarpenterConfig,
        offerings: UnavailableOfferings,
        *,
        seed: int,
        start: Instant,
    ) -> None:
        """Start without machines; `seed` determines names and provision times.

        The times of the configured outages are relative to `start`, the start of the run.
        """
        self._config = config
        self._outages = list(config.outages)
        self._offerings = offerings
        self._seed = seed
        self._start = start
        self._serial = config.first_serial
        self._due: dict[str, Instant] = {}

    def add_outage(self, outage: CapacityOutage) -> None:
        """Add an outage to the configured ones."""
        self._outages.append(outage)

    def launch(
        self, request: NodeClaimRequest, taken: Container[str], now: Instant
    ) -> tuple[NodeClaim, InstanceType, Offering] | str:
        """Launch a NodeClaim; return the NodeClaim, its instance type and its offering.

        If the launch fails for lack of capacity, return only the name of the NodeClaim. Names in
        `taken` are not used.
        """
        name = self._name(request.pool.name)
        while name in taken:  # repeats at most once for each name in `taken`
            name = self._name(request.pool.name)
        claim = _claim_of(request, name, now)
        # The request of a static NodePool has no types; the provider finds them for the NodeClaim.
        launches = (
            standalone_launches(claim, self._offerings.table_of(claim.spec.node_class_ref))
            if request.pool.is_static
            else request.launches()
        )
        return self._first_delivered(claim, launches, now) or name

    def launch_standalone(
        self, claim: NodeClaim, now: Instant
    ) -> tuple[NodeClaim, InstanceType, Offering] | None:
        """Launch a user's NodeClaim; return the NodeClaim, its instance type and its offering.

        Returns None if the launch fails for lack of capacity.
        """
        self._serial += 1
        table = self._offerings.table_of(claim.spec.node_class_ref)
        launches = standalone_launches(claim, table)
        return self._first_delivered(with_custom_labels(claim, table), launches, now)

    def _first_delivered(
        self, claim: NodeClaim, launches: Iterable[tuple[InstanceType, Offering]], now: Instant
    ) -> tuple[NodeClaim, InstanceType, Offering] | None:
        """Launch `claim` with the first of `launches` that no outage affects.

        Each offering that was tried without success becomes unavailable. Returns None if outages
        affect all offerings.
        """
        active = [one for one in self._outages if one.is_active(now - self._start)]
        pool = claim.node_pool
        for instance_type, offering in launches:
            launched = _launched(claim, instance_type, offering, now)
            refusing = [one for one in active if one.affects(pool, launched.metadata.labels)]
            if not refusing:
                usual = self._config.provision_time_of(pool)
                self._due[claim.name] = now + registration_time(usual, self._seed, self._serial)
                return launched, instance_type, offering
            ends = all(one.end is not None for one in refusing)
            self._offerings.mark(instance_type, offering, now, is_temporary=ends)
        return None

    def _name(self, pool: str) -> str:
        self._serial += 1
        number = splitmix64((self._seed << 20) ^ self._serial)
        suffix = ""
        for _ in range(_SUFFIX_LENGTH):
            number, letter = divmod(number, len(_LETTERS))
            suffix += _LETTERS[letter]
        return f"{pool}-{suffix}"

    def next_due(self) -> Instant | None:
        """Return the time at which the next Node appears; None if no machine is starting."""
        return min(self._due.values(), default=None)

    def is_waiting(self) -> bool:
        """Return whether a machine is starting."""
        return bool(self._due)

    def resume(self, claim: NodeClaim, now: Instant) -> None:
        """Schedule the creation of the Node of a launched NodeClaim that has no Node yet."""
        self._serial += 1
        usual = self._config.provision_time_of(claim.node_pool)
        self._due[claim.name] = now + registration_time(usual, self._seed, self._serial)

    def register_again(self, name: str, now: Instant) -> None:
        """Schedule another creation of the Node `name` in 5 s, after the API server refused it."""
        self._due[name] = now + REGISTRATION_RETRY_NS

    def stopped_until(self, claim: NodeClaim, now: Instant) -> Instant | None:
        """Return the time until which outages keep the Node of `claim` from appearing.

        Returns None if no outage at `now` affects the Node. Outages that begin later are not
        considered. So the caller must ask again at the returned time. The returned time is never
        after the registration timeout, at which Karpenter deletes a NodeClaim without a Node.
        """
        # upstream: pkg/controllers/nodeclaim/lifecycle/liveness.go: registrationTimeout
        elapsed, labels = now - self._start, claim.metadata.labels
        stopping = [one for one in self._outages if one.stops(claim.node_pool, labels, elapsed)]
        if not stopping:
            return None
        created = claim.metadata.creation_timestamp
        give_up = (parse_timestamp(created) if created else now) + REGISTRATION_TIMEOUT_NS
        ends = (self._start + one.end for one in stopping if one.end is not None)
        return min(give_up, max(ends, default=give_up))

    def register_at(self, name: str, at: Instant) -> None:
        """Set the time at which the Node `name` appears."""
        self._due[name] = at

    def forget(self, name: str) -> None:
        """Drop the machine of the deleted NodeClaim `name` if its Node has not appeared yet."""
        self._due.pop(name, None)

    def ready(self, now: Instant) -> list[str]:
        """Remove and return the names of the NodeClaims whose Nodes appear by `now`."""
        found = sorted(name for name, due in self._due.items() if due <= now)
        for name in found:
            del self._due[name]
        return found


def node_of(
    claim: NodeClaim, now: Instant, node_info: Mapping[str, str], place: Mapping[str, str]
) -> CreateObject:
    """Return the command that creates the Node of `claim`.

    The Node has the labels that mark it as registered and initialized. `node_info` is the nodeInfo
    in the Node's status; {} leaves nodeInfo out. `place` are the labels that volume drivers set on
    nodes in the zone of `claim`. The labels of `claim` take precedence over `place`.
    """
    # upstream: pkg/controllers/nodeclaim/lifecycle/registration.go:syncNode
    labels = {
        **place,
        **claim.metadata.labels,
        HOSTNAME: claim.name,
        REGISTERED: "true",
        INITIALIZED: "true",
    }
    spec: Json = {"providerID": claim.status.provider_id}
    if claim.spec.taints:
        spec["taints"] = [as_json(one) for one in claim.spec.taints]
    status: Json = {
        "capacity": dict(claim.status.capacity),
        "allocatable": dict(claim.status.allocatable),
        "conditions": [starting_condition(format_timestamp(now))],
    }
    if node_info:
        architecture = labels.get(ARCH, node_info.get("architecture", ""))
        status["nodeInfo"] = {**node_info, "architecture": architecture}
    return CreateObject(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": claim.name,
                "labels": labels,
                "annotations": dict(claim.metadata.annotations),
                "finalizers": [TERMINATION],
            },
            "spec": spec,
            "status": status,
        }
    )


def _claim_of(request: NodeClaimRequest, name: str, now: Instant) -> NodeClaim:
    """Return the NodeClaim that `request` describes, not yet launched."""
    template = request.pool.spec.template.spec
    stated = request.pool.spec.template.metadata.annotations
    hashes = {
        key: value
        for key, value in request.pool.metadata.annotations.items()
        if key in (NODE_POOL_HASH, NODE_POOL_HASH_VERSION)
    }
    return NodeClaim(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            labels=request.labels,
            annotations={**stated, **(request.annotations or {}), **hashes},
            creation_timestamp=format_timestamp(now),
        ),
        spec=NodeClaimSpec(
            requirements=tuple(_requirements(request)),
            taints=template.taints,
            startup_taints=template.startup_taints,
            node_class_ref=template.node_class_ref,
            expire_after=template.expire_after,
            termination_grace_period=template.termination_grace_period,
        ),
    )


def _launched(
    claim: NodeClaim, instance_type: InstanceType, offering: Offering, now: Instant
) -> NodeClaim:
    labels = dict(claim.metadata.labels)
    for one in (*instance_type.requirements, *offering.requirements):
        if one.single is not None:
            labels[one.key] = one.single
    launched = replace(
        claim,
        metadata=replace(claim.metadata, labels=labels),
        status=NodeClaimStatus(
            capacity=_quantities(instance_type.capacity),
            allocatable=_quantities(instance_type.allocatable),
            provider_id=f"{_SCHEME}:///{claim.name}",
        ),
    )
    return with_condition(launched, LAUNCHED, LAUNCHED, now)


def _requirements(request: NodeClaimRequest) -> Iterator[FlexibleRequirement]:
    for one in sorted(request.stored_requirements, key=lambda one: one.key):
        bounds = (("Gte", one.gte), ("Lte", one.lte))
        stated: list[tuple[str, tuple[str, ...]]]
        stated = [(operator, (str(bound),)) for operator, bound in bounds if bound is not None]
        for operator, values in stated or [(one.operator, tuple(sorted(one.values)))]:
            yield FlexibleRequirement(
                key=one.key, operator=operator, values=values, min_values=one.min_values
            )


def _quantities(amounts: Mapping[str, int]) -> dict[str, str | int | float]:
    return {n: f"{a}m" if n == "cpu" else str(a) for n, a in amounts.items()}


def adopted_claim(node: Node, pool: NodePool, now: Instant) -> NodeClaim:
    """Return a new NodeClaim for an existing `node` of `pool` that has no NodeClaim.

    The NodeClaim is as old as the node.
    """
    created = node.metadata.creation_timestamp or format_timestamp(now)
    template = pool.spec.template.spec
    claim = NodeClaim(
        metadata=ObjectMeta(
            name=node.metadata.name,
            uid=node.metadata.uid,
            labels=node.metadata.labels,
            creation_timestamp=created,
        ),
        spec=NodeClaimSpec(
            taints=template.taints,
            node_class_ref=template.node_class_ref,
            expire_after=template.expire_after,
            termination_grace_period=template.termination_grace_period,
        ),
        status=NodeClaimStatus(
            capacity=node.status.capacity,
            allocatable=node.status.allocatable,
            provider_id=node.spec.provider_id,
        ),
    )
    return initialized(registered(claim, node.metadata.name, now), now)


def registered(claim: NodeClaim, node_name: str, now: Instant) -> NodeClaim:
    """Return the NodeClaim with its Node's name and the conditions of a registered NodeClaim."""
    for kind in (LAUNCHED, REGISTERED_CONDITION):
        claim = with_condition(claim, kind, kind, now)
    return replace(claim, status=replace(claim.status, node_name=node_name))


def initialized(claim: NodeClaim, now: Instant) -> NodeClaim:
    """Return the registered NodeClaim with the condition Initialized: its Node can run pods."""
    return with_condition(claim, INITIALIZED_CONDITION, INITIALIZED_CONDITION, now)
