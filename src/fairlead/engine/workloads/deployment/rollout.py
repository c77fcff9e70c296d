"""Rollout: a Deployment with its current ReplicaSet and its old ReplicaSets.

A Deployment creates a ReplicaSet if no ReplicaSet has its template. `rolling_update` computes the
sizes, and `sync` runs each step.

A cluster dump may contain a Deployment and its pods, but not the ReplicaSets between them. These
ReplicaSets are *implied*: the owner references of the pods contain their names,
`<deployment>-<pod-template-hash>`. The pods of implied ReplicaSets are controlled as if the
ReplicaSets existed.

upstream: pkg/controller/deployment/deployment_controller.go, sync.go:getNewReplicaSet
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import Deployment, OwnerReference, Pod, ReplicaSet
from fairlead.api.selector import selector_matches
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.deployment.revision import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    copied_annotations,
    next_revision,
    number_in,
    size_annotations,
)
from fairlead.engine.workloads.deployment.rolling_update import (
    ROLLING_UPDATE,
    Bounds,
    ReplicaSetState,
    Sizes,
    is_scaling,
    proportional,
)
from fairlead.engine.workloads.identity import object_ref, template_hash
from fairlead.engine.workloads.pod_control.pod_set import PodSet, pod_state
from fairlead.engine.workloads.pod_control.pod_template import (
    TEMPLATE_HASH_LABEL,
    controller_reference,
    read_template,
    resembles,
    same_template,
    with_labels,
)
from fairlead.engine.workloads.replica_set.rule import ReplicaSetRule

REPLICA_SET: Final = "ReplicaSet"
WHY_HISTORY: Final = "older than its Deployment's revision history"


class RequestedScale(Struct, frozen=True):
    """A size that was patched into a ReplicaSet but is not yet observed.

    The same patch contains `desired`, the Deployment's replicas, and `max_pods`, the Deployment's
    maximum number of pods.
    """

    replicas: int
    desired: int
    max_pods: int


class Rollout(Struct):
    """A Deployment and its ReplicaSets, by key."""

    key: str
    deployment: Deployment
    replica_sets: dict[str, ReplicaSet] = field(default_factory=dict)  # the known ReplicaSets
    # The pods of each ReplicaSet that is missing in a dump, although the dump contains its pods.
    implied: dict[str, PodSet] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # the desired sizes of implied ReplicaSets
    current: str = ""  # the key of the ReplicaSet that has `template`, "" if there is none
    template: Json = field(default_factory=dict)
    # Patched sizes that are not yet observed.
    requested: dict[str, RequestedScale] = field(default_factory=dict)
    # Keys of ReplicaSets with a patch in flight.
    writing: dict[str, None] = field(default_factory=dict)
    siblings: dict[str, PodSet] = field(default_factory=dict)
    creating: str = ""  # the name of the ReplicaSet that is being created, "" if there is none
    is_stale: bool = False  # whether an object changed while a write was in flight
    # Whether an event reported a new ReplicaSet with another template.
    is_mismatch_reported: bool = False
    collisions: int = 0
    failures: int = 0
    retry_at: Instant | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the Deployment's template describes a pod."""
        return read_template(self.deployment.spec.template) is not None

    @property
    def bounds(self) -> Bounds:
        """The limits of the rolling update."""
        spec = self.deployment.spec
        return Bounds.of(spec.strategy, spec.replicas)

    @property
    def ref(self) -> ObjectRef:
        """Object reference of the Deployment."""
        return object_ref(self.deployment)

    def imply(self, key: str, pods: PodSet) -> None:
        """Add an implied ReplicaSet; its initial size is the number of active `pods`.

        The module docstring explains implied ReplicaSets.
        """
        self.implied[key] = pods
        self.sizes[key] = len(pods.active)

    def find_current(self, *, is_loaded: bool = False) -> None:
        """Find the ReplicaSet with the Deployment's template and store its key in `current`.

        `is_loaded` is set if the objects come from a snapshot. In a snapshot, the templates of a
        Deployment and its ReplicaSet may differ because only one of them contains default values.
        If no ReplicaSet has an equal template, the choice depends on `is_loaded`. If `is_loaded` is
        set, the ReplicaSet with the Deployment's revision annotation is used. If no ReplicaSet has
        this revision, the implied ReplicaSet (see the module docstring) with the newest pod is
        used. If `is_loaded` is not set, an implied ReplicaSet whose pods resemble the template is
        used.
        """
        wanted = self.deployment.spec.template
        if self._is_present(self.current) and same_template(self.template, wanted):
            return
        found = self._with_template(wanted)
        if not found and is_loaded:
            found = self._with_revision() or _newest(self.implied)
        self.current = found or self._resembling(wanted)
        self.template = wanted

    def counted_states(
        self, sets: dict[str, PodSet], now: Instant
    ) -> tuple[ReplicaSetState | None, list[ReplicaSetState]]:
        """Return the states of the current ReplicaSet (or None) and of the old ReplicaSets.

        The numbers of available pods are counted from the pod sets `sets`.
        """
        min_ready = seconds(self.deployment.spec.min_ready_seconds)
        others = []
        current = None
        for key in (*self.replica_sets, *self.implied):
            pods = sets.get(key)
            part = self._state(key, 0 if pods is None else pods.available(min_ready, now))
            if key == self.current:
                current = part
            else:
                others.append(part)
        return current, others

    def _state(self, key: str, available: int) -> ReplicaSetState:
        if key in self.implied:
            pods = self.implied[key]
            created = (pod.metadata.creation_timestamp for pod in pods.pods.values())
            age = (min(created, default=""), pods.owner.name)
            return ReplicaSetState(key=key, replicas=self.sizes[key], available=available, age=age)
        one = self.replica_sets[key]
        requested = self.requested.get(key)
        annotations = one.metadata.annotations
        return ReplicaSetState(
            key=key,
            replicas=requested.replicas if requested else one.spec.replicas,
            available=available,
            age=(one.metadata.creation_timestamp, one.metadata.name),
            desired=requested.desired if requested else number_in(annotations, DESIRED_REPLICAS),
            max_pods=requested.max_pods if requested else number_in(annotations, MAX_REPLICAS),
        )

    def reported_states(self) -> tuple[ReplicaSetState | None, list[ReplicaSetState]]:
        """Return the states of the current ReplicaSet (or None) and of the old ReplicaSets.

        The numbers of available pods come from the status of the ReplicaSets.
        """
        parts = {key: _reported_state(key, one) for key, one in self.replica_sets.items()}
        return parts.pop(self.current, None), list(parts.values())

    def resized(self, new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> Sizes:
        """Return the ReplicaSet sizes to write if the Deployment was scaled or is paused."""
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
        # ReplicaSets whose size stays the same also get the new desired-replicas annotation.
        # Otherwise, `is_scaling` would stay True forever.
        stale = {key: size for key, size in before.items() if size and scaling}
        wanted = sizes | {key: size for key, size in stale.items() if key not in sizes}
        return {key: size for key, size in wanted.items() if scaling or size != before[key]}

    @property
    def has_reported_no_old_pods(self) -> bool:
        """Whether every old ReplicaSet reports 0 pods in its status."""
        # upstream: recreate.go:oldPodsRunning
        return not any(
            one.status.get("replicas")
            for key, one in self.replica_sets.items()
            if key != self.current
        )

    def has_no_old_pods(self, sets: dict[str, PodSet]) -> bool:
        """Return whether all pods of the old ReplicaSets have finished or are gone."""
        # upstream: recreate.go:oldPodsRunning
        return not any(
            pod_state(pod) not in ("succeeded", "failed")
            for key in (*self.replica_sets, *self.implied)
            if key != self.current and key in sets
            for pod in sets[key].pods.values()
        )

    def rule(self, key: str) -> ReplicaSetRule:
        """Return the rule for the pods of ReplicaSet `key`, which must be in `implied`."""
        name = self.implied[key].owner.name
        digest = name.removeprefix(f"{self.deployment.metadata.name}-")
        template = with_labels(self.template, {TEMPLATE_HASH_LABEL: digest})
        return ReplicaSetRule(self.sizes[key], template)

    def observe(self, key: str, replica_set: ReplicaSet) -> None:
        """Store the newest version of one of the Deployment's ReplicaSets."""
        self.replica_sets[key] = replica_set
        self.implied.pop(key, None)
        requested = self.requested.get(key)
        if requested is not None and requested.replicas == replica_set.spec.replicas:
            del self.requested[key]
        if self.creating == replica_set.metadata.name:
            self.creating, self.failures = "", 0

    def create(self, replicas: int) -> Command:
        """Return the command that creates the current ReplicaSet with `replicas` replicas."""
        # upstream: pkg/controller/deployment/sync.go:getNewReplicaSet
        digest = template_hash(self.deployment.spec.template, self.collisions)
        self.creating = f"{self.deployment.metadata.name}-{digest}"
        copied = copied_annotations(self.deployment.metadata.annotations)
        revision = next_revision(self.replica_sets.values())
        annotations = copied | size_annotations(self.bounds) | {REVISION: str(revision)}
        made = replica_set_manifest(self.deployment, self.creating, digest, replicas, annotations)
        return CreateObject(made)

    def scale(self, key: str, size: int) -> Command:
        """Return the command that scales the ReplicaSet `key` to `size`."""
        bounds = self.bounds
        self.requested[key] = RequestedScale(size, bounds.replicas, bounds.max_pods)
        self.writing[key] = None
        annotations = size_annotations(bounds)
        patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        return PatchObject(object_ref(self.replica_sets[key]), patch)

    def cleanup_commands(self, sets: dict[str, PodSet]) -> list[Command]:
        """Return the commands that delete old, empty ReplicaSets beyond revisionHistoryLimit."""
        # upstream: sync.go:cleanupDeployment
        old = [
            (number_in(one.metadata.annotations, REVISION) or 0, one.metadata.name, key)
            for key, one in self.replica_sets.items()
            if key != self.current and not is_ending(one)
        ]
        excess = len(old) - self.deployment.spec.revision_history_limit
        return [
            DeleteObject(object_ref(self.replica_sets[key]), why=WHY_HISTORY)
            for _, _, key in sorted(old)[: max(0, excess)]
            if not self.replica_sets[key].spec.replicas and key not in self.requested
            if key not in sets or not sets[key].active
            if not self.replica_sets[key].status.get("replicas")
        ]

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
            if pods.first is not None and resembles(wanted, pods.first)
        )
        return next(matches, "")


def _reported_state(key: str, one: ReplicaSet) -> ReplicaSetState:
    annotations = one.metadata.annotations
    return ReplicaSetState(
        key=key,
        replicas=one.spec.replicas,
        available=one.status.get("availableReplicas", 0),
        age=(one.metadata.creation_timestamp, one.metadata.name),
        desired=number_in(annotations, DESIRED_REPLICAS),
        max_pods=number_in(annotations, MAX_REPLICAS),
    )


def implied_by(deployment: Deployment, pods: PodSet) -> bool:
    """Return whether `pods` belong to an implied ReplicaSet of `deployment` (see the module)."""
    pod = pods.first
    return pod is not None and is_implied_replica_set(deployment, pods.owner, pod)


def is_implied_replica_set(deployment: Deployment, owner: OwnerReference, pod: Pod) -> bool:
    """Return whether `owner`, the controller of `pod`, seems to be a ReplicaSet of `deployment`."""
    digest = pod.metadata.labels.get(TEMPLATE_HASH_LABEL)
    return (
        owner.kind == REPLICA_SET
        and digest is not None
        and deployment.metadata.namespace == pod.metadata.namespace
        and owner.name == f"{deployment.metadata.name}-{digest}"
        and selector_matches(deployment.spec.selector, pod.metadata.labels)
    )


def is_ending(obj: ReplicaSet | Deployment) -> bool:
    """Return whether `obj` is being deleted."""
    return obj.metadata.deletion_timestamp != ""


def _newest(implied: dict[str, PodSet]) -> str:
    ages = [
        (max(pod.metadata.creation_timestamp for pod in pods.pods.values()), key)
        for key, pods in implied.items()
        if pods.pods
    ]
    return max(ages)[1] if ages else ""


def replica_set_manifest(
    deployment: Deployment, name: str, digest: str, replicas: int, annotations: Mapping[str, str]
) -> Json:
    """Return the manifest of the ReplicaSet `name` of `deployment`.

    `digest` is the pod-template-hash of the ReplicaSet, `replicas` is its number of pods, and
    `annotations` are all of its annotations.
    """
    meta, spec = deployment.metadata, deployment.spec
    label = {TEMPLATE_HASH_LABEL: digest}
    template = with_labels(spec.template, label)
    body: Json = {
        "replicas": replicas,
        "selector": _selector(deployment, label),
        "template": template,
    }
    if spec.min_ready_seconds:
        body["minReadySeconds"] = spec.min_ready_seconds
    owner = OwnerReference(api_version="apps/v1", kind="Deployment", name=meta.name, uid=meta.uid)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": dict(annotations),
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": body,
    }


def _selector(deployment: Deployment, label: dict[str, str]) -> Json:
    selector = deployment.spec.selector
    if selector is None:
        return {"matchLabels": label}
    own: Json = {"matchLabels": {**selector.match_labels, **label}}
    if selector.match_expressions:
        own["matchExpressions"] = [as_json(one) for one in selector.match_expressions]
    return own
