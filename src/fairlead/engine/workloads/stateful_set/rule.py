"""StatefulSetRule: pods with ordinals and stable names, created and deleted in order.

    OrderedReady   one pod at a time: a pod that is missing, finished, terminating or not available
                   blocks all changes that come after it, in its step and in later steps
    Parallel       creations and deletions do not wait for other pods; updates do

The steps are, in this order:

    1 create or replace pods, from the lowest ordinal to the highest
    2 delete pods beyond `replicas`, from the highest ordinal to the lowest
    3 update pods to the new revision, from the highest ordinal down to `partition`

Example: replicas 3, pods 0 and 2 are ready, pod 1 is terminating on a failed node. OrderedReady
stops at ordinal 1 in step 1, because the name of pod 1 is taken until the pod is deleted. So a
StatefulSet's pod on a failed node is not replaced.

upstream: pkg/controller/statefulset/stateful_set_control.go:updateStatefulSet, processReplica,
processCondemned; stateful_set_utils.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Pod, StatefulSet
from fairlead.api.pods.facts import is_terminating
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.int_or_percent import IntOrPercentError, scaled
from fairlead.engine.workloads.pod_control.controller_history import REVISION_LABEL, History
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState, pod_state
from fairlead.engine.workloads.pod_control.pod_template import with_labels
from fairlead.engine.workloads.pod_control.rule import DesiredPod, Plan
from fairlead.engine.workloads.volumes.claim_creation import claims_of_set, templates_by_name

POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
WHY_FINISHED: Final = "finished pod of a StatefulSet"
WHY_TOO_MANY: Final = "scaled down"
WHY_UPDATED: Final = "another revision of the StatefulSet"
FINISHED: Final = (PodState.SUCCEEDED, PodState.FAILED)
PARALLEL: Final = "Parallel"
ON_DELETE: Final = "OnDelete"


@dataclass(frozen=True, slots=True)
class StatefulSetRule:
    """Plans the pods of `owner`: one pod with a stable name for each ordinal.

    `update` is the name of the revision with the owner's template, and `history` has the templates
    of all revisions. If `applies_max_unavailable` (the feature gate MaxUnavailableStatefulSet) is
    False, pods are updated one after the other.
    """

    reads_readiness: ClassVar[bool] = True

    owner: StatefulSet = field(compare=False)
    owner_fields: tuple[object, ...]  # the fields of the owner that the rule depends on
    update: str
    history: History = field(compare=False)
    applies_max_unavailable: bool = False

    @classmethod
    def of(
        cls, owner: StatefulSet, history: History, *, applies_max_unavailable: bool
    ) -> StatefulSetRule:
        """Return the rule for the newest version of `owner`, with the revisions in `history`."""
        spec = owner.spec
        owner_fields = (
            spec.replicas,
            spec.ordinals,
            spec.pod_management_policy,
            spec.update_strategy,
            spec.min_ready_seconds,
            spec.service_name,
            tuple(templates_by_name(spec.volume_claim_templates)),
        )
        return cls(owner, owner_fields, history.update, history, applies_max_unavailable)

    @property
    def ordinals(self) -> range:
        """Ordinals of the pods that should exist."""
        return ordinals_of(self.owner)

    @property
    def is_ordered(self) -> bool:
        """Whether podManagementPolicy is OrderedReady."""
        return is_ordered(self.owner)

    @property
    def min_ready(self) -> DurationNs:
        """Duration in nanoseconds that a pod must be ready to count as available."""
        return seconds(self.owner.spec.min_ready_seconds)

    def slot_of(self, pod: Pod) -> str:
        """Return the pod's name, which contains its ordinal."""
        return pod.metadata.name

    def slots_of(self, replicas: Replicas) -> Sequence[str]:
        """Return the names of `replicas`."""
        return replicas.names

    def needs_replacement(self, pod: Pod, after: PodState | None) -> bool:
        """Return True: every finished or deleted pod is replaced."""
        return True

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Return the pods to create and delete next; `slot` is ignored."""
        plan = self._plan(pods, now)
        again_at = pods.next_available(self.min_ready, now)
        return plan if again_at is None else replace(plan, again_at=again_at)

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """Return the pods to create and delete after the readiness of a pod has changed."""
        return self.plan(pods, None, now)

    def _plan(self, pods: PodSet, now: Instant) -> Plan:
        self._complete(pods)
        plan, is_complete = self._living(pods, now)
        if is_complete or not self.is_ordered:
            plan = _together(plan, self._condemned(pods, now))
        if not is_complete or plan.delete or plan.create:
            return plan
        if pods.creations_expected or self.owner.spec.update_strategy.type == ON_DELETE:
            return plan
        if self.is_ordered and self._surplus(pods):
            return plan  # scaling down is not complete, and precedes updates
        return Plan(delete=tuple(self._outdated(pods, now)), why=WHY_UPDATED)

    # --- replicas in range -----------------------------------------------------------------------

    def _living(self, pods: PodSet, now: Instant) -> tuple[Plan, bool]:
        """Return the plan for the pods of the wanted ordinals, and whether the plan is complete.

        The plan is incomplete if podManagementPolicy is OrderedReady and a pod is not available.
        The plan is also incomplete if some missing pods cannot be created now.
        """
        # upstream: stateful_set_control.go:processReplica
        create: list[DesiredPod] = []
        finished: list[Pod] = []
        creations_allowed, min_ready = pods.creations_allowed, self.min_ready
        prefix = self._prefix
        for ordinal in self.ordinals:
            name = f"{prefix}{ordinal}"
            if pods.is_available(name, min_ready, now):
                continue  # the usual case
            like = pods.pods.sample(name)
            if like is None and name not in pods.creations_expected:
                create.append(self.desired_pod(ordinal))
            elif like is not None and pod_state(like) in FINISHED:
                finished += [] if _is_deleting(pods, name) else [pods.pods[name]]
            if self.is_ordered or len(create) >= creations_allowed:
                return Plan(tuple(create[:creations_allowed]), tuple(finished), WHY_FINISHED), False
        return Plan(tuple(create), tuple(finished), WHY_FINISHED), True

    # --- replicas beyond the range ---------------------------------------------------------------

    def _condemned(self, pods: PodSet, now: Instant) -> Plan:
        # upstream: stateful_set_control.go:processCondemned
        names = self._surplus(pods)
        if not self.is_ordered:
            surplus = [pods.pods[name] for name in names if not _is_deleting(pods, name)]
            return Plan(delete=tuple(surplus), why=WHY_TOO_MANY)
        if not names or _is_deleting(pods, names[0]):
            return Plan()
        # An unhealthy pod may be deleted only if no unhealthy pod has a lower ordinal.
        unhealthy = [name for name in names if not pods.is_available(name, self.min_ready, now)]
        if names[0] in unhealthy and names[0] != unhealthy[-1]:
            return Plan()
        return Plan(delete=(pods.pods[names[0]],), why=WHY_TOO_MANY)

    def _surplus(self, pods: PodSet) -> list[str]:
        """Return the names of pods whose ordinals are not in `ordinals`, highest ordinal first."""
        owner, ordinals, prefix = self.owner.metadata.name, self.ordinals, self._prefix
        if len(pods.pods) == len(ordinals) and all(
            f"{prefix}{one}" in pods.pods for one in ordinals
        ):
            return []  # the usual case
        found = ((ordinal_of(owner, name), name) for name in pods.pods)
        surplus = [(one, name) for one, name in found if one is not None and one not in ordinals]
        return [name for _, name in sorted(surplus, reverse=True)]

    # --- updates ---------------------------------------------------------------------------------

    def _outdated(self, pods: PodSet, now: Instant) -> list[Pod]:
        """Step 3: return the pods to update next, from the highest ordinal down."""
        # The partition counts replicas; the first replica has the ordinal spec.ordinals.start.
        # upstream: stateful_set_control.go:updateStatefulSetAfterInvariantEstablished
        partition = self.owner.spec.update_strategy.rolling_update.partition
        targets, min_ready, prefix = self.ordinals[partition:][::-1], self.min_ready, self._prefix
        if self.applies_max_unavailable:
            return self._several_outdated(pods, targets, now)
        for ordinal in targets:
            name = f"{prefix}{ordinal}"
            like = pods.pods.sample(name)
            if like is None or name not in pods.active:
                return []
            if self.history.revision_of(like) != self.update:
                return [pods.pods[name]]
            if not pods.is_available(name, min_ready, now):
                return []
        return []

    def _several_outdated(self, pods: PodSet, targets: range, now: Instant) -> list[Pod]:
        # upstream: stateful_set_control.go:updateStatefulSetAfterInvariantEstablished
        every = (self._name(ordinal) for ordinal in self.ordinals)
        unavailable = sum(not pods.is_available(name, self.min_ready, now) for name in every)
        old = [
            pods.pods[name]
            for name in map(self._name, targets)
            if name in pods.active and self.history.revision_of(pods.pods[name]) != self.update
        ]
        return old[: max(0, self._unavailable_max() - unavailable)]

    def _unavailable_max(self) -> int:
        # upstream: stateful_set_utils.go:getStatefulSetMaxUnavailable
        spec = self.owner.spec
        bound = spec.update_strategy.rolling_update.max_unavailable
        try:
            return max(1, scaled(1 if bound is None else bound, spec.replicas, is_rounded_up=False))
        except IntOrPercentError:
            return 1

    def _complete(self, pods: PodSet) -> None:
        """Make the update revision current once all pods have this revision and are ready.

        Does nothing if the number of pods differs from `replicas`, or if the strategy is OnDelete.
        """
        # upstream: stateful_set_utils.go:completeRollingUpdate
        if self.owner.spec.update_strategy.type == ON_DELETE or self.history.current == self.update:
            return
        if len(pods.pods) == self.owner.spec.replicas and all(
            name in pods.ready and self.history.revision_of(pod) == self.update
            for name, pod in zip(pods.pods, pods.pods.samples(), strict=True)
        ):
            self.history.current = self.update

    # --- pods ------------------------------------------------------------------------------------

    @property
    def _prefix(self) -> str:
        return f"{self.owner.metadata.name}-"

    def _name(self, ordinal: int) -> str:
        return f"{self._prefix}{ordinal}"

    def keeps_current_revision(self, ordinal: int) -> bool:
        """Return whether the partition keeps the pod `ordinal` at the current revision."""
        return ordinal < first_updated(self.owner)

    def revision_at(self, ordinal: int) -> str:
        """Return the name of the revision from which a new pod `ordinal` is created."""
        # upstream: stateful_set_utils.go:newVersionedStatefulSetPod
        return self.history.current if self.keeps_current_revision(ordinal) else self.update

    def desired_pod(self, ordinal: int) -> DesiredPod:
        """Return the pod to create for `ordinal`, with its name, labels and claims."""
        name, revision = self._name(ordinal), self.revision_at(ordinal)
        # upstream: pkg/controller/statefulset/stateful_set_utils.go:updateIdentity, initIdentity
        labels = {
            POD_NAME_LABEL: name,
            POD_INDEX_LABEL: str(ordinal),
            REVISION_LABEL: self.history.label_of(revision),
        }
        described = self.history.templates.get(revision, self.owner.spec.template)
        template = with_labels(described, labels)
        spec = template.get("spec", {}) | {"hostname": name}
        if self.owner.spec.service_name:
            spec = spec | {"subdomain": self.owner.spec.service_name}
        if claims := list(templates_by_name(self.owner.spec.volume_claim_templates)):
            spec = spec | {"volumes": _volumes(claims, spec.get("volumes", []), name)}
        made = tuple(claims_of_set(self.owner, name))
        return DesiredPod(template | {"spec": spec}, slot=name, name=name, claims=made)


def _is_deleting(pods: PodSet, name: str) -> bool:
    return name in pods.deletions_expected or is_terminating(pods.pods[name])


def _together(one: Plan, other: Plan) -> Plan:
    why = one.why if one.delete else other.why
    return Plan((*one.create, *other.create), (*one.delete, *other.delete), why)


def _volumes(claims: list[str], described: list[Json], pod: str) -> list[Json]:
    """Return the volumes of `pod`: one for each claim, and the volumes of `described`.

    A volume in `described` with the name of a claim is left out.
    """
    # upstream: pkg/controller/statefulset/stateful_set_utils.go:updateStorage
    own = [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}} for name in claims
    ]
    return own + [volume for volume in described if volume.get("name") not in claims]


def is_ordered(owner: StatefulSet) -> bool:
    """Return whether a pod must be available before `owner` creates or deletes the next pod."""
    # upstream: stateful_set_utils.go:allowsBurst
    return owner.spec.pod_management_policy != PARALLEL


def first_updated(owner: StatefulSet) -> int:
    """Return the lowest ordinal whose new pods have the update revision.

    New pods with lower ordinals have the current revision, because of the partition.
    """
    # upstream: stateful_set_utils.go:newVersionedStatefulSetPod
    strategy, start = owner.spec.update_strategy, owner.spec.ordinals.start
    return 0 if strategy.type == ON_DELETE else start + strategy.rolling_update.partition


def ordinals_of(owner: StatefulSet) -> range:
    """Return the ordinals of the pods that `owner` should have."""
    start = owner.spec.ordinals.start
    return range(start, start + owner.spec.replicas)
