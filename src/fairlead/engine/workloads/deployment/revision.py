"""Revision annotations of a Deployment's ReplicaSets, for `kubectl rollout history` and `undo`.

A ReplicaSet has the number of the last revision with its template, and earlier numbers if the
template was restored.

upstream: pkg/controller/deployment/util/deployment_util.go:SetNewReplicaSetAnnotations,
SetDeploymentRevision, SetReplicasAnnotations, skipCopyAnnotation
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead.api.objects import ReplicaSet
from fairlead.api.text.integer import parse_int64
from fairlead.engine.workloads.deployment.rolling_update import Bounds

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
NOT_TOLD: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
)

Annotations = Mapping[str, str]


def number_in(annotations: Annotations, key: str) -> int | None:
    """Return the number in an annotation, None if there is none."""
    text = annotations.get(key, "")
    return parse_int64(text) if text.isdecimal() else None


def revision_of(one: ReplicaSet) -> int:
    """Return the revision of a ReplicaSet, 0 if it has none."""
    return number_in(one.metadata.annotations, REVISION) or 0


def next_revision(others: Iterable[ReplicaSet]) -> int:
    """Return a revision number above the revisions of `others`."""
    return max(map(revision_of, others), default=0) + 1


def size_annotations(bounds: Bounds) -> dict[str, str]:
    """Return the Deployment's size as annotations, for a ReplicaSet that is scaled."""
    return {DESIRED_REPLICAS: str(bounds.replicas), MAX_REPLICAS: str(bounds.max_pods)}


def copied_annotations(annotations: Annotations) -> dict[str, str]:
    """Return the annotations of a Deployment that its ReplicaSets get."""
    return {key: text for key, text in annotations.items() if key not in NOT_TOLD}


def revised(
    current: ReplicaSet, others: Iterable[ReplicaSet], deployment: Annotations
) -> Annotations:
    """Return the changes to the annotations of the `current` ReplicaSet."""
    before = current.metadata.annotations
    wanted = copied_annotations(deployment)
    own, revision = revision_of(current), next_revision(others)
    if own < revision:
        wanted[REVISION] = str(revision)
        if own:
            history = before.get(REVISION_HISTORY, "")
            wanted[REVISION_HISTORY] = f"{history},{own}" if history else str(own)
    return {key: text for key, text in wanted.items() if before.get(key) != text}
