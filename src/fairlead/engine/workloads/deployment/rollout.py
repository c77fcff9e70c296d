"""Deployments: which ReplicaSet has the Deployment's template, and which others are left.

A Deployment makes a ReplicaSet for its template unless it has one; `rolling_update` says how many
replicas each one has while they change places, `rollouts` drives it.

A dump may hold a Deployment and its pods but not the ReplicaSets between them. Those are
*implied*: the pods' owner reference names them, `<deployment>-<pod-template-hash>`, and they are
ruled from here as if they were there.

upstream: pkg/controller/deployment/deployment_controller.go, sync.go:getNewReplicaSet
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import Deployment, OwnerReference, Pod, ReplicaSet
from fairlead.api.selector import selector_matches
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.deployment.replica_set_manifest import replica_set_manifest
from fairlead.engine.workloads.deployment.revision import (
    DESIRED,
    MOST,
    REVISION,
    next_revision,
    number_in,
    size_annotations,
    told_annotations,
)
from fairlead.engine.workloads.deployment.rolling_update import (
    ROLLING_UPDATE,
    Bounds,
    Part,
    Sizes,
    is_scaling,
    proportional,
)
from fairlead.engine.workloads.pod_control.generated_name import template_hash
from fairlead.engine.workloads.pod_control.pod_set import PodSet, pod_state
from fairlead.engine.workloads.pod_control.pod_template import (
    TEMPLATE_HASH_LABEL,
    read_template,
    resembles,
    same_template,
    with_labels,
)
from fairlead.engine.workloads.replica_set.rule import Replicas

REPLICA_SET: Final = "ReplicaSet"
WHY_HISTORY: Final = "older than its Deployment's revision history"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a ReplicaSet was patched to and does not show yet."""

    replicas: int
    desired: int
    most: int


@dataclass(slots=True)
class Rollout:
    """A Deployment with its ReplicaSets, known and implied, by their keys.

    `current` is the key of the one whose pods `template` describes, "" while there is none.
    `sizes` are what implied ones should have, `asked` what was patched and is not yet seen,
    `writing` are the keys of those whose patch is not answered yet, `birth` is the name of a
    ReplicaSet under way; it `is_stale` where something changed meanwhile.
    """

    key: str
    deployment: Deployment
    replica_sets: dict[str, ReplicaSet] = field(default_factory=dict)
    implied: dict[str, PodSet] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    current: str = ""
    template: Json = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    writing: dict[str, None] = field(default_factory=dict)
    kin: dict[str, PodSet] = field(default_factory=dict)
    birth: str = ""
    is_stale: bool = False
    collisions: int = 0
    failures: int = 0
    retry_at: Instant | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the Deployment's template describes a pod."""
        return read_template(self.deployment.spec.template) is not None

    @property
    def bounds(self) -> Bounds:
        """How far the rollout may stray from what is wanted."""
        spec = self.deployment.spec
        return Bounds.of(spec.strategy, spec.replicas)

    @property
    def ref(self) -> ObjectRef:
        """The identity of the Deployment."""
        return _ref("Deployment", self.deployment)

    def imply(self, key: str, pods: PodSet) -> None:
        """Take `pods` for those of a ReplicaSet that is not known; they are as many as there are.

        Where the Deployment has no other, those that are missing were lost and are wanted back.
        """
        self.implied[key] = pods
        self.sizes[key] = len(pods.active)

    def find_current(self, *, is_loaded: bool = False) -> None:
        """Decide whose template the Deployment has; `is_loaded` trusts a snapshot's other signs."""
        wanted = self.deployment.spec.template
        if self._is_present(self.current) and same_template(self.template, wanted):
            return
        found = self._with_template(wanted)
        if not found and is_loaded:
            found = self._with_revision() or _newest(self.implied)
        self.current = found or self._resembling(wanted)
        self.template = wanted

    def parts(self, sets: dict[str, PodSet], now: Instant) -> tuple[Part | None, list[Part]]:
        """The current ReplicaSet, if there is one, and the others."""
        min_ready = seconds(self.deployment.spec.min_ready_seconds)
        others = []
        current = None
        for key in (*self.replica_sets, *self.implied):
            pods = sets.get(key)
            part = self._part(key, 0 if pods is None else pods.available(min_ready, now))
            if key == self.current:
                current = part
            else:
                others.append(part)
        return current, others

    def _part(self, key: str, available: int) -> Part:
        if key in self.implied:
            pods = self.implied[key]
            age = (_oldest_pod(pods), pods.owner.name)
            return Part(key=key, replicas=self.sizes[key], available=available, age=age)
        one = self.replica_sets[key]
        asked = self.asked.get(key)
        annotations = one.metadata.annotations
        return Part(
            key=key,
            replicas=asked.replicas if asked else one.spec.replicas,
            available=available,
            age=(one.metadata.creation_timestamp, one.metadata.name),
            desired=asked.desired if asked else number_in(annotations, DESIRED),
            most=asked.most if asked else number_in(annotations, MOST),
        )

    def told_parts(self) -> tuple[Part | None, list[Part]]:
        """The same of the known ones, as they say themselves."""
        parts = {key: _told_part(key, one) for key, one in self.replica_sets.items()}
        return parts.pop(self.current, None), list(parts.values())

    def resized(self, new: Part | None, old: Sequence[Part]) -> Sizes:
        """What each ReplicaSet should have after a change of size, or while all is paused."""
        spec, parts = self.deployment.spec, [*old, *((new,) if new is not None else ())]
        sizes = proportional(
            new,
            old,
            self.bounds,
            is_rolling=spec.strategy.type == ROLLING_UPDATE,
            reported=self.deployment.status.get("replicas", 0),
        )
        scaling = is_scaling(parts, spec.replicas)
        before = {one.key: one.replicas for one in parts}
        # Those whose size stays must learn of the new whole, too, or it would never be over.
        stale = {key: size for key, size in before.items() if size and scaling}
        wanted = sizes | {key: size for key, size in stale.items() if key not in sizes}
        return {key: size for key, size in wanted.items() if scaling or size != before[key]}

    @property
    def is_told_quiet(self) -> bool:
        """Whether old ReplicaSets say that they have no pods."""
        # upstream: recreate.go:oldPodsRunning
        return not any(
            one.status.get("replicas")
            for key, one in self.replica_sets.items()
            if key != self.current
        )

    def is_quiet(self, sets: dict[str, PodSet]) -> bool:
        """Whether no pod of an old ReplicaSet lives any more, not even on its way out."""
        # upstream: recreate.go:oldPodsRunning
        return not any(
            pod_state(pod) not in ("succeeded", "failed")
            for key in (*self.replica_sets, *self.implied)
            if key != self.current and key in sets
            for pod in sets[key].pods.values()
        )

    def rule(self, key: str) -> Replicas:
        """What the implied ReplicaSet `key` wants of its pods."""
        name = self.implied[key].owner.name
        digest = name.removeprefix(f"{self.deployment.metadata.name}-")
        template = with_labels(self.template, {TEMPLATE_HASH_LABEL: digest})
        return Replicas(self.sizes[key], template)

    def see(self, key: str, replica_set: ReplicaSet) -> None:
        """Take the newest version of one of its ReplicaSets."""
        self.replica_sets[key] = replica_set
        self.implied.pop(key, None)
        asked = self.asked.get(key)
        if asked is not None and asked.replicas == replica_set.spec.replicas:
            del self.asked[key]
        if self.birth == replica_set.metadata.name:
            self.birth, self.failures = "", 0

    def create(self, replicas: int) -> Command:
        """The ReplicaSet for the Deployment's template, with so many replicas for a start."""
        # upstream: pkg/controller/deployment/sync.go:getNewReplicaSet
        digest = template_hash(self.deployment.spec.template, self.collisions)
        self.birth = f"{self.deployment.metadata.name}-{digest}"
        annotations = self._annotations()
        made = replica_set_manifest(self.deployment, self.birth, digest, replicas, annotations)
        return CreateObject(made)

    def scale(self, key: str, size: int) -> Command:
        """Let the known ReplicaSet `key` have `size` replicas."""
        bounds = self.bounds
        self.asked[key] = Asked(size, bounds.replicas, bounds.most)
        self.writing[key] = None
        annotations = size_annotations(bounds)
        patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        return PatchObject(_ref(REPLICA_SET, self.replica_sets[key]), patch)

    def forgettable(self, sets: dict[str, PodSet]) -> list[Command]:
        """Delete old, empty ReplicaSets beyond the revision history."""
        # upstream: sync.go:cleanupDeployment
        old = [
            (number_in(one.metadata.annotations, REVISION) or 0, one.metadata.name, key)
            for key, one in self.replica_sets.items()
            if key != self.current and not is_ending(one)
        ]
        excess = len(old) - self.deployment.spec.revision_history_limit
        return [
            DeleteObject(_ref(REPLICA_SET, self.replica_sets[key]), why=WHY_HISTORY)
            for _, _, key in sorted(old)[: max(0, excess)]
            if not self.replica_sets[key].spec.replicas and key not in self.asked
            if key not in sets or not sets[key].active
            if not self.replica_sets[key].status.get("replicas")
        ]

    def _annotations(self) -> dict[str, str]:
        """What a new ReplicaSet says of the Deployment as it is now."""
        told = told_annotations(self.deployment.metadata.annotations)
        revision = next_revision(self.replica_sets.values())
        return told | size_annotations(self.bounds) | {REVISION: str(revision)}

    def _is_present(self, key: str) -> bool:
        return key in self.replica_sets or key in self.implied

    def _with_template(self, wanted: Json) -> str:
        # upstream: deployment_util.go:FindNewReplicaSet takes the oldest match
        matches = [
            (one.metadata.creation_timestamp, one.metadata.name, key)
            for key, one in self.replica_sets.items()
            if same_template(one.spec.template, wanted) and not is_ending(one)
        ]
        return min(matches)[2] if matches else ""

    def _with_revision(self) -> str:
        revision = self.deployment.metadata.annotations.get(REVISION, "")
        matches = (
            key
            for key, one in self.replica_sets.items()
            if revision and one.metadata.annotations.get(REVISION) == revision
        )
        return next(matches, "")

    def _resembling(self, wanted: Json) -> str:
        matches = (
            key
            for key, pods in self.implied.items()
            if any(resembles(wanted, pod) for pod in list(pods.pods.values())[:1])
        )
        return next(matches, "")


def _told_part(key: str, one: ReplicaSet) -> Part:
    annotations = one.metadata.annotations
    return Part(
        key=key,
        replicas=one.spec.replicas,
        available=one.status.get("availableReplicas", 0),
        age=(one.metadata.creation_timestamp, one.metadata.name),
        desired=number_in(annotations, DESIRED),
        most=number_in(annotations, MOST),
    )


def _oldest_pod(pods: PodSet) -> str:
    return min((pod.metadata.creation_timestamp for pod in pods.pods.values()), default="")


def implied_by(deployment: Deployment, pods: PodSet) -> bool:
    """Whether the ReplicaSet that owns `pods`, though unknown, must be one of `deployment`'s."""
    pod = next(iter(pods.pods.values()), None)
    return pod is not None and stands_behind(deployment, pods.owner, pod)


def stands_behind(deployment: Deployment, owner: OwnerReference, pod: Pod) -> bool:
    """Whether `owner`, which controls `pod`, is named and selected as `deployment`'s would be."""
    digest = pod.metadata.labels.get(TEMPLATE_HASH_LABEL)
    return (
        owner.kind == REPLICA_SET
        and digest is not None
        and deployment.metadata.namespace == pod.metadata.namespace
        and owner.name == f"{deployment.metadata.name}-{digest}"
        and selector_matches(deployment.spec.selector, pod.metadata.labels)
    )


def is_ending(one: ReplicaSet | Deployment) -> bool:
    """Whether the deletion of `one` has begun."""
    return one.metadata.deletion_timestamp != ""


def _newest(implied: dict[str, PodSet]) -> str:
    ages = [
        (max(pod.metadata.creation_timestamp for pod in pods.pods.values()), key)
        for key, pods in implied.items()
        if pods.pods
    ]
    return max(ages)[1] if ages else ""


def _ref(kind: str, one: ReplicaSet | Deployment) -> ObjectRef:
    meta = one.metadata
    return ObjectRef(kind, meta.namespace, meta.name, meta.uid)
