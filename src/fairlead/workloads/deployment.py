"""Deployments: which ReplicaSet has the Deployment's template, and how many replicas each wants.

A Deployment makes a ReplicaSet for its template unless it has one, and scales: the one with the
template as the Deployment says, all others to nothing. Differs from upstream for now: a changed
template moves all replicas at once, where a rolling update would go step by step.

A dump may hold a Deployment and its pods but not the ReplicaSets between them. Those are
*implied*: the pods' owner reference names them, `<deployment>-<pod-template-hash>`, and they are
ruled from here as if they were there.

upstream: pkg/controller/deployment/deployment_controller.go, sync.go:getNewReplicaSet, scale
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.api.objects import Deployment, OwnerReference, Pod, ReplicaSet
from fairlead.api.selector import selector_matches
from fairlead.core.command import Command, CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.core.instant import Instant
from fairlead.workloads.generated_name import template_hash
from fairlead.workloads.pod_set import PodSet
from fairlead.workloads.pod_template import (
    TEMPLATE_HASH_LABEL,
    read_template,
    resembles,
    same_template,
    with_labels,
)
from fairlead.workloads.replicas import Replicas

Json = dict[str, Any]

REVISION: Final = "deployment.kubernetes.io/revision"
REPLICA_SET: Final = "ReplicaSet"
WHY_OWNER_DELETED: Final = "its owner was deleted"


@dataclass(slots=True)
class Rollout:
    """A Deployment with its ReplicaSets, known and implied, by their keys.

    `current` is the key of the one whose pods `template` describes, "" while there is none.
    `asked` are replica counts patched and not yet seen, `birth` is the name of a ReplicaSet
    under way.
    """

    key: str
    deployment: Deployment
    replica_sets: dict[str, ReplicaSet] = field(default_factory=dict)
    implied: dict[str, PodSet] = field(default_factory=dict)
    current: str = ""
    template: Json = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    birth: str = ""
    collisions: int = 0
    failures: int = 0
    retry_at: Instant | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the Deployment's template describes a pod."""
        return read_template(self.deployment.spec.template) is not None

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

    def commands(self) -> list[Command]:
        """The ReplicaSet to make, or those to scale."""
        if not self.current:
            return [] if self.birth or self.retry_at is not None else [self._create()]
        return [
            self._scale(key, replica_set, wanted)
            for key, replica_set in self.replica_sets.items()
            if (wanted := self.wanted(key)) not in (replica_set.spec.replicas, self.asked.get(key))
        ]

    def wanted(self, key: str) -> int:
        """How many replicas the ReplicaSet `key` should have."""
        return self.deployment.spec.replicas if key == self.current else 0

    def rule(self, key: str) -> Replicas:
        """What the implied ReplicaSet `key` wants of its pods."""
        name = self.implied[key].owner.name
        digest = name.removeprefix(f"{self.deployment.metadata.name}-")
        return Replicas(self.wanted(key), with_labels(self.template, {TEMPLATE_HASH_LABEL: digest}))

    def see(self, key: str, replica_set: ReplicaSet) -> None:
        """Take the newest version of one of its ReplicaSets."""
        self.replica_sets[key] = replica_set
        self.implied.pop(key, None)
        if self.asked.get(key) == replica_set.spec.replicas:
            del self.asked[key]
        if self.birth == replica_set.metadata.name:
            self.birth, self.failures = "", 0

    def burial(self) -> list[Command]:
        """The Deployment is gone: its ReplicaSets go too."""
        return [
            DeleteObject(_ref(REPLICA_SET, replica_set), why=WHY_OWNER_DELETED)
            for replica_set in self.replica_sets.values()
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
            if any(resembles(wanted, pod) for pod in list(pods.pods.values())[:1])
        )
        return next(matches, "")

    def _create(self) -> Command:
        # upstream: pkg/controller/deployment/sync.go:getNewReplicaSet
        meta, spec = self.deployment.metadata, self.deployment.spec
        digest = template_hash(spec.template, self.collisions)
        label = {TEMPLATE_HASH_LABEL: digest}
        template = with_labels(spec.template, label)
        self.birth = f"{meta.name}-{digest}"
        return CreateObject(
            {
                "apiVersion": "apps/v1",
                "kind": REPLICA_SET,
                "metadata": {
                    "name": self.birth,
                    "namespace": meta.namespace,
                    "labels": template["metadata"]["labels"],
                    "ownerReferences": [_reference(self.deployment)],
                },
                "spec": {
                    "replicas": spec.replicas,
                    "selector": _selector(self.deployment, label),
                    "template": template,
                },
            }
        )

    def _scale(self, key: str, replica_set: ReplicaSet, wanted: int) -> Command:
        self.asked[key] = wanted
        return PatchObject(_ref(REPLICA_SET, replica_set), {"spec": {"replicas": wanted}})


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


def _selector(deployment: Deployment, label: dict[str, str]) -> Json:
    selector = deployment.spec.selector
    if selector is None:
        return {"matchLabels": label}
    own: Json = {"matchLabels": {**selector.match_labels, **label}}
    if selector.match_expressions:
        own["matchExpressions"] = [
            {"key": one.key, "operator": one.operator, "values": list(one.values)}
            for one in selector.match_expressions
        ]
    return own


def _reference(deployment: Deployment) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": deployment.metadata.name,
        "uid": deployment.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _ref(kind: str, one: ReplicaSet | Deployment) -> ObjectRef:
    meta = one.metadata
    return ObjectRef(kind, meta.namespace, meta.name, meta.uid)
